//! The HDF5 worker through its client, over the files of `scripts/fixtures/h5.py`; expected values are h5py's.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hepfs::catalogue::{
    Attribute, ByteOrder, Class, Dangling, Dataset, Datatype, Descriptor, Elements, Fill, FloatFormat, Group, Layout,
    Object, ReferenceKind, Target, attribute,
};
use hepfs::h5::create::{self, CreatedObject, FillSetting, Storage};
use hepfs::h5::element::{ElementNumber, ElementType};
use hepfs::h5::{Client, Error, Options, Region};
use hepfs::source::{Interrupt, Source};

use crate::data;

fn options() -> Options {
    Options { program: env!("CARGO_BIN_EXE_hepfs").into(), lists_simple: false, ..Options::default() }
}

fn client_with(path: &Path, options: Options) -> Client {
    Client::new(Arc::new(Source::open(path).unwrap()), options)
}

fn client(name: &str) -> Client {
    client_with(&data(name), options())
}

fn root(client: &Client) -> Group {
    let info = client.file(&Interrupt::new()).unwrap();
    client.group(info.root, &Interrupt::new()).unwrap()
}

fn target<'a>(group: &'a Group, name: &str) -> &'a Target {
    &group.link(name.as_bytes()).unwrap_or_else(|| panic!("no link {name}")).target
}

fn dataset<'a>(group: &'a Group, name: &str) -> &'a Dataset {
    match target(group, name).object() {
        Some(Object::Dataset(dataset)) => dataset,
        other => panic!("{name} is {other:?}"),
    }
}

fn read(client: &Client, dataset: &Dataset) -> Result<Elements, Error> {
    let region = Region { start: vec![0; dataset.shape.len()], count: dataset.shape.clone() };
    client.read(dataset.id, &region, &Interrupt::new())
}

fn little_i32(numbers: impl IntoIterator<Item = i32>) -> Vec<u8> {
    numbers.into_iter().flat_map(i32::to_le_bytes).collect()
}

/// The parts of a heap that descriptors of `width` bytes of address lead to, as text.
fn texts(elements: &Elements, address: usize) -> Vec<String> {
    let size = 4 + address + 4;
    elements
        .bytes
        .chunks_exact(size)
        .map(|bytes| {
            let length = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
            let mut position = [0; 8];
            position[..address].copy_from_slice(&bytes[4..4 + address]);
            let position = u64::from_le_bytes(position) as usize;
            String::from_utf8(elements.heap[position..position + length].to_vec()).unwrap()
        })
        .collect()
}

fn value<'a>(attributes: &'a [Attribute], name: &str) -> &'a Elements {
    attribute(attributes, name).unwrap().value.as_ref().unwrap()
}

/// Links of a group, many enough that the worker looks at the clock while it lists them.
const MANY_LINKS: usize = 3000;

#[test]
fn a_listing_that_takes_long_is_asked_for_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("many.h5");
    let names = (0..MANY_LINKS).map(|at| format!("d{at:04}"));
    create::file(&path, |root| {
        let storage = Storage::contiguous(&[1]);
        names.clone().try_for_each(|name| root.dataset(&name, &f64::ELEMENT, &storage, &FillSetting::Unset).map(drop))
    })
    .unwrap();
    let listed = |page_time| {
        let client = client_with(&path, Options { page_time, ..options() });
        let root = client.file(&Interrupt::new()).unwrap().root;
        let before = client.requests();
        (client.group(root, &Interrupt::new()).unwrap(), client.requests() - before)
    };
    let (quick, requests) = listed(Duration::from_secs(600));
    assert_eq!(requests, 1);
    // The clock is looked at once for 1,024 links: twice it is too late, and then a page of one link is. Workers that
    // share the pages list the links each for itself.
    let (slow, requests) = listed(Duration::ZERO);
    let least = 2 + MANY_LINKS as u64;
    assert!((least..least + 100).contains(&requests), "{requests}");
    assert_eq!(slow.links, quick.links);
    assert!(slow.links.iter().map(|link| link.name.to_string()).eq(names));
}

/// Soft links of a group, each with a path of [`LONG`] bytes: libhdf5's cache of metadata has no room for their heap.
const LONG_LINKS: usize = 1000;
const LONG: usize = 1000;

