//! What is kept in the cache folder: used by later mounts, never wrong, by `hepfs prepare` ahead.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use hepfs::h5::create::{self, FillSetting, Storage};
use hepfs::h5::element::ElementNumber;
use hepfs::producer::sample;

use crate::data;
use crate::place::{Place, settle};
use crate::support::{HEPFS, Mounted, end_of, hepfs, signal, start, until};

/// More values than a lookup measures by itself.
const ROWS: u64 = 150_000;

/// A file that had not been written to for a while when it was opened, and a cache folder.
pub fn sample() -> Place {
    let place = Place::empty();
    place.write(ROWS);
    place
}

impl Place {
    fn write(&self, rows: u64) {
        let _ = fs::remove_file(self.source());
        sample::write(&self.source(), rows).unwrap();
        settle();
    }

    /// `hepfs prepare` of a place in the source: what it said, and whether it was content.
    pub fn prepare(&self, place: &str, arguments: &[&str]) -> (String, bool) {
        let (place, cache) = (format!("{}{place}", self.source().display()), self.cache());
        let output = hepfs([&["prepare", "--cache-folder", &cache, &place], arguments].concat());
        (String::from_utf8(output.stdout).unwrap(), output.status.success())
    }
}

pub fn stats(mounted: &Mounted) -> HashMap<String, u64> {
    let line = |line: &str| {
        let (name, value) = line.split_once(' ')?;
        Some((name.to_owned(), value.parse().ok()?))
    };
    mounted.text(".hepfs/stats").lines().filter_map(line).collect()
}

/// What `stat` and reads learn of very many short columns fills no cache folder.
#[test]
fn statistics_of_very_many_short_columns_are_not_kept() {
    const COUNT: usize = 1500;
    let place = Place::empty();
    let datasets = |root: &create::CreatedObject<'_>| {
        (0..COUNT).try_for_each(|at| {
            let storage = Storage::contiguous(&[3]);
            root.dataset(&format!("c{at}"), &f64::ELEMENT, &storage, &FillSetting::Unset).map(drop)
        })
    };
    create::file(&place.source(), datasets).unwrap();
    settle();
    let mounted = place.mount(&[]);
    for at in 0..COUNT {
        assert_eq!(size(&mounted, &format!("c{at}.csv")), format!("c{at}\n0.0\n0.0\n0.0\n").len() as u64);
    }
    let counted = stats(&mounted);
    assert_eq!((counted["blocks_learnt"], counted["statistics_kept"]), (COUNT as u64, 1024));
}

fn size(mounted: &Mounted, path: &str) -> u64 {
    fs::metadata(mounted.join(path)).unwrap().size()
}

const FILES: [&str; 4] =
    ["run_042/table.csv", "run_042/columns/energy.txt", "run_042/columns/readings.ndjson", "run_042/columns/ts.csv"];

#[test]
fn the_next_mount_needs_no_pass() {
    let place = sample();
    let first = place.mount(&[]);
    let texts: Vec<_> = FILES.iter().map(|file| first.read(file)).collect();
    let counted = stats(&first);
    assert_eq!((counted["passes"], counted["kept_found"]), (4, 0));
    // Statistics, which are learnt in passing, as well.
    until("kept", || stats(&first)["kept_written"] == 4 + stats(&first)["statistics_kept"]);
    drop(first);

    let second = place.mount(&[]);
    // Exact by `stat`, before anything is opened.
    for (file, text) in FILES.iter().zip(&texts) {
        assert_eq!(size(&second, file), text.len() as u64, "{file}");
    }
    let counted = stats(&second);
    let indexes = counted["kept_found"] - counted["statistics_loaded"];
    assert_eq!((counted["passes"], indexes, counted["chunks_decoded"]), (0, 4, 0));
    let opened = fs::File::open(second.join(FILES[0])).unwrap();
    assert_eq!(stats(&second)["chunks_decoded"], 0, "an open decodes nothing");
    drop(opened);
    for (file, text) in FILES.iter().zip(&texts) {
        assert!(second.read(file) == *text, "{file}");
    }
    assert_eq!(stats(&second)["passes"], 0);
}

/// The size of such a file is arithmetic, and its headers are not.
#[test]
fn null_counts_of_arrow_files_are_counted_ahead() {
    let place = sample();
    let (said, content) = place.prepare(":run_042/columns/energy.arrow", &[]);
    assert!(content && said.contains("kept"), "{said}");
    let (said, content) = place.prepare(":run_042/columns", &[]);
    let line = said.lines().find(|line| line.starts_with("energy.arrow ")).unwrap();
    assert!(content && line.ends_with("was kept"), "{line}");
}

#[test]
fn statistics_of_a_file_are_refused_with_what_to_name_instead() {
    let place = sample();
    let source = format!("{}:run_042/columns/energy.npy", place.source().display());
    let output = hepfs(["prepare", "--stats", "--cache-folder", &place.cache(), &source]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("name their table"), "{said}");
}

