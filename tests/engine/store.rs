//! The store against files by h5py: every dataset of tests/data/store_*.h5, read through the real HDF5 worker where it
//! is needed, gives what h5py shows (scripts/fixtures/store.py).

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hepfs::catalogue::{Class, ColumnId, Datatype, Layout, Object};
use hepfs::h5::{self, Client};
use hepfs::learnt::{Learner, Observed};
use hepfs::source::{Interrupt, Source};
use hepfs::store::{DatasetRows, Decoder, Error, File, Heap, Options, Rows, Store, StoredDataset};
use serde_json::Value;

use crate::data;

fn expected(name: &str) -> Value {
    let text = std::fs::read_to_string(data("store_expected.json")).unwrap();
    serde_json::from_str::<Value>(&text).unwrap()[name].take()
}

fn small() -> Options {
    Options { cache_size: 1 << 20, max_chunk: 1 << 20, threads: 2, ..Options::default() }
}

fn open(path: &Path, options: Options) -> (Arc<File>, BTreeMap<String, StoredDataset>) {
    open_in(path, Store::new(options))
}

fn open_in(path: &Path, store: Arc<Store>) -> (Arc<File>, BTreeMap<String, StoredDataset>) {
    let source = Arc::new(Source::open(path).unwrap());
    let program = PathBuf::from(env!("CARGO_BIN_EXE_hepfs"));
    let client = Client::new(source.clone(), h5::Options { program, ..h5::Options::default() });
    let interrupt = Interrupt::new();
    let info = client.file(&interrupt).unwrap();
    let root = client.group(info.root, &interrupt).unwrap();
    let file = Arc::new(File::new(store, source, Arc::new(client), info));
    let mut datasets = BTreeMap::new();
    for link in root.links {
        if let Some(Object::Dataset(description)) = link.target.object() {
            let name = link.name.to_string();
            match StoredDataset::new(file.clone(), name.clone(), Arc::new((**description).clone())) {
                Ok(dataset) => drop(datasets.insert(name, dataset)),
                Err(error) => assert!(matches!(error, Error::Unsupported { .. }), "{name}: {error}"),
            }
        }
    }
    (file, datasets)
}

fn hex(text: &Value) -> Vec<u8> {
    let text = text.as_str().unwrap();
    (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap()).collect()
}

/// Reads the whole, then stretches of many lengths at many offsets, and compares each.
fn assert_bytes(name: &str, dataset: &StoredDataset, expected: &[u8]) {
    let interrupt = Interrupt::new();
    assert_eq!(dataset.byte_len(), expected.len() as u64, "{name}");
    let mut out = vec![0xaa; expected.len()];
    dataset.read_bytes(0, &mut out, &interrupt).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(out, expected, "{name}: the whole");
    let mut state = 1u64;
    for _ in 0..200 {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let offset = (state >> 33) as usize % expected.len();
        let length = (state >> 10) as usize % (expected.len() - offset + 1);
        let mut out = vec![0xaa; length];
        dataset.read_bytes(offset as u64, &mut out, &interrupt).unwrap();
        assert!(out == expected[offset..offset + length], "{name}: {length} bytes from {offset} on");
    }
    assert!(dataset.read_bytes(1, &mut out, &interrupt).is_err(), "{name}: past the end");
}

fn fixed_datasets_of(name: &str, options: Options) {
    let (_file, datasets) = open(&data(name), options);
    let expected = expected(name);
    for (path, value) in expected.as_object().unwrap() {
        let dataset = datasets.get(path).unwrap_or_else(|| panic!("{path} is not there"));
        assert_bytes(path, dataset, &hex(value));
    }
}

#[test]
fn every_layout_gives_what_h5py_shows() {
    fixed_datasets_of("store_layouts.h5", small());
    fixed_datasets_of("store_layouts.h5", Options { threads: 0, ..Options::default() });
}

#[test]
fn every_filter_gives_what_h5py_shows() {
    fixed_datasets_of("store_filters.h5", small());
    fixed_datasets_of("store_codecs.h5", small());
}

#[test]
fn packed_elements_give_what_h5py_reads() {
    fixed_datasets_of("store_packed.h5", small());
    let (_file, datasets) = open(&data("store_packed.h5"), small());
    let through: Vec<&String> =
        datasets.iter().filter(|(_, dataset)| dataset.through_worker()).map(|(name, _)| name).collect();
    // Of its more than 256 parameters, the worker alone knows all.
    assert_eq!(through, ["nbit_many_members"]);
}

#[test]
fn random_pipelines_give_what_h5py_reads() {
    fixed_datasets_of("store_pipelines.h5", small());
    let (_file, datasets) = open(&data("store_pipelines.h5"), small());
    assert!(datasets.values().all(|dataset| !dataset.through_worker()));
}