/// As h5py 3.16 with HDF5 2.0 has it: of links that each lead to the next, it opens the last 16, and says "too many
/// links" of the others.
#[test]
fn chains_of_links_are_followed_as_far_as_libhdf5_does_and_their_heap_is_read_few_times() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("chain.h5");
    create::file(&path, |root| {
        root.dataset("data", &f64::ELEMENT, &Storage::contiguous(&[1]), &FillSetting::Unset)?;
        let (chain, others) = (root.group("chain")?, root.group("others")?);
        let dots = "./".repeat(LONG / 2);
        for at in 1..=LONG_LINKS {
            let next = if at == 1 { "/data".to_owned() } else { format!("{dots}l{:04}", at - 1) };
            chain.soft_link(&format!("l{at:04}"), &next)?;
            others.soft_link(&format!("l{at:04}"), &format!("/chain/l{:04}", at % 20 + 1))?;
        }
        Ok::<_, create::Error>(())
    })
    .unwrap();
    let client = client_with(&path, options());
    let root = root(&client);
    for group in ["chain", "others"] {
        let worker = client.worker_id().unwrap();
        let before = bytes_read_by(worker);
        let id = target(&root, group).object().unwrap().id();
        let links = client.group(id, &Interrupt::new()).unwrap().links;
        for (link, at) in links.iter().zip(1..=LONG_LINKS) {
            let Target::Soft { object, .. } = &link.target else { panic!("{link:?}") };
            let followed = object.as_ref().map(|object| object.id());
            let passed = if group == "chain" { at } else { at % 20 + 2 };
            let expected = if passed <= 16 { Ok(dataset(&root, "data").id) } else { Err(&Dangling::TooManyLinks) };
            assert_eq!(followed, expected, "{group}: {}", link.name);
        }
        let read = bytes_read_by(worker) - before;
        // The heap has 1 MB, and was read at least once for each link.
        assert!(read < 64 << 20, "{group}: {read}");
    }
}

/// Bytes that a process has read.
fn bytes_read_by(process: u32) -> u64 {
    let counts = std::fs::read_to_string(format!("/proc/{process}/io")).unwrap();
    counts.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap().parse().unwrap()
}

#[test]
fn a_group_lists_links_bytewise_with_their_objects() {
    for file in ["h5_basic.h5", "h5_user_block.h5", "h5_latest.h5", "h5_narrow.h5"] {
        let client = client(file);
        let root = root(&client);
        let names: Vec<&[u8]> = root.links.iter().map(|link| link.name.as_slice()).collect();
        let expected: [&[u8]; 19] = [
            b"bytes \xff",
            b"chunked",
            b"committed",
            b"compact",
            b"contiguous",
            b"empty",
            b"external",
            b"filled",
            b"group",
            b"hard",
            b"loop a",
            b"loop b",
            b"scalar",
            b"soft",
            b"soft chain",
            b"soft ok",
            b"strings",
            b"through external",
            b"unallocated",
        ];
        assert_eq!(names, expected, "{file}");
        assert!(!root.creation_order);
        let contiguous = dataset(&root, "contiguous").id;
        assert_eq!(dataset(&root, "hard").id, contiguous);
        assert_eq!(dataset(&root, "soft ok").id, contiguous);
        assert_eq!(dataset(&root, "soft chain").id, contiguous);
        for name in ["soft", "through external", "loop a", "loop b"] {
            let why = if name.starts_with("loop") { Dangling::TooManyLinks } else { Dangling::Nowhere };
            assert!(
                matches!(target(&root, name), Target::Soft { object: Err(met), .. } if *met == why),
                "{file}: {name}"
            );
        }
        let Target::External { file: elsewhere, path, object } = target(&root, "external") else { panic!() };
        assert_eq!((elsewhere.as_slice(), path.as_slice(), object), (&b"h5_linked.h5"[..], &b"/there"[..], &None));
        assert!(matches!(target(&root, "committed").object(), Some(Object::Datatype { .. })));
        let Some(Object::Group { id, attributes, .. }) = target(&root, "group").object() else { panic!() };
        assert_eq!(attributes.len(), 1);
        assert_eq!(client.group(*id, &Interrupt::new()).unwrap().links.len(), 1);
    }
}

