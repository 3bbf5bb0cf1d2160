//! What a user may choose of a search index of HEP001.

use clap::{Args, ValueEnum};

use crate::h5::steps::References;

/// Default share of false positives.
const FALSE_POSITIVES: f64 = 0.01;

/// How search indexes of HEP001 are written. What is said of a field is its help.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Revision of HEP001 to follow
    #[arg(long, value_enum)]
    pub revision: Option<Revision>,

    /// How references are stored [default: as the table does already, else `standard`]. `standard` is H5T_STD_REF,
    /// which HEP001 July demands and h5py cannot read; `object` is H5T_STD_REF_OBJ, which h5py and h5col read
    #[arg(long, value_enum)]
    pub references: Option<Stored>,

    /// Share of absent values that the filter of a chunk does not recognise as absent (kind bloom)
    #[arg(long, value_name = "SHARE", default_value_t = FALSE_POSITIVES, value_parser = share)]
    pub bloom_fpp: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self { revision: None, references: None, bloom_fpp: FALSE_POSITIVES }
    }
}

/// A draft of HEP001, as far as search indexes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Revision {
    /// July 2026
    July,
    /// April 2026
    April,
}

/// How references are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Stored {
    /// H5T_STD_REF
    Standard,
    /// H5T_STD_REF_OBJ
    Object,
}

impl From<Stored> for References {
    fn from(stored: Stored) -> Self {
        match stored {
            Stored::Standard => Self::Standard,
            Stored::Object => Self::Object,
        }
    }
}

fn share(text: &str) -> Result<f64, String> {
    let share: f64 = text.parse().map_err(|_| format!("{text:?} is no number"))?;
    if share > 0.0 && share < 1.0 { Ok(share) } else { Err(format!("{text} does not lie between 0 and 1")) }
}