/// Virtual datasets in the forms of all versions of the library: mappings, selections, object headers, fill values.
const VIRTUAL: [&str; 4] =
    ["store_virtual.h5", "store_virtual_earliest.h5", "store_virtual_v112.h5", "store_virtual_latest.h5"];

/// Compares what this program decodes with what libhdf5 gives, for each filter that the library has.
#[test]
fn libhdf5_alone_gives_the_same() {
    let library = || Options { decoder: Decoder::Library, ..small() };
    let mut same = 0;
    let others = ["store_layouts.h5", "store_filters.h5", "store_packed.h5", "store_pipelines.h5"];
    for name in others.into_iter().chain(VIRTUAL) {
        let (file, datasets) = open(&data(name), library());
        let expected = expected(name);
        let known = expected.as_object().unwrap();
        for (path, dataset) in datasets.iter().filter(|(path, _)| known.contains_key(*path)) {
            assert_bytes(path, dataset, &hex(&known[path]));
        }
        assert!(file.store().counters().worker_reads.get() > 0);
        assert_eq!(file.store().counters().bytes_read.get(), 0, "{name}: read past the library");
        same += datasets.len();
    }
    assert!(same > 150, "{same} datasets");
    variable_datasets_of("store_variable.h5", library());
}

/// Of 2,000 bytes no buffer for decoding can be had but beyond the budget.
#[test]
fn a_budget_too_small_for_any_chunk_is_slow_but_right() {
    let tiny = || Options { cache_size: 2000, max_chunk: 1 << 20, threads: 2, ..Options::default() };
    fixed_datasets_of("store_filters.h5", tiny());
    fixed_datasets_of("store_layouts.h5", tiny());
}

#[test]
fn many_readers_of_a_tiny_budget_all_come_to_an_end() {
    for name in ["store_filters.h5", "store_layouts.h5"] {
        let (_file, datasets) =
            open(&data(name), Options { cache_size: 20_000, max_chunk: 1 << 20, threads: 2, ..Options::default() });
        let expected = expected(name);
        std::thread::scope(|scope| {
            for shift in 0..6 {
                let (datasets, expected) = (&datasets, &expected);
                scope.spawn(move || {
                    let all = expected.as_object().unwrap();
                    for (path, value) in all.iter().skip(shift).chain(all.iter().take(shift)) {
                        assert_bytes(path, &datasets[path], &hex(value));
                    }
                });
            }
        });
    }
}

#[test]
fn a_chunk_larger_than_allowed_is_refused_with_the_option() {
    let (_file, datasets) = open(&data("store_filters.h5"), Options { max_chunk: 383, ..small() });
    let error = datasets["gzip"].read_bytes(0, &mut [0; 4], &Interrupt::new()).unwrap_err();
    assert_eq!(error.to_string(), "gzip: a chunk takes 384 bytes, more than the 383 allowed (--max-chunk)");
    // Stored as they are, chunks of any size are read piece by piece.
    let (_file, datasets) = open(&data("store_layouts.h5"), Options { max_chunk: 10, ..small() });
    for name in ["chunked", "cube_plain"] {
        assert_bytes(name, &datasets[name], &hex(&expected("store_layouts.h5")[name]));
    }
}

#[test]
fn a_sequential_reader_is_read_ahead_of() {
    let (file, datasets) = open(&data("store_filters.h5"), small());
    for offset in (0..480).step_by(96) {
        datasets["zstd"].read_bytes(offset, &mut [0; 96], &Interrupt::new()).unwrap();
    }
    // The reader itself needed the first two chunks (384 bytes each); the others come without it.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while file.store().counters().chunks_decoded.get() < 6 {
        assert!(std::time::Instant::now() < deadline, "{:?}", file.store().counters());
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let mut out = [0; 80];
    datasets["zstd"].read_bytes(1920, &mut out, &Interrupt::new()).unwrap();
    assert_eq!(out[..], hex(&expected("store_filters.h5")["zstd"])[1920..]);
}