#[test]
fn datasets_have_shape_fill_layout_filters_and_elements() {
    for (file, address_size) in [("h5_basic.h5", 8), ("h5_user_block.h5", 8), ("h5_latest.h5", 8), ("h5_narrow.h5", 4)]
    {
        let client = client(file);
        assert_eq!(client.file(&Interrupt::new()).unwrap().address_size, address_size);
        let root = root(&client);

        let chunked = dataset(&root, "chunked");
        assert_eq!(chunked.shape, [5, 7]);
        assert_eq!(chunked.layout, Layout::Chunked { chunk: vec![2, 3], partial_unfiltered: false });
        let filter = &chunked.filters[0];
        assert_eq!((filter.id, filter.parameters.as_slice(), filter.name.as_str()), (1, &[4][..], "deflate"));
        assert_eq!(read(&client, chunked).unwrap().bytes, little_i32(0..35));
        let part = Region { start: vec![1, 2], count: vec![2, 2] };
        let part = client.read(chunked.id, &part, &Interrupt::new()).unwrap();
        assert_eq!(part.bytes, little_i32([9, 10, 16, 17]));
        let chunks = client.chunks(chunked.id, 9, &Interrupt::new()).unwrap();
        assert_eq!(chunks.iter().map(|chunk| chunk.index).collect::<Vec<_>>(), (0..9).collect::<Vec<_>>());

        let contiguous = dataset(&root, "contiguous");
        let Layout::Contiguous { address: Some(address) } = contiguous.layout else { panic!() };
        let expected: Vec<u8> = (0..6).flat_map(|n| f64::from(n).to_be_bytes()).collect();
        assert_eq!(read(&client, contiguous).unwrap().bytes, expected);
        // The address is one in the file, user block included.
        let whole = std::fs::read(data(file)).unwrap();
        assert_eq!(whole[address as usize..address as usize + 48], expected);

        assert_eq!(dataset(&root, "unallocated").layout, Layout::Contiguous { address: None });
        assert_eq!(read(&client, dataset(&root, "unallocated")).unwrap().bytes, [0; 8]);
        let fill = Elements { bytes: vec![0xf9, 0xff], heap: vec![] };
        assert_eq!(dataset(&root, "filled").fill, Fill::Explicit(fill));
        assert_eq!(read(&client, dataset(&root, "filled")).unwrap().bytes, [0xf9, 0xff].repeat(4));
        assert_eq!(dataset(&root, "compact").layout, Layout::Compact);
        assert_eq!(read(&client, dataset(&root, "compact")).unwrap().bytes, [1, 0, 2, 0, 3, 0]);
        assert_eq!(read(&client, dataset(&root, "scalar")).unwrap().bytes, 0.5f32.to_le_bytes());
        assert!(dataset(&root, "empty").null);
        assert_eq!(read(&client, dataset(&root, "empty")).unwrap(), Elements::default());

        let strings = dataset(&root, "strings");
        assert_eq!(strings.datatype.size, 8 + u64::from(address_size));
        let found = read(&client, strings).unwrap();
        assert_eq!(texts(&found, address_size.into()), ["", "é", "long long long "]);
    }
}

/// The bytes at a chunk's address are the chunk: addresses include the user block.
#[test]
fn chunk_addresses_are_positions_in_the_file() {
    for file in ["h5_basic.h5", "h5_user_block.h5", "h5_latest.h5", "h5_narrow.h5"] {
        let client = client(file);
        let root = root(&client);
        let chunks = client.chunks(dataset(&root, "chunked").id, 100, &Interrupt::new()).unwrap();
        let whole = std::fs::read(data(file)).unwrap();
        let last = chunks.get(8).unwrap();
        let stored = &whole[last.address as usize..(last.address + last.size) as usize];
        let mut chunk = vec![0; 24];
        let decoded = libdeflater::Decompressor::new().zlib_decompress(stored, &mut chunk).unwrap();
        assert_eq!((decoded, &chunk[..4]), (24, &34i32.to_le_bytes()[..]), "{file}");
    }
}

#[test]
fn a_chunk_map_has_gaps_and_a_limit() {
    let client = client("h5_many.h5");
    let root = root(&client);
    let id = dataset(&root, "d").id;
    let chunks = client.chunks(id, 1000, &Interrupt::new()).unwrap();
    let mut expected = vec![0];
    expected.extend(300..330);
    expected.push(899);
    assert_eq!(chunks.iter().map(|chunk| chunk.index).collect::<Vec<_>>(), expected);
    assert!(chunks.iter().all(|chunk| chunk.size == 100));
    assert!(matches!(client.chunks(id, 31, &Interrupt::new()), Err(Error::TooLarge { .. })));
    assert!(client.chunks(id, 32, &Interrupt::new()).is_ok());
}

#[test]
fn creation_order_is_kept_where_the_file_tracks_it() {
    let client = client("h5_ordered.h5");
    let root = root(&client);
    assert!(root.creation_order);
    let names: Vec<String> = root.links.iter().map(|link| link.name.to_string()).collect();
    assert_eq!(names, ["zebra", "apple", "mango"]);
    let names: Vec<String> = root.attributes.iter().map(|attribute| attribute.name.to_string()).collect();
    assert_eq!(names, ["zebra", "apple", "mango"]);
}

#[test]
fn attributes_have_values() {
    let client = client("h5_basic.h5");
    let root = root(&client);
    let attributes = &dataset(&root, "chunked").attributes;
    assert_eq!(texts(value(attributes, "units"), 8), ["GeV"]);
    let limits: Vec<u8> = [1.5f64, -2.5].into_iter().flat_map(f64::to_le_bytes).collect();
    assert_eq!(value(attributes, "limits").bytes, limits);
    assert_eq!(attribute(attributes, "limits").unwrap().shape, [2]);
    assert_eq!(value(attributes, "fixed").bytes, b"abc");
    assert!(attribute(attributes, "null").unwrap().null);
    assert_eq!(texts(value(&dataset(&root, "strings").attributes, "names"), 8), ["x", "yy"]);
}

