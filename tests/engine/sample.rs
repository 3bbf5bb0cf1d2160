//! The sample file, read back through the HDF5 worker: what HEP001 asks of the two tables in it, with the rules written
//! out here once more.

use std::path::PathBuf;
use std::sync::Arc;

use hepfs::catalogue::{
    Attribute, Class, Dataset, Descriptor, Elements, Fill, Group, Layout, Object, ObjectId, ReferenceKind, attribute,
};
use hepfs::h5::create;
use hepfs::h5::{self, Client, Region};
use hepfs::producer::sample::{self, SampleError};
use hepfs::source::{Interrupt, Source};

/// More than one chunk of every column, and no multiple of eight.
const ROWS: u64 = 70_001;

/// A sample that was written and is open.
struct Sample {
    client: Client,
    interrupt: Interrupt,
    root: Group,
    _folder: tempfile::TempDir,
}

impl Sample {
    fn of(rows: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sample.h5");
        sample::write(&path, rows).unwrap();
        let program = PathBuf::from(env!("CARGO_BIN_EXE_hepfs"));
        let source = Arc::new(Source::open(&path).unwrap());
        let client = Client::new(source, h5::Options { program, ..h5::Options::default() });
        let interrupt = Interrupt::new();
        let info = client.file(&interrupt).unwrap();
        let root = client.group(info.root, &interrupt).unwrap();
        Self { client, interrupt, root, _folder: folder }
    }

    fn object(&self, path: &str) -> Object {
        let mut group = self.root.clone();
        let mut names = path.split('/').peekable();
        loop {
            let name = names.next().unwrap();
            let link = group.link(name.as_bytes()).unwrap_or_else(|| panic!("{path}: no {name}"));
            let object = link.target.object().unwrap_or_else(|| panic!("{path}: nothing behind {name}")).clone();
            if names.peek().is_none() {
                return object;
            }
            group = self.client.group(object.id(), &self.interrupt).unwrap();
        }
    }

    fn group(&self, path: &str) -> Group {
        self.client.group(self.object(path).id(), &self.interrupt).unwrap()
    }

    fn dataset(&self, path: &str) -> Dataset {
        match self.object(path) {
            Object::Dataset(dataset) => Dataset::clone(&dataset),
            other => panic!("{path}: {other:?}"),
        }
    }

    fn elements(&self, path: &str, count: u64) -> Elements {
        let region = Region { start: vec![0], count: vec![count] };
        self.client.read(self.dataset(path).id, &region, &self.interrupt).unwrap()
    }

    fn bytes(&self, path: &str, count: u64) -> Vec<u8> {
        self.elements(path, count).bytes
    }

    fn words(&self, path: &str, count: u64) -> Vec<u64> {
        self.bytes(path, count).as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect()
    }

    /// Checks the `OFFSETS` of a list column or string group by the rules of HEP001 (July 2026, "Members of a list
    /// column group"), and returns them.
    fn offsets(&self, path: &str, entries: u64) -> Vec<u64> {
        assert!(self.dataset(path).len().unwrap() > entries, "{path}");
        let offsets = self.words(path, entries + 1);
        assert_eq!(offsets[0], 0, "{path}");
        assert!(offsets.is_sorted(), "{path}");
        offsets
    }
}

fn named<'a>(attributes: &'a [Attribute], name: &str) -> &'a Attribute {
    attribute(attributes, name).unwrap_or_else(|| panic!("no attribute {name}"))
}

fn value(attribute: &Attribute) -> &[u8] {
    &attribute.value.as_ref().unwrap().bytes
}

fn text(attributes: &[Attribute], name: &str) -> String {
    let attribute = named(attributes, name);
    assert!(matches!(attribute.datatype.class, Class::FixedString { .. }), "{name}");
    assert!(attribute.shape.is_empty(), "{name}");
    String::from_utf8(value(attribute).to_vec()).unwrap().trim_end_matches('\0').to_owned()
}

fn word(attributes: &[Attribute], name: &str) -> u64 {
    let attribute = named(attributes, name);
    assert!(matches!(attribute.datatype.class, Class::Integer { signed: false, .. }), "{name}");
    u64::from_le_bytes(value(attribute).try_into().unwrap())
}

fn references(attributes: &[Attribute], name: &str, kind: ReferenceKind) -> Vec<ObjectId> {
    let attribute = named(attributes, name);
    assert_eq!(attribute.datatype.class, Class::Reference(kind), "{name}");
    attribute.references.iter().map(|id| id.expect(name)).collect()
}