/// Chunks behind the end of its column chunk may be another reader's.
#[test]
fn a_reader_that_stops_at_a_row_is_not_read_ahead_of_behind_it() {
    let (file, datasets) = open(&data("store_filters.h5"), small());
    // The first two chunks have 384 bytes each.
    for offset in (0..768).step_by(96) {
        let interrupt = Interrupt::new().followed_by(768 - (offset + 96), 96);
        datasets["zstd"].read_bytes(offset, &mut [0; 96], &interrupt).unwrap();
        // Time for what is decoded ahead.
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert_eq!(file.store().counters().chunks_decoded.get(), 2);
    // It goes on by itself, up to the end of the next one.
    let interrupt = Interrupt::new().followed_by(288, 96);
    let mut out = [0; 96];
    datasets["zstd"].read_bytes(768, &mut out, &interrupt).unwrap();
    assert_eq!(out[..], hex(&expected("store_filters.h5")["zstd"])[768..864]);
    std::thread::sleep(std::time::Duration::from_millis(50));
    assert_eq!(file.store().counters().chunks_decoded.get(), 3);
}

/// Byte `i` of every dataset of store_large.h5 is this.
fn large(range: std::ops::Range<usize>) -> Vec<u8> {
    range.map(|i| (i % 251) as u8).collect()
}

#[test]
fn the_beginning_of_a_large_chunk_is_decoded_alone() {
    let interrupt = Interrupt::new();
    for (name, alone) in [("gzip", true), ("zstd", true), ("lz4", true), ("shuffle_gzip", false)] {
        let (file, datasets) = open(&data("store_large.h5"), Options::default());
        let dataset = &datasets[name];
        let mut out = vec![0; 4096];
        dataset.read_bytes(0, &mut out, &interrupt).unwrap();
        assert_eq!(out, large(0..4096), "{name}");
        let lent = dataset.lend(1_500_000, 70_000, &interrupt).unwrap().unwrap();
        assert_eq!(lent[..], large(1_500_000..1_570_000), "{name}");
        let mut appended = Vec::new();
        dataset.append_once(9, 100, &mut appended, &interrupt).unwrap();
        assert_eq!(appended, large(9..109), "{name}");
        let stats = file.store().counters();
        assert_eq!(stats.bytes_decoded.get(), if alone { 4096 + 1_570_000 + 109 } else { 1 << 24 }, "{name}");
        assert_eq!(stats.chunks_decoded.get(), u64::from(!alone), "{name}");
        // What lies far behind takes the whole.
        dataset.read_bytes((1 << 24) - 4096, &mut out, &interrupt).unwrap();
        assert_eq!(out, large((1 << 24) - 4096..1 << 24), "{name}");
        assert_eq!(stats.chunks_decoded.get(), 1, "{name}");
    }
}

#[test]
fn who_goes_on_or_comes_again_gets_the_whole_chunk() {
    let interrupt = Interrupt::new();
    let mut out = vec![0; 100_000];
    let (file, datasets) = open(&data("store_large.h5"), Options::default());
    for i in 0..4 {
        datasets["gzip"].read_bytes(i * 100_000, &mut out, &interrupt).unwrap();
    }
    assert_eq!(file.store().counters().bytes_decoded.get(), 100_000 + 200_000 + (1 << 24));
    let (file, datasets) = open(&data("store_large.h5"), Options::default());
    for _ in 0..20 {
        datasets["gzip"].read_bytes(1_900_000, &mut out, &interrupt).unwrap();
    }
    assert_eq!(file.store().counters().bytes_decoded.get(), 8 * 2_000_000 + (1 << 24));
}

/// What is decoded ahead of one reader must not push out what was decoded ahead of another.
#[test]
fn readers_in_turn_have_each_chunk_decoded_once() {
    for (readers, length) in [(2, 2048), (3, 2048), (8, 2048), (2, 1 << 16), (8, 1 << 16)] {
        let (file, datasets) = open(&data("store_turn.h5"), small());
        let mut out = vec![0; length];
        for at in (0..1 << 20).step_by(length) {
            for (name, dataset) in datasets.iter().take(readers) {
                dataset.read_bytes(at as u64, &mut out, &Interrupt::new()).unwrap();
                assert_eq!(out, large(at..at + length), "{name} {at}");
            }
        }
        let (decoded, stored) = (file.store().counters().bytes_decoded.get(), (readers as u64) << 20);
        // A chunk whose reader came before its stretch may be decoded by itself and with it.
        assert!(
            (stored..stored + stored / 4).contains(&decoded),
            "{readers} readers of {length}: {decoded} of {stored}"
        );
    }
}

#[test]
fn edge_chunks_are_stored_as_the_layout_says() {
    let (_file, datasets) = open(&data("store_layouts.h5"), small());
    let layout = &datasets["partial_unfiltered"].description().layout;
    assert!(matches!(layout, Layout::Chunked { partial_unfiltered: true, .. }), "{layout:?}");
}

#[test]
fn only_what_needs_it_goes_through_the_worker() {
    let (file, datasets) = open(&data("store_layouts.h5"), small());
    let through: Vec<&str> =
        datasets.iter().filter(|(_, dataset)| dataset.through_worker()).map(|(name, _)| name.as_str()).collect();
    assert_eq!(through, ["compact"]);
    let mut out = vec![0; 2000];
    datasets["contiguous"].read_bytes(0, &mut out, &Interrupt::new()).unwrap();
    assert_eq!(file.store().counters().worker_reads.get(), 0);
    assert_eq!(file.store().counters().bytes_read.get(), 2000);
}

#[test]
fn virtual_datasets_are_ranges_of_their_sources() {
    for of in VIRTUAL {
        for options in [small(), Options { threads: 0, ..Options::default() }, Options { cache_size: 2000, ..small() }]
        {
            fixed_datasets_of(of, options);
        }
        let (file, datasets) = open(&data(of), small());
        for (name, dataset) in &datasets {
            let before = file.store().counters().worker_reads.get();
            dataset.read_bytes(0, &mut vec![0; dataset.byte_len() as usize], &Interrupt::new()).unwrap();
            let through_worker = file.store().counters().worker_reads.get() > before;
            // Its mapping takes whole chunks, but for what lies beyond its extent.
            let needs_it = name.starts_with("w_") && name != "w_columns";
            assert_eq!((through_worker, dataset.through_worker()), (needs_it, needs_it), "{of}: {name}");
        }
    }
}

#[test]
fn virtual_datasets_share_the_chunks_of_their_sources() {
    let (file, datasets) = open(&data("store_virtual.h5"), small());
    for name in ["v_chunks", "v_permuted", "v_own_name"] {
        datasets[name].read_bytes(0, &mut [0; 4000], &Interrupt::new()).unwrap();
    }
    assert_eq!(file.store().counters().chunks_decoded.get(), 25);
}

#[test]
fn virtual_datasets_are_appended_and_lent_as_they_are_read() {
    let (_file, datasets) = open(&data("store_virtual.h5"), small());
    for (name, value) in expected("store_virtual.h5").as_object().unwrap() {
        let (dataset, bytes) = (&datasets[name], hex(value));
        for step in [17, 160, 400] {
            let mut out = Vec::new();
            for offset in (0..bytes.len()).step_by(step) {
                let length = step.min(bytes.len() - offset);
                if let Some(lent) = dataset.lend(offset as u64, length, &Interrupt::new()).unwrap() {
                    assert_eq!(lent[..], bytes[offset..offset + length], "{name}: lent from {offset} on");
                }
                dataset.append_once(offset as u64, length, &mut out, &Interrupt::new()).unwrap();
            }
            assert_eq!(out, bytes, "{name}: appended by {step}");
        }
    }
    assert!(datasets["v_permuted"].lend(160, 160, &Interrupt::new()).unwrap().is_some());
}

#[test]
fn versions_of_columns_give_what_h5py_shows() {
    let name = "store_versioned.h5";
    let (file, datasets) = open(&data(name), small());
    for (path, value) in expected(name).as_object().unwrap() {
        if !path.starts_with('s') {
            assert_bytes(path, &datasets[path], &hex(value));
            continue;
        }
        let rows = value.as_array().unwrap();
        let batch = datasets[path].read_elements(0..rows.len() as u64, &Interrupt::new()).unwrap();
        let datatype = &datasets[path].description().datatype;
        let shown: Vec<Value> =
            batch.bytes.chunks(datatype.size as usize).map(|bytes| json(datatype, bytes, &batch.heap)).collect();
        assert_eq!(shown, *rows, "{path}");
    }
    assert_eq!(file.store().counters().worker_reads.get(), 0);
}

#[test]
fn elements_in_other_files_are_refused() {
    let (file, datasets) = open(&data("store_layouts.h5"), small());
    assert!(!datasets.contains_key("external") && !datasets.contains_key("elsewhere"));
    let client = file.client();
    let root = client.group(file.info().root, &Interrupt::new()).unwrap();
    for (name, words) in [("external", "store_raw.bin"), ("elsewhere", "other.h5")] {
        let Some(Object::Dataset(description)) = root.link(name.as_bytes()).unwrap().target.object() else { panic!() };
        let error =
            StoredDataset::new(file.clone(), format!("/{name}"), Arc::new((**description).clone())).unwrap_err();
        let text = error.to_string();
        assert!(text.contains(words) && text.contains("--follow-external"), "{text}");
    }
}

#[test]
fn a_filter_that_nobody_has_names_itself_and_the_option() {
    let (file, datasets) = open(&data("store_filters.h5"), small());
    let root = file.client().group(file.info().root, &Interrupt::new()).unwrap();
    let Some(Object::Dataset(description)) = root.link(b"zfp").unwrap().target.object() else { panic!() };
    let error = StoredDataset::new(file.clone(), "/zfp".into(), Arc::new((**description).clone())).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, Error::Unsupported { .. }), "{error:?}");
    assert!(text.contains("32013") && text.contains("--plugins"), "{text}");
    // The others of the file are as they were.
    assert_bytes("gzip", &datasets["gzip"], &hex(&expected("store_filters.h5")["gzip"]));
}

