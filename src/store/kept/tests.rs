use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use tempfile::TempDir;

use super::*;
use crate::source::{Opener, SourceState};

fn identity(inode: u64) -> Identity {
    file(1, inode, (4, 5), (6, 7))
}

fn file(device: u64, inode: u64, mtime: (i64, i64), ctime: (i64, i64)) -> Identity {
    Identity { size: 3, state: SourceState::File { device, inode, mtime, ctime } }
}

fn folder() -> (TempDir, PathBuf) {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("cache/hepfs");
    (parent, path)
}

fn files(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn what_was_put_is_found_by_its_whole_key() {
    let (_parent, path) = folder();
    let kept = KeptFolder::new(path.clone(), 1 << 20);
    assert_eq!(kept.get(&identity(1), "index"), None);
    assert!(kept.put(&identity(1), "index", b"one"));
    assert!(kept.put(&identity(2), "index", b""));
    assert!(kept.put(&identity(1), "pages", b"three"));
    assert_eq!(kept.get(&identity(1), "index").unwrap(), b"one");
    assert_eq!(kept.get(&identity(2), "index").unwrap(), b"");
    assert_eq!(kept.get(&identity(1), "pages").unwrap(), b"three");
    let others = [
        file(2, 1, (4, 5), (6, 7)),
        file(1, 3, (4, 5), (6, 7)),
        file(1, 1, (4, 6), (6, 7)),
        file(1, 1, (4, 5), (6, 8)),
        Identity { size: 4, ..identity(1) },
        Identity { size: 3, state: SourceState::Object(1) },
    ];
    for other in others {
        assert_eq!(kept.get(&other, "index"), None, "{other:?}");
    }
    // Another opening of the folder, as by another process.
    let other = KeptFolder::new(path.clone(), 1 << 20);
    assert!(other.put(&identity(1), "index", b"newer"));
    assert_eq!(kept.get(&identity(1), "index").unwrap(), b"newer");
    assert_eq!(files(&path).len(), 3);
}

#[test]
fn only_the_user_may_look() {
    let (_parent, path) = folder();
    KeptFolder::new(path.clone(), 1 << 20).put(&identity(1), "/secret/name", b"one");
    assert_eq!(mode(&path), 0o700);
    let [file] = files(&path).try_into().unwrap();
    assert_eq!(mode(&file), 0o600);
    assert!(!file.display().to_string().contains("secret"));
}

#[test]
fn a_damaged_entry_is_absent() {
    let (_parent, path) = folder();
    let kept = KeptFolder::new(path.clone(), 1 << 20);
    kept.put(&identity(1), "index", b"some bytes");
    let [file] = files(&path).try_into().unwrap();
    let whole = std::fs::read(&file).unwrap();
    for at in 0..whole.len() {
        for flip in [1, 0x80, 0xff] {
            let mut damaged = whole.clone();
            damaged[at] ^= flip;
            std::fs::write(&file, &damaged).unwrap();
            assert_eq!(kept.get(&identity(1), "index"), None, "byte {at} ^ {flip:#x}");
        }
        std::fs::write(&file, &whole[..at]).unwrap();
        assert_eq!(kept.get(&identity(1), "index"), None, "cut at {at}");
    }
    std::fs::write(&file, [whole.as_slice(), b"\0"].concat()).unwrap();
    assert_eq!(kept.get(&identity(1), "index"), None);
    std::fs::write(&file, &whole).unwrap();
    assert_eq!(kept.get(&identity(1), "index").unwrap(), b"some bytes");
}

/// A correct checksum does not make an entry valid: lengths may lie, or the key may be another.
#[test]
fn an_entry_that_is_whole_may_still_be_foreign() {
    let (_parent, path) = folder();
    let kept = KeptFolder::new(path.clone(), 1 << 20);
    kept.put(&identity(1), "index", b"some bytes");
    let [file] = files(&path).try_into().unwrap();
    let whole = std::fs::read(&file).unwrap();
    let sealed = |mut entry: Vec<u8>| {
        entry.truncate(entry.len() - 8);
        let sum = xxh3_64(&entry).to_le_bytes();
        entry.extend_from_slice(&sum);
        entry
    };
    let key_length = u32::from_le_bytes(whole[8..12].try_into().unwrap()) as usize;
    for at in (0..12).chain(12 + key_length..20 + key_length) {
        for flip in [1, 0x80, 0xff] {
            let mut damaged = whole.clone();
            damaged[at] ^= flip;
            std::fs::write(&file, sealed(damaged)).unwrap();
            assert_eq!(kept.get(&identity(1), "index"), None, "byte {at} ^ {flip:#x}");
        }
    }
    std::fs::write(&file, encode(&key(&identity(2), "index"), b"others").unwrap()).unwrap();
    assert_eq!(kept.get(&identity(1), "index"), None);
}

#[test]
fn the_least_recently_used_go_first() {
    let (_parent, path) = folder();
    // Room for 16 entries of one block each; removal frees a sixteenth of the room at once.
    let kept = KeptFolder::new(path.clone(), 16 * BLOCK);
    let age = |inode: u64, seconds: u64| {
        let file = path.join(file_name(&key(&identity(inode), "index")));
        let when = SystemTime::now() - Duration::from_secs(seconds);
        File::open(file).unwrap().set_times(FileTimes::new().set_modified(when)).unwrap();
    };
    for inode in 0..16 {
        assert!(kept.put(&identity(inode), "index", &[7; 1000]));
        age(inode, 1000 - inode);
    }
    // Used again, so the next two are the oldest.
    assert!(kept.get(&identity(0), "index").is_some());
    assert!(kept.put(&identity(16), "index", &[7; 1000]));
    let found: Vec<u64> = (0..17).filter(|inode| kept.get(&identity(*inode), "index").is_some()).collect();
    assert_eq!(found, [0].into_iter().chain(3..17).collect::<Vec<_>>());
}

#[test]
fn what_is_larger_than_the_limit_is_not_kept() {
    let (_parent, path) = folder();
    let kept = KeptFolder::new(path.clone(), 3 * BLOCK);
    assert!(kept.put(&identity(1), "index", &[7; 2 * BLOCK as usize]));
    assert!(!kept.put(&identity(2), "index", &[7; 3 * BLOCK as usize]));
    assert!(kept.get(&identity(1), "index").is_some());
    assert!(!KeptFolder::none().put(&identity(1), "index", b"one"));
    assert_eq!(KeptFolder::none().get(&identity(1), "index"), None);
}

#[test]
fn other_files_in_the_folder_stay() {
    let (_parent, path) = folder();
    let kept = KeptFolder::new(path.clone(), 2 * BLOCK);
    kept.put(&identity(1), "index", b"one");
    let name = file_name(&key(&identity(9), "index"));
    let stranger = [
        "notes.txt".to_owned(),
        "abc.kept".into(),
        format!("x{name}"),
        format!("{name}.old"),
        format!("{name}.1-1.part.txt"),
    ];
    for name in &stranger {
        std::fs::write(path.join(name), [0; 5 * BLOCK as usize]).unwrap();
    }
    let abandoned = path.join(format!("{name}.1-1{TEMPORARY}"));
    let fresh = path.join(format!("{name}.1-2{TEMPORARY}"));
    std::fs::write(&fresh, "x").unwrap();
    std::fs::write(&abandoned, "x").unwrap();
    let old = SystemTime::now() - ABANDONED - Duration::from_secs(1);
    File::open(&abandoned).unwrap().set_times(FileTimes::new().set_modified(old)).unwrap();
    let other = KeptFolder::new(path.clone(), 2 * BLOCK);
    for inode in 2..9 {
        assert!(other.put(&identity(inode), "index", b"more"));
    }
    assert!(stranger.iter().all(|name| path.join(name).exists()));
    assert!(fresh.exists() && !abandoned.exists());
    let entries = files(&path).iter().filter(|path| is_entry(path.file_name().unwrap().to_str().unwrap())).count();
    assert!(entries <= 2, "{entries}");
}

#[test]
fn a_folder_that_others_can_write_to_is_not_used() {
    let (_parent, path) = folder();
    let kept = KeptFolder::new(path.clone(), 1 << 20);
    kept.put(&identity(1), "index", b"one");
    for open in [0o770, 0o702, 0o1777] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(open)).unwrap();
        assert_eq!(kept.get(&identity(1), "index"), None, "{open:o}");
        assert!(!kept.put(&identity(2), "index", b"two"), "{open:o}");
    }
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(kept.get(&identity(1), "index").unwrap(), b"one");
    assert_eq!(files(&path).len(), 1);
}