#[test]
fn datatypes_have_the_layout_they_have_in_the_file() {
    let client = client("h5_types.h5");
    let root = root(&client);
    let compound = dataset(&root, "compound");
    // h5py stores two rows in 92 bytes.
    assert_eq!(compound.datatype.size, 46);
    let Class::Compound { fields } = &compound.datatype.class else { panic!() };
    let offsets: Vec<(String, u64, u64)> =
        fields.iter().map(|field| (field.name.to_string(), field.offset, field.datatype.size)).collect();
    let expected = [("a", 0, 4), ("text", 4, 16), ("b", 20, 4), ("list", 24, 16), ("c", 40, 6)];
    assert_eq!(offsets, expected.map(|(name, offset, size)| (name.to_string(), offset, size)));
    let Class::Compound { fields } = &dataset(&root, "padded").datatype.class else { panic!() };
    assert_eq!((fields[0].offset, fields[1].offset), (4, 16));
    assert_eq!(dataset(&root, "padded").datatype.size, 24);

    let Class::Enum { members, base } = &dataset(&root, "enum").datatype.class else { panic!() };
    let members: Vec<(String, i128)> = members.iter().map(|member| (member.name.to_string(), member.value)).collect();
    assert_eq!(members, [("NO".to_string(), -1), ("YES".to_string(), 7)]);
    assert_eq!(base.size, 2);
    assert!(dataset(&root, "bool").datatype.is_boolean());
    let bits = Class::Bitfield { order: ByteOrder::Big, precision: 16, offset: 0 };
    assert_eq!(dataset(&root, "bits").datatype, Datatype { size: 2, class: bits });
    assert!(matches!(dataset(&root, "opaque").datatype, Datatype { size: 3, class: Class::Opaque { .. } }));
    // h5py writes complex numbers as compounds.
    assert!(matches!(&dataset(&root, "complex").datatype.class, Class::Compound { fields } if fields.len() == 2));
    let float = |name: &str| match dataset(&root, name).datatype.class {
        Class::Float { format, .. } => format,
        ref other => panic!("{other:?}"),
    };
    assert_eq!(float("half"), FloatFormat::Half);
    assert!(matches!(float("bfloat16"), FloatFormat::Other { exponent_size: 8, mantissa_size: 7, bias: 127, .. }));
    let Class::Sequence { base } = &dataset(&root, "nested").datatype.class else { panic!() };
    assert!(matches!(&base.class, Class::Sequence { base } if base.size == 1));

    let Fill::Explicit(fill) = &dataset(&root, "filled text").fill else { panic!() };
    assert_eq!(texts(fill, 8), ["none"]);
    assert_eq!(texts(&read(&client, dataset(&root, "filled text")).unwrap(), 8), ["none", "none"]);
}

#[test]
fn variable_length_parts_go_to_the_heap() {
    let client = client("h5_types.h5");
    let root = root(&client);
    let lists = read(&client, dataset(&root, "lists")).unwrap();
    let parts: Vec<Vec<u8>> = lists
        .bytes
        .chunks_exact(16)
        .map(|bytes| {
            let Descriptor { length, position, .. } = Descriptor::parse(bytes).unwrap();
            lists.heap[position as usize..position as usize + 2 * length as usize].to_vec()
        })
        .collect();
    assert_eq!(parts, [vec![1, 0, 2, 0], vec![], vec![3, 0]]);

    let rows = read(&client, dataset(&root, "compound")).unwrap();
    let (first, second) = rows.bytes.split_at(46);
    assert_eq!(first[..4], 1i32.to_le_bytes());
    assert_eq!(first[20..24], 1.5f32.to_be_bytes());
    assert_eq!(first[40..], [0, 1, 2, 3, 4, 5]);
    let text = Descriptor::parse(&first[4..20]).unwrap();
    assert_eq!(&rows.heap[text.position as usize..][..text.length as usize], b"one");
    let list = Descriptor::parse(&first[24..40]).unwrap();
    assert_eq!(rows.heap[list.position as usize..][..2 * list.length as usize], [1, 0, 2, 0, 3, 0]);
    assert_eq!(Descriptor::parse(&second[4..20]).unwrap().length, 0);
}

