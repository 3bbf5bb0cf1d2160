//! A dialect made up for the test: what the tree shows of a table that is a dataset, and of what a dialect makes up.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use hepfs::catalogue::{ColumnId, ObjectId};
use hepfs::dialects::{About, Claims, Dialect, Dialects, Elsewhere, Here, ListedObject, Made, Mark, Of, Site, arrays};
use hepfs::fs::NodeRef;
use hepfs::fs::tree;
use hepfs::h5;
use hepfs::session::{Session, Settings};
use hepfs::source::Interrupt;
use hepfs::store::{self, Answer, DatasetRows, Store, StoredDataset};
use hepfs::table::{Column, Table};
use serde_json::Value;

use crate::data;

/// Takes the dataset `/contiguous` for a table, and makes up directories in the root group.
#[derive(Debug)]
struct Toy;

impl Toy {
    /// A table of one column over a dataset.
    fn table(&self, site: &Site<'_>, dataset: &hepfs::catalogue::Dataset) -> Table {
        let opened = StoredDataset::new(site.file.clone(), site.path.to_owned(), Arc::new(dataset.clone())).unwrap();
        let rows = DatasetRows::plain(Arc::new(opened), u64::MAX);
        let column = Column {
            ..Column::new(
                "value".into(),
                site.path.to_owned(),
                ColumnId::whole(dataset.id),
                Ok(Arc::new(rows)),
                Arc::default(),
            )
        };
        Table { rows: 6, columns: vec![column], ..Table::empty(site.path, self.about().name) }
    }
}

impl Dialect for Toy {
    fn about(&self) -> &'static About {
        static ABOUT: About = About::named("toy");
        &ABOUT
    }

    fn mark(&self, path: &str, object: ListedObject<'_>) -> Mark {
        match object {
            ListedObject::Group(_) if path == "/" => Mark::LookInside,
            ListedObject::Dataset(_) if path == "/contiguous" => Mark::Table,
            _ => Mark::No,
        }
    }

    fn claims(&self, here: &Here<'_>) -> Claims {
        let id: ObjectId = here.group.link(b"group").unwrap().target.object().unwrap().id();
        let again = Elsewhere { id, links: vec!["group".into()], mtime: None };
        let twice = Made::Directory { table: Some("contiguous".into()), children: Arc::default() };
        let children = [
            ("last".into(), Made::Link("again".into())),
            ("twice".into(), twice),
            ("again".into(), Made::Group(again)),
            ("last".into(), Made::Link("twice".into())),
            ("nowhere".into(), Made::Link("last".into())),
        ];
        let made = Made::Directory { table: None, children: Arc::new(children) };
        // As a member of the group is called, which gives way.
        Claims { made: vec![("group".into(), made)], ..Claims::default() }
    }

    fn open(&self, site: &Site<'_>, _: &Interrupt) -> Table {
        match site.of {
            Of::Dataset(dataset) => self.table(site, dataset),
            Of::Made { group, key, .. } => match group.link(key).and_then(|link| link.target.object()) {
                Some(hepfs::catalogue::Object::Dataset(dataset)) => self.table(site, dataset),
                _ => panic!("{key} is no dataset"),
            },
            Of::Group(_) => panic!("no group is a table"),
        }
    }
}

/// Looks into every group, finds nothing, and notes what it is asked.
#[derive(Debug)]
struct Asked;

/// Paths of the objects that [`Asked`] was shown, and those of the groups that it was shown from inside.
static ASKED: Mutex<(Vec<String>, Vec<String>)> = Mutex::new((Vec::new(), Vec::new()));

impl Dialect for Asked {
    fn about(&self) -> &'static About {
        static ABOUT: About = About::named("asked");
        &ABOUT
    }

    fn mark(&self, path: &str, object: ListedObject<'_>) -> Mark {
        ASKED.lock().unwrap().0.push(path.to_owned());
        if matches!(object, ListedObject::Group(_)) { Mark::LookInside } else { Mark::No }
    }

    fn claims(&self, here: &Here<'_>) -> Claims {
        ASKED.lock().unwrap().1.push(here.path.to_owned());
        Claims::default()
    }
}

fn root() -> NodeRef {
    root_by(Dialects(&[&Toy, &arrays::Arrays]))
}

