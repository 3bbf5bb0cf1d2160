//! Pages of tables in memory: their size, and that no name leaves its place.

use std::sync::Arc;

use arrow_array::builder::{LargeListBuilder, UInt8Builder};
use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, Float64Array, Int64Array, LargeStringArray, TimestampNanosecondArray,
    UInt8Array,
};
use proptest::prelude::*;

use super::*;
use crate::catalogue::{ColumnId, ObjectId};
use crate::source::Interrupt;
use crate::store::rows::in_memory::MemoryRows;
use crate::table::{Column, Finding, Table, UNREADABLE};
use crate::views::png::{Picture, Shades};

/// Names and texts that would like to be something else.
const HOSTILE: [&str; 12] = [
    "</script><script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "' onclick='x",
    "</style><style>*{display:none}",
    "-->",
    "</title></head><body>",
    "\u{202e}gpj.exe",
    "a\0b\n\r\t\u{1b}[2J",
    "javascript:alert(1)",
    "&lt;&amp;&#x3c;",
    "`${x}` \\ % \u{2028}",
    "",
];

fn column(name: &str, array: ArrayRef, nullable: bool) -> Column {
    let id = ColumnId::whole(ObjectId { file: 0, address: name.len() as u64 });
    let rows = MemoryRows::new(array).nullable(nullable);
    let mut column = Column::new(name.into(), format!("/t/{name}"), id, Ok(Arc::new(rows)), Arc::default());
    column.meaning.units = Some(name.to_owned());
    column.meaning.description = Some(name.repeat(1 + 2000 / (name.len() + 1)));
    column
}

fn table(columns: Vec<Column>) -> Table {
    let rows = columns.first().and_then(|column| column.rows.as_ref().ok()).map_or(0, |rows| rows.len());
    Table { rows, columns, ..Table::empty("/t", "test") }
}

fn place(name: &str) -> PagePlace {
    PagePlace {
        above: vec![(name.to_owned(), Some(name.into())), (name.to_owned(), None)],
        name: name.to_owned(),
        source: name.into(),
        path: name.into(),
        mounted: Some(format!("/mnt/{name}").into()),
        findings: Some(name.to_owned()),
        files: vec![(name.into(), name.to_owned()), ("table.parquet".into(), String::new())],
        columns: HashMap::from([(name.into(), vec![format!("columns/{name}.npy").into()])]),
        ..PagePlace::default()
    }
}

fn written(table: Table, place: PagePlace) -> String {
    let table = Arc::new(table);
    let look = Look::of(&table, true, &Interrupt::new()).unwrap();
    let members = vec![member(&place.name, MemberKind::Group), member(&place.name, array(ValueRoom::Values))];
    let page = TablePage::new(table, place, Members::new(members, 0, 3, true));
    let size = page.size();
    let bytes = page.render(&look, Some(Stored { bytes: u64::MAX, are_all: false }), &Found::default());
    assert_eq!(bytes.len() as u64, size);
    String::from_utf8(bytes).unwrap()
}

/// The names of all elements, in order, and the text outside of them; fails where a tag does not end.
fn elements(page: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut rest = page;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        if let Some(comment) = rest.strip_prefix("!--") {
            rest = &comment[comment.find("-->").unwrap()..];
            continue;
        }
        let name: String = rest.chars().take_while(|c| c.is_ascii_alphanumeric() || "/!".contains(*c)).collect();
        let (mut end, mut quoted) = (0, false);
        for (place, character) in rest.char_indices() {
            quoted ^= character == '"';
            end = place;
            if character == '>' && !quoted {
                break;
            }
            assert!(character != '<', "a tag within a tag: {}", &rest[..place]);
        }
        rest = &rest[end..];
        if name == "style" {
            rest = &rest[rest.find("</style>").unwrap()..];
        }
        names.push(name);
    }
    names
}

