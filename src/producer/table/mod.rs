//! Plans, encodes and writes tables.
//!
//! ```text
//! fields ─► Profile, if needed ─► Table: how each column is stored ─► Encoder: arrays → chunks ─► Writer: steps
//! ```
//!
//! | part | what it does |
//! | --- | --- |
//! | `options` | holds the user's options |
//! | `fills` | lists candidates for fill values |
//! | `cells` | converts arrays to stored elements |
//! | `profile` | gathers the facts about values that planning needs |
//! | `planned` | holds the plan of a table |
//! | `plan` | plans how each column is stored |
//! | `values` | chooses storage and fill values for values of fixed width |
//! | `types` | names types, for attributes and for people |
//! | `encode` | encodes arrays into stored chunks |
//! | `extend` | plans how to append rows to an existing table |
//! | `commit` | writes a table into a file, step by step |

mod cells;
mod commit;
mod encode;
mod extend;
mod fills;
mod options;
mod plan;
mod planned;
mod profile;
mod types;
mod values;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow_schema::{Field, Fields};

pub use self::cells::Failure;
pub use self::commit::TableWriter;
pub use self::encode::{ColumnEncoder, Encoded, EncodedPiece};
pub use self::options::Options;
pub use self::planned::PlannedTable;
pub use self::profile::Profile;

use self::encode::SharedPackers;
use self::plan::Planner;
use self::planned::PlannedColumn;
use crate::codec::Compression;
use crate::h5::steps::References;
use crate::producer::options::Revision;

/// Fewest bytes that a chunk may be limited to, however many columns there are.
const LEAST_CHUNK: u64 = 8192;

/// Why a table cannot be written.
#[derive(Clone, Debug)]
pub struct Refused {
    /// The column that cannot be stored. `None`: the reason concerns no single column.
    pub column: Option<String>,
    /// Why the table cannot be written.
    pub reason: String,
}

/// How a column is stored, described for a user.
#[derive(Clone, Copy, Debug)]
pub struct Told<'a> {
    /// Name of the column.
    pub name: &'a str,
    /// How its values are stored, and what stands for missing ones.
    pub stored: &'a str,
    /// A choice that a user may want to know.
    pub note: Option<&'a str>,
    /// Bytes that a row takes before compression, without the items of lists.
    pub row_bytes: u64,
}

