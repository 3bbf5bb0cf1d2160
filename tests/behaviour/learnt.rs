//! What was learnt of a file, in one file for mounts elsewhere: `hepfs prepare --export`, `hepfs mount --learnt`.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::kept::{sample, stats};
use crate::place::{Place, settle};
use crate::range_server::RangeServer;
use crate::support::{Mounted, hepfs};

/// Files whose sizes or bytes follow from passes over values.
const FILES: [&str; 4] =
    ["run_042/table.parquet", "run_042/table.csv", "run_042/columns/readings.arrow", "april/events/table.parquet"];

/// A prepared file and what was learnt of it.
fn learnt() -> (Place, PathBuf) {
    let place = sample();
    let learnt = place.folder().join("run.learnt");
    let (said, fine) = place.prepare("", &["--export", learnt.to_str().unwrap()]);
    assert!(fine, "{said}");
    (place, learnt)
}

/// A copy of the file on another path, and so with another inode, without a cache folder.
fn copy(place: &Place) -> Place {
    let other = Place::empty();
    fs::copy(place.source(), other.source()).unwrap();
    settle();
    other
}

fn with(place: &Place, learnt: &Path) -> Mounted {
    place.mount(&["--learnt", learnt.to_str().unwrap()])
}

fn bytes(mounted: &Mounted) -> Vec<Vec<u8>> {
    FILES.iter().map(|file| mounted.read(file)).collect()
}

fn assert_nothing_is_taken(mounted: &Mounted) {
    // A checksum may find the byte that was changed.
    fs::read(mounted.join(FILES[1])).ok();
    let counted = stats(mounted);
    assert!(counted["passes"] > 0 && counted["catalogue_asked"] > 0, "{counted:?}");
    assert_eq!((counted["kept_found"], counted["statistics_loaded"]), (0, 0));
}

#[test]
fn a_copy_elsewhere_takes_no_pass_asks_no_library_and_shows_the_same_bytes() {
    let (place, learnt) = learnt();
    let here = bytes(&place.mount(&[]));
    let other = copy(&place);
    for _ in 0..2 {
        let mounted = with(&other, &learnt);
        assert!(bytes(&mounted) == here);
        let counted = stats(&mounted);
        assert_eq!((counted["passes"], counted["catalogue_asked"], counted["worker_reads"]), (0, 0, 0));
        assert!(counted["statistics_loaded"] > 0);
        assert!(!mounted.log().contains("knows nothing"), "{}", mounted.log());
    }
    // Values are those that a mount without it shows: footers may have fewer statistics there.
    let plain = Mounted::new(&[&other.source()], &[]);
    assert!(plain.read(FILES[1]) == here[1]);
    assert!(stats(&plain)["passes"] > 0);
}

#[test]
fn a_file_with_other_bytes_takes_nothing_and_the_mount_says_so() {
    let (place, learnt) = learnt();
    let other = Place::empty();
    let mut bytes = fs::read(place.source()).unwrap();
    // Superblock and headers are as they were, and so are size and time.
    let at = bytes.len() * 2 / 3;
    bytes[at] ^= 1;
    fs::write(other.source(), &bytes).unwrap();
    let times = fs::metadata(place.source()).unwrap().modified().unwrap();
    fs::File::options().write(true).open(other.source()).unwrap().set_modified(times).unwrap();
    settle();
    let mounted = with(&other, &learnt);
    assert!(mounted.log().contains("run.learnt knows nothing of"), "{}", mounted.log());
    assert_nothing_is_taken(&mounted);
}

#[test]
fn a_file_that_changed_since_takes_nothing() {
    let (place, learnt) = learnt();
    let mut bytes = fs::read(place.source()).unwrap();
    let at = bytes.len() * 2 / 3;
    bytes[at] ^= 1;
    fs::write(place.source(), &bytes).unwrap();
    settle();
    // The folder with what was kept of the state before.
    assert_nothing_is_taken(&with(&place, &learnt));
}

