use bstr::BString;
use proptest::prelude::*;
use xxhash_rust::xxh3::xxh3_64;

use super::*;
use crate::catalogue::{
    Attribute, ByteOrder, Charset, Chunk, ChunkMapBuilder, Class, CompoundField, Dangling, Dataset, DatasetDescription,
    Datatype, Elements, EnumerationMember, Fill, Filter, FloatFormat, Layout, Link, Padding, ReferenceKind, Target,
    VirtualSource,
};

fn id(address: u64) -> ObjectId {
    ObjectId { file: 0, address }
}

fn datatype(size: u64, class: Class) -> Datatype {
    Datatype { size, class }
}

/// Every class of datatype.
fn datatypes() -> Vec<Datatype> {
    let (order, padding, charset) = (ByteOrder::Little, Padding::NullPadded, Charset::Utf8);
    let integer = |size| datatype(size, Class::Integer { signed: true, order, precision: 8, offset: 0 });
    let base = || Box::new(integer(4));
    let other = FloatFormat::Other {
        precision: 16,
        offset: 1,
        sign: 2,
        exponent_position: 3,
        exponent_size: 4,
        mantissa_position: 5,
        mantissa_size: 6,
        bias: 7,
    };
    let float = |format| Class::Float { order: ByteOrder::Big, format };
    vec![
        integer(1),
        datatype(2, float(FloatFormat::Half)),
        datatype(4, float(FloatFormat::Single)),
        datatype(8, float(FloatFormat::Double)),
        datatype(2, float(other)),
        datatype(16, float(FloatFormat::Extended)),
        datatype(16, float(FloatFormat::Quadruple)),
        datatype(4, Class::Time { order: ByteOrder::Vax }),
        datatype(5, Class::FixedString { padding: Padding::SpacePadded, charset: Charset::Ascii }),
        datatype(16, Class::VariableString { padding: Padding::NullTerminated, charset }),
        datatype(1, Class::Bitfield { order, precision: 3, offset: 2 }),
        datatype(3, Class::Opaque { tag: "tag".into() }),
        datatype(
            8,
            Class::Compound { fields: vec![CompoundField { name: "x".into(), offset: 4, datatype: integer(4) }] },
        ),
        datatype(4, Class::Enum { base: base(), members: vec![EnumerationMember { name: "up".into(), value: -1 }] }),
        datatype(16, Class::Sequence { base: base() }),
        datatype(24, Class::Array { dims: vec![2, 3], base: base() }),
        datatype(8, Class::Reference(ReferenceKind::Object)),
        datatype(12, Class::Reference(ReferenceKind::Region)),
        datatype(64, Class::Reference(ReferenceKind::Standard)),
        datatype(8, Class::Complex { base: base() }),
        datatype(4, Class::Unknown(99)),
        datatype(9, Class::FixedString { padding, charset }),
    ]
}

fn attribute(datatype: Datatype) -> Attribute {
    let value = Ok(Elements { bytes: vec![1, 2, 3], heap: vec![4] });
    Attribute { name: "name".into(), datatype, shape: vec![3], null: false, value, references: vec![Some(id(300))] }
}

fn dataset(fill: Fill, layout: Layout) -> Dataset {
    let filter = Filter { id: 1, optional: true, parameters: vec![4], name: "deflate".into(), available: true };
    let description = DatasetDescription {
        datatype: datatypes().remove(0),
        shape: vec![10, 20],
        max_shape: vec![None, Some(20)],
        null: false,
        fill,
        filters: vec![filter],
        attributes: vec![attribute(datatypes().remove(1))].into(),
    };
    Dataset { id: id(1000), layout, description: Arc::new(description) }
}

/// A complete group with everything that the catalogue can express.
fn group() -> Group {
    let fills = [Fill::Undefined, Fill::Default, Fill::Explicit(Elements { bytes: vec![7], heap: Vec::new() })];
    let source = VirtualSource { file: ".".into(), dataset: "/x".into() };
    let layouts = [
        Layout::Compact,
        Layout::Contiguous { address: None },
        Layout::Contiguous { address: Some(4096) },
        Layout::Chunked { chunk: vec![5, 5], partial_unfiltered: true },
        Layout::Virtual { sources: vec![source] },
        Layout::External { files: vec!["raw".into()] },
        Layout::Unknown(9),
    ];
    let datasets = layouts.into_iter().zip(fills.into_iter().cycle());
    let datasets = datasets.map(|(layout, fill)| Object::Dataset(Arc::new(dataset(fill, layout))));
    let below = || Object::Group { id: id(2000), link_count: 2, attributes: Arc::default() };
    let committed =
        Object::Datatype { id: id(3000), datatype: Box::new(datatypes().remove(2)), attributes: Arc::default() };
    let hard = datasets.chain([below(), committed]).map(Target::Hard);
    let targets = hard.chain([
        Target::Soft { path: "/t/x".into(), object: Ok(Box::new(below())) },
        Target::Soft { path: "/l1".into(), object: Err(Dangling::TooManyLinks) },
        Target::External { file: "other.h5".into(), path: "/x".into(), object: None },
        Target::UserDefined(70),
    ]);
    let links = targets.enumerate().map(|(at, target)| Link { name: format!("link {at}").into(), target }).collect();
    Group::new(id(800), datatypes().into_iter().map(attribute).collect(), links, true)
}