#[test]
fn an_entry_that_is_a_link_or_a_pipe_is_absent() {
    let (parent, path) = folder();
    let kept = KeptFolder::new(path.clone(), 1 << 20);
    kept.put(&identity(1), "index", b"one");
    let [file] = files(&path).try_into().unwrap();
    let elsewhere = parent.path().join("elsewhere");
    std::fs::rename(&file, &elsewhere).unwrap();
    symlink(&elsewhere, &file).unwrap();
    assert_eq!(kept.get(&identity(1), "index"), None);
    std::fs::remove_file(&file).unwrap();
    assert!(Command::new("mkfifo").arg(&file).status().unwrap().success());
    assert_eq!(kept.get(&identity(1), "index"), None);
    // It is replaced, not followed, and does not block.
    assert!(kept.put(&identity(1), "index", b"two"));
    assert_eq!(kept.get(&identity(1), "index").unwrap(), b"two");
    assert!(std::fs::symlink_metadata(&file).unwrap().is_file());
}

/// Only root can make a folder of another user.
#[test]
fn a_folder_of_another_user_is_not_used() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let (parent, path) = folder();
    let kept = KeptFolder::new(path.clone(), 1 << 20);
    kept.put(&identity(1), "index", b"one");
    let [file] = files(&path).try_into().unwrap();
    std::os::unix::fs::chown(&file, Some(65534), None).unwrap();
    assert_eq!(kept.get(&identity(1), "index"), None, "a file of another user");
    std::os::unix::fs::chown(&file, Some(0), None).unwrap();
    let link = parent.path().join("link");
    symlink(&path, &link).unwrap();
    let through = KeptFolder::new(link.clone(), 1 << 20);
    assert_eq!(through.get(&identity(1), "index").unwrap(), b"one", "a link of the user's own");
    std::os::unix::fs::lchown(&link, Some(65534), None).unwrap();
    assert_eq!(through.get(&identity(1), "index"), None, "a link of another user");
    assert!(!through.put(&identity(2), "index", b"two"));
    std::os::unix::fs::chown(&path, Some(65534), None).unwrap();
    assert_eq!(kept.get(&identity(1), "index"), None, "a folder of another user");
    assert!(!kept.put(&identity(2), "index", b"two"));
}

