//! Stored bytes yield the same statistics as arrays, however requests cut them.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_array::{Array, ArrayRef};
use arrow_buffer::Buffer;
use proptest::prelude::*;

use super::super::{Learner, Observed};
use super::ID;
use crate::catalogue::{ByteOrder, Charset, Class, Datatype, Elements, EnumerationMember, Fill, FloatFormat, Padding};
use crate::source::Interrupt;
use crate::store::decode::{FillTest, Oddities, arrow_type};
use crate::store::statistics::{GRAIN, Statistics, Summary, summary};
use crate::store::{
    ARRAY_BYTES, Budget, ChunkDecoding, Coded, Error, Facts, Lent, PlainElements, RowRange, Rows, Span, StoredBytes,
    StoredFacts, Summaries,
};

/// Elements of a dataset, as they are stored.
#[derive(Debug)]
struct Stored {
    datatype: Datatype,
    fill: FillTest,
    bytes: Vec<u8>,
    facts: Facts,
    budget: Budget,
    /// Arrays made.
    arrays: AtomicUsize,
}

impl Stored {
    fn new(datatype: Datatype, fill: Option<Vec<u8>>, bytes: Vec<u8>) -> Self {
        let fill = fill.map_or(Fill::Default, |bytes| Fill::Explicit(Elements { bytes, heap: Vec::new() }));
        Self {
            facts: Facts {
                nullable: true,
                stored: StoredFacts { width: Some(datatype.size), datatype: None, decoded: ChunkDecoding::Always },
                ..Facts::new(bytes.len() as u64 / datatype.size, arrow_type(&datatype))
            },
            fill: FillTest::new(&datatype, &fill),
            datatype,
            bytes,
            budget: Budget::new(1 << 30),
            arrays: AtomicUsize::new(0),
        }
    }

    fn elements(&self) -> PlainElements<'_> {
        PlainElements { datatype: &self.datatype, data_type: &self.facts.data_type, missing: &self.fill }
    }
}

impl Rows for Stored {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn array(&self, range: RowRange, _: &Interrupt) -> Result<ArrayRef, Error> {
        self.arrays.fetch_add(1, Ordering::Relaxed);
        let [start, end] = [range.start, range.end].map(|row| (row * self.datatype.size) as usize);
        let count = (range.end - range.start) as usize;
        Ok(self.elements().array(self.bytes[start..end].into(), count, &mut Oddities::new()).unwrap())
    }

    fn bytes(&self) -> Option<&dyn StoredBytes> {
        Some(self)
    }

    fn coded(&self) -> Option<&dyn Coded> {
        Some(self)
    }
}

impl StoredBytes for Stored {
    fn append(&self, offset: u64, length: usize, out: &mut Vec<u8>, _: &Interrupt) -> Result<(), Error> {
        out.extend_from_slice(&self.bytes[offset as usize..][..length]);
        Ok(())
    }

    fn span(&self, offset: u64, length: usize, _: &Interrupt) -> Result<Span, Error> {
        let lent = Lent::made(&self.budget, length, |out| {
            out.copy_from_slice(&self.bytes[offset as usize..][..length]);
            Ok::<_, Error>(())
        });
        Ok(Span::Lent(lent?.unwrap()))
    }
}

impl Coded for Stored {
    fn values(&self, bytes: Buffer) -> Option<ArrayRef> {
        self.elements().stored_values(bytes)
    }

    fn summary_of(&self, values: &dyn Array, _: &Interrupt) -> Option<Summary> {
        self.elements().summary_of(values)
    }

    fn sound_summary_of(&self, values: &dyn Array, _: &Interrupt) -> Option<Summary> {
        self.elements().sound_summary_of(values)
    }
}

/// Requests these bytes in this order: `threads` threads take the next one each; every other request borrows.
fn read(rows: &Arc<Stored>, requests: &[Range<u64>], threads: u64) -> Learner {
    let learner = Arc::new(Learner::new(&std::sync::Weak::new(), "/t/x", ID, rows.as_ref()).unwrap());
    let observed = Observed::new(rows.clone(), learner.clone());
    let next = AtomicUsize::new(0);
    let ask = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(request) = requests.get(at) else { return };
            let (offset, length) = (request.start, (request.end - request.start) as usize);
            let expected = &rows.bytes[offset as usize..][..length];
            if at.is_multiple_of(2) {
                let span = observed.span(offset, length, &Interrupt::new()).unwrap();
                assert!(matches!(span, Span::Lent(lent) if *lent == *expected));
            } else {
                let mut out = vec![7; 3];
                observed.append(offset, length, &mut out, &Interrupt::new()).unwrap();
                assert_eq!(out[3..], *expected);
            }
        }
    };
    std::thread::scope(|scope| {
        (1..threads).for_each(|_| drop(scope.spawn(ask)));
        ask();
    });
    drop(observed);
    Arc::into_inner(learner).unwrap()
}