impl PlannedTable {
    /// Plans a table of these fields at an HDF5 path. `labels` names the columns that label rows, unless the user's
    /// options do so. `profiles` has one profile for each field, and `rows` is the number of rows, if known. `room`, if
    /// given, limits the bytes of the chunks of all columns together that are being filled.
    ///
    /// # Errors
    /// Why columns cannot be stored, each with the option that helps.
    pub fn plan(
        fields: &Fields,
        labels: &[String],
        profiles: &[Profile],
        rows: Option<u64>,
        room: Option<u64>,
        options: &Options,
        path: &str,
    ) -> Result<Self, Vec<Refused>> {
        let options = &options.of_fields(fields);
        let mut wrong = Vec::new();
        let of_all = |reason: String| Refused { column: None, reason };
        let by_column = |option: &str, given: &[String], wrong: &mut Vec<Refused>| {
            let mut found = HashMap::new();
            for given in given {
                match split(fields, given) {
                    Some((at, value)) => {
                        found.insert(at, value.to_owned());
                    }
                    None => {
                        wrong.push(of_all(format!("{option} {given}: it is COLUMN=…, and there is no such column")));
                    }
                }
            }
            found
        };
        let fills = by_column("--fill", &options.fill, &mut wrong);
        let units = by_column("--units", &options.units, &mut wrong);
        let known = options.categorical.iter().filter(|name| *name != "auto").map(|name| ("--categorical", name));
        let known = known.chain(options.index_columns.iter().map(|name| ("--index-columns", name)));
        let codecs = options.compression.iter().filter_map(|codec| codec.column.as_ref());
        for (option, name) in known.chain(codecs.map(|name| ("--compression", name))) {
            if fields.find(name).is_none() {
                wrong.push(of_all(format!("{option} {name}: there is no such column")));
            }
        }
        let mut planner = Planner { fills, units, ..Planner::new(options, rows) };
        if let Some(room) = room {
            planner.most = planner.most.min((room / fields.len().max(1) as u64).max(LEAST_CHUNK));
        }
        let mut columns: Vec<PlannedColumn> = Vec::new();
        let mut names = HashSet::new();
        for (at, (field, profile)) in fields.iter().zip(profiles).enumerate() {
            if !names.insert(field.name()) {
                wrong.push(of_all(format!("column {:?}: there are two of this name", field.name())));
                continue;
            }
            match planner.column(at, field, profile) {
                Ok(column) => columns.push(column),
                Err(reason) => wrong.push(Refused { column: Some(field.name().clone()), reason }),
            }
        }
        let lists = options
            .index_columns
            .iter()
            .filter(|name| columns.iter().any(|column| column.name == **name && column.shape.is_group()));
        for name in lists {
            wrong.push(of_all(format!("--index-columns {name}: rows of any length label no rows")));
        }
        if path == "/" || path.split('/').skip(1).any(|part| !commit::is_name(part)) {
            wrong.push(of_all(format!("{path:?} is no valid path for a new group")));
        }
        if !wrong.is_empty() {
            return Err(wrong);
        }
        let labels = if options.index_columns.is_empty() { labels } else { &options.index_columns };
        let labels = labels.iter().filter_map(|name| columns.iter().position(|column| column.name == *name));
        // List columns cannot label rows.
        let mut seen = HashSet::new();
        let labels = labels.filter(|at| !columns[*at].shape.is_group() && seen.insert(*at));
        let labels: Vec<usize> = labels.collect();
        labels.iter().for_each(|at| columns[*at].stored.push_str(", row label"));
        let references = options.references.map(References::from);
        Ok(Self {
            columns,
            labels,
            revision: options.revision,
            references: references.unwrap_or(match options.revision {
                Revision::July => References::Standard,
                Revision::April => References::Object,
            }),
            is_compressed: options.compression_of(None) != Compression::None,
            path: path.to_owned(),
            existing: None,
        })
    }

    /// Describes the table's columns for a user.
    pub fn told(&self) -> impl Iterator<Item = Told<'_>> {
        self.columns.iter().map(|column| Told {
            name: &column.name,
            stored: &column.stored,
            note: column.note.as_deref(),
            row_bytes: column.row_bytes,
        })
    }

    /// Number of search indexes that become stale when rows are appended.
    pub fn stale_indexes(&self) -> usize {
        self.existing.as_ref().map_or(0, |existing| existing.indexes)
    }

    /// Most bytes that a chunk takes before compression.
    pub fn longest_chunk(&self) -> u64 {
        let mut longest = 0;
        for column in &self.columns {
            column.shape.each(&mut |part| longest = longest.max(part.chunk.saturating_mul(part.width as u64)));
        }
        longest
    }

    /// Makes an encoder for each column. The labels of all columns together take at most `room` bytes.
    pub fn encoders(&self, room: u64) -> Vec<ColumnEncoder> {
        let shared = Arc::new(SharedPackers::new(room));
        self.columns.iter().map(|column| ColumnEncoder::new(column, shared.clone())).collect()
    }
}

/// Why a column of this type cannot be stored, whatever its values. `None`: it can be.
pub fn why_not_stored(field: &Field, options: &Options) -> Option<String> {
    let mut planner = Planner::new(options, None);
    planner.column(0, field, &Profile::unknown(field.data_type())).err()
}

/// Splits `COLUMN=VALUE`, where the column's name may contain `=`. Returns the position of the column.
fn split<'a>(fields: &Fields, given: &'a str) -> Option<(usize, &'a str)> {
    given.match_indices('=').find_map(|(place, _)| {
        let (at, _) = fields.find(&given[..place])?;
        Some((at, &given[place + 1..]))
    })
}