#[test]
fn references_are_addresses_and_objects_have_paths() {
    let client = client("h5_references.h5");
    let root = root(&client);
    let (also, group) = (dataset(&root, "also").id, target(&root, "g").object().unwrap().id());
    let references = |name: &str| &attribute(&root.attributes, name).unwrap().references;
    assert_eq!(references("object"), &[Some(also)]);
    assert_eq!(references("objects"), &[Some(group), Some(also)]);
    assert_eq!(references("region"), &[Some(also)]);

    let objects = dataset(&root, "objects");
    assert_eq!(objects.datatype, Datatype { size: 8, class: Class::Reference(ReferenceKind::Object) });
    let addresses = [also.address, 12345, group.address, also.address, u64::MAX];
    let paths = client.paths(0, &addresses, &Interrupt::new()).unwrap();
    assert_eq!(paths, [Some("/also".to_string()), None, Some("/g".into()), Some("/also".into()), None]);
    let regions = dataset(&root, "regions");
    assert_eq!(regions.datatype, Datatype { size: 12, class: Class::Reference(ReferenceKind::Region) });
    assert_eq!(client.paths(0, &[], &Interrupt::new()).unwrap(), []);
    assert!(client.paths(7, &[also.address], &Interrupt::new()).is_err(), "no such file");
}

#[test]
fn other_files_are_refused_unless_followed() {
    let client = client("h5_elsewhere.h5");
    let root = root(&client);
    assert!(matches!(&dataset(&root, "passwd").layout, Layout::External { files } if files[0] == "/etc/passwd"));
    let linked = ["virtual dots", "virtual linked", "virtual soft", "virtual outside"];
    for name in ["passwd", "raw", "virtual", "virtual hidden"].into_iter().chain(linked) {
        let error = read(&client, dataset(&root, name)).unwrap_err().to_string();
        assert!(error.contains("another file"), "{name}: {error}");
    }
    assert_eq!(read(&client, dataset(&root, "own")).unwrap().bytes, little_i32(0..3));
    assert_eq!(read(&client, dataset(&root, "virtual own")).unwrap().bytes, little_i32(0..3));
    assert_eq!(target(&root, "outside").object(), None);
}

#[test]
fn followed_files_lie_below_the_sources_folder() {
    let following = || Options { follow_external: true, ..options() };
    let client = client_with(&data("h5_elsewhere.h5"), following());
    let probe = client.probe(&Interrupt::new()).unwrap();
    assert!(probe.iter().all(|(_, worked)| !worked), "{probe:?}");
    let elsewhere = root(&client);
    assert_eq!(read(&client, dataset(&elsewhere, "raw")).unwrap().bytes, [1, 2, 3, 4]);
    for name in ["virtual", "virtual hidden", "virtual own", "virtual dots", "virtual linked", "virtual soft"] {
        assert_eq!(read(&client, dataset(&elsewhere, name)).unwrap().bytes, little_i32(0..3), "{name}");
    }
    assert!(read(&client, dataset(&elsewhere, "passwd")).is_err());
    // A file that is not there leaves the fill value, as in h5py.
    assert_eq!(read(&client, dataset(&elsewhere, "virtual outside")).unwrap().bytes, (-1_i32).to_le_bytes().repeat(3));
    assert_eq!(target(&elsewhere, "outside").object(), None);
    assert_eq!(target(&elsewhere, "passwd link").object(), None);

    let client = client_with(&data("h5_basic.h5"), following());
    let root = root(&client);
    for name in ["external", "through external"] {
        let linked = dataset(&root, name);
        assert_ne!(linked.id.file, 0);
        assert_eq!(read(&client, linked).unwrap().bytes, little_i32(0..3));
        // Another worker still knows the number of the file.
        signal(client.worker_id().unwrap(), libc::SIGKILL);
        assert_eq!(read(&client, linked).unwrap().bytes, little_i32(0..3));
    }
}

#[test]
fn one_bad_object_spoils_nothing_else() {
    let client = client("h5_damaged.h5");
    let root = root(&client);
    assert_eq!(read(&client, dataset(&root, "good")).unwrap().bytes, little_i32(0..3));
    let group = client.group(target(&root, "group").object().unwrap().id(), &Interrupt::new()).unwrap();
    let Some(Object::Unreadable { reason, .. }) = target(&group, "bad").object() else { panic!("{group:?}") };
    assert!(reason.contains("object header version"), "{reason}");
    assert_eq!(read(&client, dataset(&root, "zzz")).unwrap().bytes, [1]);
}

#[test]
fn what_is_no_hdf5_file_is_called_that() {
    let folder = tempfile::tempdir().unwrap();
    let whole = std::fs::read(data("h5_latest.h5")).unwrap();
    for (name, bytes) in [("empty", &b""[..]), ("text", b"hello"), ("cut", &whole[..4000])] {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let error = client_with(&path, options()).file(&Interrupt::new()).unwrap_err();
        assert!(matches!(error, Error::NotHdf5(_)), "{name}: {error:?}");
    }
}