/// The statistics from arrays of all rows.
fn by_array(rows: &Arc<Stored>) -> Arc<Statistics> {
    let learner = Arc::new(Learner::new(&std::sync::Weak::new(), "/t/x", ID, rows.as_ref()).unwrap());
    Observed::new(rows.clone(), learner.clone()).array(0..rows.facts().len, &Interrupt::new()).unwrap();
    learner.known().unwrap()
}

/// Summaries from the bytes and from their array; and whether the array has an odd value, unless the bytes suffice to
/// rule that out.
fn both(datatype: Datatype, fill: Option<Vec<u8>>, bytes: Vec<u8>) -> ([Option<Summary>; 2], Option<bool>) {
    let rows = Stored::new(datatype, fill, bytes);
    let values = rows.values(rows.bytes.as_slice().into()).unwrap();
    let mut oddities = Oddities::new();
    let array = rows.elements().array(rows.bytes.as_slice().into(), rows.facts().len as usize, &mut oddities).unwrap();
    let summary = summary(array.as_ref());
    let sound = rows.elements().sound_summary_of(values.as_ref());
    assert!(sound.is_none() || oddities.is_empty() && sound == summary, "{sound:?}, {summary:?}, {oddities:?}");
    let open = sound.is_none().then_some(!oddities.is_empty());
    ([rows.summary_of(values.as_ref(), &Interrupt::new()), summary], open)
}

fn text(size: u64, padding: Padding) -> Datatype {
    Datatype { size, class: Class::FixedString { padding, charset: Charset::Utf8 } }
}

fn float(size: u64, format: FloatFormat, order: ByteOrder) -> Datatype {
    Datatype { size, class: Class::Float { order, format } }
}

fn enumeration(size: u64, members: &[(&str, i128)]) -> Datatype {
    let members =
        members.iter().map(|(name, value)| EnumerationMember { name: (*name).into(), value: *value }).collect();
    Datatype { size, class: Class::Enum { base: Box::new(Datatype::integer(size, true, ByteOrder::Little)), members } }
}

/// Types whose bytes are read in different ways.
fn datatypes() -> Vec<Datatype> {
    use ByteOrder::{Big, Little};
    vec![
        Datatype::integer(1, true, Little),
        Datatype::integer(1, false, Little),
        Datatype::integer(2, true, Big),
        Datatype::integer(4, false, Little),
        Datatype::integer(8, true, Little),
        Datatype::integer(8, false, Big),
        Datatype::integer(3, true, Big),
        Datatype { size: 4, class: Class::Integer { signed: true, order: Little, precision: 9, offset: 3 } },
        float(2, FloatFormat::Half, Little),
        float(4, FloatFormat::Single, Little),
        float(4, FloatFormat::Single, Big),
        float(8, FloatFormat::Double, Little),
        float(8, FloatFormat::Double, Big),
        enumeration(1, &[("FALSE", 0), ("TRUE", 1)]),
        enumeration(2, &[("off", 0), ("on", 1)]),
        enumeration(1, &[("c", 0), ("d", 1), ("a", -1), ("b", 2), ("again", 1)]),
        enumeration(4, &[("c", -3), ("d", 1), ("a", 2), ("b", 300)]),
        text(5, Padding::NullPadded),
        text(8, Padding::NullPadded),
        text(12, Padding::NullPadded),
        text(16, Padding::NullPadded),
        text(70, Padding::NullPadded),
        text(8, Padding::NullTerminated),
        text(20, Padding::NullTerminated),
        text(3, Padding::SpacePadded),
        text(16, Padding::SpacePadded),
        text(70, Padding::SpacePadded),
        Datatype { size: 12, class: Class::Opaque { tag: "x".into() } },
    ]
}

/// Elements of which many are alike, some have odd bits (NaN, zeros of both signs), and some are the fill value.
fn elements(datatype: &Datatype, rows: usize, seed: u64) -> (Vec<u8>, Vec<u8>) {
    let width = datatype.size as usize;
    let mut state = seed | 1;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let is_text = matches!(datatype.class, Class::FixedString { .. });
    let is_enum = matches!(datatype.class, Class::Enum { .. });
    let mut special: Vec<Vec<u8>> = [0x00, 0x7f, 0x80, 0xff, 0x01].map(|byte| vec![byte; width]).into();
    // −0.0, +0.0, NaN and infinity, in both orders.
    for pattern in [&[0x80][..], &[0x7f, 0xc0, 1], &[0x7f, 0xf8, 1], &[0x7f, 0x80], &[0x7f, 0xf0], &[0x7c, 0x00]] {
        let mut bytes = vec![0; width];
        bytes.iter_mut().zip(pattern).for_each(|(byte, pattern)| *byte = *pattern);
        special.push(bytes.clone());
        bytes.reverse();
        special.push(bytes);
    }
    let fill = special[random() as usize % special.len()].clone();
    let mut bytes = Vec::with_capacity(rows * width);
    for _ in 0..rows {
        match random() % 8 {
            0 if !is_text => bytes.extend(&special[random() as usize % special.len()]),
            1 => bytes.extend(&fill),
            2 if is_enum => bytes.extend((0..width).map(|place| if place == 0 { random() as u8 % 4 } else { 0 })),
            _ => bytes.extend((0..width).map(|_| if is_text { b'a' + (random() % 3) as u8 } else { random() as u8 })),
        }
    }
    (bytes, fill)
}