#[test]
fn a_chunk_is_decoded_once() {
    let (file, datasets) = open(&data("store_filters.h5"), small());
    let mut out = vec![0; 2000];
    for _ in 0..3 {
        datasets["gzip"].read_bytes(0, &mut out, &Interrupt::new()).unwrap();
    }
    // 500 elements in chunks of 96.
    assert_eq!(file.store().counters().chunks_decoded.get(), 6);
    assert_eq!(file.store().counters().bytes_decoded.get(), 6 * 96 * 4);
}

#[test]
fn what_a_file_leaves_behind_is_given_back() {
    let (file, datasets) = open(&data("store_filters.h5"), small());
    let store = file.store().clone();
    for dataset in datasets.values() {
        let _ = dataset.read_bytes(0, &mut [0; 40], &Interrupt::new());
    }
    assert!(store.budget().held() > 0);
    drop((datasets, file));
    // Threads that decode ahead may hold the file a moment longer. What is left is idle buffers, at most a quarter.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while store.budget().held() > store.budget().limit() / 4 {
        assert!(std::time::Instant::now() < deadline, "{} bytes are held", store.budget().held());
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    drop(store.budget().reserve(store.budget().limit(), &Interrupt::new()).unwrap());
    assert_eq!(store.budget().held(), 0);
}

