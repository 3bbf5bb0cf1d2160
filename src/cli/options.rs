//! Options shared by several commands.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bstr::ByteSlice;
use clap::builder::PossibleValuesParser;
use clap::{Args, ColorChoice, ValueEnum};

use super::objects::ObjectOptions;
use super::sizes::size;
use super::{Error, reporting};
use crate::dialects::{Dialects, Tables};
use crate::h5;
use crate::indexes::Trust;
use crate::session::{Formats, Session, Settings};
use crate::source;
use crate::store::{self, Decoder, LearntFile, NanPolicy, Store};
use crate::table::Table;
use crate::views::printable;
use crate::views::text::CsvOptions;

/// With a budget of at most this, freed memory is returned to the system at once.
const LITTLE: u64 = 128 << 20;

/// The separator of CSV, unless an option or a file name gives another.
pub(super) const SEPARATOR: char = ',';

/// How sources are read.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Reading")]
pub(super) struct ReadingOptions {
    /// Memory for decoded chunks, rendered text and chunk maps: bytes, or with K, M, G [default: a quarter of RAM (or
    /// of the control group's limit), at most 1G]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub cache_size: Option<u64>,

    /// Largest chunk or value to decode; anything larger fails with EIO and is named in .hepfs/errors [default: half of
    /// RAM, at most 1G; for values at most --cache-size, or 64M if that is more]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub max_chunk: Option<u64>,

    /// Folder of HDF5 filter plugins, for filters that hepfs does not decode itself [default: none]
    #[arg(long, value_name = "FOLDER")]
    pub plugins: Option<PathBuf>,

    /// Decoder of stored values. The HDF5 library is slower: a second opinion on hepfs
    #[arg(long, value_name = "own|libhdf5", value_enum, default_value_t = Decode::Own)]
    pub decode: Decode,

    /// Follow external links, external storage and virtual datasets to other files below the source's own folder, never
    /// elsewhere. Without this, a file shows nothing that lies outside it
    #[arg(long)]
    pub follow_external: bool,

    /// Seconds that the HDF5 library may take for one request before it is killed; three tenths of that may be
    /// processor time
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub deadline: u64,

    /// Groups that are tables. `declared`: those that a format marks; `shape`: also those whose datasets have the shape
    /// of a table; `loose`: also those with few rows, or with most datasets of other lengths
    #[arg(long, value_name = "declared|shape|loose", value_enum, default_value_t = Tables::Shape)]
    #[arg(hide_possible_values = true)]
    pub tables: Tables,

    /// Also show netCDF variables on several dimensions as tables, in `tables/time,lat,lon`: a row for each place with
    /// its coordinates, as xarray's `to_dataframe()` has them
    #[arg(long)]
    pub grids: bool,

    /// Folder that keeps text sizes, statistics and answers of the HDF5 library for later mounts, or `none`; deleting
    /// it loses nothing [default: ~/.cache/hepfs]
    #[arg(long, value_name = "FOLDER|none", help_heading = "Keeping")]
    pub cache_folder: Option<PathBuf>,

    /// Largest size of that folder; the least recently used goes first
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "1G", help_heading = "Keeping")]
    pub cache_folder_size: u64,

    /// File that `hepfs prepare --export` wrote, here or on another host, or the address of one in a store. What it has
    /// of these very sources counts before the cache folder, so that all mounts with it show the same; elsewhere, a
    /// local source is read whole once, to compare its hash
    #[arg(long, value_name = "FILE|URL", help_heading = "Keeping")]
    pub learnt: Option<PathBuf>,

    #[command(flatten)]
    pub objects: ObjectOptions,
}

/// Which files are shown.
#[derive(Clone, Debug, Args)]
pub(super) struct FileOptions {
    /// Formats to show for tables, columns and datasets, separated by commas: `cp -r` and `grep -r` read every file
    /// [default: all]
    #[arg(
        long,
        value_name = "FORMAT,...",
        value_delimiter = ',',
        value_parser = PossibleValuesParser::new(Formats::names()),
        help_heading = "Files"
    )]
    formats: Option<Vec<String>>,
}

