use std::path::Path;

use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::tree::PickleNode;
use super::*;

/// No limit of memory that a test would meet.
const PLENTY: usize = 64 << 20;

fn scan(bytes: &[u8]) -> Result<ObjectArray, Error> {
    object_array(bytes, PLENTY, &|| true)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    text.as_bytes().chunks(2).map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

/// A value as `scripts/fixtures/pickles.py` writes it.
fn json(value: PickleValue<'_>) -> Json {
    let all = |value: PickleValue<'_>| -> Vec<_> { value.items().unwrap().map(json).collect() };
    match value.node() {
        PickleNode::None => Json::Null,
        PickleNode::Bool(value) => (*value).into(),
        PickleNode::Integer(value) => json!({"i": value.to_string()}),
        PickleNode::Float(value) => json!({"f": hex(&value.to_be_bytes())}),
        PickleNode::Text(text) => text.to_string().into(),
        PickleNode::Bytes(bytes) => json!({"b": hex(bytes)}),
        PickleNode::List(_) => json!({"l": all(value)}),
        PickleNode::Tuple(_) => json!({"t": all(value)}),
        PickleNode::Dict(_) => {
            json!({"d": value.entries().unwrap().map(|(key, value)| [json(key), json(value)]).collect::<Vec<_>>()})
        }
        PickleNode::Symbol(module, name) => json!({"s": [**module, **name]}),
        PickleNode::Call(function, arguments) => json!({"c": [json(value.at(*function)), json(value.at(*arguments))]}),
        PickleNode::Build(object, state) => json!({"o": [json(value.at(*object)), json(value.at(*state))]}),
    }
}

fn cell_json(cell: PickledCell<'_>) -> Json {
    match cell {
        PickledCell::None => Json::Null,
        PickledCell::Bool(value) => value.into(),
        PickledCell::Integer(value) => json!({"i": value.to_string()}),
        PickledCell::Float(value) => json!({"f": hex(&value.to_be_bytes())}),
        PickledCell::Text(text) => text.into(),
        PickledCell::Date(days) => json!({"date": days}),
        PickledCell::Time(time) => {
            let unit = if time.is_fine { "nanoseconds" } else { "time" };
            let key = if time.is_zoned { format!("zoned {unit}") } else { unit.into() };
            json!({key: time.value.to_string()})
        }
        PickledCell::Decimal(digits) => json!({"decimal": digits}),
        PickledCell::Other(name) => json!({"x": name}),
    }
}

/// The cases of a file that `scripts/fixtures/pickles.py` has written: that of the tests, or another.
fn cases() -> Vec<Json> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/pickles.json");
    let path = std::env::var_os("HEPFS_PICKLES").map_or(own, Into::into);
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn everything_is_read_as_python_reads_it() {
    let mut seen = [0; 5];
    for case in cases() {
        let bytes = |key: &str| case.get(key).map(|hex| unhex(hex.as_str().unwrap()));
        if let Some(bytes) = bytes("pickle") {
            seen[0] += 1;
            let tree = attribute(&bytes);
            match case.get("value") {
                Some(value) => assert_eq!(tree.as_ref().map(|tree| json(tree.root())), Ok(value.clone()), "{case}"),
                None => assert!(tree.is_err(), "{case}"),
            }
        } else if let Some(bytes) = bytes("array") {
            seen[1] += 1;
            let array = scan(&bytes).unwrap_or_else(|error| panic!("{error}: {case}"));
            let shape: Vec<_> = [Some(array.rows()), array.columns()].into_iter().flatten().collect();
            assert_eq!(case["shape"], json!(shape), "{case}");
            let columns = array.columns().unwrap_or(1);
            let places = (0..array.rows()).flat_map(|row| (0..columns).map(move |column| (row, column)));
            let cells: Vec<_> =
                places.map(|(row, column)| cell_json(array.cell(row, column, &bytes).unwrap())).collect();
            assert_eq!(case["cells"], json!(cells), "{case}");
            assert_eq!(array.bytes(), cells.len() * 8);
            let texts: usize = (0..columns).map(|column| array.counts(column)[CellKind::Text as usize]).sum();
            assert_eq!(texts, cells.iter().filter(|cell| cell.is_string()).count());
        } else if let Some(bytes) = bytes("label") {
            seen[2] += 1;
            let tree = attribute(&bytes).unwrap();
            let label = label(tree.root()).map(|label| label.to_string());
            assert_eq!(label.as_deref(), case["text"].as_str(), "{case}");
        } else if let Some(bytes) = bytes("plain") {
            seen[3] += 1;
            assert_eq!(shapes::json(attribute(&bytes).unwrap().root()), case["json"], "{}", case["json"]);
        } else {
            seen[4] += 1;
            let tree = attribute(&bytes("zone").unwrap()).unwrap();
            assert_eq!(zone(tree.root()).as_deref(), case["name"].as_str(), "{case}");
        }
    }
    assert!(seen.iter().all(|seen| *seen > 10), "{seen:?}");
}

/// Elements of arrays are counted over the whole value.
#[test]
fn arrays_of_very_many_elements_are_named() {
    let array = |count: usize| {
        let before = format!(
            "cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I0\ntS'b'\ntR(I1\n(I{count}\ntcnumpy\ndtype\n\
             (S'i1'\nI00\nI01\ntR(I3\nS'|'\nNNNI-1\nI-1\nI0\ntbI00\nB"
        );
        [before.as_bytes(), &(count as u32).to_le_bytes(), &vec![7; count], b"tb"].concat()
    };
    let shown = |pickle: &[&[u8]]| shapes::json(attribute(&pickle.concat()).unwrap().root());
    assert_eq!(shown(&[&array(100_000), b"."]), json!(vec![7; 100_000]));
    assert_eq!(shown(&[&array(100_001), b"."]), "<numpy.ndarray>");
    let twice = shown(&[b"(", &array(60_000), &array(60_000), b"t."]);
    assert_eq!(twice, json!([vec![7; 60_000], "<numpy.ndarray>"]));
}

/// An array as NumPy pickles it, with this shape and these tokens in its list.
fn array(shape: &[u8], list: &[u8]) -> Vec<u8> {
    let before =
        b"\x80\x05\x8c\x16numpy._core.multiarray\x94\x8c\x0c_reconstruct\x94\x93\x94\x8c\x05numpy\x94\x8c\x07ndarray\
        \x94\x93\x94K\x00\x85\x94C\x01b\x94\x87\x94R\x94(K\x01";
    let data_type = b"h\x03\x8c\x05dtype\x94\x93\x94\x8c\x02O8\x94\x89\x88\x87\x94R\x94(K\x03\x8c\x01|\x94NNN\
        J\xff\xff\xff\xffJ\xff\xff\xff\xffK?t\x94b\x89]\x94";
    [before, shape, data_type, list, b"t\x94b."].concat()
}

fn attribute_error(bytes: &[u8]) -> String {
    attribute(bytes).unwrap_err().to_string()
}

fn array_error(bytes: &[u8]) -> String {
    scan(bytes).unwrap_err().to_string()
}

#[test]
fn an_attribute_is_tried_if_it_looks_like_a_pickle() {
    assert!(looks_pickled(b"N.", false));
    assert!(!looks_pickled(b"N.", true));
    assert!(!looks_pickled(b"text", false));
    assert!(!looks_pickled(b"", false));
    // Text of Python 2 that ends in a dot.
    for text in ["0.", "The end.", "1.", "."] {
        assert!(looks_pickled(text.as_bytes(), false) && attribute(text.as_bytes()).is_err(), "{text}");
    }
}

#[test]
fn values_are_found_by_their_keys() {
    let tree = attribute(b"(dI1\nVone\nsVtz\nVold\nsVtz\n(I00\nF2.5\nls.").unwrap();
    let root = tree.root();
    let zone = root.get("tz").unwrap();
    assert_eq!(zone.items().unwrap().len(), 2);
    assert_eq!(zone.item(1).and_then(PickleValue::float), Some(2.5));
    assert_eq!(zone.item(0).and_then(PickleValue::integer), Some(0));
    assert!(zone.item(2).is_none() && root.get("1").is_none() && root.item(0).is_none());
}

#[test]
fn what_a_pickle_calls_is_a_record() {
    let tree = attribute(b"cos\nsystem\n(Vrm -rf /\ntR.").unwrap();
    let (module, name, arguments) = tree.root().call().unwrap();
    assert_eq!((module, name.as_str(), arguments.item(0).unwrap().text()), ("os", "system", Some("rm -rf /")));
    assert_eq!(tree.root().describe(), "what os.system returns");
    assert!(label(tree.root()).is_none() && zone(tree.root()).is_none());
}

/// A text of 3,000 bytes that is named a thousand times would be copied for each.
#[test]
fn one_text_is_not_copied_very_often() {
    let pickle = |refs: usize| [format!("(V{}\np0\n", "x".repeat(3000)), "g0\n".repeat(refs), "t.".into()].concat();
    assert_eq!(attribute(pickle(16).as_bytes()).unwrap().root().items().unwrap().len(), 17);
    let error = attribute(pickle(1000).as_bytes()).unwrap_err();
    assert_eq!(error, Error::Limit { what: "bytes of texts, each as often as it occurs", most: 6008 * 16 + (1 << 20) });
}

#[test]
fn values_that_contain_themselves_are_refused() {
    for bytes in [&b"]2a."[..], b"(lp0\ng0\na.", b"(dp0\nVx\ng0\ns.", b"cm\nC\n(tRp0\ng0\nb.", b"](h\x00e2q\x00a."] {
        assert!(attribute(bytes).is_err());
    }
    assert_eq!(attribute(b"(lp0\ng0\na."), Err(Error::Cycle));
    assert_eq!(attribute(b"cm\nC\n(tRp0\n(g0\nlb."), Err(Error::Cycle));
}

#[test]
fn what_is_shared_is_counted_each_time() {
    // Each list holds the one before ten times.
    let laughs = |levels: usize| {
        let mut bytes = b"]".to_vec();
        for _ in 0..levels {
            bytes.extend_from_slice(b"q\x00](h\x00h\x00h\x00h\x00h\x00h\x00h\x00h\x00h\x00h\x00e");
        }
        bytes
    };
    // All but the last are still on the stack.
    let alone = |levels| [&[b'('; 1], &laughs(levels)[..], b"q\x011h\x01."].concat();
    assert!(attribute(&alone(4)).is_ok());
    assert_eq!(attribute_error(&alone(5)), "the pickle has more than 100000 values");
    assert_eq!(attribute_error(&alone(30)), "the pickle has more than 100000 values");
}

#[test]
fn limits_hold() {
    let deep = |depth: usize| [vec![b']'; depth], vec![b'a'; depth - 1], b".".to_vec()].concat();
    assert!(attribute(&deep(64)).is_ok());
    assert_eq!(attribute_error(&deep(65)), "the pickle has more than 64 levels of nesting");
    // Neither is there recursion where it is dropped.
    assert_eq!(attribute_error(&deep(90_000)), "the pickle has more than 64 levels of nesting");
    let flat = |n: usize| [b"(", &vec![b'N'; n][..], b"t."].concat();
    assert!(attribute(&flat(99_999)).is_ok());
    assert_eq!(attribute_error(&flat(100_000)), "the pickle has more than 100000 values");
    let twice = [b"(N", &vec![b'2'; 200_000][..], b"t."].concat();
    assert_eq!(attribute_error(&twice), "the pickle has more than 100000 values");
    assert_eq!(attribute_error(b"Nr\xa0\x86\x01\x00."), "the pickle has more than 100000 memo entries");
    assert_eq!(attribute_error(&vec![b'('; 1 << 20]), "byte 1048576 of the pickle: the pickle is cut short");
    assert_eq!(attribute_error(&vec![b'('; (1 << 20) + 1]), "the pickle has more than 1048576 bytes");
    let mut long = [b"\x8b", &1_000_000u32.to_le_bytes()[..], &vec![1; 1_000_000], b"."].concat();
    assert_eq!(attribute_error(&long), "byte 0 of the pickle: an integer of more than 128 bits");
    long.splice(..5, *b"L").for_each(drop);
    long[1..].fill(b'9');
    long.extend_from_slice(b"L\n.");
    assert_eq!(attribute_error(&long), "byte 0 of the pickle: an integer of more than 128 bits");
    let bomb =
        [b"\x8d\xf0\x49\x02\0\0\0\0\0", &vec![b'x'; 150_000][..], b"2\x940", &b"h\0h\0\x930".repeat(90_000)].concat();
    assert!(attribute(&bomb).is_err());
}

#[test]
fn lengths_are_not_believed() {
    for opcode in [0x8e, 0x8d, 0x96, 0x95] {
        for length in [u64::MAX, 1 << 63, 1 << 40, 9] {
            let bytes = [&[opcode][..], &length.to_le_bytes(), b"x."].concat();
            assert!(attribute(&bytes).is_err());
            assert!(scan(&array(b"K\x01\x85", &bytes)).is_err());
        }
    }
}

#[test]
fn a_pickle_that_is_cut_anywhere_is_an_error() {
    for case in cases() {
        if let Some(Json::String(hex)) = case.get("pickle") {
            let bytes = unhex(&hex[..hex.len().min(2000)]);
            let end = bytes.len() - 1;
            let cut = (0..end).filter(|end| attribute(&bytes[..*end]).is_ok()).count();
            // Only where another pickle ends in it.
            assert!(cut == 0 || bytes[..end].contains(&b'.'), "{case}");
        }
        if let Some(Json::String(hex)) = case.get("array") {
            let bytes = unhex(hex);
            for end in 0..bytes.len() {
                assert!(scan(&bytes[..end]).is_err(), "{end}: {case}");
            }
        }
    }
}

#[test]
fn a_long_array_is_read_in_one_pass() {
    let mut list = Vec::new();
    for batch in 0..100 {
        list.push(b'(');
        for i in 0..1000 {
            list.extend_from_slice(format!("\u{0}\u{8}{:08}\u{0}", batch * 1000 + i).as_bytes());
            let at = list.len();
            (list[at - 11], list[at - 1]) = (0x8c, 0x94);
        }
        list.push(b'e');
    }
    let bytes = array(b"J\xa0\x86\x01\x00\x85", &list);
    let scanned = scan(&bytes).unwrap();
    for row in [0, 1, 999, 1000, 65_535, 99_999] {
        assert_eq!(scanned.cell(row, 0, &bytes), Some(PickledCell::Text(format!("{row:08}").into())));
        assert_eq!(scanned.text_length(row, 0, &bytes), 8);
    }
    assert_eq!(scanned.counts(0)[CellKind::Text as usize], 100_000);
    assert!(scanned.place(100_000, 0).is_none() && scanned.place(0, 1).is_none());
    assert_eq!(scanned.counts(1), [0; CellKind::ALL.len()]);
    // A value and a memo entry take 8 bytes each.
    let asked = std::cell::Cell::new(0);
    let ask = |answer| {
        asked.set(asked.get() + 1);
        answer
    };
    assert!(object_array(&bytes, 1_700_000, &|| ask(true)).is_ok());
    assert_eq!(asked.get(), 3);
    assert!(matches!(object_array(&bytes, 1_500_000, &|| true), Err(Error::Memory { limit: 1_500_000, .. })));
    assert_eq!(object_array(&bytes, PLENTY, &|| ask(false)), Err(Error::Interrupted));
    assert_eq!(asked.get(), 4);
}

#[test]
fn the_shape_is_held_against_the_values() {
    let two = b"(NNe";
    assert_eq!(scan(&array(b"K\x02\x85", two)).unwrap().rows(), 2);
    assert_eq!(scan(&array(b"K\x01K\x02\x86", two)).unwrap().columns(), Some(2));
    assert_eq!(scan(&array(b"K\x00K\x02\x86", b"")).unwrap().rows(), 0);
    assert_eq!(array_error(&array(b"K\x03\x85", two)), "the array's shape says 3 values, the pickle holds 2");
    assert_eq!(array_error(&array(b"K\x01\x85", two)), "the array's shape says 1 values, the pickle holds 2");
    let huge = b"\x8a\x06\x00\x00\x00\x00\x00\x01\x85";
    assert!(matches!(scan(&array(huge, two)), Err(Error::Length { expected: 0x100_0000_0000, .. })));
    let overflow = b"\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7fK\x04\x86";
    assert!(matches!(scan(&array(overflow, two)), Err(Error::Length { .. })));
    let empty = b"\x8a\x06\x00\x00\x00\x00\x00\x01K\x00\x86";
    assert!(matches!(scan(&array(empty, b"")), Err(Error::Length { .. })));
    for shape in [&b")"[..], b"K\x01K\x01K\x02\x87", b"J\xff\xff\xff\xff\x85", b"N", b"N\x85"] {
        assert!(matches!(scan(&array(shape, two)), Err(Error::Structure { .. })), "{shape:?}");
    }
}

#[test]
fn memory_of_a_hostile_array_is_bounded() {
    let limit = 1 << 20;
    let error = |list: &[u8]| object_array(&array(b"K\x02\x85", list), limit, &|| true).unwrap_err();
    assert!(matches!(error(&vec![b'N'; 1 << 20]), Error::Memory { .. }));
    assert!(matches!(error(&vec![b'('; 1 << 20]), Error::Memory { .. }));
    assert!(matches!(error(&[b"N", &vec![0x94; 1 << 20][..]].concat()), Error::Memory { .. }));
    assert!(matches!(error(b"Nr\xff\xff\xff\xff"), Error::Limit { what: "memo entries", .. }));
    let far = [b"Nr\xff\xff\x0f\x00", &vec![b'N'; 1 << 20][..]].concat();
    assert!(matches!(error(&far), Error::Memory { .. }));
    // Values beyond the shape are refused where they come.
    assert!(matches!(error(&b"Na".repeat(1 << 20)), Error::Length { found: 3, .. }));
}

#[test]
fn values_of_other_kinds_are_named_and_passed_over() {
    let list = b"(](K\x01e}(K\x01]K\x02u\x8f(K\x01\x90(K\x01\x91cfractions\nFraction\n\x8c\x012\x85R\
        cm\nC\n)\x81}bcm\nC\n)}\x92h\x00h\x03h\x0ah\x0e\x8a\x11\x00\x00\x00\
        \x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\
        cdatetime\ndate\nC\x04\x07\xe4\x02\x1e\x85Rcdatetime\ndate\nC\x04\x07\xe4\x02\x1d\x85Re";
    let bytes = array(b"K\x0e\x85", list);
    let scanned = scan(&bytes).unwrap();
    let cells: Vec<_> = (0..scanned.rows()).map(|row| cell_json(scanned.cell(row, 0, &bytes).unwrap())).collect();
    let other = |name: &str| json!({"x": name});
    let first = [other("list"), other("dict"), other("set"), other("set"), other("Fraction"), other("C"), other("C")];
    assert_eq!(cells[..7], first);
    // What stands before the list may be meant again: texts are interned. 2020-02-30 is no day.
    assert_eq!(cells[7..10], [json!("numpy._core.multiarray"), json!("numpy"), json!("dtype")]);
    assert_eq!(cells[11..], [other("int"), other("date"), json!({"date": 18_321})]);
    assert_eq!(scanned.counts(0)[CellKind::Other as usize], 10);
    // The list itself.
    let bytes = array(b"K\x01\x85", b"h\x11a");
    assert_eq!(scan(&bytes).unwrap().counts(0)[CellKind::Other as usize], 1);
}

#[test]
fn scalars_of_numpy_are_read_from_their_bytes() {
    let scalar = |code: &str, order: u8, content: &[u8]| {
        let code = [&[0x8c, code.len() as u8], code.as_bytes()].concat();
        let state = [b"(K\x03\x8c\x01", &[order][..], b"NNNtb"].concat();
        [b"h\x00\x8c\x06scalar\x93h\x0b", &code[..], b"\x89\x88\x87R", &state, content, b"\x86R"].concat()
    };
    let cells = |values: &[Vec<u8>]| {
        let bytes = array(&[b'K', values.len() as u8, 0x85], &[b"(", &values.concat()[..], b"e"].concat());
        let scanned = scan(&bytes).unwrap();
        (0..values.len()).map(|row| cell_json(scanned.cell(row, 0, &bytes).unwrap())).collect::<Vec<_>>()
    };
    let other = json!({"x": "scalar"});
    let known = [
        (scalar("i4", b'<', b"C\x04\xfe\xff\xff\xff"), json!({"i": "-2"})),
        (scalar("u4", b'<', b"C\x04\xfe\xff\xff\xff"), json!({"i": "4294967294"})),
        (scalar("f4", b'<', b"C\x04\0\0\x80\xbf"), json!({"f": hex(&(-1.0_f64).to_be_bytes())})),
        (scalar("b1", b'|', b"C\x01\x01"), true.into()),
        // As Python 2 had bytes; what is no character; zeros at the end, which NumPy has not.
        (scalar("U2", b'<', b"U\x08h\0\0\0i\0\0\0"), "hi".into()),
        (scalar("U2", b'<', b"C\x08\0\xd8\0\0\xff\xff\xff\xff"), "\u{fffd}\u{fffd}".into()),
        (scalar("U2", b'<', b"C\x08x\0\0\0\0\0\0\0"), "x".into()),
        // Other bytes than a scalar has, other types, what is not called as NumPy does.
        (scalar("i4", b'<', b"C\x03\0\0\0"), other.clone()),
        (scalar("i8", b'<', b"C\x10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"), other.clone()),
        (scalar("f8", b'<', b"C\x10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"), other.clone()),
        (scalar("U1", b'<', b"C\x03\0\0\0"), other.clone()),
        (scalar("i4", b'<', b"\x8c\x04abcd"), other.clone()),
        (scalar("M8", b'<', b"C\x08\0\0\0\0\0\0\0\0"), other.clone()),
        (scalar("", b'<', b"C\0"), other.clone()),
    ];
    let (values, expected): (Vec<_>, Vec<_>) = known.into_iter().unzip();
    assert_eq!(cells(&values), expected);
    // One type of the other byte order may be the type of any scalar behind it.
    let swapped = [scalar("i4", b'>', b"C\x04\0\0\0\x01"), values[0].clone()];
    assert_eq!(cells(&swapped), [other.clone(), other]);
}

#[test]
fn times_and_decimals_are_held_against_their_rules() {
    let cell = |class: &str, argument: &[u8]| {
        let call = [b"c", class.as_bytes(), b"\n", argument, b"\x85Ra"].concat();
        let bytes = array(b"K\x01\x85", &call);
        let scanned = scan(&bytes).unwrap();
        cell_json(scanned.cell(0, 0, &bytes).unwrap())
    };
    let time = |content: &[u8]| cell("datetime\ndatetime", &[&[b'C', content.len() as u8], content].concat());
    let other = |name: &str| json!({"x": name});
    // 1970-01-02T03:04:05.000006, also the second one of that night.
    let known = json!({"time": "97445000006"});
    assert_eq!(time(b"\x07\xb2\x01\x02\x03\x04\x05\0\0\x06"), known);
    assert_eq!(time(b"\x07\xb2\x81\x02\x03\x04\x05\0\0\x06"), known);
    for content in [
        b"\x07\xb2\x01\x02\x18\0\0\0\0\0",
        b"\x07\xb2\x01\x02\0\x3c\0\0\0\0",
        b"\x07\xb2\x01\x02\0\0\x3c\0\0\0",
        b"\x07\xb2\x01\x02\0\0\0\x0f\x42\x40",
        b"\x07\xb2\x0d\x02\0\0\0\0\0\0",
        b"\x07\xb2\x01\0\0\0\0\0\0\0",
    ] {
        assert_eq!(time(content), other("datetime"), "{content:x?}");
    }
    assert_eq!(time(b"\x07\xb2\x01\x02\0\0\0\0\0"), other("datetime"));
    let decimal = |digits: &str| {
        let length = u32::try_from(digits.len()).unwrap().to_le_bytes();
        cell("decimal\nDecimal", &[b"X", &length[..], digits.as_bytes()].concat())
    };
    for digits in ["0", "-12.340E-7", "Infinity", &"7".repeat(1000)] {
        assert_eq!(decimal(digits), json!({"decimal": digits}));
    }
    assert_eq!([decimal("NaN"), decimal("-sNaN12")], [Json::Null, Json::Null]);
    for digits in ["", "-", "--1", "1,5", "x", "\u{0664}", &"7".repeat(1001)] {
        assert_eq!(decimal(digits), other("Decimal"));
    }
}

#[test]
fn another_structure_is_named() {
    let holds = |bytes: &[u8]| array_error(bytes);
    assert_eq!(
        holds(b"\x80\x05]K\x01a."),
        "the pickle holds a list, not a NumPy array of objects of one or two dimensions"
    );
    assert_eq!(
        holds(b"cos\nsystem\n(Vx\ntR."),
        "the pickle holds what os.system returns, not a NumPy array of objects of one or two dimensions"
    );
    let numbers =
        array(b"K\x01\x85", b"Na").iter().map(|byte| if *byte == b'O' { b'i' } else { *byte }).collect::<Vec<_>>();
    assert!(holds(&numbers).contains("what numpy._core.multiarray._reconstruct returns"));
    let bytes = array(b"K\x01\x85", b"Na");
    assert_eq!(
        holds(&[&bytes[..bytes.len() - 1], b"N."].concat()),
        "the pickle holds more than an array of objects, not a NumPy array of objects of one or two dimensions"
    );
    assert!(scan(&[&bytes[..], b"what follows"].concat()).is_ok());
    assert!(holds(&[b"](", &vec![b'N'; 70_000][..], b"e."].concat()).starts_with("the pickle holds a list"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Whatever is found must be readable, within its limits.
    #[test]
    fn no_damage_makes_the_reader_panic(
        case in any::<prop::sample::Index>(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), token_or_byte()), 0..5),
    ) {
        let hexes = HEXES.get_or_init(|| cases().iter().filter_map(|case| {
            let (key, hex) = case.as_object().unwrap().iter().next()?;
            Some((key == "array", unhex(hex.as_str()?)))
        }).collect());
        let (is_array, mut bytes) = case.get(hexes).clone();
        for (place, piece) in damage {
            let at = place.index(bytes.len() + 1);
            let end = (at + piece.len() % 3).min(bytes.len());
            bytes.splice(at..end, piece);
        }
        if let Ok(tree) = attribute(&bytes) {
            let _ = (json(tree.root()), label(tree.root()).map(|label| label.to_string()), zone(tree.root()));
        }
        if is_array && let Ok(array) = object_array(&bytes, 1 << 20, &|| true) {
            prop_assert!(array.bytes() <= 1 << 20);
            let columns = array.columns().unwrap_or(1);
            for row in 0..array.rows().min(1000) {
                for column in 0..columns.min(1000) {
                    prop_assert!(array.cell(row, column, &bytes).is_some());
                }
            }
        }
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(token_or_byte(), 0..60)) {
        let bytes = bytes.concat();
        let _ = attribute(&bytes);
        let _ = scan(&array(b"K\x02\x85", &bytes));
    }
}

static HEXES: std::sync::OnceLock<Vec<(bool, Vec<u8>)>> = std::sync::OnceLock::new();

/// What makes damage interesting: opcodes with arguments, and any byte.
fn token_or_byte() -> impl Strategy<Value = Vec<u8>> {
    let tokens = b"( . 0 1 2 N a e l t d s u b R o ] } ) \x94 \x93 \x81 \x85 \x86 \x92 \
        \x8f \x90 \x91 h\x00 q\x01 Vx\n K\x02 C\x01x";
    let tokens: Vec<_> = tokens.split(|byte| *byte == b' ').map(<[u8]>::to_vec).collect();
    prop_oneof![prop::sample::select(tokens), any::<u8>().prop_map(|byte| vec![byte])]
}

/// A second before the last one that chrono has a date for, in UTC.
#[test]
fn instants_very_far_from_now_are_told_in_utc() {
    for value in [8_210_266_876_799, i64::MAX, i64::MIN] {
        let label = PandasLabel::Timestamp { value, per_second: 1, zone: Some("Asia/Tokyo".into()) };
        assert!(label.to_string().ends_with("+00:00"), "{label}");
    }
}