/// An element as JSON, as h5py shows it.
fn json(datatype: &Datatype, bytes: &[u8], heap: &Heap) -> Value {
    match &datatype.class {
        Class::Integer { .. } => i32::from_le_bytes(bytes.try_into().unwrap()).into(),
        Class::Float { .. } => f64::from_le_bytes(bytes.try_into().unwrap()).into(),
        Class::VariableString { .. } => {
            let text = heap.resolve(bytes, 1).unwrap();
            String::from_utf8(text.split(|byte| *byte == 0).next().unwrap().to_vec()).unwrap().into()
        }
        Class::Sequence { base } => {
            let items = heap.resolve(bytes, base.size).unwrap();
            items.chunks(base.size as usize).map(|item| json(base, item, heap)).collect()
        }
        Class::Compound { fields } => fields
            .iter()
            .map(|field| {
                let range = field.offset as usize..(field.offset + field.datatype.size) as usize;
                json(&field.datatype, &bytes[range], heap)
            })
            .collect(),
        other => panic!("{other:?}"),
    }
}

fn variable_datasets_of(name: &str, options: Options) {
    let (file, datasets) = open(&data(name), options);
    let interrupt = Interrupt::new();
    for (path, value) in expected(name).as_object().unwrap() {
        let dataset = &datasets[path];
        let datatype = &dataset.description().datatype;
        let rows = value.as_array().unwrap();
        for (start, end) in [(0, rows.len()), (1, rows.len() / 2), (rows.len() - 1, rows.len()), (1, 1)] {
            let batch = dataset.read_elements(start as u64..end as u64, &interrupt).unwrap();
            let shown: Vec<Value> =
                batch.bytes.chunks(datatype.size as usize).map(|bytes| json(datatype, bytes, &batch.heap)).collect();
            assert_eq!(shown, rows[start..end], "{name} {path} {start}..{end}");
            if let Class::VariableString { .. } = datatype.class {
                let mut cursor = batch.heap.cursor();
                for (bytes, row) in batch.bytes.chunks(datatype.size as usize).zip(&rows[start..end]) {
                    let text = cursor.resolve(bytes, 1).unwrap();
                    assert_eq!(text.strip_suffix(b"\0").unwrap_or(text), row.as_str().unwrap().as_bytes());
                }
            }
        }
    }
    assert!(datasets["strings_compact"].through_worker() && datasets["nested_compact"].through_worker());
    let by_library = file.store().decoder() == Decoder::Library;
    assert_eq!(file.store().counters().collections.get() > 0, !by_library);
}

#[test]
fn elements_of_variable_length_lead_to_what_h5py_shows() {
    variable_datasets_of("store_variable.h5", small());
    variable_datasets_of("store_variable.h5", Options { cache_size: 10_000, ..small() });
}

/// libhdf5 leaves what changed in an image of its cache, and what was there before in the file.
#[test]
fn metadata_in_an_image_of_the_cache_are_those_that_count() {
    let name = "store_image.h5";
    let (_file, datasets) = open(&data(name), small());
    let expected = expected(name);
    for path in ["raw", "virtual"] {
        assert_bytes(path, &datasets[path], &hex(&expected[path]));
    }
    let texts = &datasets["texts"];
    let datatype = &texts.description().datatype;
    let batch = texts.read_elements(0..20, &Interrupt::new()).unwrap();
    let shown = batch.bytes.chunks(datatype.size as usize).map(|bytes| json(datatype, bytes, &batch.heap));
    assert_eq!(Value::Array(shown.collect()), expected["texts"]);
}

#[test]
fn addresses_of_four_bytes_behind_a_user_block_are_followed() {
    variable_datasets_of("store_variable_narrow.h5", small());
}