fn explicit(dataset: &Dataset) -> &[u8] {
    match &dataset.fill {
        Fill::Explicit(elements) => &elements.bytes,
        other => panic!("{other:?}"),
    }
}

const COLUMNS: [&str; 14] = [
    "event_id",
    "ts",
    "energy",
    "label",
    "hit",
    "detector",
    "station",
    "comment",
    "position",
    "charge",
    "Länge (µm)",
    "calib",
    "readings",
    "tags",
];

#[test]
fn the_table_says_what_hep001_asks_for() {
    let sample = Sample::of(ROWS);
    let table = sample.group("run_042");
    let attributes = &table.attributes;
    assert_eq!(value(named(attributes, "CLASS")), b"COLUMN_TABLE\0");
    assert_eq!(text(attributes, "VERSION"), "1.0");
    assert_eq!(word(attributes, "NROWS"), ROWS);
    assert_eq!(text(attributes, "TITLE"), "Run 42: detector events");
    assert_eq!(text(attributes, "units_vocabulary"), "UDUNITS-2");
    assert_eq!(text(attributes, "_index"), "event_id");
    let event_id = sample.dataset("run_042/event_id").id;
    assert_eq!(references(attributes, "INDEX_COLUMNS", ReferenceKind::Standard), [event_id]);

    let order = named(attributes, "column-order");
    let size = order.datatype.size as usize;
    let names: Vec<String> = value(order)
        .chunks(size)
        .map(|name| String::from_utf8(name.to_vec()).unwrap().trim_end_matches('\0').to_owned())
        .collect();
    assert_eq!(names, COLUMNS);

    // Nothing but the columns and the two reserved groups; all columns equally long and longer than the table.
    let mut links: Vec<_> = table.links.iter().map(|link| link.name.to_string()).collect();
    let mut expected: Vec<_> = COLUMNS.iter().chain(&["CATEGORIES", "SEARCH_INDEXES"]).map(|n| n.to_string()).collect();
    links.sort();
    expected.sort();
    assert_eq!(links, expected);
    for name in &COLUMNS[..12] {
        let dataset = sample.dataset(&format!("run_042/{name}"));
        assert_eq!(dataset.shape, [ROWS + 1000], "{name}");
        assert!(!text(&dataset.attributes, "description").is_empty(), "{name}");
        // Every column sets a fill value but a boolean one, which must not.
        assert_eq!(matches!(dataset.fill, Fill::Explicit(_)), *name != "hit", "{name}");
    }
}

#[test]
fn columns_have_the_types_they_are_to_show() {
    let sample = Sample::of(ROWS);
    let column = |name: &str| sample.dataset(&format!("run_042/{name}"));
    assert!(matches!(column("event_id").layout, Layout::Contiguous { .. }));
    assert_eq!(text(&column("ts").attributes, "units"), "ns since 1970-01-01");
    let filters: Vec<i32> = column("ts").filters.iter().map(|filter| filter.id).collect();
    assert_eq!(filters, [2, 1], "shuffle, then deflate");
    assert_eq!(explicit(&column("energy")), 0x7cf0_0000u32.to_le_bytes());
    assert_eq!(explicit(&column("charge")), (-32767i16).to_le_bytes());
    assert!(column("hit").datatype.is_boolean());
    assert!(matches!(&column("detector").datatype.class, Class::Enum { members, .. } if members.len() == 5));
    assert!(matches!(column("station").datatype.class, Class::FixedString { .. }));
    assert!(matches!(column("comment").datatype.class, Class::VariableString { .. }));
    assert!(matches!(&column("position").datatype.class, Class::Compound { fields } if fields.len() == 3));
    assert!(matches!(&column("calib").datatype.class, Class::Opaque { tag } if tag.is_empty()));

    // Rows past NROWS are spare: they hold the fill value.
    let all = ROWS + 1000;
    assert!(sample.words("run_042/event_id", all)[ROWS as usize..].iter().all(|&id| id == u64::MAX));
    let ids = sample.words("run_042/event_id", ROWS);
    assert!(ids.windows(2).all(|pair| pair[1] == pair[0] + 1));

    let comments = sample.elements("run_042/comment", ROWS);
    let texts: Vec<&[u8]> = comments
        .bytes
        .chunks(16)
        .map(|bytes| {
            let descriptor = Descriptor::parse(bytes).unwrap();
            &comments.heap[descriptor.position as usize..][..descriptor.length as usize]
        })
        .collect();
    assert_eq!(texts[1], b"high voltage trip, \"HV-17\", recovered");
    assert!(texts.iter().filter(|text| text.is_empty()).count() > texts.len() / 2);
}

