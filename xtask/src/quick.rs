//! The tier of tests that needs no FUSE, no Python and no file from outside the checkout.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use crate::Tools;

/// Test programs of the tier.
const PROGRAMS: [&str; 3] = ["--lib", "--test", "layers"];

/// Tests that take most of the time of all others together: every way to cut a pickle, long sorts, long chunk maps.
const SLOW: [&str; 4] = [
    "codec::pickle::tests::a_pickle_that_is_cut_anywhere_is_an_error",
    "cli::inputs::sorted::tests::runs_of_runs_keep_the_order_of_equal_rows",
    "catalogue::chunk_map::tests::a_packed_map_is_the_plain_one",
    "dialects::compound::astropy::tests::whatever_stands_there_ends",
];

/// Builds and runs them; says how many tests ran.
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