#[test]
fn a_file_open_for_writing_is_read_where_swmr_allows_it() {
    let client = client("h5_swmr.h5");
    assert!(client.file(&Interrupt::new()).unwrap().swmr);
    assert_eq!(read(&client, dataset(&root(&client), "d")).unwrap().bytes, little_i32(0..3));
    let error = self::client("h5_marked.h5").file(&Interrupt::new()).unwrap_err().to_string();
    assert!(error.contains("h5clear -s"), "{error}");
}

#[test]
fn a_replaced_file_is_read_on_through_the_open_descriptor() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.h5");
    std::fs::copy(data("h5_basic.h5"), &path).unwrap();
    let client = client_with(&path, options());
    let before = root(&client);
    std::fs::write(folder.path().join("new"), b"something else").unwrap();
    std::fs::rename(folder.path().join("new"), &path).unwrap();
    signal(client.worker_id().unwrap(), libc::SIGKILL);
    assert_eq!(root(&client), before);
}

#[test]
fn the_sandbox_forbids_everything_else() {
    let probe = client("h5_basic.h5").probe(&Interrupt::new()).unwrap();
    assert!(probe.len() > 5);
    assert!(probe.iter().all(|(_, worked)| !worked), "{probe:?}");
}

#[test]
fn plugins_open_no_more_than_their_folder_and_libraries() {
    let folder = tempfile::tempdir().unwrap();
    let with_plugins = Options { plugins: Some(folder.path().to_owned()), ..options() };
    let probe = client_with(&data("h5_basic.h5"), with_plugins).probe(&Interrupt::new()).unwrap();
    assert!(probe.iter().all(|(_, worked)| !worked), "{probe:?}");
}

fn signal(process: u32, signal: i32) {
    // SAFETY: a plain call.
    assert_eq!(unsafe { libc::kill(process as i32, signal) }, 0);
}

/// A client whose worker is stopped in the middle of whatever comes next.
fn stopped(deadline: Duration) -> (Client, Group) {
    let client = client_with(&data("h5_basic.h5"), Options { deadline, ..options() });
    let root = root(&client);
    signal(client.worker_id().unwrap(), libc::SIGSTOP);
    (client, root)
}

#[test]
fn an_idle_worker_that_dies_is_nobodys_fault() {
    let client = client("h5_basic.h5");
    let root = root(&client);
    for _ in 0..3 {
        let worker = client.worker_id().unwrap();
        signal(worker, libc::SIGKILL);
        assert_eq!(read(&client, dataset(&root, "scalar")).unwrap().bytes.len(), 4);
        assert_ne!(client.worker_id(), Some(worker));
    }
}

#[test]
fn a_death_fails_the_request_under_way_and_no_other() {
    let client = client_with(&data("h5_basic.h5"), Options { deadline: Duration::from_secs(60), ..options() });
    let root = root(&client);
    let worker = client.worker_id().unwrap();
    std::thread::scope(|scope| {
        let executing = scope.spawn(|| client.rehearse("hang", &Interrupt::new()));
        std::thread::sleep(Duration::from_millis(500));
        let waiting = scope.spawn(|| read(&client, dataset(&root, "compact")));
        std::thread::sleep(Duration::from_millis(300));
        signal(worker, libc::SIGKILL);
        let died = executing.join().unwrap();
        assert!(matches!(&died, Err(Error::Died(what)) if what.contains("rehearsal")), "{died:?}");
        assert_eq!(waiting.join().unwrap().unwrap().bytes, [1, 0, 2, 0, 3, 0]);
    });
}

#[test]
fn a_request_that_crashes_twice_is_refused() {
    let client = client("h5_basic.h5");
    let root = root(&client);
    for _ in 0..2 {
        assert!(matches!(client.rehearse("crash", &Interrupt::new()), Err(Error::Died(_))));
        assert!(read(&client, dataset(&root, "compact")).is_ok());
    }
    assert!(matches!(client.rehearse("crash", &Interrupt::new()), Err(Error::Poisoned(_))));
    assert!(read(&client, dataset(&root, "compact")).is_ok());
}

#[test]
fn a_panic_is_an_answer() {
    let client = client("h5_basic.h5");
    let root = root(&client);
    let error = client.rehearse("panic", &Interrupt::new()).unwrap_err();
    assert!(matches!(&error, Error::Hdf5(text) if text.contains("defect")), "{error:?}");
    assert!(read(&client, dataset(&root, "compact")).is_ok());
}

#[test]
fn a_program_that_is_no_worker_is_reported() {
    for program in ["/bin/true", "/nonexistent"] {
        let options = Options { program: program.into(), ..Options::default() };
        let error = client_with(&data("h5_basic.h5"), options).file(&Interrupt::new()).unwrap_err();
        assert!(matches!(&error, Error::Worker(text) if text.contains(program)), "{error:?}");
    }
}