#[test]
fn descriptors_that_lead_nowhere_are_errors() {
    let (_file, datasets) = open(&data("store_variable.h5"), small());
    let dataset = &datasets["strings"];
    let batch = dataset.read_elements(1..2, &Interrupt::new()).unwrap();
    let changed = |at: usize, bytes: &[u8]| {
        let mut descriptor = batch.bytes.clone();
        descriptor[at..at + bytes.len()].copy_from_slice(bytes);
        match batch.heap.resolve(&descriptor, 1) {
            Ok(bytes) => panic!("led to {:?}", &bytes[..]),
            Err(error) => error.at("/strings", 1).to_string(),
        }
    };
    assert_eq!(batch.heap.resolve(&batch.bytes, 1).unwrap()[..], *b"a");
    let beyond = changed(4, &(1u64 << 40).to_le_bytes());
    assert!(beyond.starts_with("/strings: row 1: global heap collection at 1099511627776: lies beyond"), "{beyond}");
    let wrong = changed(4, &8u64.to_le_bytes());
    assert!(wrong.contains("not with GCOL"), "{wrong}");
    let object = changed(12, &9999u32.to_le_bytes());
    assert!(object.contains("object 9999 is not in its heap collection"), "{object}");
    let long = changed(0, &u32::MAX.to_le_bytes());
    assert!(long.contains("4294967295 bytes of heap object"), "{long}");
    let memory = changed(12, &(1u32 << 31).to_le_bytes());
    assert!(memory.contains("of a heap of 0"), "{memory}");
    assert!(batch.heap.resolve(&[1, 2, 3], 1).is_err());
    assert!(batch.heap.resolve(&[0; 16], 1).unwrap().is_empty());
}

/// A file in a folder of its own, changed by `change` after it was opened and once read.
fn changed_in_place(change: impl FnOnce(&Path)) -> Error {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.h5");
    std::fs::copy(data("store_filters.h5"), &path).unwrap();
    let (_file, datasets) = open(&path, small());
    let mut out = [0; 400];
    datasets["gzip"].read_bytes(0, &mut out, &Interrupt::new()).unwrap();
    change(&path);
    // The first chunk is still in the cache, and must not be believed either.
    let cached = datasets["gzip"].read_bytes(0, &mut out, &Interrupt::new()).unwrap_err();
    assert!(matches!(cached, Error::Source(hepfs::source::Error::Changed(_))), "{cached}");
    datasets["gzip"].read_bytes(1600, &mut out, &Interrupt::new()).unwrap_err()
}

#[test]
fn a_file_rewritten_in_place_gives_no_bytes_any_more() {
    let error = changed_in_place(|path| {
        let mut bytes = std::fs::read(path).unwrap();
        bytes.iter_mut().skip(4096).for_each(|byte| *byte = !*byte);
        std::fs::write(path, bytes).unwrap();
    });
    assert!(matches!(error, Error::Source(hepfs::source::Error::Changed(_))), "{error}");
}

#[test]
fn a_file_truncated_under_us_is_an_error() {
    let error = changed_in_place(|path| {
        std::fs::OpenOptions::new().write(true).open(path).unwrap().set_len(3000).unwrap();
    });
    assert!(matches!(error, Error::Source(hepfs::source::Error::Changed(_))), "{error}");
}

#[test]
fn growth_of_a_file_that_a_writer_has_open_is_no_change() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.h5");
    let name = "store_filters.h5";
    std::fs::copy(data(name), &path).unwrap();
    let (file, datasets) = open(&path, small());
    let info = hepfs::catalogue::FileInfo { swmr: true, ..file.info().clone() };
    let written = Arc::new(File::new(file.store().clone(), file.source().clone(), file.client().clone(), info));
    let description = datasets["gzip"].description();
    let dataset = StoredDataset::new(written, "gzip".into(), description.clone()).unwrap();
    dataset.read_bytes(0, &mut [0; 4], &Interrupt::new()).unwrap();
    let mut growing = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
    growing.write_all(&[0; 1000]).unwrap();
    assert_bytes("gzip", &dataset, &hex(&expected(name)["gzip"]));
    // For any other file it is one.
    let error = datasets["gzip"].read_bytes(0, &mut [0; 4], &Interrupt::new()).unwrap_err();
    assert!(matches!(error, Error::Source(hepfs::source::Error::Changed(_))), "{error}");
}

