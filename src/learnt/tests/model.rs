//! Random arrays of every type, read in random pieces and any order, by one thread or several.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, FixedSizeBinaryArray, Float16Array, Float32Array, Float64Array,
    Int8Array, Int16Array, Int32Array, Int64Array, LargeStringArray, UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use half::f16;
use proptest::prelude::*;

use super::{blocks, learn, learner};
use crate::store::statistics::format::{decode, encode};
use crate::store::statistics::{GRAIN, Scalar, ScalarKind, Statistics, Summary};

/// A value as the model knows it.
#[derive(Clone, Debug)]
enum Value {
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(Vec<u8>),
}

/// An array, and its values one by one.
struct Sample {
    array: ArrayRef,
    kind: ScalarKind,
    values: Vec<Option<Value>>,
}

/// The contract of [`Summary`], word by word.
fn expected(sample: &Sample, rows: Range<usize>) -> Summary {
    let values = &sample.values[rows];
    let present: Vec<&Value> = values.iter().flatten().collect();
    let is_nan = |value: &Value| matches!(value, Value::Float(float) if float.is_nan());
    let ordered: Vec<&Value> = present.iter().copied().filter(|value| !is_nan(value)).collect();
    let bounds = match sample.kind {
        ScalarKind::Bool => {
            let bools = || ordered.iter().map(|value| matches!(value, Value::Bool(true)));
            [bools().min(), bools().max()].map(|bound| bound.map(Scalar::Bool))
        }
        ScalarKind::Int | ScalarKind::UInt => {
            let ints = || ordered.iter().map(|value| if let Value::Int(int) = value { *int } else { unreachable!() });
            let scalar = |int: i128| match sample.kind {
                ScalarKind::Int => Scalar::Int(int.try_into().unwrap()),
                _ => Scalar::UInt(int.try_into().unwrap()),
            };
            [ints().min(), ints().max()].map(|bound| bound.map(scalar))
        }
        ScalarKind::Float => {
            let floats = || ordered.iter().map(|value| if let Value::Float(it) = value { *it } else { unreachable!() });
            let min = floats().min_by(|a, b| a.partial_cmp(b).unwrap());
            let max = floats().max_by(|a, b| a.partial_cmp(b).unwrap());
            let min = min.map(|min| if min == 0.0 { -0.0 } else { min });
            [min, max.map(|max| if max == 0.0 { 0.0 } else { max })].map(|bound| bound.map(Scalar::Float))
        }
        ScalarKind::Text => {
            // A block whose bound is too long has none, and neither has a range with that block.
            let texts = || ordered.iter().map(|value| if let Value::Text(it) = value { it } else { unreachable!() });
            [texts().min(), texts().max()]
                .map(|bound| bound.filter(|text| text.len() <= 64).map(|text| Scalar::Text(text.clone())))
        }
    };
    let [min, max] = bounds;
    Summary {
        rows: values.len() as u64,
        nulls: values.iter().filter(|value| value.is_none()).count() as u64,
        nans: present.len() as u64 - ordered.len() as u64,
        min,
        max,
    }
}

/// Equal, zeros by their sign.
fn assert_same(found: &Summary, expected: &Summary, what: &str) {
    assert_eq!(found, expected, "{what}");
    let bits = |bound: &Option<Scalar>| if let Some(Scalar::Float(float)) = bound { float.to_bits() } else { 0 };
    assert_eq!((bits(&found.min), bits(&found.max)), (bits(&expected.min), bits(&expected.max)), "{what}");
}

/// Every range of whole blocks.
fn check(statistics: &Statistics, sample: &Sample, what: &str) {
    let rows = sample.values.len() as u64;
    assert_eq!((statistics.rows(), statistics.blocks()), (rows, rows.div_ceil(GRAIN)));
    let ends: Vec<u64> = (0..=statistics.blocks()).map(|block| (block * GRAIN).min(rows)).collect();
    for (at, &start) in ends.iter().enumerate() {
        for &end in &ends[at..] {
            let found = statistics.over(start..end).unwrap();
            let mut expected = expected(sample, start as usize..end as usize);
            if sample.kind == ScalarKind::Text {
                // Across blocks a bound may be known to be none only because one block has none.
                for (block, bound) in
                    [(found.min.is_none(), &mut expected.min), (found.max.is_none(), &mut expected.max)]
                {
                    if block && end - start > GRAIN && !all_known(sample, start, end) {
                        *bound = None;
                    }
                }
            }
            assert_same(&found, &expected, &format!("{what}, rows {start}..{end}"));
        }
    }
}

/// Whether each block between has both bounds, or no values.
fn all_known(sample: &Sample, start: u64, end: u64) -> bool {
    (start..end).step_by(GRAIN as usize).all(|from| {
        let block = expected(sample, from as usize..(from + GRAIN).min(end) as usize);
        block.values() == 0 || block.min.is_some() && block.max.is_some()
    })
}