#[test]
fn a_request_that_hangs_twice_is_refused() {
    let client = client_with(&data("h5_basic.h5"), Options { deadline: Duration::from_secs(1), ..options() });
    let root = root(&client);
    for _ in 0..2 {
        let began = Instant::now();
        // A worker that is stopped by its number may have given way to one of another test.
        let hung = client.rehearse("hang", &Interrupt::new());
        assert!(matches!(&hung, Err(Error::Deadline { limit, .. }) if limit == "1 s"), "{hung:?}");
        assert!(began.elapsed() >= Duration::from_secs(1));
        assert!(read(&client, dataset(&root, "compact")).is_ok());
    }
    assert!(matches!(client.rehearse("hang", &Interrupt::new()), Err(Error::Poisoned(_))));
    assert!(read(&client, dataset(&root, "compact")).is_ok());
}

/// What waits for a disk takes no processor time; what goes round in circles does.
#[test]
fn a_request_that_only_computes_ends_before_the_deadline() {
    let options = Options { deadline: Duration::from_secs(5), ..options() };
    let client = client_with(&data("hostile/attribute_loop.h5"), options);
    let first = target(&root(&client), "first").object().unwrap().id();
    let group = client.group(first, &Interrupt::new()).unwrap();
    let hung = client.object(dataset(&group, "t").id, &Interrupt::new());
    assert!(matches!(&hung, Err(Error::Deadline { limit, .. }) if limit == "1.5 s of processor time"), "{hung:?}");
}

/// libhdf5 stands still at an attribute of two datasets: without its value nothing of their groups is lost.
#[test]
fn a_group_is_listed_without_an_attribute_that_hangs() {
    let options = Options { deadline: Duration::from_secs(1), ..options() };
    let client = client_with(&data("hostile/attribute_loop.h5"), options);
    let root = root(&client);
    let listed = |name: &str| {
        let began = Instant::now();
        let group = client.group(target(&root, name).object().unwrap().id(), &Interrupt::new()).unwrap();
        let table = dataset(&group, "t").clone();
        let value = |name: &str| {
            let found = table.attributes.iter().find(|attribute| attribute.name == name);
            found.unwrap().value.as_ref().map(|value| value.bytes.clone()).map_err(String::clone)
        };
        assert_eq!((value("number"), &table.shape[..]), (Ok(7_i64.to_le_bytes().to_vec()), &[5][..]));
        assert_eq!(read(&client, &table).unwrap().bytes.len(), 60);
        (
            value("CLASS").map_err(|error| error.contains("hung before")).is_ok(),
            began.elapsed() >= Duration::from_millis(250),
        )
    };
    // Whether the value is there, and whether that was waited for: once for each, and not for others behind two.
    assert_eq!(listed("first"), (false, true));
    assert_eq!(listed("first"), (false, false));
    assert_eq!(listed("third"), (true, false));
    assert_eq!(listed("second"), (false, true));
    assert_eq!(listed("third"), (false, false));
}

#[test]
fn an_index_that_hangs_is_refused_at_once() {
    let (client, root) = stopped(Duration::from_secs(1));
    let chunked = dataset(&root, "chunked");
    let chunks = || client.chunks(chunked.id, 9, &Interrupt::new());
    assert!(matches!(chunks(), Err(Error::Deadline { limit, .. }) if limit == "1 s"));
    assert!(matches!(chunks(), Err(Error::Poisoned(_))));
    assert!(read(&client, chunked).is_ok());
}

#[test]
fn who_stops_waiting_gets_away_and_the_late_answer_goes_to_nobody() {
    let (client, root) = stopped(Duration::from_secs(60));
    let worker = client.worker_id();
    let interrupt = Interrupt::new();
    let contiguous = dataset(&root, "contiguous");
    let region = Region { start: vec![0], count: vec![6] };
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| client.read(contiguous.id, &region, &interrupt));
        std::thread::sleep(Duration::from_millis(300));
        interrupt.raise();
        assert!(matches!(waiting.join().unwrap(), Err(Error::Interrupted)));
    });
    signal(worker.unwrap(), libc::SIGCONT);
    assert_eq!(read(&client, dataset(&root, "compact")).unwrap().bytes, [1, 0, 2, 0, 3, 0]);
    assert_eq!(client.worker_id(), worker);
}