#[test]
fn what_a_worker_said_is_known_without_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.h5");
    let name = "store_filters.h5";
    std::fs::copy(data(name), &path).unwrap();
    // Nothing is remembered of a file that has just changed.
    std::thread::sleep(std::time::Duration::from_millis(60));
    let interrupt = Interrupt::new();
    let open = |program: &str| {
        let source = Arc::new(Source::open(&path).unwrap());
        let options = h5::Options { program: program.into(), lists_simple: false, ..h5::Options::default() };
        let client = Arc::new(Client::new(source.clone(), options));
        let store = Store::new(Options { kept_folder: Some(folder.path().join("cache")), ..small() });
        File::open(store, source, client, &interrupt).map(Arc::new)
    };
    let look = |file: &Arc<File>| {
        let root = file.group(file.info().root, &interrupt).unwrap();
        let Some(Object::Dataset(gzip)) = root.link(b"gzip").and_then(|link| link.target.object()) else { panic!() };
        let dataset = StoredDataset::new(file.clone(), "gzip".into(), Arc::new((**gzip).clone())).unwrap();
        assert_bytes("gzip", &dataset, &hex(&expected(name)["gzip"]));
        (file.info().clone(), root)
    };
    assert!(open("/nonexistent").is_err());
    let first = look(&open(env!("CARGO_BIN_EXE_hepfs")).unwrap());
    // A thread that decodes ahead may hold the file a little longer; what is known of it is written when it is dropped.
    let start = std::time::Instant::now();
    let file = loop {
        match open("/nonexistent") {
            Ok(file) => break file,
            Err(error) => assert!(start.elapsed().as_secs() < 30, "{error}"),
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    };
    assert_eq!(look(&file), first);
    assert_eq!(file.store().counters().catalogue_asked.get(), 0);
    // And what was not asked before takes a worker.
    assert!(file.object(file.info().root, &interrupt).is_err());
}

#[test]
fn a_chunk_damaged_on_disk_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.h5");
    let (file, datasets) = open(&data("store_filters.h5"), small());
    let map = file.client().chunks(datasets["fletcher32"].description().id, 100, &Interrupt::new()).unwrap();
    let chunk = map.get(2).unwrap();
    let mut bytes = std::fs::read(data("store_filters.h5")).unwrap();
    bytes[chunk.address as usize + 5] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let (_file, datasets) = open(&path, small());
    let dataset = &datasets["fletcher32"];
    dataset.read_bytes(0, &mut [0; 2 * 96 * 4], &Interrupt::new()).unwrap();
    let error = dataset.read_bytes(2 * 96 * 4, &mut [0; 1], &Interrupt::new()).unwrap_err();
    let start = format!("fletcher32: chunk 2 (byte {}): fletcher32: checksum is", chunk.address);
    assert!(error.to_string().starts_with(&start), "{error}");
}

#[test]
fn an_interrupted_reader_stops() {
    let (_file, datasets) = open(&data("store_filters.h5"), small());
    let interrupt = Interrupt::new();
    interrupt.raise();
    let error = datasets["gzip"].read_bytes(0, &mut [0; 4], &interrupt).unwrap_err();
    assert!(matches!(error, Error::Interrupted(_)), "{error}");
}

#[test]
fn chunks_decoded_together_are_lent_together() {
    // 12 chunks of 16 KiB, two to a stretch.
    let chunk: usize = 16 << 10;
    let options = Options { cache_size: 16 * 2 * chunk as u64, ..Options::default() };
    let (file, datasets) = open(&data("store_long.h5"), options);
    let bytes: Vec<u8> = (0..49_152_u32).flat_map(|i| (i * 7 % 10_007).to_le_bytes()).collect();
    let (long, interrupt) = (&datasets["long"], Interrupt::new());
    // Every second request meets two chunks, every second of those within a stretch.
    let length = 8 << 10;
    let mut lent_across = 0;
    for at in (length / 2..bytes.len() - length).step_by(length) {
        let wanted = &bytes[at..][..length];
        match long.lend(at as u64, length, &interrupt).unwrap() {
            Some(lent) => {
                assert_eq!(*lent, *wanted);
                lent_across += usize::from(at / chunk != (at + length - 1) / chunk);
            }
            None => {
                let mut out = vec![0; length];
                long.read_bytes(at as u64, &mut out, &interrupt).unwrap();
                assert_eq!(out, wanted);
            }
        }
        // Time for what is decoded ahead.
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(lent_across > 0);
    assert!(file.store().counters().read_ahead.get() >= 2);
}

#[test]
fn what_several_go_through_is_decoded_once_by_whoever_looks_at_it() {
    let bytes: Vec<u8> = (0..49_152_u32).flat_map(|i| (i * 7 % 10_007).to_le_bytes()).collect();
    let (file, datasets) = open(&data("store_long.h5"), Options::default());
    let (long, chunk) = (&datasets["long"], 16 << 10);
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let bytes = &bytes;
            scope.spawn(move || {
                // A chunk each in turn, by halves.
                for start in (thread * chunk..bytes.len()).step_by(2 * chunk) {
                    for at in [start, start + chunk / 2] {
                        let lent = long.lend_scanned(at as u64, chunk / 2, &Interrupt::new()).unwrap();
                        assert_eq!(*lent.unwrap(), bytes[at..at + chunk / 2]);
                    }
                }
            });
        }
    });
    let stats = file.store().counters();
    assert_eq!((stats.chunks_decoded.get(), stats.read_ahead.get()), (12, 0));
    // Nothing is left to be found.
    long.lend_scanned(0, chunk / 2, &Interrupt::new()).unwrap().unwrap();
    assert_eq!(stats.chunks_decoded.get(), 13);
    // Requests that meet two chunks are answered as others are.
    let length = 3 * chunk / 4;
    let across = long.lend_scanned(length as u64, length, &Interrupt::new()).unwrap();
    assert!(across.is_none_or(|lent| *lent == bytes[length..2 * length]));
}