/// Requests that cover all bytes, none shorter than `least` but the last.
fn requests(bytes: u64, least: u64, most: u64, seed: u64) -> Vec<Range<u64>> {
    let mut state = seed | 1;
    let mut requests = Vec::new();
    let mut start = 0;
    while start < bytes {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mut end = (start + least + (state >> 33) % (most - least + 1)).min(bytes);
        if bytes - end < least {
            end = bytes;
        }
        requests.push(start..end);
        start = end;
    }
    requests
}

proptest! {
    #[test]
    fn strings_teach_as_they_are_what_their_texts_do(
        width in prop_oneof![1..24usize, Just(8), Just(16), 60..80usize],
        padding in prop::sample::select(vec![Padding::NullTerminated, Padding::NullPadded, Padding::SpacePadded]),
        // Clean texts; spaces and NUL among them; whole characters, or cut where cells end; what is no text.
        alphabet in prop::sample::select(vec![
            vec!["a", "b"], vec!["a", " ", "\0"], vec!["a", "é", "日", "\0"],
            vec!["a", "b", "\x01", " ", "\0", "é", "\u{ff}"],
        ]),
        cells in prop::collection::vec(prop::collection::vec(any::<prop::sample::Index>(), 0..24), 1..400),
        prefix in 0..20usize,
        filling in prop::sample::select(b"\0 ".to_vec()),
        odd in any::<Option<prop::sample::Index>>(),
        fill in any::<Option<prop::sample::Index>>(), times in prop::sample::select(vec![1usize, 40]),
    ) {
        let cells: Vec<Vec<u8>> = cells.iter().map(|cell| {
            let mut text = "x".repeat(prefix).into_bytes();
            text.extend(cell.iter().flat_map(|at| at.get(&alphabet).bytes()));
            text.resize(width, filling);
            text
        }).collect();
        let mut bytes = cells.concat().repeat(times);
        if let Some(odd) = odd {
            let at = odd.index(bytes.len());
            bytes[at] = 0xff;
        }
        let fill = fill.map(|at| at.get(&cells).clone());
        // What is no text and stands for missing ones is not odd, which bytes do not settle.
        let is_settled = padding == Padding::NullPadded && fill.is_none();
        let ([stored, array], open) = both(text(width as u64, padding), fill, bytes);
        prop_assert_eq!(stored, array);
        prop_assert!(open != Some(false) || !is_settled);
    }

    #[test]
    fn enumerations_teach_as_they_are_what_their_names_do(
        size in prop::sample::select(vec![1u64, 2, 3, 4, 8]), big in any::<bool>(),
        names in prop::collection::vec("[a-c]{0,2}|b{64,66}|é|[0-9]", 1..20), least in -5i128..5, gap in 1..3i128,
        codes in prop::collection::vec(0..60u64, 1..3000), most in 1..60u64, far in any::<bool>(),
        fill in any::<Option<prop::sample::Index>>(),
    ) {
        let members: Vec<_> = names.iter().zip(0..).map(|(name, at)| (name.as_str(), least + at * gap)).collect();
        let mut datatype = enumeration(size, &members);
        if let Class::Enum { base, .. } = &mut datatype.class {
            **base = Datatype::integer(size, true, if big { ByteOrder::Big } else { ByteOrder::Little });
        }
        let cells: Vec<Vec<u8>> = codes.iter().zip(0..).map(|(code, at)| {
            let code = if far && at == 7 { i64::MIN } else { least as i64 + (code % most) as i64 };
            let mut cell = code.to_le_bytes()[..size as usize].to_vec();
            if big {
                cell.reverse();
            }
            cell
        }).collect();
        let fill = fill.map(|at| at.get(&cells).clone());
        let ([stored, array], open) = both(datatype, fill, cells.concat());
        prop_assert_eq!(stored, array);
        prop_assert!(open != Some(false) || far);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, ..ProptestConfig::default() })]

    #[test]
    fn stored_bytes_teach_what_arrays_do(
        seed in any::<u64>(),
        rows in prop_oneof![1..200usize, GRAIN as usize - 1..GRAIN as usize + 2, Just(2 * GRAIN as usize + 77)],
        has_fill in any::<bool>(), in_order in any::<bool>(), threads in 1..3u64,
    ) {
        for datatype in datatypes() {
            let (bytes, fill) = elements(&datatype, rows, seed);
            let (length, width) = (bytes.len() as u64, datatype.size);
            let rows = Arc::new(Stored::new(datatype.clone(), has_fill.then_some(fill), bytes));
            // Going forward, of any length; else with a whole row each.
            let least = if in_order && length < 10_000 { 1 } else { 2 * width };
            let mut requests = requests(length, least, (length / 7).max(least), seed);
            if !in_order {
                requests.reverse();
                let middle = requests.len() / 3;
                requests.rotate_left(middle);
                // Some twice, cut elsewhere.
                requests.extend_from_within(..middle);
                requests.push(length / 5..length / 2);
            }
            let threads = if in_order { 1 } else { threads };
            let found = read(&rows, &requests, threads).known();
            let found = found.unwrap_or_else(|| panic!("{datatype:?}: {requests:?}"));
            let expected = by_array(&rows);
            let (_, open) = both(datatype.clone(), None, rows.bytes.clone());
            let has_cells = matches!(datatype.class, Class::FixedString { .. });
            prop_assert!(open != Some(false) || has_cells, "{:?} would be sound", datatype);
            let learner = Arc::new(Learner::new(&std::sync::Weak::new(), "/t/x", ID, rows.as_ref()).unwrap());
            let observed = Observed::new(rows.clone(), learner.clone());
            let scan = |part: Range<u64>| Summaries::scan(&observed, part, &Interrupt::new()).unwrap();
            let cut = rows.facts().len / 3;
            // The end first.
            if let Some((end, start)) = scan(cut..rows.facts().len).zip(scan(0..cut)) {
                let all = summary(rows.array(0..rows.facts().len, &Interrupt::new()).unwrap().as_ref());
                prop_assert_eq!(format!("{:?}", Some(start.merge(end))), format!("{:?}", all));
                prop_assert_eq!(format!("{:?}", learner.known()), format!("{:?}", Some(&expected)), "{:?}", datatype);
            }
            for block in 0..expected.blocks() {
                let range = block * GRAIN..((block + 1) * GRAIN).min(rows.facts().len);
                // By bits: -0.0 and 0.0 are equal.
                let [found, expected] = [&found, &expected].map(|known| format!("{:?}", known.over(range.clone())));
                prop_assert_eq!(found, expected, "{:?}, block {}", datatype, block);
            }
        }
    }
}