/// Nothing is left of a process: not even a zombie.
fn gone(process: u32) -> bool {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(20) {
        if !Path::new(&format!("/proc/{process}")).exists() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}

#[test]
fn idle_workers_end_and_leave_no_zombie() {
    let client = client_with(&data("h5_basic.h5"), Options { idle: Duration::from_millis(300), ..options() });
    let root = root(&client);
    assert!(gone(client.worker_id().unwrap()));
    assert_eq!(read(&client, dataset(&root, "compact")).unwrap().bytes, [1, 0, 2, 0, 3, 0]);
}

#[test]
fn a_dropped_client_leaves_no_worker() {
    let client = client("h5_basic.h5");
    root(&client);
    let worker = client.worker_id().unwrap();
    drop(client);
    assert!(gone(worker));
}

#[test]
fn reads_are_bounded_and_stay_inside_the_extent() {
    let client = client("h5_many.h5");
    let root = root(&client);
    let id = dataset(&root, "d").id;
    let read = |start: &[u64], count: &[u64]| {
        client.read(id, &Region { start: start.into(), count: count.into() }, &Interrupt::new())
    };
    assert!(matches!(read(&[0, 0], &[301, 1]), Err(Error::Hdf5(_))));
    assert!(matches!(read(&[u64::MAX, 0], &[2, 1]), Err(Error::Hdf5(_))));
    assert!(matches!(read(&[0], &[1]), Err(Error::Hdf5(_))));
    assert_eq!(read(&[300, 0], &[0, 300]).unwrap(), Elements::default());
    assert_eq!(read(&[299, 299], &[1, 1]).unwrap().bytes, [2]);
}

/// Each of 30,000 datasets has as many elements as its name says; some are listed by a second worker.
#[test]
fn a_group_of_very_many_links_is_listed_in_order_by_one_worker_or_two() {
    // The limit on workers is one of the process: idle workers of other tests would give way to these.
    let mut own = std::process::Command::new(std::env::current_exe().unwrap());
    let output =
        own.args(["--ignored", "--exact", "h5_worker::very_many_links_by_one_worker_or_two"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

/// No test by itself.
#[test]
#[ignore = "started by another test"]
fn very_many_links_by_one_worker_or_two() {
    const LINKS: u64 = 30_011;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("many.h5");
    let write = |root: &CreatedObject<'_>| {
        let many = root.group("many")?;
        (0..LINKS).map(|at| at * 7919 % LINKS).try_for_each(|length| {
            let storage = Storage::contiguous(&[length]);
            many.dataset(&format!("{length:05}"), &ElementType::Signed(1), &storage, &create::FillSetting::Unset)
                .map(drop)
        })
    };
    create::file::<create::Error>(&path, write).unwrap();
    for workers in [1, 2] {
        let client = client_with(&path, Options { workers, ..options() });
        let Target::Hard(many) = target(&root(&client), "many").clone() else { panic!("no hard link") };
        let many = client.group(many.id(), &Interrupt::new()).unwrap();
        assert_eq!(many.links.len() as u64, LINKS);
        for (length, link) in (0..).zip(&many.links) {
            assert_eq!(link.name, format!("{length:05}"));
            assert!(matches!(link.target.object(), Some(Object::Dataset(found)) if found.shape == [length]));
        }
    }
}

/// What a worker says of a file at once is what it says when it is asked for each.
#[test]
fn what_lies_ahead_is_what_would_be_asked_for() {
    let interrupt = Interrupt::new();
    let (mut groups, mut maps) = (0, 0);
    for name in [
        "h5_basic.h5",
        "h5_damaged.h5",
        "h5_linked.h5",
        "h5_narrow.h5",
        "h5_ordered.h5",
        "h5_references.h5",
        "h5_types.h5",
        "h5_user_block.h5",
        "store_layouts.h5",
        "pandas3.h5",
        "anndata.h5",
        "units.h5",
    ] {
        // However busy the machine is.
        let unhurried = Options { page_time: Duration::from_secs(600), ..options() };
        let (ahead, asked) = (client_with(&data(name), unhurried).ahead(&interrupt).unwrap(), client(name));
        let known = asked.file(&interrupt).unwrap();
        assert!(ahead.groups.iter().any(|group| group.id == known.root), "{name}");
        for group in &ahead.groups {
            assert_eq!(*group, asked.group(group.id, &interrupt).unwrap(), "{name}");
        }
        for (id, map) in &ahead.chunks {
            let all = asked.chunks(*id, 1 << 20, &interrupt).unwrap();
            assert!(map.iter().eq(all.iter()), "{name}: {id:?}");
        }
        groups += ahead.groups.len();
        maps += ahead.chunks.len();
    }
    assert!(groups > 30 && maps > 10, "{groups} groups, {maps} chunk maps");
    // A group of very many links is not listed before it is wanted.
    let many = client("h5_many.h5");
    assert!(many.ahead(&interrupt).unwrap().groups.iter().all(|group| group.links.len() <= 256));
}