#[test]
fn other_ways_to_write_csv_are_kept_apart() {
    let place = sample();
    place.prepare(":run_042/columns", &["--csv"]);
    let entries = place.entries().len();
    let plain = place.mount(&["--csv-null", "missing"]);
    let text = plain.text("run_042/columns/energy.csv");
    assert!(text.contains("\nmissing\n") && !text.contains("\"\""));
    assert_eq!(stats(&plain)["passes"], 1);
    until("kept", || place.entries().len() == entries + 1);
}

#[test]
fn a_changed_file_is_measured_anew() {
    let place = sample();
    assert!(place.prepare(":run_042/columns", &["--csv"]).1);
    let time = fs::metadata(place.source()).unwrap().modified().unwrap();
    place.write(ROWS + 1);
    // A program that hides that it wrote.
    fs::File::options().append(true).open(place.source()).unwrap().set_modified(time).unwrap();
    std::thread::sleep(Duration::from_millis(60));
    let mounted = place.mount(&[]);
    let cold = Mounted::new(&[&place.source()], &[]);
    for (file, lines) in [("energy.csv", ROWS + 2), ("ts.csv", ROWS + 2)] {
        let text = mounted.text(format!("run_042/columns/{file}"));
        assert_eq!(text.lines().count() as u64, lines);
        assert!(text == cold.text(format!("run_042/columns/{file}")), "{file}");
    }
    assert_eq!(stats(&mounted)["kept_found"], 0);
}

#[test]
fn a_damaged_cache_folder_costs_time_and_no_byte() {
    let place = sample();
    assert!(place.prepare(":april", &["--csv"]).1 && place.prepare(":run_042/columns", &["--csv"]).1);
    let cold = Mounted::new(&[&place.source()], &[]);
    let files = ["april/events/table.csv", "run_042/columns/energy.csv", "run_042/columns/comment.csv"];
    let texts: Vec<_> = files.iter().map(|file| cold.read(file)).collect();
    let whole: Vec<_> = place.entries().into_iter().map(|entry| (fs::read(&entry).unwrap(), entry)).collect();
    assert!(whole.len() >= 16, "{}", whole.len());
    let damages: [fn(&Path, &[u8]); 6] = [
        |path, bytes| {
            let mut bytes = bytes.to_vec();
            let middle = bytes.len() - 12;
            bytes[middle] ^= 1;
            fs::write(path, bytes).unwrap();
        },
        |path, bytes| fs::write(path, &bytes[..bytes.len() / 2]).unwrap(),
        |path, _| fs::write(path, "").unwrap(),
        |path, _| fs::write(path, vec![0xff; 100_000]).unwrap(),
        |path, _| fs::remove_file(path).unwrap(),
        |path, _| {
            let _ = fs::remove_file(path);
            fs::create_dir(path).unwrap();
        },
    ];
    for (number, damage) in damages.iter().enumerate() {
        for (bytes, path) in &whole {
            damage(path, bytes);
        }
        let mounted = place.mount(&[]);
        for (file, text) in files.iter().zip(&texts) {
            assert!(mounted.read(file) == *text, "damage {number}, {file}");
        }
        assert_eq!(stats(&mounted)["kept_found"], 0, "damage {number}");
        assert_eq!(mounted.text(".hepfs/errors"), "");
    }
    // Each entry in the place of another: whole, but of something else.
    for (bytes, path) in &whole {
        let _ = fs::remove_dir(path);
        fs::write(path, bytes).unwrap();
    }
    for pair in whole.windows(2) {
        fs::write(&pair[0].1, &pair[1].0).unwrap();
    }
    let mounted = place.mount(&[]);
    for (file, text) in files.iter().zip(&texts) {
        assert!(mounted.read(file) == *text, "{file}");
    }
}

#[test]
fn prepare_says_what_it_did() {
    let place = sample();
    let (said, fine) = place.prepare(":run_042", &["--csv"]);
    assert!(fine, "{said}");
    let line = |name: &str| {
        let line = said.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("no {name} in {said}"));
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    let mounted = place.mount(&[]);
    for file in ["table.csv", "columns/energy.csv", "head.csv"] {
        let words = line(&format!("{file} "));
        assert_eq!(words[1].parse::<u64>().unwrap(), size(&mounted, &format!("run_042/{file}")), "{said}");
        assert_eq!(words.last().unwrap(), "kept");
    }
    assert!(!said.contains(".txt") && !said.contains(".ndjson"), "{said}");
    assert!(said.lines().last().unwrap().contains(&place.cache()), "{said}");
    assert_eq!(stats(&mounted)["passes"], 0);

    let (said, fine) = place.prepare(":run_042", &["--csv"]);
    assert!(fine);
    assert!(said.lines().rev().skip(1).all(|line| line.ends_with("was kept")), "{said}");
    // One file, by name.
    let (said, fine) = place.prepare(":run_042/columns/energy.txt", &[]);
    assert!(fine && said.starts_with("energy.txt ") && said.contains("1 of 1 items"), "{said}");
    // Every format, and statistics.
    let (said, fine) = place.prepare(":april", &[]);
    assert!(fine && said.contains("events/columns/label.txt "), "{said}");
    // What is arithmetic needs no line.
    assert!(!said.contains("events/columns/energy.parquet "), "{said}");
    assert!(said.contains("events/energy (statistics) "), "{said}");
}