/// Readers that take the next request each, as fast as they can, meet those who decode ahead everywhere.
#[test]
fn readers_that_catch_up_with_those_who_decode_ahead_get_the_right_bytes() {
    let bytes: Vec<u8> = (0..49_152_u32).flat_map(|i| (i * 7 % 10_007).to_le_bytes()).collect();
    for round in 0..20 {
        let options = Options { cache_size: 1 << 19, threads: 1 + round % 3, ..Options::default() };
        let (_file, datasets) = open(&data("store_long.h5"), options);
        let (long, next) = (&datasets["long"], std::sync::atomic::AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let length = 6 << 10;
                    loop {
                        let at = next.fetch_add(length, std::sync::atomic::Ordering::Relaxed);
                        let Some(wanted) = bytes.get(at..bytes.len().min(at + length)).filter(|rest| !rest.is_empty())
                        else {
                            break;
                        };
                        let lent = long.lend(at as u64, wanted.len(), &Interrupt::new()).unwrap();
                        let mut out = Vec::new();
                        if lent.is_none() {
                            long.append_once(at as u64, wanted.len(), &mut out, &Interrupt::new()).unwrap();
                        }
                        assert_eq!(lent.as_deref().unwrap_or(&out), wanted);
                    }
                });
            }
        });
    }
}

#[test]
fn bytes_of_one_decoded_chunk_are_lent_and_no_others() {
    let (_file, datasets) = open(&data("store_filters.h5"), small());
    let bytes = hex(&expected("store_filters.h5")["gzip"]);
    let (gzip, interrupt) = (&datasets["gzip"], Interrupt::new());
    // 500 elements of 4 bytes in chunks of 96.
    let lent = gzip.lend(96 * 4 + 10, 100, &interrupt).unwrap().expect("within one chunk");
    assert_eq!(*lent, bytes[96 * 4 + 10..][..100]);
    assert!(gzip.lend(96 * 4 - 1, 2, &interrupt).unwrap().is_none(), "two chunks");
    assert!(gzip.lend(bytes.len() as u64 - 1, 2, &interrupt).unwrap().is_none(), "past the end");
    assert!(gzip.lend(u64::MAX, 2, &interrupt).unwrap().is_none(), "past any end");
    let mut out = b"before".to_vec();
    gzip.append_once(7, bytes.len() - 7, &mut out, &interrupt).unwrap();
    assert_eq!(out, [b"before", &bytes[7..]].concat());
    assert!(gzip.append_once(1, bytes.len(), &mut out, &interrupt).is_err(), "past the end");
    gzip.append_once(0, 0, &mut out, &interrupt).unwrap();
    assert_eq!(out.len(), 6 + bytes.len() - 7);
}

/// What a mount shows of a column stays what it was, though the source be forgotten and opened again meanwhile.
#[test]
fn statistics_are_shown_by_the_next_store() {
    let folder = tempfile::tempdir().unwrap();
    let options = || Options { kept_folder: Some(folder.path().to_owned()), ..small() };
    // Opens the file and takes its first column of integers: whether statistics are shown, and known after reading it.
    let learner = |store: &Arc<Store>, read: bool| {
        let (file, datasets) = open_in(&data("store_layouts.h5"), store.clone());
        let (name, dataset) = datasets
            .into_iter()
            .find(|(_, dataset)| {
                dataset.description().shape.len() == 1
                    && matches!(dataset.description().datatype.class, Class::Integer { .. })
            })
            .unwrap();
        let id = dataset.description().id;
        let rows: Arc<dyn Rows> = Arc::new(DatasetRows::plain(Arc::new(dataset), u64::MAX));
        let learner = Learner::of(file.opening(), &name, ColumnId::whole(id), rows.as_ref()).unwrap();
        let shown = learner.shown().is_some();
        if read {
            let observed = Observed::new(rows.clone(), learner.clone());
            observed.array(0..rows.len(), &Interrupt::new()).unwrap();
        }
        (shown, learner.known().is_some())
    };
    let first = Store::new(options());
    assert_eq!(learner(&first, true), (false, true));
    assert_eq!(learner(&first, false), (false, true));
    assert_eq!(first.counters().statistics_kept.get(), 1);
    assert_eq!(first.counters().statistics_loaded.get(), 1);
    let next = Store::new(options());
    assert_eq!(learner(&next, false), (true, true));
}