#[test]
fn labels_lead_to_their_categories_and_their_bitmap() {
    let sample = Sample::of(ROWS);
    let label = sample.dataset("run_042/label");
    let categories = sample.dataset("run_042/CATEGORIES/label__CATEGORIES");
    assert_eq!(references(&label.attributes, "CATEGORIES", ReferenceKind::Standard), [categories.id]);
    let names = sample.bytes("run_042/CATEGORIES/label__CATEGORIES", 4);
    assert_eq!(names, b"electron\0muon\0\0\0\0\0photon\0\0\0proton\0\0\0");
    assert_eq!(explicit(&label), [0xff]);

    let bitmap = sample.dataset("run_042/SEARCH_INDEXES/label__bitmap");
    let values = sample.dataset("run_042/SEARCH_INDEXES/label__bitmap__VALUES");
    assert_eq!(references(&label.attributes, "SEARCH_INDEX_LIST", ReferenceKind::Standard), [bitmap.id]);
    assert_eq!(references(&bitmap.attributes, "VALUES", ReferenceKind::Standard), [values.id]);
    assert_eq!(text(&bitmap.attributes, "KIND"), "BITMAP");
    assert_eq!(value(named(&bitmap.attributes, "exhaustive")), [1]);
    assert!(named(&bitmap.attributes, "exhaustive").datatype.is_boolean());
    assert_valid(&sample, &bitmap);
    assert!(attribute(&values.attributes, "KIND").is_none());

    let width = ROWS.div_ceil(8);
    assert_eq!(bitmap.shape, [4, width]);
    let region = Region { start: vec![0, 0], count: vec![4, width] };
    let bits = sample.client.read(bitmap.id, &region, &sample.interrupt).unwrap().bytes;
    let labels = sample.bytes("run_042/label", ROWS);
    for (k, code) in sample.bytes("run_042/SEARCH_INDEXES/label__bitmap__VALUES", 4).into_iter().enumerate() {
        for row in 0..width as usize * 8 {
            let bit = bits[k * width as usize + row / 8] >> (row % 8) & 1 == 1;
            assert_eq!(bit, labels.get(row) == Some(&code), "code {code}, row {row}");
        }
    }
    // Exhaustive: every value that occurs and is not missing has its row.
    assert!(labels.iter().all(|&code| code < 4 || code == 0xff));
}

#[test]
fn the_chunks_of_ts_have_their_minima_and_maxima() {
    let sample = Sample::of(ROWS);
    let ts = sample.dataset("run_042/ts");
    let index = sample.dataset("run_042/SEARCH_INDEXES/ts__chunk_minmax");
    assert_eq!(references(&ts.attributes, "SEARCH_INDEX_LIST", ReferenceKind::Standard), [index.id]);
    assert_eq!(text(&index.attributes, "KIND"), "CHUNK_MINMAX");
    assert_valid(&sample, &index);
    let Layout::Chunked { chunk, .. } = &ts.layout else { panic!("{:?}", ts.layout) };
    let chunk = chunk[0] as usize;
    assert_eq!(chunk, 32_768);
    let entries = ROWS.div_ceil(chunk as u64);
    assert_eq!(index.shape, [entries]);
    let times = sample.words("run_042/ts", ROWS);
    // Times are past 1970: the order of the unsigned words is theirs.
    let expected: Vec<u64> = times
        .chunks(chunk)
        .flat_map(|times| [*times.iter().min().unwrap(), *times.iter().max().unwrap(), 0, 0, times.len() as u64])
        .collect();
    assert_eq!(sample.words("run_042/SEARCH_INDEXES/ts__chunk_minmax", entries), expected);
}

/// The index describes the table as it is (HEP001 of July 2026, "Consumer validity check").
fn assert_valid(sample: &Sample, index: &Dataset) {
    let table = sample.group("run_042");
    assert_eq!(word(&index.attributes, "SOURCE_GENERATION"), word(&table.attributes, "GENERATION"));
    assert_eq!(word(&index.attributes, "SOURCE_NROWS"), word(&table.attributes, "NROWS"));
}

