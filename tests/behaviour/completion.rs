//! Completion of command lines: the answers of the program, and a real bash.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::data;
use crate::support::{HEPFS, LONG, must, run_within};

/// Runs the program in a folder, with a cache folder in it.
fn hepfs(folder: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new(HEPFS);
    command.current_dir(folder).env("XDG_CACHE_HOME", folder.join(".cache")).args(arguments);
    let output = run_within(LONG, &mut command);
    assert!(output.status.success() && output.stderr.is_empty(), "{arguments:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The words that can stand at the end of `before`, without descriptions.
fn answers(folder: &Path, before: &str) -> Vec<String> {
    let answers = hepfs(folder, &["complete", "fish", "--", before, "", ""]);
    answers.lines().map(|line| line.split('\t').next().unwrap_or_default().to_owned()).collect()
}

/// A folder with these test files.
fn folder_with(names: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in names {
        fs::copy(data(name), folder.path().join(Path::new(name).file_name().unwrap())).unwrap();
    }
    folder
}

/// `units.h5` has one table, /t, with the columns mass, time and count, as h5py lists them.
#[test]
fn places_and_columns_in_files_are_offered() {
    let folder = folder_with(&["units.h5", "hostile/root_unlistable.h5"]);
    let folder = folder.path();
    fs::create_dir(folder.join("unused")).unwrap();
    let answers = |before: &str| answers(folder, before);
    // A source by itself, or one with a path; `cat` needs a path.
    assert_eq!(answers("hepfs query uni"), ["units.h5", "units.h5:"]);
    assert_eq!(answers("hepfs cat uni"), ["units.h5:"]);
    assert_eq!(answers("hepfs mount u"), ["units.h5", "unused/"]);
    for command in ["query", "export", "convert", "index build", "query --tables declared -v"] {
        assert_eq!(answers(&format!("hepfs {command} units.h5:")), ["units.h5:t"]);
    }
    assert_eq!(answers("hepfs query units.h5:t/"), [""; 0]);
    assert_eq!(answers("hepfs info units.h5:"), ["units.h5:t/"]);
    assert_eq!(answers("hepfs ls units.h5:"), ["units.h5:metadata.json", "units.h5:t/", "units.h5:index.html"]);
    assert_eq!(
        answers("hepfs cat units.h5:t/columns/mass.n"),
        ["mass.ndjson", "mass.npy"].map(|name| format!("units.h5:t/columns/{name}"))
    );
    assert_eq!(answers("hepfs ls units.h5/t/he"), ["units.h5/t/head.csv"]);
    assert_eq!(answers("hepfs query --table "), [""; 0]);
    let line = |before: &str, after: &str| hepfs(folder, &["complete", "fish", "--", before, after, ""]);
    assert_eq!(line("hepfs query --table ", " units.h5 'limit 1'"), "t\n");
    // Columns of the table that is named, before the cursor or behind it; in a list those that are left.
    let columns = ["mass", "time", "count"];
    for before in [
        "hepfs query units.h5:t --columns ",
        "hepfs index drop units.h5:t --column ",
        "hepfs query units.h5 --columns ",
    ] {
        assert_eq!(answers(before), columns);
    }
    assert_eq!(line("hepfs query --columns ", " units.h5:t"), "mass\ntime\ncount\n");
    assert_eq!(line("hepfs query --table t --columns c", " units.h5"), "count\n");
    assert_eq!(answers("hepfs export units.h5:t --columns=time,"), ["--columns=time,mass", "--columns=time,count"]);
    // Values of options.
    assert_eq!(answers("hepfs query units.h5 --format "), ["csv", "ndjson", "parquet", "arrow"]);
    assert_eq!(answers("hepfs ls --formats csv,np"), ["csv,npy"]);
    assert_eq!(answers("hepfs mount units.h5 --tab"), ["--tables"]);
    assert_eq!(answers("hepfs index ver"), ["verify"]);
}

/// Answers are silent on damage, end soon, and leave no more in the cache folder than `ls`.
#[test]
fn completion_is_silent_and_leaves_what_reading_leaves() {
    let folder = folder_with(&["units.h5"]);
    must("mkfifo", [folder.path().join("fifo.h5")]);
    fs::write(folder.path().join("text.h5"), "not HDF5").unwrap();
    fs::write(folder.path().join("cut.h5"), &fs::read(data("units.h5")).unwrap()[..2000]).unwrap();
    for name in ["fifo.h5", "text.h5", "cut.h5", "none.h5"] {
        for command in ["query", "cat", "ls"] {
            assert_eq!(answers(folder.path(), &format!("hepfs {command} {name}:")), [""; 0]);
        }
        assert_eq!(answers(folder.path(), &format!("hepfs query {name}:t --columns m")), [""; 0]);
    }
    for entry in fs::read_dir(data("hostile")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|suffix| suffix == "h5") {
            answers(folder.path(), &format!("hepfs query {}:", path.display()));
        }
    }
    let kept = |place: &dyn Fn(&Path)| {
        let folder = folder_with(&[]);
        fs::hard_link(data("units.h5"), folder.path().join("units.h5")).unwrap_or_else(|_| {
            fs::copy(data("units.h5"), folder.path().join("units.h5")).unwrap();
        });
        place(folder.path());
        let cache = folder.path().join(".cache/hepfs");
        let files = fs::read_dir(cache).into_iter().flatten().map(|entry| entry.unwrap().metadata().unwrap().len());
        files.collect::<Vec<u64>>()
    };
    let completed = kept(&|folder| drop(answers(folder, "hepfs ls units.h5:")));
    assert_eq!(completed, kept(&|folder| drop(hepfs(folder, &["ls", "units.h5"]))));
}

/// Readline replaces the last part of a word alone, cut at colons, equals signs and quotes.
#[test]
fn bash_completes_inside_files() {
    let folder = folder_with(&["units.h5"]);
    let folder = folder.path();
    fs::copy(data("units.h5"), folder.join("my file.h5")).unwrap();
    fs::write(folder.join("hepfs.bash"), hepfs(folder, &["completions", "bash"])).unwrap();
    let cases = [
        ("hepfs query units.h5:\t", "hepfs query units.h5:t "),
        ("hepfs cat uni\tt/he\t", "hepfs cat units.h5:t/head.csv "),
        // Bash closes the quote around a single answer; what follows is of the same word.
        ("hepfs cat 'my f\tt/he\t", "hepfs cat 'my file.h5:'t/head.csv "),
        ("hepfs cat 'my file.h5:t/he\t", "hepfs cat 'my file.h5:t/head.csv' "),
        ("hepfs ls my\\ file.h5:t/he\t", "hepfs ls my\\ file.h5:t/head.csv "),
        ("hepfs ls m\t", "hepfs ls my\\ file.h5"),
        ("hepfs query units.h5:t --columns=time,m\t", "hepfs query units.h5:t --columns=time,mass "),
        ("hepfs query units.h5:t --columns ti\t", "hepfs query units.h5:t --columns time "),
        ("hepfs cat units.h5:t/head.csv > uni\t", "hepfs cat units.h5:t/head.csv > units.h5 "),
        ("hepfs ls $HERE/uni\t:me\t", "hepfs ls $HERE/units.h5:metadata.json "),
        ("hepfs que\t", "hepfs query "),
    ];
    let mut keys = String::from("source hepfs.bash\nbind -x '\"\\C-xp\": printf \"<%s>\\n\" \"$READLINE_LINE\"'\n");
    // Shows the line, then takes it away.
    cases.iter().for_each(|(line, _)| keys.push_str(&format!("{line}\x18p\x15\n")));
    fs::write(folder.join("keys"), keys + "exit\n").unwrap();
    let path = format!("{}:{}", Path::new(HEPFS).parent().unwrap().display(), std::env::var("PATH").unwrap());
    let mut bash = Command::new("sh");
    bash.args(["-c", "exec bash --norc --noprofile -i < keys"]).current_dir(folder);
    bash.env("PATH", path).env("HERE", folder).env("TERM", "dumb").env("XDG_CACHE_HOME", folder.join(".cache"));
    let output = run_within(LONG, &mut bash);
    let said = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix('<')?.strip_suffix('>')).collect();
    assert_eq!(lines, cases.map(|(_, line)| line), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
}
