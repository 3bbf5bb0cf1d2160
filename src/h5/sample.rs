//! The file that a newcomer meets first: what `hepfs demo` writes.
//!
//! Synthetic detector events in a table of the July 2026 revision of HEP001 with a column of every kind, search indexes,
//! arrays beside it, and a small table of the April 2026 revision. The same number of rows gives the same bytes.
//!
//! libhdf5 runs in this process here, not in the sandboxed worker: it writes a file of our own and reads none.

mod april;
mod attributes;
mod content;
mod table;
mod writer;

use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};
use std::ptr;

use hdf5_metno_sys::{LOCK, h5, h5e};

use self::writer::{Context, File, Node};
use super::worker::error::{Reason, check};
use crate::h5::objects::storage::{Fill, Storage};
use crate::h5::objects::types::{Text, Type};

/// Why the sample could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SampleError {
    /// The system did not let the file be created; one that exists is left alone.
    #[error("{path}: {error}", path = .path.display())]
    Create {
        /// The file asked for.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// The path cannot be given to libhdf5.
    #[error("{path:?}: contains a NUL byte", path = .0)]
    Path(PathBuf),
    /// libhdf5 refused, with its own words (innermost message of its error stack first).
    #[error("cannot write {path}: {reason}")]
    Hdf5 {
        /// HDF5 path of what was being written.
        path: String,
        /// Why not.
        reason: String,
    },
    /// A sample of so many rows is no sample any more.
    #[error("{rows} rows are too many for a sample, at most {MAX_ROWS} can be asked for")]
    TooManyRows {
        /// Rows asked for.
        rows: u64,
    },
}

/// Most rows of a sample; keeps all sizes far from the ends of their types (and the file below 40 GB).
const MAX_ROWS: u64 = 1_000_000_000;

/// Writes the sample file with so many rows in its large table to `path`, where nothing may be yet.
///
/// The file holds `/run_042` (HEP001 of July 2026), `/april/events` (HEP001 of April 2026), `/calibration` (64 × 16
/// `float64`) and `/images` (8 × 64 × 64 `uint16`). A million rows take about 26 MB.
///
/// # Errors
/// See [`SampleError`]. After an error there is no file.
pub fn write_sample(path: &Path, rows: u64) -> Result<(), SampleError> {
    if rows > MAX_ROWS {
        return Err(SampleError::TooManyRows { rows });
    }
    if let Err(error) = OpenOptions::new().write(true).create_new(true).open(path) {
        return Err(SampleError::Create { path: path.to_owned(), error });
    }
    let written = write(path, rows);
    if written.is_err() {
        // It is ours, and half a file is worth nothing. What went wrong first is the error to tell.
        std::fs::remove_file(path).ok();
    }
    written
}

fn write(path: &Path, rows: u64) -> Result<(), SampleError> {
    // libhdf5 is built without its thread safety.
    let _lock = LOCK.lock();
    prepare().at("/")?;
    let file = File::create(path)?;
    let root = file.root();
    root.text(c"description", Text::Utf8, "Sample file of hepfs: made-up detector events, no measured data.")?;
    table::write(root, rows)?;
    calibration(root)?;
    images(root)?;
    april::write(&root.group("april")?)?;
    file.close()
}

/// Initialises the library and keeps it from printing errors, which are told by us. Needs its lock.
fn prepare() -> Result<(), Reason> {
    // SAFETY: no arguments.
    check(unsafe { h5::H5open() })?;
    // SAFETY: no callback.
    check(unsafe { h5e::H5Eset_auto2(h5e::H5E_DEFAULT, None, ptr::null_mut()) })?;
    Ok(())
}

/// A two-dimensional array that is no column.
fn calibration(root: &Node) -> Result<(), SampleError> {
    const CHANNELS: u64 = 64;
    const COEFFICIENTS: u64 = 16;
    let values: Vec<f64> =
        (0..CHANNELS * COEFFICIENTS).map(|i| 1.0 / ((1 + i % COEFFICIENTS) * (1 + i / COEFFICIENTS)) as f64).collect();
    let storage = Storage::contiguous(&[CHANNELS, COEFFICIENTS]);
    let dataset = root.dataset("calibration", Type::number::<f64>().at("/calibration")?, &storage, &Fill::Unset)?;
    dataset.write_box(&[0, 0], &[CHANNELS, COEFFICIENTS], &values)?;
    dataset.node().text(c"units", Text::Utf8, "MeV")?;
    dataset.node().text(c"description", Text::Utf8, "Coefficients (columns) of the channels (rows).")
}

/// A three-dimensional array that is no column: a spot that moves over the frames.
fn images(root: &Node) -> Result<(), SampleError> {
    const FRAMES: u64 = 8;
    const SIDE: u64 = 64;
    let mut values: Vec<u16> = Vec::new();
    for frame in 0..FRAMES {
        for y in 0..SIDE {
            for x in 0..SIDE {
                let distance = x.abs_diff(8 + 6 * frame).pow(2) + y.abs_diff(32).pow(2);
                values.push(20 + (40_000 / (10 + distance)) as u16);
            }
        }
    }
    let shape = [FRAMES, SIDE, SIDE];
    let storage = Storage::chunked(&shape, &shape, &[1, SIDE, SIDE]);
    let dataset = root.dataset("images", Type::number::<u16>().at("/images")?, &storage, &Fill::Unset)?;
    dataset.write_box(&[0, 0, 0], &shape, &values)?;
    dataset.node().text(c"description", Text::Utf8, "Frames of the beam spot monitor (frame, y, x).")
}