#[test]
fn lists_lie_where_their_offsets_say() {
    let sample = Sample::of(ROWS);
    for (path, class) in
        [("run_042/readings", "LIST_COLUMN"), ("run_042/tags", "LIST_COLUMN"), ("run_042/tags/VALUES", "STRING_VALUES")]
    {
        assert_eq!(text(sample.object(path).attributes(), "CLASS"), class);
    }
    assert_eq!(text(sample.object("run_042/readings").attributes(), "KIND"), "OFFSETS");

    let offsets = sample.offsets("run_042/readings/OFFSETS", ROWS);
    let mask = sample.bytes("run_042/readings/MASK", ROWS);
    assert!(sample.dataset("run_042/readings/MASK").datatype.is_boolean());
    for (pair, present) in offsets.windows(2).zip(&mask) {
        assert!(*present == 1 || pair[0] == pair[1], "a null list takes no elements");
    }
    assert!(mask.contains(&0) && offsets.windows(2).zip(&mask).any(|(pair, mask)| *mask == 1 && pair[0] == pair[1]));
    assert_eq!(sample.dataset("run_042/readings/VALUES").len(), offsets.last().copied());

    let lists = sample.offsets("run_042/tags/OFFSETS", ROWS);
    let strings = sample.offsets("run_042/tags/VALUES/OFFSETS", *lists.last().unwrap());
    let chars = sample.dataset("run_042/tags/VALUES/CHARS").len().unwrap();
    assert_eq!(strings.last(), Some(&chars));
    let chars = sample.bytes("run_042/tags/VALUES/CHARS", chars);
    let tags: Vec<&str> = strings
        .windows(2)
        .map(|pair| std::str::from_utf8(&chars[pair[0] as usize..pair[1] as usize]).unwrap())
        .collect();
    assert!(tags.contains(&"µ-veto"));
}

#[test]
fn the_april_table_is_linked_both_ways() {
    let sample = Sample::of(0);
    let table = sample.group("april/events");
    assert_eq!(value(named(&table.attributes, "CLASS")), b"COLUMN_TABLE");
    assert_eq!(text(&table.attributes, "VERSION"), "1.0");
    assert_eq!(text(&table.attributes, "_index"), "row_id");
    assert!(attribute(&table.attributes, "NROWS").is_none());
    let row_id = sample.dataset("april/events/row_id");
    let columns = ["ts", "energy", "label"].map(|name| sample.dataset(&format!("april/events/{name}")));
    let listed = references(&row_id.attributes, "_columns_list", ReferenceKind::Object);
    assert_eq!(listed, columns.each_ref().map(|column| column.id));
    for column in &columns {
        assert_eq!(column.shape, row_id.shape);
        assert_eq!(references(&column.attributes, "_indexes", ReferenceKind::Object), [row_id.id]);
    }
    let categories = sample.dataset("april/events/label_categories");
    assert_eq!(references(&columns[2].attributes, "_categories", ReferenceKind::Object), [categories.id]);
    assert_eq!(text(&categories.attributes, "encoding-type"), "categorical");
    let index = sample.dataset("april/events/_search_indexes/ts__chunk_minmax");
    assert_eq!(references(&columns[0].attributes, "_search_indexes", ReferenceKind::Object), [index.id]);
    assert_eq!(references(&index.attributes, "_columns_list", ReferenceKind::Object), [columns[0].id]);
    let times = sample.words("april/events/ts", row_id.len().unwrap());
    let expected: Vec<u64> = times
        .chunks(128)
        .flat_map(|times| [*times.iter().min().unwrap(), *times.iter().max().unwrap(), 0, 0, times.len() as u64])
        .collect();
    assert_eq!(sample.words("april/events/_search_indexes/ts__chunk_minmax", index.len().unwrap()), expected);
}

#[test]
fn arrays_lie_beside_the_tables() {
    let sample = Sample::of(1);
    assert_eq!(sample.dataset("calibration").shape, [64, 16]);
    let images = sample.dataset("images");
    assert_eq!(images.shape, [8, 64, 64]);
    let region = Region { start: vec![3, 32, 26], count: vec![1, 1, 1] };
    let spot = sample.client.read(images.id, &region, &sample.interrupt).unwrap().bytes;
    // 20 of ground and 40,000 / 10 in the middle of the spot, which has moved three times six pixels on from 8.
    assert_eq!(spot, 4020u16.to_le_bytes());
}

#[test]
fn the_same_rows_are_the_same_bytes_and_no_file_is_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, rows| sample::write(&folder.path().join(name), rows);
    write("a.h5", 10_000).unwrap();
    write("b.h5", 10_000).unwrap();
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    assert!(read("a.h5") == read("b.h5"));
    let error = write("a.h5", 1).unwrap_err();
    assert!(matches!(error, SampleError::Create(create::Error::Create { .. })), "{error}");
    assert!(read("a.h5") == read("b.h5"));
    assert!(matches!(write("c.h5", u64::MAX), Err(SampleError::TooManyRows { .. })));
    assert!(!folder.path().join("c.h5").exists());
    assert!(matches!(write("no/folder.h5", 1), Err(SampleError::Create(create::Error::Create { .. }))));
}