#[test]
fn prepare_learns_statistics() {
    let place = sample();
    let (said, fine) = place.prepare("", &["--stats"]);
    assert!(fine && said.lines().rev().skip(1).all(|line| line.contains(" (statistics) ")), "{said}");
    let energy = said.lines().find(|line| line.starts_with("run_042/energy ")).unwrap();
    assert!(energy.contains(&format!(" {ROWS} rows ")) && energy.ends_with(" kept"), "{energy}");
    let mounted = place.mount(&[]);
    mounted.names("run_042/columns");
    let known = mounted.text(".hepfs/statistics");
    assert!(known.lines().any(|line| line.contains("run_042/energy") && line.contains("\"known\":true")), "{known}");
    assert_eq!(stats(&mounted)["chunks_decoded"], 0);
    // Both, and nothing twice.
    let (said, fine) = place.prepare(":april", &["--stats", "--csv"]);
    assert!(fine && said.contains(".csv ") && said.contains(" (statistics) ") && !said.contains(".txt "), "{said}");
    let again = said.lines().filter(|line| line.contains(" (statistics) "));
    assert!(again.clone().count() > 0 && again.into_iter().all(|line| line.ends_with("was kept")), "{said}");
}

#[test]
fn prepare_goes_on_after_a_failure() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    // A chunk of one column cannot be decoded.
    let source = data("hostile/corrupt_chunks.h5");
    let output = hepfs(["prepare".as_ref(), "--cache-folder".as_ref(), cache.as_os_str(), source.as_os_str()]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.lines().any(|line| line.contains("FAILED: ")), "{said}");
    assert!(said.lines().any(|line| line.ends_with(" kept")), "{said}");
}

#[test]
fn prepare_says_why_nothing_can_be_kept() {
    let place = sample();
    let source = place.source().display().to_string();
    let nowhere = hepfs(["prepare", "--cache-folder", "none", &source]);
    assert!(!nowhere.status.success());
    assert!(String::from_utf8(nowhere.stderr).unwrap().contains("--cache-folder"));
    let (said, fine) = place.prepare("", &["--csv", "--follow-external"]);
    assert!(!fine && said.contains("FAILED: would not be kept: with --follow-external"), "{said}");
    // A file where the folder should be.
    fs::write(place.cache(), "x").unwrap();
    let (said, fine) = place.prepare(":april", &["--csv"]);
    assert!(!fine && said.contains("FAILED: not kept: the cache folder"), "{said}");
    assert_eq!(fs::read(place.cache()).unwrap(), b"x");
}

#[test]
fn ctrl_c_ends_prepare_and_keeps_what_is_done() {
    let place = sample();
    place.write(1_000_000);
    let (source, cache) = (place.source().display().to_string(), place.cache());
    let mut preparing = start(HEPFS, ["prepare", "--cache-folder", &cache, &source]);
    // One may be of the catalogue.
    until("the first entries", || place.entries().len() > 1);
    signal(preparing.id(), libc::SIGINT);
    let status = end_of(&mut preparing, Duration::from_secs(5)).expect("it went on after Ctrl-C");
    assert_eq!(status.code(), Some(130));
    let kept = place.entries().len();
    // The first file that takes a pass.
    let (said, fine) = place.prepare(":calibration.csv", &["--csv"]);
    assert!(fine && said.lines().next().unwrap().ends_with("was kept"), "{kept} entries, {said}");
}

#[test]
fn csv_options_reach_the_background_process() {
    let place = sample();
    let mounted = place.mount(&["--csv-null=-", "--csv-separator", "tab", "--no-header"]);
    let plain = place.mount(&[]);
    let fields = |text: &str, separator: char| -> Vec<Vec<String>> {
        text.lines().map(|line| line.split(separator).map(str::to_owned).collect()).collect()
    };
    let (changed, usual) = (mounted.text("april/events/table.csv"), plain.text("april/events/table.csv"));
    assert!(!usual.contains('"') && !usual.contains('\t'));
    let mut expected = fields(&usual, ',');
    expected.remove(0);
    let mut missing = 0;
    for field in expected.iter_mut().flatten().filter(|field| field.is_empty()) {
        *field = "-".to_owned();
        missing += 1;
    }
    assert!(missing > 0);
    assert_eq!(fields(&changed, '\t'), expected);
    let refused = hepfs(["ls", "--csv-separator", "é", &data("missing.h5").display().to_string()]);
    assert!(String::from_utf8(refused.stderr).unwrap().contains("cannot separate CSV fields"));
    for null in [&["--csv-null", "a,b"][..], &["--csv-null", "\""], &["--csv-null", ";", "--csv-separator", ";"]] {
        for (command, more) in [("ls", &[][..]), ("mount", &["nowhere"])] {
            let line = [command].into_iter().chain(null.iter().copied());
            let refused = hepfs(line.chain([data("missing.h5").to_str().unwrap()]).chain(more.iter().copied()));
            assert_eq!(refused.status.code(), Some(2), "{command} {null:?}");
            assert!(String::from_utf8(refused.stderr).unwrap().contains("cannot stand for missing values"));
        }
    }
}