fn map() -> ChunkMap {
    let mut map = ChunkMapBuilder::default();
    for (index, address, size, mask) in [(0, 4096, 100, 0), (1, 9000, 70_000, 2), (700, 1 << 40, 1, 0)] {
        map.push(Chunk { index, address, size, mask }).unwrap();
    }
    map.finish()
}

fn info() -> FileInfo {
    FileInfo {
        superblock: 2,
        user_block: 512,
        address_size: 8,
        length_size: 4,
        swmr: false,
        has_image: false,
        root: id(96),
    }
}

fn entry() -> Vec<u8> {
    let (group, map) = (postcard::to_stdvec(&group()).unwrap(), postcard::to_stdvec(&map()).unwrap());
    let object = postcard::to_stdvec(group_object()).unwrap();
    let object: &[u8] = &object;
    let answers = [(Asked::Group(id(800)), &*group), (Asked::Object(id(7)), object), (Asked::Chunks(id(1000)), &*map)];
    encode(&info(), &BTreeMap::from(answers)).unwrap()
}

fn group_object() -> &'static Object {
    static OBJECT: std::sync::OnceLock<Object> = std::sync::OnceLock::new();
    OBJECT.get_or_init(|| Object::Group { id: id(7), link_count: 1, attributes: Arc::default() })
}

/// An entry of another form must not be accepted. When this test fails, increment [`FORM`] and put the new sum here.
#[test]
fn the_form_is_the_one_that_is_counted() {
    assert_eq!((FORM, xxh3_64(&entry())), (6, 13_986_577_753_370_884_635));
}

#[test]
fn an_entry_holds_what_was_put() {
    let entry = entry();
    let found = decode(&entry).unwrap();
    assert_eq!((found.info, found.answers.len()), (info(), 3));
    for (asked, answer) in found.answers {
        match asked {
            Asked::Group(_) => assert_eq!(postcard::from_bytes::<Group>(answer).unwrap(), group()),
            Asked::Object(_) => assert_eq!(&postcard::from_bytes::<Object>(answer).unwrap(), group_object()),
            Asked::Chunks(_) => assert_eq!(postcard::from_bytes::<ChunkMap>(answer).unwrap(), map()),
            Asked::Path(_) => panic!("there is no path"),
        }
    }
    // A file that a writer has open is never kept.
    let written = FileInfo { swmr: true, ..info() };
    assert!(decode(&encode(&written, &BTreeMap::new()).unwrap()).is_none());
}

#[test]
fn what_could_not_be_read_is_not_remembered() {
    assert!(group().is_whole());
    let with = |target| Group { links: vec![Link { name: BString::from("x"), target }], ..group() };
    let unread = |change: fn(&mut Attribute)| {
        let mut attribute = attribute(datatypes().remove(0));
        change(&mut attribute);
        Group { attributes: vec![attribute].into(), ..group() }
    };
    let of = |dataset: Dataset| with(Target::Hard(Object::Dataset(Arc::new(dataset))));
    let failures = [
        with(Target::Unreadable("input error".into())),
        with(Target::Hard(Object::Unreadable { id: id(1), reason: "input error".into() })),
        with(Target::Soft { path: "/gone".into(), object: Err(Dangling::Nowhere) }),
        of(dataset(Fill::Unreadable("input error".into()), Layout::Compact)),
        of(dataset(Fill::Default, Layout::Compact).described(|dataset| {
            let unread = Attribute { value: Err("input error".into()), ..attribute(datatypes().remove(0)) };
            dataset.attributes = vec![unread].into();
        })),
        unread(|attribute| attribute.value = Err("input error".into())),
        unread(|attribute| attribute.references = vec![Some(id(1)), None]),
    ];
    for group in failures {
        assert!(!group.is_whole(), "{group:?}");
    }
}

#[test]
fn a_filter_that_a_plugin_may_bring_is_told_apart() {
    assert!(group().has_all_filters());
    let other = dataset(Fill::Default, Layout::Compact).described(|dataset| dataset.filters[0].available = false);
    let target = Target::Hard(Object::Dataset(Arc::new(other)));
    let group = Group { links: vec![Link { name: "x".into(), target }], ..group() };
    assert!(group.is_whole() && !group.has_all_filters());
}

proptest! {
    /// The checksum of the cache folder finds damage; should it ever fail, the result is nonsense at worst.
    #[test]
    fn no_damage_is_fatal(at in any::<prop::sample::Index>(), flip in 1..=255u8, cut in any::<prop::sample::Index>()) {
        let mut entry = entry();
        let at = at.index(entry.len());
        entry[at] ^= flip;
        for bytes in [&entry[..], &entry[..cut.index(entry.len())]] {
            for (asked, answer) in decode(bytes).map(|entry| entry.answers).unwrap_or_default() {
                match asked {
                    Asked::Group(_) => drop(postcard::from_bytes::<Group>(answer)),
                    Asked::Object(_) => drop(postcard::from_bytes::<Object>(answer)),
                    Asked::Chunks(_) => drop(postcard::from_bytes::<ChunkMap>(answer).map(|map| map.get(700))),
                    Asked::Path(_) => drop(postcard::from_bytes::<Option<String>>(answer)),
                }
            }
        }
    }
}
