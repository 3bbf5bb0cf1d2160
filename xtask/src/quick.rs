//! The tier of tests that needs no FUSE, no Python and no file from outside the checkout.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use crate::Tools;

/// Test programs of the tier.
const PROGRAMS: [&str; 7] = ["--lib", "--test", "layers", "--test", "promises", "--test", "documents"];

/// The slowest tests, which take two thirds of the time: every way to cut a pickle, random columns, long sorts.
const SLOW: [&str; 7] = [
    "catalogue::chunk_map::tests::a_packed_map_is_the_plain_one",
    "cli::inputs::sorted::tests::runs_of_runs_keep_the_order_of_equal_rows",
    "codec::pickle::tests::a_pickle_that_is_cut_anywhere_is_an_error",
    "query::tests::a_selection_holds_the_rows_that_a_look_at_each_finds",
    "learnt::tests::model::statistics_are_those_of_the_values",
    "learnt::tests::stored::stored_bytes_teach_what_arrays_do",
    "views::parquet::tests::lengths::lists_are_as_long_as_their_offsets_say",
];

/// Builds and runs the tests of the tier; says how many ran.
pub fn run(tools: &Tools, arguments: &[OsString]) -> Result<ExitCode, String> {
    let mut build = Command::new("cargo");
    build.current_dir(&tools.root).args(["test", "--locked", "--no-run"]).args(PROGRAMS);
    let built = tools.with_cmake(&mut build).status().map_err(|error| format!("cargo: {error}"))?;
    if !built.success() {
        return Ok(ExitCode::FAILURE);
    }
    let begun = Instant::now();
    let mut tests = Command::new("cargo");
    tests.current_dir(&tools.root).args(["test", "--locked", "--quiet", "--no-fail-fast"]).args(PROGRAMS);
    tests.arg("--").args(SLOW.iter().flat_map(|name| ["--skip", name])).args(arguments);
    tools.with_cmake(tests.stdout(Stdio::piped()));
    let mut child = tests.spawn().map_err(|error| format!("cargo: {error}"))?;
    let (mut passed, mut failed) = (0, 0);
    for line in BufReader::new(child.stdout.take().expect("a pipe")).split(b'\n') {
        let line = line.map_err(|error| format!("cargo test: {error}"))?;
        let line = String::from_utf8_lossy(&line);
        if let Some(result) = line.strip_prefix("test result: ") {
            passed += count(result, " passed");
            failed += count(result, " failed");
        }
        println!("{line}");
    }
    let status = child.wait().map_err(|error| format!("cargo: {error}"))?;
    let seconds = begun.elapsed().as_secs_f64();
    println!("quick: {passed} tests passed, {failed} failed, in {seconds:.0} s; {} slow ones left out", SLOW.len());
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The number before a word in the last line of a test program.
fn count(result: &str, word: &str) -> u64 {
    let before = result.split(word).next().unwrap_or_default();
    before.rsplit(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0)
}