/// Pseudo-random numbers.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn of<T: Clone>(&mut self, values: &[T]) -> T {
        values[self.below(values.len() as u64) as usize].clone()
    }
}

/// Values drawn for each row, null with a probability of `nulls` in 8.
fn draw<T>(random: &mut Random, rows: usize, nulls: u64, mut value: impl FnMut(&mut Random) -> T) -> Vec<Option<T>> {
    (0..rows).map(|_| if random.below(8) < nulls { None } else { Some(value(random)) }).collect()
}

fn sample<T: Clone, A: Array + From<Vec<Option<T>>> + 'static>(
    kind: ScalarKind,
    drawn: Vec<Option<T>>,
    value: impl Fn(&T) -> Value,
) -> Sample {
    let values = drawn.iter().map(|drawn| drawn.as_ref().map(&value)).collect();
    Sample { array: Arc::new(A::from(drawn)), kind, values }
}

/// Samples of every type. `spread` 0: few values, all small; 1: any values.
fn samples(seed: u64, rows: usize, nulls: u64, spread: u64) -> Vec<(&'static str, Sample)> {
    let mut random = Random(seed);
    let mut samples = Vec::new();
    macro_rules! integers {
        ($kind:ident: $($array:ident $native:ty),*) => {$(
            let drawn = draw(&mut random, rows, nulls, |random| {
                let any = random.next();
                if spread == 0 { (3 + any % 40) as $native } else { any as $native }
            });
            let drawn = sample::<_, $array>(ScalarKind::$kind, drawn, |v| Value::Int(i128::from(*v)));
            samples.push((stringify!($array), drawn));
        )*};
    }
    integers!(Int: Int8Array i8, Int16Array i16, Int32Array i32, Int64Array i64);
    integers!(UInt: UInt8Array u8, UInt16Array u16, UInt32Array u32, UInt64Array u64);

    let float = |random: &mut Random| match (random.below(4), spread) {
        (0, _) => random.of(&[0.0, -0.0, f64::NAN, -f64::NAN]),
        (1, 1) => random.of(&[f64::INFINITY, f64::NEG_INFINITY, 1e300, -5e-324, 65504.0]),
        (2, 1) => f64::from_bits(random.next()),
        _ => random.below(1000) as f64 / 8.0,
    };
    let drawn = draw(&mut random, rows, nulls, float);
    samples.push(("Float64", sample::<_, Float64Array>(ScalarKind::Float, drawn, |v| Value::Float(*v))));
    let drawn = draw(&mut random, rows, nulls, |random| float(random) as f32);
    samples.push(("Float32", sample::<_, Float32Array>(ScalarKind::Float, drawn, |v| Value::Float(f64::from(*v)))));
    let drawn = draw(&mut random, rows, nulls, |random| f16::from_f64(float(random)));
    samples.push(("Float16", sample::<_, Float16Array>(ScalarKind::Float, drawn, |v| Value::Float(v.to_f64()))));

    let drawn = draw(&mut random, rows, nulls, |random| spread == 1 && random.below(40_000) == 0);
    samples.push(("Boolean", sample::<_, BooleanArray>(ScalarKind::Bool, drawn, |v| Value::Bool(*v))));

    // With a common start, with NUL, around 8 and 64 bytes.
    let text = |random: &mut Random| {
        let start = random.of(&["", "run_0000", "run_00001", "é"]);
        let fill = random.of(&["\0", "a", "z", "~"]);
        let length = if random.below(100) == 0 { 40 + random.below(40) } else { random.below(12) };
        format!("{start}{}{}", fill.repeat(length as usize), random.below(if spread == 0 { 3 } else { 100_000 }))
    };
    let drawn = draw(&mut random, rows, nulls, text);
    let bytes = |text: &String| Value::Text(text.clone().into_bytes());
    samples.push(("LargeUtf8", sample::<_, LargeStringArray>(ScalarKind::Text, drawn, bytes)));

    let drawn = draw(&mut random, rows, nulls, |random| (random.next() as u32).to_be_bytes());
    let array =
        FixedSizeBinaryArray::try_from_sparse_iter_with_size(drawn.iter().map(|bytes| bytes.as_ref()), 4).unwrap();
    let values = drawn.iter().map(|bytes| bytes.map(|bytes| Value::Text(bytes.to_vec()))).collect();
    samples.push(("FixedSizeBinary", Sample { array: Arc::new(array), kind: ScalarKind::Text, values }));

    // Labels: more than rows in some block or fewer; one of them null, some of them equal.
    let count = if spread == 0 { 5 } else { 70_000 };
    let labels: Vec<Option<String>> =
        (0..count).map(|label| if label == 3 { None } else { Some(text(&mut random)) }).collect();
    let keys = draw(&mut random, rows, nulls, |random| random.below(count) as i64);
    let values = keys.iter().map(|key| key.and_then(|key| labels[key as usize].as_ref()).map(bytes)).collect();
    let labels: ArrayRef = Arc::new(LargeStringArray::from(labels));
    let array = DictionaryArray::<Int64Type>::try_new(Int64Array::from(keys.clone()), labels).unwrap();
    samples.push(("categories", Sample { array: Arc::new(array), kind: ScalarKind::Text, values }));

    let labels: Vec<Option<f64>> = (0..count).map(|label| (label % 7 != 3).then(|| float(&mut random))).collect();
    let values = keys.iter().map(|key| key.and_then(|key| labels[key as usize]).map(Value::Float)).collect();
    let keys = keys.iter().map(|key| key.map(|key| key as i32)).collect::<Int32Array>();
    let array = DictionaryArray::<Int32Type>::try_new(keys, Arc::new(Float64Array::from(labels))).unwrap();
    samples.push(("categories of numbers", Sample { array: Arc::new(array), kind: ScalarKind::Float, values }));
    samples
}