impl FileOptions {
    /// The formats as a set.
    pub fn formats(&self) -> Formats {
        let names = self.formats.as_ref();
        names.map_or_else(Formats::default, |names| Formats::of(names.iter().map(String::as_str)))
    }

    /// These options as arguments for the background process.
    pub fn arguments(&self) -> Option<OsString> {
        Some(format!("--formats={}", self.formats.as_ref()?.join(",")).into())
    }
}

/// Options for the text of rows, times, NaN and selections.
#[derive(Clone, Debug, Args)]
pub(super) struct Showing {
    /// Text of a missing value in CSV; a value that reads the same is quoted [default: an empty field, and `""` in
    /// files of one column]
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true,
        allow_hyphen_values = true,
        help_heading = "CSV"
    )]
    pub csv_null: String,

    /// Field separator of CSV: one character, or `tab` [default: `,`; `tab` for a FILE.tsv to write]
    #[arg(long, value_name = "CHAR", value_parser = separator, help_heading = "CSV")]
    pub csv_separator: Option<char>,

    /// Leave out the header line of CSV
    #[arg(long, help_heading = "CSV")]
    pub no_header: bool,

    #[command(flatten)]
    pub shown_times: ShownTimes,

    #[command(flatten)]
    pub nan: NanOption,

    /// Search indexes that selections use. An index in a file may be wrong: with `trust`, rows may be missing from an
    /// answer
    #[arg(
        long,
        value_name = "verify|ignore|trust",
        value_enum,
        default_value_t = IndexUse::Verify,
        help_heading = "Selections"
    )]
    pub indexes: IndexUse,
}

/// The option for statistics in Parquet files.
#[derive(Clone, Debug, Args)]
pub(super) struct ParquetOptions {
    /// Write the minimum, maximum and null count of row groups into Parquet files, as far as they are known when a file
    /// is first opened. `off` gives a file the same bytes on every machine, so that several can share one
    #[arg(long, value_name = "on|off", value_enum, default_value_t = Switch::On, help_heading = "Parquet")]
    parquet_stats: Switch,
}

impl ParquetOptions {
    /// Whether Parquet files carry statistics.
    pub fn are_shown(&self) -> bool {
        self.parquet_stats == Switch::On
    }
}

/// The option for times.
#[derive(Clone, Debug, Args)]
pub(super) struct ShownTimes {
    /// Display of integers whose units count time from a date (`seconds since 1970-01-01`)
    #[arg(long, value_name = "utc|numbers", value_enum, default_value_t = TimeDisplay::Utc, help_heading = "Times")]
    pub times: TimeDisplay,
}

/// How times are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum TimeDisplay {
    /// As instants in UTC: timestamps in Parquet and Arrow, ISO 8601 in text
    Utc,
    /// As the numbers stored
    Numbers,
}

/// The option for colours.
#[derive(Clone, Copy, Debug, Args)]
pub(super) struct ColourOption {
    /// When text has colours. `auto`: on a terminal, unless `NO_COLOR` is set; with `CLICOLOR_FORCE` anywhere
    #[arg(
        id = "color",
        long = "color",
        value_name = "auto|always|never",
        value_enum,
        default_value_t = ColorChoice::Auto,
        hide_possible_values = true
    )]
    pub when: ColorChoice,
}

/// The option for NaN.
#[derive(Clone, Debug, Args)]
pub(super) struct NanOption {
    /// Meaning of NaN in a column of floats, unless it is the column's fill value, which is missing. `auto`: missing in
    /// data frames of pandas, AnnData and h5Seurat, a value elsewhere; `null`: missing in every table; `value`: a
    /// value, as stored. NumPy files, `.raw` and text files of one column always have NaN; so do Arrow files of a
    /// mount, except with `null`
    #[arg(
        id = "nan",
        long = "nan",
        value_name = "auto|null|value",
        value_enum,
        default_value_t = NanPolicy::Auto,
        hide_possible_values = true,
        help_heading = "Missing values"
    )]
    policy: NanPolicy,
}

