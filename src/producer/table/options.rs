//! Options of a user for writing a table of HEP001.

use arrow_schema::Fields;
use clap::{Args, ValueEnum};

use crate::codec::Compression;
use crate::producer::options::{ReferenceStorage, Revision};
use crate::table::listed;

/// How tables of HEP001 are written. The field comments are the help of the command.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Table")]
pub struct Options {
    /// Revision of HEP001 to follow. April has no lists
    #[arg(long, value_enum, default_value_t = Revision::July)]
    pub revision: Revision,

    /// How references are stored. HEP001 July demands `standard`, which h5py cannot read; h5py and h5col read `object`
    /// [default: `standard`, in April `object`]
    #[arg(long, value_enum)]
    pub references: Option<ReferenceStorage>,

    /// Compression of chunks, for all columns or one: deflate or deflate:LEVEL (1 to 9), which every HDF5 library
    /// reads; zstd or zstd:LEVEL (1 to 19), which is faster and smaller, and lz4: h5py reads both with its package
    /// hdf5plugin; none [default: deflate:6]
    #[arg(long, value_name = "[COLUMN=]CODEC", value_parser = codec)]
    pub compression: Vec<ColumnCompression>,

    /// Rows per chunk [default: 65536, and fewer if a row is long]
    #[arg(long, value_name = "ROWS", value_parser = clap::value_parser!(u64).range(1..=1 << 30))]
    pub chunk_rows: Option<u64>,

    /// Fill value of a column of numbers or text, for missing values; it must not occur in the data
    #[arg(long, value_name = "COLUMN=VALUE")]
    pub fill: Vec<String>,

    /// What to do if the fill value that HEP001 recommends occurs in the data
    #[arg(long, value_enum, default_value_t = NullPolicy::Free)]
    pub null_policy: NullPolicy,

    /// Columns of text to store as codes and labels; `auto` takes those of up to 1,024 different texts that occur eight
    /// times on average. Dictionaries of Arrow are stored so in any case
    #[arg(long, value_name = "auto|COLUMN,...", value_delimiter = ',')]
    pub categorical: Vec<String>,

    /// Storage of text [default: fixed, unless a few texts are far longer than the others]
    #[arg(long, value_enum)]
    pub string: Option<TextStorage>,

    /// Columns that label rows, the outermost level first [default: those of the input: row labels of a table, the
    /// index of pandas]
    #[arg(long, value_name = "COLUMN", value_delimiter = ',')]
    pub index_columns: Vec<String>,

    /// Physical units of a column
    #[arg(long, value_name = "COLUMN=UNITS")]
    pub units: Vec<String>,
}

impl Options {
    /// How to compress the chunks of a column. `None`: of columns for which the user chose nothing.
    pub fn compression_of(&self, column: Option<&str>) -> Compression {
        let last = |column| self.compression.iter().rfind(|codec| codec.column.as_deref() == column);
        last(column).or_else(|| last(None)).map_or(Compression::Deflate(6), |codec| codec.compression)
    }

    /// The options with whole column names: clap splits them at commas.
    pub(super) fn of_fields(&self, fields: &Fields) -> Self {
        let names = fields.iter().map(|field| field.name().as_str());
        let categorical = listed(&self.categorical, names.clone().chain(["auto"]));
        Self { categorical, index_columns: listed(&self.index_columns, names), ..self.clone() }
    }

    /// Whether columns with few distinct texts become codes and labels.
    pub fn wants_labels(&self) -> bool {
        self.categorical.iter().any(|column| column == "auto")
    }
}

/// Policy if the usual fill value occurs in the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum NullPolicy {
    /// Take another value that is free, else the next wider type
    Free,
    /// Take the next wider type
    Widen,
    /// Refuse the column
    Error,
}

/// How text is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TextStorage {
    /// In as many bytes as the longest takes
    Fixed,
    /// In HDF5's strings of variable length, which are not compressed
    Vlen,
}

/// Compression of chunks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnCompression {
    /// The column that it applies to.
    pub column: Option<String>,
    /// The compression.
    pub compression: Compression,
}

fn codec(text: &str) -> Result<ColumnCompression, String> {
    let (column, text) = text.rsplit_once('=').map_or((None, text), |(column, text)| (Some(column.to_owned()), text));
    compression(text).map(|compression| ColumnCompression { column, compression })
}

fn compression(text: &str) -> Result<Compression, String> {
    let (name, level) = text.split_once(':').map_or((text, None), |(name, level)| (name, Some(level)));
    let level = |usual: u8, most: u8| match level {
        None => Ok(usual),
        Some(level) => level
            .parse()
            .ok()
            .filter(|level| (1..=most).contains(level))
            .ok_or_else(|| format!("{level:?} is no level of {name}: these go from 1 to {most}")),
    };
    match name {
        "zstd" => level(3, 19).map(Compression::Zstandard),
        "deflate" | "gzip" => level(6, 9).map(Compression::Deflate),
        "lz4" if text == name => Ok(Compression::Lz4),
        "none" if text == name => Ok(Compression::None),
        _ => Err("it is zstd:LEVEL, deflate:LEVEL, lz4 or none".to_owned()),
    }
}