fn root_by(dialects: Dialects) -> NodeRef {
    let workers = h5::Options {
        program: env!("CARGO_BIN_EXE_hepfs").into(),
        deadline: Duration::from_secs(5),
        ..Default::default()
    };
    let settings = Settings { dialects, ..Default::default() };
    let session: Arc<Session> = Session::with_settings(Store::new(store::Options::default()), workers, settings);
    tree::root(&session, &[data("h5_basic.h5")], &Interrupt::new()).unwrap()
}

fn names(directory: &NodeRef) -> Vec<String> {
    directory.children(&Interrupt::new()).unwrap().iter().map(|entry| entry.name.to_string()).collect()
}

/// The node at a path.
fn at(root: &NodeRef, path: &str) -> NodeRef {
    let interrupt = Interrupt::new();
    path.split('/').fold(root.clone(), |node, name| node.lookup(name.as_bytes(), &interrupt).unwrap())
}

fn text(root: &NodeRef, path: &str) -> String {
    let bytes = Answer::collect(|answer| at(root, path).gather(0, usize::MAX, answer, &Interrupt::new()));
    String::from_utf8(bytes.unwrap()).unwrap()
}

/// What h5py reads there: `numpy.arange(6.0)`.
const VALUES: &str = "value\n0.0\n1.0\n2.0\n3.0\n4.0\n5.0\n";

#[test]
fn a_dataset_can_be_a_table_with_a_directory() {
    let root = root();
    let here = names(&root);
    assert!(here.contains(&"contiguous".to_owned()) && !here.contains(&"contiguous.npy".to_owned()), "{here:?}");
    let files = ["metadata.json", "indexes.json", "head.csv", "table.csv", "table.ndjson", "table.parquet"];
    assert_eq!(
        names(&at(&root, "contiguous")),
        [&files[..], &["table.arrow", "columns", "where", "index.html"]].concat()
    );
    assert_eq!(text(&root, "contiguous/table.csv"), VALUES);
    assert_eq!(text(&root, "contiguous/columns/value.txt"), VALUES.replacen("value\n", "", 1));
    assert_eq!(text(&root, "contiguous/where/value:gt:4/table.csv"), "value\n5.0\n");
}

#[test]
fn a_dialect_makes_up_directories_and_tables() {
    let root = root();
    // The member of that name gives way.
    assert_eq!(names(&at(&root, "group")), ["metadata.json", "last", "twice", "again", "%6Cast", "index.html"]);
    assert_eq!(text(&root, "group/twice/table.csv"), VALUES);
    assert_eq!(names(&at(&root, "group/again")), names(&at(&root, "%67roup")));
    assert_eq!(at(&root, "group/last").readlink().unwrap(), "again");
    assert_eq!(at(&root, "group/%6Cast").readlink().unwrap(), "twice");
}

#[test]
fn parents_and_children_agree_on_what_a_child_is() {
    let root = root();
    let metadata = |path: &str| serde_json::from_str::<Value>(&text(&root, path)).unwrap();
    let members = metadata("metadata.json");
    let kind = |name: &str| {
        let all = members["members"].as_array().unwrap();
        all.iter().find(|member| member["name"] == name).unwrap()["kind"].clone()
    };
    assert_eq!(kind("contiguous"), "table");
    assert_eq!(metadata("contiguous/metadata.json")["kind"], "table");
    assert_eq!(kind("group"), "group");
    assert_eq!(metadata("%67roup/metadata.json")["kind"], "group");
    assert_eq!(metadata("group/metadata.json")["kind"], "made");
    assert_eq!(metadata("group/twice/metadata.json")["kind"], "table");
    // Recognised from inside alone: nothing calls it a table.
    assert_eq!(members["kind"], "group");
}

#[test]
fn an_object_is_judged_once_for_a_listing() {
    let root = root_by(Dialects(&[&Asked, &arrays::Arrays]));
    let group = at(&root, "group");
    names(&root);
    names(&group);
    text(&root, "metadata.json");
    text(&root, "group/metadata.json");
    let (marked, inside) = ASKED.lock().unwrap().clone();
    let count = |all: &[String], path: &str| all.iter().filter(|one| *one == path).count();
    // A group once from outside, and once from inside with the claims on it.
    assert_eq!(inside, ["/", "/group"]);
    assert_eq!([count(&marked, "/"), count(&marked, "/group")], [1, 2], "{marked:?}");
    assert_eq!([count(&marked, "/chunked"), count(&marked, "/scalar")], [1, 1], "{marked:?}");
}