/// Pieces that cover all rows, some of them twice, in no order.
fn pieces(random: &mut Random, rows: u64, cuts: u64) -> Vec<Range<u64>> {
    let mut ends: Vec<u64> = (0..cuts).map(|_| random.below(rows + 1)).chain([0, rows]).collect();
    ends.sort_unstable();
    let mut pieces: Vec<Range<u64>> = ends.windows(2).map(|ends| ends[0]..ends[1]).collect();
    for _ in 0..cuts {
        let start = random.below(rows + 1);
        pieces.push(start..start + random.below(rows - start + 1));
    }
    for at in (1..pieces.len()).rev() {
        pieces.swap(at, random.below(at as u64 + 1) as usize);
    }
    pieces
}

fn rows() -> impl Strategy<Value = usize> {
    let grain = GRAIN as usize;
    prop_oneof![
        2 => 0..300usize,
        1 => prop::sample::select(vec![0, 1, 63, 64, 65, grain - 1, grain, grain + 1, 2 * grain]),
        1 => grain..3 * grain,
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10, ..ProptestConfig::default() })]

    #[test]
    fn statistics_are_those_of_the_values(
        seed in any::<u64>(),
        rows in rows(),
        nulls in prop::sample::select(vec![0u64, 0, 1, 6, 8]),
        spread in 0u64..2,
        cuts in 0u64..40,
    ) {
        for (what, sample) in samples(seed, rows, nulls, spread) {
            let learner = learner(&sample.array);
            prop_assert_eq!(learner.kind(), sample.kind);
            let pieces = pieces(&mut Random(seed ^ 1), rows as u64, cuts);
            let next = AtomicUsize::new(0);
            let observe = || {
                while let Some(piece) = pieces.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let (start, length) = (piece.start as usize, (piece.end - piece.start) as usize);
                    learner.observe(piece.start, sample.array.slice(start, length).as_ref());
                }
            };
            std::thread::scope(|scope| {
                (1..1 + seed % 3).for_each(|_| drop(scope.spawn(observe)));
                observe();
            });
            let statistics = learner.known().expect(what);
            check(&statistics, &sample, what);

            let bytes = encode(&statistics.blocks);
            let again = decode(&bytes, sample.kind, &blocks(rows as u64)).expect(what);
            check(&Statistics::new(again), &sample, what);
        }
    }

    /// Any flipped bit, any cut, another length or kind: no statistics, never wrong ones.
    #[test]
    fn damaged_bytes_are_nothing(
        seed in any::<u64>(),
        rows in 0usize..200,
        bit in any::<prop::sample::Index>(),
        cut in any::<prop::sample::Index>(),
    ) {
        for (what, sample) in samples(seed, rows, 1, 1) {
            let bytes = encode(&learn(sample.array.clone()).blocks);
            let mut damaged = bytes.clone();
            let bit = bit.index(bytes.len() * 8);
            damaged[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(decode(&damaged, sample.kind, &blocks(rows as u64)).is_none(), "{}", what);
            prop_assert!(decode(&bytes[..cut.index(bytes.len())], sample.kind, &blocks(rows as u64)).is_none(), "{}", what);
            prop_assert!(decode(&bytes, sample.kind, &blocks(rows as u64 + 1)).is_none(), "{}", what);
            let other = if sample.kind == ScalarKind::Int { ScalarKind::UInt } else { ScalarKind::Int };
            prop_assert!(decode(&bytes, other, &blocks(rows as u64)).is_none(), "{}", what);
        }
    }
}