fn of_all_kinds(name: &str, rows: u64, random: &mut dyn FnMut() -> u64) -> Vec<Column> {
    // Every second of 64 stretches has no value.
    let gap = |row: u64| row * 64 / rows.max(1) % 2 == 1;
    let mut numbers = || (0..rows).map(|_| random()).collect::<Vec<u64>>();
    let [a, b, c, d, e, f] = std::array::from_fn(|_| numbers());
    let (mut time, mut lists) = (0_i64, LargeListBuilder::new(UInt8Builder::new()));
    let times: Vec<i64> = a
        .iter()
        .map(|jump| {
            time += 1 << (jump % 40);
            time
        })
        .collect();
    for length in &b {
        lists.append_option((length % 3 > 0).then(|| (0..length % 200).map(|_| Some(0)).collect::<Vec<_>>()));
    }
    let text = |number: &u64| format!("{}{}", HOSTILE[*number as usize % HOSTILE.len()], number % 7);
    let row = |value: &u64, at: usize| (!gap(at as u64)).then_some(*value);
    let with_gaps = |values: &[u64]| values.iter().enumerate().map(|(at, value)| row(value, at)).collect::<Vec<_>>();
    let labels: DictionaryArray<Int32Type> = with_gaps(&c)
        .iter()
        .map(|value| value.as_ref().map(text))
        .collect::<Vec<_>>()
        .iter()
        .map(|text| text.as_deref())
        .collect();
    vec![
        column(name, Arc::new(TimestampNanosecondArray::from_iter_values(times)), false),
        column(
            name,
            Arc::new(Int64Array::from_iter(with_gaps(&d).into_iter().map(|value| value.map(u64::cast_signed)))),
            true,
        ),
        column(name, Arc::new(UInt8Array::from_iter_values(e.iter().map(|value| (value % 130) as u8))), false),
        column(
            name,
            Arc::new(Float64Array::from_iter_values(f.iter().enumerate().map(|(at, bits)| match gap(at as u64) {
                true => f64::NAN,
                false => f64::from_bits(*bits),
            }))),
            false,
        ),
        column(name, Arc::new(labels), true),
        column(
            name,
            Arc::new(LargeStringArray::from_iter_values(
                a.iter().map(|value| format!("{value}").repeat((value % 5) as usize)),
            )),
            false,
        ),
        column(
            name,
            Arc::new(BooleanArray::from_iter(with_gaps(&b).into_iter().map(|value| value.map(|value| value % 3 == 0)))),
            true,
        ),
        column(name, Arc::new(lists.finish()), true),
    ]
}

/// A generator of numbers without a pattern (SplitMix64).
fn random(mut state: u64) -> impl FnMut() -> u64 {
    move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn no_page_is_longer_than_its_size(seed: u64, rows in 0_u64..1500, name in "\\PC{0,40}|[\\x00-\\xff<>&\"']{0,20}") {
        let table = table(of_all_kinds(&name, rows, &mut random(seed)));
        let page = written(table, place(&name));
        prop_assert!(!page.contains("it would be too large"));
        // What may not be drawn in full is no picture, and never part of one.
        let reserved = elements(&page);
        prop_assert!(!reserved.iter().any(|name| name.contains("script")));
    }
}

#[test]
fn no_name_leaves_its_place() {
    let page = |name: &str| {
        let mut table = table(of_all_kinds(name, 100, &mut random(7)));
        table.findings = vec![Finding::new(name, &UNREADABLE, name.to_owned())];
        written(table, place(name))
    };
    // The elements of a page are those of one with plain names. Escapes are not plain, so some snippets are left out.
    let plain = elements(&page("plain"));
    assert!(plain.len() > 100 && plain.contains(&"svg".to_owned()));
    let snippets =
        |names: &[String]| names.iter().filter(|name| matches!(name.as_str(), "pre" | "label" | "input")).count();
    for name in HOSTILE.iter().map(|name| (*name).to_owned()).chain(["x".repeat(1 << 20), "<\u{202e}".repeat(1 << 18)])
    {
        let page = page(&name);
        let names = elements(&page);
        assert!(page.len() < 110_000, "{} bytes", page.len());
        let others = |names: &[String]| {
            names
                .iter()
                .filter(|name| !matches!(name.as_str(), "pre" | "/pre" | "label" | "/label" | "input" | "wbr"))
                .cloned()
                .collect::<Vec<_>>()
        };
        if name.is_empty() {
            continue;
        }
        assert_eq!(others(&names), others(&plain), "{name:.60}");
        assert!((1..=snippets(&plain)).contains(&snippets(&names)));
        assert!(!page.chars().any(|character| character.is_control() && character != '\n'));
        assert!(!page.contains('\u{202e}') && !page.contains('\u{2028}'));
    }
}

fn member(name: &str, kind: MemberKind) -> Member {
    Member { name: name.to_owned(), link: Some(format!("{name}/index.html").into()), kind, not_shown: None }
}

fn array(room: ValueRoom) -> MemberKind {
    MemberKind::Array {
        type_name: "float64".into(),
        shape: vec![64, 16],
        units: Some("MeV".into()),
        description: None,
        room,
        files: vec![b"a.npy".to_vec()],
    }
}

fn group(members: Vec<Member>, more: u64, below: usize) -> GroupPage {
    GroupPage::new(place("root"), Members::new(members, more, below, true), Arc::default())
}

