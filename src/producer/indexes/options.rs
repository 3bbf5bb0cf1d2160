//! Options of a user for search indexes of HEP001.

use clap::Args;

use crate::producer::options::{ReferenceStorage, Revision};

/// Default rate of false positives.
const FALSE_POSITIVES: f64 = 0.01;

/// How search indexes are written. The field comments are the help of the command.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Revision of HEP001 to follow [default: that of the table]
    #[arg(long, value_enum)]
    pub revision: Option<Revision>,

    /// How references are stored. HEP001 July demands `standard`, which h5py cannot read; h5py and h5col read `object`
    /// [default: as the table does already, else `standard`]
    #[arg(long, value_enum)]
    pub references: Option<ReferenceStorage>,

    /// Rate of false positives of a chunk's filter (kind bloom)
    #[arg(long, value_name = "SHARE", default_value_t = FALSE_POSITIVES, value_parser = share)]
    pub bloom_fpp: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self { revision: None, references: None, bloom_fpp: FALSE_POSITIVES }
    }
}

fn share(text: &str) -> Result<f64, String> {
    let share: f64 = text.parse().map_err(|_| format!("{text:?} is no number"))?;
    if share > 0.0 && share < 1.0 { Ok(share) } else { Err(format!("{text} does not lie between 0 and 1")) }
}
