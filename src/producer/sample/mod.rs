//! Writes the sample file of `hepfs demo`.
//!
//! The file holds synthetic detector events in a table of HEP001's July 2026 revision, with a column of every kind and
//! search indexes; arrays beside that table; and a small table of the April 2026 revision. The same number of rows
//! always gives the same bytes.

mod april;
mod content;
mod entry;
mod table;

use std::path::Path;

use crate::dialects::hep001::names::DIALECT;
use crate::h5::create::{self, CreatedObject, Error, FillSetting, Storage};
use crate::h5::element::{AttributeValue, ElementNumber};

/// Why the sample could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SampleError {
    /// The file could not be created.
    #[error(transparent)]
    Create(#[from] Error),
    /// The sample would have more rows than it may have.
    #[error("{rows} rows are too many for a sample; it has at most {MAX_ROWS}")]
    TooManyRows {
        /// Number of rows asked for.
        rows: u64,
    },
}

/// Most rows of a sample. With this many, all sizes stay far below the limits of their types, and the file below 40 GB.
const MAX_ROWS: u64 = 1_000_000_000;

/// Writes the sample file to `path`, where there must be no file yet. Its large table gets this many rows.
///
/// The file holds `/run_042` (HEP001 of July 2026), `/april/events` (HEP001 of April 2026), `/calibration` (64 × 16
/// `float64`) and `/images` (8 × 64 × 64 `uint16`). A million rows take about 26 MB.
///
/// # Errors
/// See [`SampleError`]. After an error, no file remains.
pub fn write(path: &Path, rows: u64) -> Result<(), SampleError> {
    if rows > MAX_ROWS {
        return Err(SampleError::TooManyRows { rows });
    }
    create::file(path, |root: &CreatedObject<'_>| {
        let description = "Sample file of hepfs: made-up detector events, no measured data.";
        root.attribute("description", &AttributeValue::utf8(description))?;
        table::write(root, rows)?;
        calibration(root)?;
        images(root)?;
        april::write(&root.group("april")?)
    })?;
    Ok(())
}

/// Describes the sample in a few words.
pub fn describe(rows: u64) -> String {
    format!("a {DIALECT} table of {rows} rows, arrays, search indexes")
}

/// Writes a two-dimensional array outside of any table.
fn calibration(root: &CreatedObject<'_>) -> Result<(), Error> {
    const CHANNELS: u64 = 64;
    const COEFFICIENTS: u64 = 16;
    let values: Vec<f64> =
        (0..CHANNELS * COEFFICIENTS).map(|i| 1.0 / ((1 + i % COEFFICIENTS) * (1 + i / COEFFICIENTS)) as f64).collect();
    let storage = Storage::contiguous(&[CHANNELS, COEFFICIENTS]);
    let dataset = root.dataset("calibration", &f64::ELEMENT, &storage, &FillSetting::Unset)?;
    dataset.write_box(&[0, 0], &[CHANNELS, COEFFICIENTS], &values)?;
    dataset.node().attribute("units", &AttributeValue::utf8("MeV"))?;
    dataset.node().attribute("description", &AttributeValue::utf8("Coefficients (columns) of the channels (rows)."))
}

/// Writes a three-dimensional array outside of any table: a spot that moves from frame to frame.
fn images(root: &CreatedObject<'_>) -> Result<(), Error> {
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
    let dataset = root.dataset("images", &u16::ELEMENT, &storage, &FillSetting::Unset)?;
    dataset.write_box(&[0, 0, 0], &shape, &values)?;
    dataset.node().attribute("description", &AttributeValue::utf8("Frames of the beam spot monitor (frame, y, x)."))
}