#[test]
fn a_folder_that_cannot_be_made_costs_nothing_but_time() {
    let (parent, _) = folder();
    let file = parent.path().join("file");
    std::fs::write(&file, "x").unwrap();
    for path in [file.clone(), file.join("below")] {
        let kept = KeptFolder::new(path, 1 << 20);
        assert!(!kept.put(&identity(1), "index", b"one"));
        assert_eq!(kept.get(&identity(1), "index"), None);
    }
    assert_eq!(std::fs::read(&file).unwrap(), b"x");
}

#[test]
fn a_folder_that_was_removed_is_made_again() {
    let (_parent, path) = folder();
    let kept = KeptFolder::new(path.clone(), 1 << 20);
    kept.put(&identity(1), "index", b"one");
    std::fs::remove_dir_all(&path).unwrap();
    assert_eq!(kept.get(&identity(1), "index"), None);
    assert!(kept.put(&identity(1), "index", b"one"));
    assert_eq!(kept.get(&identity(1), "index").unwrap(), b"one");
}

/// Environment of the second process of the next test.
const SHARED: &str = "HEPFS_TEST_SHARED_CACHE_FOLDER";

/// Writes and reads the same entries, in a folder too small for all of them: an entry that is found is complete.
fn hammer(path: &Path) {
    let kept = KeptFolder::new(path.to_owned(), 8 * BLOCK);
    for round in 0..400_u64 {
        let inode = round % 12;
        let length = 100 + (round * 997 % 9000) as usize;
        assert!(kept.put(&identity(inode), "index", &vec![inode as u8; length]));
        for inode in 0..12 {
            if let Some(bytes) = kept.get(&identity(inode), "index") {
                assert!(bytes.len() >= 100 && bytes.iter().all(|byte| u64::from(*byte) == inode));
            }
        }
    }
}

#[test]
fn two_processes_share_a_folder() {
    if let Some(path) = std::env::var_os(SHARED) {
        return hammer(Path::new(&path));
    }
    let (_parent, path) = folder();
    let name = "store::kept::tests::two_processes_share_a_folder";
    let mut other =
        Command::new(std::env::current_exe().unwrap()).args(["--exact", name]).env(SHARED, &path).spawn().unwrap();
    hammer(&path);
    assert!(other.wait().unwrap().success());
    // At most what one process may add while the other does not look.
    let bytes: u64 = files(&path).iter().map(|file| on_disk(std::fs::metadata(file).unwrap().len())).sum();
    assert!(bytes <= 2 * 8 * BLOCK, "{bytes}");
    assert!(files(&path).iter().all(|file| is_entry(file.file_name().unwrap().to_str().unwrap())));
}

/// A source of three bytes, what a folder keeps of it, and that in a file.
fn exported(parent: &Path) -> (Source, PathBuf) {
    let (source, file) = (parent.join("source"), parent.join("learnt"));
    std::fs::write(&source, b"abc").unwrap();
    std::thread::sleep(Duration::from_millis(60));
    let source = Source::open(&source).unwrap();
    let kept = KeptFolder::new(parent.join("kept"), 1 << 20);
    assert!(kept.put(&source.identity(), "index", b"one") && kept.put(&source.identity(), "pages", b""));
    assert!(kept.put(&identity(1), "index", b"of another source"));
    let mut writer = LearntWriter::default();
    writer.add(&source, &Interrupt::new()).unwrap();
    let mut bytes = Vec::new();
    let written = writer.write(&kept, &mut bytes).unwrap();
    assert_eq!(written, WrittenEntries { entries: 2, sources: 1, bytes: bytes.len() as u64 });
    write_new(&file, &bytes).unwrap();
    (source, file)
}