impl NanOption {
    /// The hint, for a table with NaN as values, that an option makes them null; `None`: no such table, or the user
    /// gave it.
    pub fn hint(&self, table: &Table) -> Option<String> {
        let column = table.with_nan_values().filter(|_| self.policy == NanPolicy::Auto)?;
        let (column, path) = (printable(&column.name.to_str_lossy()), printable(&table.path));
        Some(format!("{path}: NaN in {column} is a value; with `--nan null` NaN is missing, as it is to pandas"))
    }

    /// The meaning of NaN, for the store.
    pub fn policy(&self) -> NanPolicy {
        self.policy
    }
}

/// Which search indexes are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum IndexUse {
    /// Those verified against their column
    Verify,
    /// None
    Ignore,
    /// All that are not known to be wrong
    Trust,
}

/// On or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Switch {
    /// Yes.
    On,
    /// No
    Off,
}

/// The decoder of stored values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Decode {
    /// hepfs, on all cores, wherever it can
    Own,
    /// The HDF5 library alone
    Libhdf5,
}

impl ReadingOptions {
    /// Starts a session with these settings.
    ///
    /// # Errors
    /// [`Error::Usage`] if the plugin folder is not a folder, [`Error::Options`] if objects cannot be asked for so.
    pub fn session(&self, settings: Settings) -> Result<Arc<Session>, Error> {
        if let Some(folder) = self.plugins.as_ref().filter(|folder| !folder.is_dir()) {
            return Err(Error::Usage(format!("--plugins {}: not a folder", folder.display())));
        }
        let defaults = store::Options::default();
        let cache_size = self.cache_size.unwrap_or(defaults.cache_size);
        store::share_heaps();
        if cache_size <= LITTLE {
            store::keep_little();
        }
        // A user's limit on memory applies to values too, unless another option says otherwise.
        let max_value = defaults.max_chunk.min(cache_size.max(store::Options::LARGEST_VALUE));
        let store = Store::new(store::Options {
            cache_size,
            max_chunk: self.max_chunk.unwrap_or(defaults.max_chunk),
            max_value: self.max_chunk.unwrap_or(max_value),
            decoder: match self.decode {
                Decode::Own => Decoder::Own,
                Decode::Libhdf5 => Decoder::Library,
            },
            times: settings.times,
            nan: settings.nan,
            kept_folder: self.kept_folder(),
            kept_size: self.cache_folder_size,
            ..defaults
        });
        let opener = self.objects.opener(&store)?;
        if let Some(path) = &self.learnt {
            match LearntFile::open(path, &opener) {
                Ok(file) => store.kept().learn_from(file),
                Err(error) => tracing::warn!("--learnt {error}; nothing is taken from it"),
            }
        }
        let settings = Settings {
            dialects: Dialects::new(self.tables, self.grids),
            opener,
            verifies_objects: self.objects.verify,
            ..settings
        };
        let workers = h5::Options {
            plugins: self.plugins.clone(),
            follow_external: self.follow_external,
            deadline: Duration::from_secs(self.deadline),
            lists_simple: self.decode == Decode::Own,
            ..h5::Options::default()
        };
        Ok(reporting::told(Session::with_settings(store, workers, settings)))
    }

    /// Whether there is no cache folder.
    pub fn keeps_nothing(&self) -> bool {
        self.kept_folder().is_none()
    }

    /// The cache folder.
    fn kept_folder(&self) -> Option<PathBuf> {
        match &self.cache_folder {
            Some(folder) if folder.as_os_str() == "none" => None,
            // The background process runs in another folder.
            Some(folder) => std::path::absolute(folder).ok(),
            None => Some(dirs::cache_dir()?.join("hepfs")),
        }
    }

