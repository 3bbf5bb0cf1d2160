//! Options that several commands share.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;

use super::Error;
use crate::fs::tree::Context;
use crate::h5;
use crate::store::{self, Store};

/// How sources are read.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Reading")]
pub(super) struct Reading {
    /// Memory for decoded chunks, rendered text and chunk maps: bytes, or with K, M, G [default: a quarter of the
    /// memory, at most 1G]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub cache_size: Option<u64>,

    /// Largest chunk that is decoded; a larger one is an input/output error, told in .hepfs/errors
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "1G")]
    pub max_chunk: u64,

    /// Folder of HDF5 filter plugins, for filters that hepfs does not know (none is used unless you name one)
    #[arg(long, value_name = "FOLDER")]
    pub plugins: Option<PathBuf>,

    /// Follow external links, external storage and virtual datasets into other files below the source's own folder
    /// (never elsewhere). Without this, a file cannot show you what lies outside it
    #[arg(long)]
    pub follow_external: bool,

    /// Seconds that the HDF5 library may take for one request before it is ended
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub deadline: u64,
}

impl Reading {
    /// What all nodes of a tree over sources share.
    ///
    /// # Errors
    /// [`Error::Usage`] where the plugin folder is none.
    pub fn context(&self) -> Result<Arc<Context>, Error> {
        if let Some(folder) = self.plugins.as_ref().filter(|folder| !folder.is_dir()) {
            return Err(Error::Usage(format!("--plugins {}: not a folder", folder.display())));
        }
        let defaults = store::Options::default();
        let store = Store::new(store::Options {
            cache_size: self.cache_size.unwrap_or(defaults.cache_size),
            max_chunk: self.max_chunk,
            ..defaults
        });
        let workers = h5::Options {
            plugins: self.plugins.clone(),
            follow_external: self.follow_external,
            deadline: Duration::from_secs(self.deadline),
            ..h5::Options::default()
        };
        Ok(Context::new(store, workers))
    }

    /// The same options as arguments, for the background process.
    pub fn arguments(&self) -> Vec<std::ffi::OsString> {
        let mut arguments: Vec<std::ffi::OsString> = Vec::new();
        if let Some(size) = self.cache_size {
            arguments.push(format!("--cache-size={size}").into());
        }
        arguments.push(format!("--max-chunk={}", self.max_chunk).into());
        arguments.push(format!("--deadline={}", self.deadline).into());
        if let Some(folder) = &self.plugins {
            arguments.push("--plugins".into());
            arguments.push(folder.into());
        }
        if self.follow_external {
            arguments.push("--follow-external".into());
        }
        arguments
    }
}

/// `1500`, `64K`, `512M`, `2G`.
fn size(text: &str) -> Result<u64, String> {
    let upper = text.trim().to_ascii_uppercase();
    let upper = upper.strip_suffix("IB").or_else(|| upper.strip_suffix('B')).unwrap_or(&upper);
    let units = [('K', 10), ('M', 20), ('G', 30), ('T', 40)];
    let (number, shift) =
        units.iter().find_map(|(unit, shift)| Some((upper.strip_suffix(*unit)?, *shift))).unwrap_or((upper, 0));
    let number: u64 = number.trim().parse().map_err(|_| format!("{text:?} is no size such as 512M or 2G"))?;
    number.checked_mul(1 << shift).ok_or_else(|| format!("{text} is too large"))
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_have_units() {
        assert_eq!(size("1500"), Ok(1500));
        assert_eq!(size("64K"), Ok(65536));
        assert_eq!(size("2GiB"), Ok(2 << 30));
        assert!(size("much").is_err());
        assert!(size("99999999999T").is_err());
    }
}
