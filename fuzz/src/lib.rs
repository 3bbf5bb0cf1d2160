//! Shared by the fuzz targets: bytes become a filter with its parameters and a stored chunk, a heap, a chunk index, the
//! page of a column.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use arrow_buffer::Buffer;
use hepfs::catalogue::{Chunk, ColumnId, Datatype, Filter, ObjectId, ReferenceKind};
use hepfs::codec::structure::heap::HeapWidths;
use hepfs::codec::{Pipeline, Scratch};
use hepfs::h5::ListedChunks;
use hepfs::source::Interrupt;
use hepfs::store::decode::{self, HeapBytes, Objects, Oddities, Resolve, Weigher};
use hepfs::store::statistics::{ScalarKind, encoded_again};
use hepfs::store::{ChunkDecoding, Error, Facts, RowRange, Rows, StoredBytes, StoredFacts, Unresolved};
use hepfs::table::{Column, Table};
use hepfs::views::page::{
    Found, GroupPage, Look, Member, MemberFacts, MemberKind, Members, PagePlace, TablePage, ValueRoom,
};
use hepfs::views::png::{Colours, PicturedArray};

pub use hepfs::store::decode::region;

/// Bytes that an array may take.
const LARGEST: u64 = 1 << 20;

/// Decodes elements with the heap behind them, if they take little: the array must be sound, and as large as was said.
/// Returns the array and the elements.
pub fn elements<'a>(datatype: &Datatype, count: usize, bytes: &'a [u8]) -> Option<(ArrayRef, &'a [u8])> {
    let length = usize::try_from(datatype.size).ok()?.checked_mul(count)?;
    let (elements, heap) = bytes.split_at_checked(length)?;
    let heap = HeapBytes(heap);
    let weigher = Weigher::new(datatype, bytes.len() as u64);
    let weight = weigher.weight_of_all(elements, datatype.size, LARGEST, &heap);
    if weight > LARGEST {
        return None;
    }
    let mut oddities = Oddities::new();
    let array = decode::decode(datatype, Buffer::from(elements), count, &heap, &mut oddities).ok()?;
    assert_eq!((array.len(), array.data_type()), (count, &decode::arrow_type(datatype)));
    array.to_data().validate_full().expect("an array that is sound");
    assert!(oddities.iter().all(|(_, row)| row < count.max(1) as u64 * LARGEST));
    Some((array, elements))
}

/// Decoded elements as rows.
#[derive(Debug)]
struct Elements {
    array: ArrayRef,
    facts: Facts,
    stored: Vec<u8>,
}

impl Rows for Elements {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn array(&self, range: RowRange, _: &Interrupt) -> Result<ArrayRef, Error> {
        Ok(self.array.slice(range.start as usize, (range.end - range.start) as usize))
    }

    fn bytes(&self) -> Option<&dyn StoredBytes> {
        self.facts.stored.width.map(|_| self as _)
    }
}

impl StoredBytes for Elements {
    fn append(&self, offset: u64, length: usize, out: &mut Vec<u8>, _: &Interrupt) -> Result<(), Error> {
        out.extend_from_slice(&self.stored[offset as usize..][..length]);
        Ok(())
    }
}

/// The page of a table of one column of these elements, and that of its group: as long as they say before any element
/// is read, and no text of the file is markup. The picture of the elements in lines of `width` is no longer than said.
pub fn page(datatype: Datatype, [name, text]: [&str; 2], (count, width): (usize, usize), bytes: &[u8]) {
    let Some((array, stored)) = elements(&datatype, count, bytes) else { return };
    let facts = Facts {
        nullable: array.is_nullable(),
        stored: StoredFacts::of(Arc::new(datatype.clone()), ChunkDecoding::default()),
        ..Facts::new(count as u64, array.data_type().clone())
    };
    let rows: Arc<dyn Rows> = Arc::new(Elements { array, facts, stored: stored.to_vec() });
    let id = ColumnId::whole(ObjectId { file: 0, address: 0 });
    let mut column = Column::new(name.into(), name.to_owned(), id, Ok(rows.clone()), Arc::default());
    (column.meaning.units, column.meaning.description) = (Some(text.to_owned()), Some(text.to_owned()));
    let table = Arc::new(Table { rows: count as u64, columns: vec![column], ..Table::empty(name, "fuzz") });
    let place = PagePlace {
        above: vec![(name.to_owned(), Some(name.into()))],
        name: name.to_owned(),
        source: text.into(),
        path: name.into(),
        mounted: Some(name.into()),
        files: vec![(name.into(), text.to_owned()), ("table.parquet".into(), String::new())],
        ..PagePlace::default()
    };
    let interrupt = Interrupt::new();
    let mut look = Look::of(&table, true, &interrupt).expect("a look");
    let page = TablePage::new(table, place.clone(), Members::default());
    sound(&page.render(&look, None, &Found::default()), page.size(), [name, text]);
    let shape = [(count / width.max(1)) as u64, width as u64];
    let array = PicturedArray::new(&shape, None, &rows, None);
    let longest = PicturedArray::longest(&shape, &datatype);
    let picture = array.and_then(|array| array.picture(&Colours::default(), 1 << 20, &interrupt).expect("a picture"));
    assert!(picture.as_ref().is_none_or(|picture| picture.png.len() <= longest));
    let array = |room| Member {
        name: name.to_owned(),
        link: Some(text.into()),
        kind: MemberKind::Array {
            type_name: text.to_owned(),
            shape: shape.to_vec(),
            units: Some(text.to_owned()),
            description: Some(name.to_owned()),
            room,
            files: vec![name.into()],
        },
        not_shown: Some(text.to_owned()),
    };
    let rooms = [ValueRoom::Picture(longest), ValueRoom::Values, ValueRoom::Trace, ValueRoom::Nothing("no element")];
    let members = rooms.map(array).to_vec();
    let page = GroupPage::new(place, Members::new(members, 0, 3, true), Arc::default());
    let details = vec![
        picture.map_or_else(|| MemberFacts::Unseen(text.to_owned()), MemberFacts::Picture),
        MemberFacts::Values(look.edges.in_words()),
        MemberFacts::Trace(Box::new(look.columns.remove(0))),
    ];
    sound(&page.render(&Found { details, ..Found::default() }), page.size(), [name, text]);
}