    /// These options as arguments for the background process.
    pub fn arguments(&self) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = Vec::new();
        if let Some(size) = self.cache_size {
            arguments.push(format!("--cache-size={size}").into());
        }
        if let Some(size) = self.max_chunk {
            arguments.push(format!("--max-chunk={size}").into());
        }
        arguments.push(format!("--deadline={}", self.deadline).into());
        if let Some(folder) = &self.plugins {
            arguments.push("--plugins".into());
            arguments.push(folder.into());
        }
        if self.decode == Decode::Libhdf5 {
            arguments.push("--decode=libhdf5".into());
        }
        if self.follow_external {
            arguments.push("--follow-external".into());
        }
        match self.tables {
            Tables::Declared => arguments.push("--tables=declared".into()),
            Tables::Shape => {}
            Tables::Loose => arguments.push("--tables=loose".into()),
        }
        if self.grids {
            arguments.push("--grids".into());
        }
        arguments.push("--cache-folder".into());
        arguments.push(self.kept_folder().map_or_else(|| "none".into(), Into::into));
        arguments.push(format!("--cache-folder-size={}", self.cache_folder_size).into());
        if let Some(file) = &self.learnt {
            arguments.push("--learnt".into());
            // The background process runs in another folder.
            arguments.push(source::absolute(file).unwrap_or_else(|_| file.clone()).into());
        }
        arguments.extend(self.objects.arguments());
        arguments
    }
}

impl ShownTimes {
    /// Whether times are shown as instants.
    pub fn are_instants(&self) -> bool {
        self.times == TimeDisplay::Utc
    }
}

impl Showing {
    /// The settings of the session.
    ///
    /// # Errors
    /// [`Error::Options`] if CSV would be ambiguous.
    pub fn settings(&self) -> Result<Settings, Error> {
        let csv = CsvOptions::new(self.csv_separator.unwrap_or(SEPARATOR), &self.csv_null, !self.no_header);
        let csv = csv.map_err(|error| Error::Options(error.to_string()))?;
        let trust = match self.indexes {
            IndexUse::Verify => Trust::Verify,
            IndexUse::Ignore => Trust::Ignore,
            IndexUse::Trust => Trust::Trust,
        };
        Ok(Settings {
            csv,
            times: self.shown_times.are_instants(),
            nan: self.nan.policy(),
            trust,
            ..Settings::default()
        })
    }

    /// These options as arguments for the background process.
    pub fn arguments(&self) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = vec![format!("--csv-null={}", self.csv_null).into()];
        arguments.extend(self.csv_separator.map(|separator| format!("--csv-separator={separator}").into()));
        if self.no_header {
            arguments.push("--no-header".into());
        }
        if !self.shown_times.are_instants() {
            arguments.push("--times=numbers".into());
        }
        match self.nan.policy() {
            NanPolicy::Auto => {}
            NanPolicy::Null => arguments.push("--nan=null".into()),
            NanPolicy::Value => arguments.push("--nan=value".into()),
        }
        match self.indexes {
            IndexUse::Verify => {}
            IndexUse::Ignore => arguments.push("--indexes=ignore".into()),
            IndexUse::Trust => arguments.push("--indexes=trust".into()),
        }
        arguments
    }
}

/// Parses a character, or the name of one that is hard to type.
pub(super) fn separator(text: &str) -> Result<char, String> {
    let mut characters = text.chars();
    let separator = match (text, characters.next(), characters.next()) {
        ("tab" | "\\t", ..) => '\t',
        (_, Some(only), None) => only,
        _ => return Err(format!("{text:?} is not one character, nor `tab`")),
    };
    CsvOptions::new(separator, "", true).map(|_| separator).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::separator;

    #[test]
    fn a_separator_is_a_character() {
        assert_eq!(separator(";"), Ok(';'));
        assert_eq!(separator("\t"), Ok('\t'));
        assert_eq!(separator("\\t"), Ok('\t'));
        assert_eq!(separator("tab"), Ok('\t'));
        assert!(separator("").is_err());
        assert!(separator(", ").is_err());
        assert!(separator(".").is_err());
    }
}