#[test]
fn groups_show_their_members() {
    let members = vec![
        member("run", MemberKind::Table),
        Member { not_shown: Some("not shown: <why>".into()), ..member("<b>", MemberKind::Group) },
        member("a", array(ValueRoom::Picture(1000))),
        member("b", array(ValueRoom::Nothing("no <picture>"))),
        member("c", array(ValueRoom::Values)),
        member("link", MemberKind::Other("link".into())),
    ];
    let page = group(members, 7, 40);
    let table = TableFacts {
        rows: u64::MAX,
        columns: u64::MAX,
        format: "<".repeat(500),
        stored: Some(Stored { bytes: u64::MAX, are_all: false }),
        times: Some([i64::MIN, i64::MAX]),
        findings: u64::MAX,
    };
    let shades = Shades::Between { ends: [-f64::MAX, f64::MIN_POSITIVE], is_logarithmic: true };
    let picture = Picture {
        png: vec![7; 1000],
        width: 256,
        parts: "\"".repeat(300),
        shades,
        has_gaps: true,
        are_magnitudes: true,
    };
    let below = |number: usize| TableBelow {
        under: Some(1).filter(|_| number.is_multiple_of(2)),
        path: format!("<b>/{number}\"/t").into(),
        details: table.clone(),
    };
    for details in [
        vec![],
        vec![
            MemberFacts::Table(table.clone()),
            MemberFacts::Table(table.clone()),
            MemberFacts::Picture(picture),
            MemberFacts::Nothing,
            MemberFacts::Values("'".repeat(500)),
        ],
        vec![MemberFacts::Nothing, MemberFacts::Group(3)],
    ] {
        let (is_full, is_unknown) = (details.len() == 5, details.is_empty());
        let below: Vec<TableBelow> = (0..if is_full { 40 } else { 0 }).map(below).collect();
        let bytes = page.render(&Found { details, below, is_cut: is_full });
        assert_eq!(bytes.len() as u64, page.size());
        let text = String::from_utf8(bytes).unwrap();
        elements(&text);
        assert!(
            text.contains("64 × 16")
                && text.contains("<p>no &lt;picture&gt;</p>")
                && text.contains("&lt;b&gt;")
                && text.contains("%3Cb%3E/index.html")
        );
        assert_eq!(text.contains("<small>not shown: &lt;why&gt;</small>"), is_unknown);
        assert_eq!(text.contains("<img width=256") && text.contains("<p class=\"n v\">&#39;"), is_full);
        // Those with the longest facts do not all have room: the page says how many are left.
        let rows = text.matches("18 446 744 073 709 551 615").count() / 3;
        assert_eq!((rows > 2, text.contains("were looked into")), (is_full, is_full));
        assert_eq!(text.contains("more tables further down: on the pages of the groups"), is_full);
        assert!(text.contains("<b>7</b> members that are not shown here"));
    }
}

#[test]
fn tables_further_down_follow_their_group() {
    let page = group(vec![member("a", MemberKind::Group), member("b", MemberKind::Group)], 0, 10);
    let below = |under: Option<usize>, path: &str| TableBelow {
        under,
        path: path.into(),
        details: TableFacts { rows: 3, ..TableFacts::default() },
    };
    let table = MemberFacts::Table(TableFacts { rows: 3, ..TableFacts::default() });
    let below = vec![below(Some(0), "a/x"), below(Some(1), "b/y/z"), below(None, "tables/all")];
    let page = page.render(&Found { details: vec![MemberFacts::Group(1), table], below, is_cut: false });
    let text = String::from_utf8(page).unwrap();
    let place =
        |link: &str| text.find(&format!("href=\"{link}/index.html\"")).unwrap_or_else(|| panic!("{link}: {text}"));
    assert!(["a/x", "b", "b/y/z", "tables/all", "a"].map(place).is_sorted(), "{text}");
    assert!(
        text.contains("<b>4</b> tables, <b>1</b> group\u{a0}·") && text.contains("a/<small>1 member</small>"),
        "{text}"
    );
    assert!(!text.contains("Times"));
}

#[test]
fn pages_of_large_groups_begin_with_a_thousand_members() {
    let many = group(vec![member("x", MemberKind::Group); 1_000_000], 0, 0);
    assert_eq!(many.members().shown().len(), MOST_MEMBERS);
    let text = String::from_utf8(many.render(&Found { is_cut: true, ..Found::default() })).unwrap();
    assert!(text.contains("<b>999 000</b> members"));
    // Groups without a table, too, may not all have been opened.
    assert!(!text.contains("id=tables") && text.contains("Not all directories were looked into"));
}