#[test]
fn a_learnt_file_that_is_damaged_or_open_to_others_is_refused_and_costs_no_byte() {
    let (place, learnt) = learnt();
    let other = copy(&place);
    let plain = Mounted::new(&[&other.source()], &[]).read(FILES[1]);
    let whole = fs::read(&learnt).unwrap();
    let middle = whole.len() / 2;
    let flipped: Vec<u8> = whole.iter().enumerate().map(|(at, byte)| byte ^ u8::from(at == middle)).collect();
    let cases: [(&[u8], u32, &str); 5] = [
        (&whole, 0o666, "others may write to it"),
        (&whole, 0o620, "others may write to it"),
        (&flipped, 0o600, "its checksum differs"),
        (&whole[..middle], 0o600, "its checksum differs"),
        (b"", 0o600, "it is too short"),
    ];
    for (bytes, mode, reason) in cases {
        fs::write(&learnt, bytes).unwrap();
        fs::set_permissions(&learnt, Permissions::from_mode(mode)).unwrap();
        let mounted = with(&other, &learnt);
        assert!(mounted.log().contains(reason), "{reason}: {}", mounted.log());
        assert!(mounted.read(FILES[1]) == plain);
    }
    fs::remove_file(&learnt).unwrap();
    let mounted = with(&other, &learnt);
    assert!(mounted.log().contains("No such file"), "{}", mounted.log());
}

#[test]
fn an_object_is_known_by_its_address_and_version() {
    let place = sample();
    let server = RangeServer::start();
    server.put("run.h5", fs::read(place.source()).unwrap());
    let (url, learnt) = (server.url("run.h5"), place.folder().join("run.learnt"));
    let learnt = learnt.to_str().unwrap();
    let prepared = hepfs(["prepare", "--cache-folder", &place.cache(), &url, "--export", learnt]);
    assert!(prepared.status.success(), "{}", String::from_utf8_lossy(&prepared.stderr));
    let mounted = Mounted::new(&[Path::new(&url)], &["--learnt", learnt]);
    let here = place.mount(&[]);
    assert!(mounted.read(FILES[1]) == here.read(FILES[1]));
    let counted = stats(&mounted);
    assert_eq!((counted["passes"], counted["catalogue_asked"]), (0, 0));
    drop(mounted);
    // The learnt file is an object as well; its address has a secret, which only the store sees.
    server.put("run.learnt", fs::read(learnt).unwrap());
    let option = format!("--learnt={}?sig=SECRET", server.url("run.learnt"));
    let mounted = Mounted::new(&[Path::new(&url)], &[&option]);
    assert!(mounted.read(FILES[1]) == here.read(FILES[1]));
    let counted = stats(&mounted);
    assert_eq!((counted["passes"], counted["catalogue_asked"]), (0, 0));
    let arguments = fs::read(format!("/proc/{}/cmdline", mounted.daemon())).unwrap();
    assert!(!String::from_utf8_lossy(&arguments).contains("SECRET"));
    drop(mounted);
    let option = format!("--learnt={}", server.url("none.learnt"));
    let mounted = Mounted::new(&[Path::new(&url)], &[&option]);
    assert!(mounted.log().contains("none.learnt"), "{}", mounted.log());
    assert_nothing_is_taken(&mounted);
    drop(mounted);
    // Another version, of the same bytes.
    server.put("run.h5", fs::read(place.source()).unwrap());
    let mounted = Mounted::new(&[Path::new(&url)], &["--learnt", learnt]);
    assert!(mounted.log().contains("knows nothing of"), "{}", mounted.log());
    assert_nothing_is_taken(&mounted);
}

#[test]
fn commands_take_it_too_and_prepare_refuses_places_for_it() {
    let (place, learnt) = learnt();
    let other = copy(&place);
    let source = format!("{}:run_042", other.source().display());
    let asked =
        ["query", &source, "energy > 5 limit 3", "--learnt", learnt.to_str().unwrap(), "--cache-folder", "none"];
    let plain = ["query", &source, "energy > 5 limit 3", "--cache-folder", "none"];
    let (found, expected) = (hepfs(asked), hepfs(plain));
    assert!(found.status.success(), "{}", String::from_utf8_lossy(&found.stderr));
    assert_eq!(found.stdout, expected.stdout);
    let source = place.source().display().to_string();
    for bad in ["no/such/folder/run.learnt", "/", &source] {
        let refused = hepfs(["prepare", "--cache-folder", &place.cache(), "--export", bad, &source]);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && said.contains("--export"), "{said}");
    }
}