#[test]
fn rows_too_long_for_a_copy_are_not_scanned() {
    let size = ARRAY_BYTES + 1;
    let rows = Arc::new(Stored::new(Datatype { size, class: Class::Opaque { tag: "x".into() } }, None, Vec::new()));
    let learner = Learner::new(&std::sync::Weak::new(), "/t/x", ID, rows.as_ref()).unwrap();
    let observed = Observed::new(rows, Arc::new(learner));
    // Nothing is read: there are no bytes.
    assert_eq!(Summaries::scan(&observed, 0..1, &Interrupt::new()).unwrap(), None);
}

#[test]
fn what_is_only_copied_teaches_nothing() {
    let bytes = vec![1; 800];
    let mut rows = Stored::new(Datatype::integer(8, true, ByteOrder::Little), None, bytes);
    rows.facts.stored.decoded = ChunkDecoding::Never;
    let learner = read(&Arc::new(rows), &[0..300, 300..800], 1);
    assert!(!learner.has_seen(&(0..1)));
    assert_eq!(learner.progress(), (0, 1));
}

#[test]
fn rows_between_requests_are_read_once_and_only_where_requests_meet() {
    let rows = Arc::new(Stored::new(Datatype::integer(8, true, ByteOrder::Little), None, vec![1; 800]));
    let learner = read(&rows, &[4..100, 300..400, 396..404], 1);
    // No row is before row 0. Row 12 waits for 13, 37 for 36, 50 for 51.
    assert!(learner.has_seen(&(0..12)) && !learner.has_seen(&(12..13)) && !learner.has_seen(&(37..38)));
    assert!(learner.has_seen(&(38..50)));
    let arrays = rows.arrays.load(Ordering::Relaxed);
    let learner = read(&rows, &[0..100, 100..300, 100..300, 300..800], 1);
    assert_eq!(learner.progress(), (1, 1));
    // Rows 12 and 37, once each.
    assert_eq!(rows.arrays.load(Ordering::Relaxed) - arrays, 2);
}