fn opened(file: &Path) -> Result<LearntFile, LearntError> {
    LearntFile::open(file, &Opener::default())
}

/// A folder that keeps nothing, with a learnt file.
fn learning(file: &Path) -> KeptFolder {
    let kept = KeptFolder::none();
    kept.learn_from(opened(file).unwrap());
    kept
}

#[test]
fn what_was_learnt_is_found_for_the_same_bytes_alone() {
    let parent = tempfile::tempdir().unwrap();
    let (source, file) = exported(parent.path());
    let kept = learning(&file);
    assert_eq!(kept.get(&source.identity(), "index"), None, "not compared yet");
    kept.compare(&source, &Interrupt::new()).unwrap();
    assert_eq!(kept.get(&source.identity(), "index").unwrap(), b"one");
    assert_eq!(kept.get(&source.identity(), "pages").unwrap(), b"");
    assert_eq!(kept.get(&source.identity(), "verdict"), None);
    for (name, bytes, found) in [("copy", b"abc", true), ("other", b"abd", false)] {
        let path = parent.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let fresh = Source::open(&path).unwrap();
        kept.compare(&fresh, &Interrupt::new()).unwrap();
        assert_eq!(kept.get(&fresh.identity(), "index"), None, "just written, so its identity proves nothing");
        std::thread::sleep(Duration::from_millis(60));
        let settled = Source::open(&path).unwrap();
        kept.compare(&settled, &Interrupt::new()).unwrap();
        assert_eq!(kept.get(&settled.identity(), "index").is_some(), found, "{name}");
    }
}

#[test]
fn a_damaged_learnt_file_is_refused_whichever_byte_it_is() {
    let parent = tempfile::tempdir().unwrap();
    let (_, file) = exported(parent.path());
    let whole = std::fs::read(&file).unwrap();
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        std::fs::write(&file, bytes).unwrap();
        assert!(opened(&file).is_err(), "{at}");
        std::fs::write(&file, &whole[..at]).unwrap();
        assert!(opened(&file).is_err(), "{at} bytes");
    }
}

/// The checksum of such a file is right, as its maker may have computed it.
#[test]
fn lengths_in_a_learnt_file_are_bounded_by_the_file() {
    let parent = tempfile::tempdir().unwrap();
    let file = parent.path().join("learnt");
    let key = key(&identity(1), "index");
    let entry = encode(&key, b"one").unwrap();
    let (of_key, of_bytes) = (MAGIC.len()..MAGIC.len() + 4, entry.len() - 8 - 3 - 8..entry.len() - 8 - 3);
    let mut wrong = vec![entry[..entry.len() - 1].to_vec(), [&entry[..], b"x"].concat(), key.clone()];
    for length in [u64::MAX, u64::MAX - 30, 1 << 63, 1 << 40, 4, 1 << 20] {
        let mut longer = entry.clone();
        longer[of_bytes.clone()].copy_from_slice(&length.to_le_bytes());
        wrong.push(longer);
        let mut longer = entry.clone();
        longer[of_key.clone()].copy_from_slice(&(length as u32).to_le_bytes());
        wrong.push(longer);
    }
    for entries in wrong {
        let bytes = [b"hepfs\0L1", &entries[..]].concat();
        let sum = xxh3_64(&bytes).to_le_bytes();
        std::fs::write(&file, [bytes, sum.to_vec()].concat()).unwrap();
        assert!(opened(&file).is_err(), "{entries:?}");
    }
    // An entry of another version, and one that is whole.
    let other = postcard::to_stdvec(&("0.0.0", identity(1), "index")).unwrap();
    for (key, is_fine) in [(other, false), (key, true)] {
        let bytes = [b"hepfs\0L1".to_vec(), encode(&key, b"one").unwrap()].concat();
        let sum = xxh3_64(&bytes).to_le_bytes();
        std::fs::write(&file, [bytes, sum.to_vec()].concat()).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(opened(&file).is_ok(), is_fine);
    }
}

#[test]
fn a_learnt_file_that_others_may_write_is_refused() {
    let parent = tempfile::tempdir().unwrap();
    let (_, file) = exported(parent.path());
    for (mode, is_fine) in [(0o600, true), (0o644, true), (0o444, true), (0o664, false), (0o646, false)] {
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        assert_eq!(opened(&file).is_ok(), is_fine, "{mode:o}");
    }
}