/// Checks the size of a page, and that no text is markup on it.
fn sound(page: &[u8], size: u64, texts: [&str; 2]) {
    assert_eq!(page.len() as u64, size);
    let page = std::str::from_utf8(page).expect("UTF-8");
    assert!(!page.chars().any(|character| character.is_control() && character != '\n'));
    let body = page.split_once("</style>").map_or("", |(_, body)| body);
    // A text that a page may have by itself proves nothing.
    for text in texts.into_iter().filter(|text| text.len() > 12 && text.contains(['<', '"', '\''])) {
        assert!(!body.contains(text), "{text:?} as it is");
    }
}

/// References of a width, with the collection that they lead into behind them.
pub fn references(kind: ReferenceKind, address_size: u8, width: usize, count: usize, bytes: &[u8]) {
    let Some((stored, collection)) = width.checked_mul(count).and_then(|length| bytes.split_at_checked(length)) else {
        return;
    };
    let address_size = usize::from(address_size);
    let mut heap = Heap { address_size, collection };
    if let Ok(targets) = decode::references(kind, stored, width, address_size, &mut heap) {
        assert_eq!(targets.len(), stored.len() / width.max(1));
        assert!(targets.iter().flatten().all(|(_, suffix)| suffix.len() <= LARGEST as usize));
    }
}

/// A global heap of one collection, at whatever address.
struct Heap<'a> {
    address_size: usize,
    collection: &'a [u8],
}

impl Objects for Heap<'_> {
    fn object(&mut self, _: u64, index: u32) -> Result<&[u8], Unresolved> {
        let invalid = || Unresolved::Invalid("nothing there".into());
        let objects = HeapWidths::new(8).objects(self.collection).map_err(|_| invalid())?;
        let index = u16::try_from(index).map_err(|_| invalid())?;
        let object = objects.find(self.collection, index).ok_or_else(invalid)?;
        self.collection.get(object.start..object.start + object.length).ok_or_else(invalid)
    }
}

impl Resolve for Heap<'_> {
    fn resolve(&mut self, descriptor: &[u8], width: u64) -> Result<&[u8], Unresolved> {
        let invalid = || Unresolved::Invalid("too short".into());
        let (length, rest) = descriptor.split_first_chunk().ok_or_else(invalid)?;
        let rest = rest.get(self.address_size..).ok_or_else(invalid)?;
        let index = u32::from_le_bytes(*rest.first_chunk().ok_or_else(invalid)?);
        let bytes = u64::from(u32::from_le_bytes(*length)).checked_mul(width).ok_or_else(invalid)?;
        self.object(0, index)?.get(..usize::try_from(bytes).unwrap_or(usize::MAX)).ok_or_else(invalid)
    }
}

/// Statistics of so many rows as the cache folder keeps them, decoded and encoded again.
pub fn statistics(entry: &[u8], kind: u8, rows: u64) -> Option<Vec<u8>> {
    let kinds = [ScalarKind::Bool, ScalarKind::Int, ScalarKind::UInt, ScalarKind::Float, ScalarKind::Text];
    encoded_again(entry, kinds[usize::from(kind) % kinds.len()], rows)
}

/// The chunks that an index of this many positions lists, set right.
pub fn settle(entries: Vec<(Option<u64>, Chunk)>, positions: u64, flags: u8) -> Result<Vec<Chunk>, String> {
    let [in_order, grows, is_endless, ends_early, beyond_nodes] = [1, 2, 4, 8, 16].map(|bit| flags & bit != 0);
    ListedChunks { entries, positions, in_order, grows, is_endless, ends_early, beyond_nodes }.settle()
}

/// Decodes a chunk behind one filter. The first two bytes of `input` are the chunk's size (little-endian), the next
/// `parameters` bytes one parameter of the filter each, the rest is the chunk as stored.
pub fn decode(id: i32, parameters: usize, input: &[u8]) {
    let Some((size, rest)) = input.split_first_chunk() else { return };
    let Some((parameters, stored)) = rest.split_at_checked(parameters) else { return };
    run(id, parameters.iter().map(|byte| u32::from(*byte)).collect(), usize::from(u16::from_le_bytes(*size)), stored);
}

/// Decodes a chunk of `size` bytes; whatever comes of it, it must not panic.
pub fn run(id: i32, parameters: Vec<u32>, size: usize, stored: &[u8]) {
    let pipeline = pipeline(id, parameters);
    let Scratch { first, second } = pipeline.scratch(0, size);
    // All of the chunk is needed, or half of it.
    for needed in [size, size / 2] {
        let _ = pipeline.decode(0, stored, &mut vec![0; size], needed, [&mut vec![0; first], &mut vec![0; second]]);
    }
}

/// The pipeline of one filter that has a codec.
pub fn pipeline(id: i32, parameters: Vec<u32>) -> Pipeline {
    let filter = Filter { id, optional: false, parameters, name: String::new(), available: false };
    Pipeline::new(&[filter]).expect("a filter with a codec")
}
