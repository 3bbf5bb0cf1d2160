//! Opens a file: reads its header, and finds the faults of its columns.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::blocks::{Descriptors, Places, Survey, TrevniBlock};
use crate::codec;
use crate::codec::trevni::{Stop, TrevniColumn, TrevniHeader, TrevniPacking, TrevniType};
use crate::source::{Interrupt, Source};
use crate::store::{Cache, Error, Opening, RequestStreams, SourceConstancy, Store};
use crate::table::{Finding, Rule};

/// Longest header, in bytes.
const LONGEST_HEADER: u64 = 16 << 20;

/// Bytes of the header to read first.
const FIRST_LOOK: u64 = 64 << 10;

/// Approximate bytes of memory for each byte of a header, in which a pair of metadata takes at least two bytes.
const HEADER_WEIGHT: u64 = 16;

/// Most ancestors that a column may have. Each is a list of records, and views allow at most 64 levels.
const DEEPEST: usize = 24;

/// An opened Trevni file.
#[derive(Debug)]
pub(in crate::formats) struct TrevniFile {
    pub(super) opening: Arc<Opening>,
    pub(super) header: TrevniHeader,
    /// For each column, the survey of its descriptors, or why it cannot be read.
    pub(super) columns: Vec<Result<Survey, codec::Error>>,
    /// Where the blocks of each column lie, by column.
    pub(super) places: Cache<usize, Places>,
    /// Decoded blocks, by column and number of the block.
    pub(super) blocks: Cache<(usize, usize), TrevniBlock>,
    /// The readers of each column, for reading ahead.
    pub(super) streams: Vec<RequestStreams>,
    /// The first rule that each column was found to break while blocks were read.
    pub(super) met: Mutex<BTreeMap<usize, Finding>>,
    /// A reference to the file itself, for threads that decode ahead.
    pub(super) this: Weak<Self>,
}

impl TrevniFile {
    /// Opens a file, and reads the descriptors of all its blocks.
    ///
    /// # Errors
    /// [`Error::Unsupported`] with the rule that the header breaks, or [`Error::TooLarge`].
    pub fn open(store: &Arc<Store>, source: &Arc<Source>, interrupt: &Interrupt) -> Result<Arc<Self>, Error> {
        let opening = Opening::new(store.clone(), source.clone(), SourceConstancy::Fixed);
        let header = header(&opening, interrupt)?;
        let mut columns: Vec<Result<Survey, codec::Error>> = Vec::with_capacity(header.columns.len());
        let mut depths: Vec<usize> = Vec::with_capacity(header.columns.len());
        for column in &header.columns {
            interrupt.check()?;
            let above = column.parent.and_then(|parent| Some((parent, columns.get(parent)?)));
            depths.push(column.parent.and_then(|parent| depths.get(parent)).map_or(0, |depth| depth + 1));
            columns.push(match above {
                Some((parent, Err(_))) => {
                    let parent = header.columns.get(parent).map_or("", |parent| parent.name.as_str());
                    Err(format!("its parent {parent:?} cannot be read").into())
                }
                _ if depths.last().is_some_and(|depth| *depth > DEEPEST) => {
                    Err(format!("it lies more than {DEEPEST} parents deep").into())
                }
                _ => survey(&opening, &header, column, interrupt)?,
            });
        }
        let sums = columns.iter().flatten().map(|survey| survey.rows);
        if !columns.is_empty() && !sums.clone().any(|rows| rows == header.rows) {
            let why = match sums.clone().next() {
                Some(rows) => format!("no column has as many: the first readable one has {rows}"),
                None => {
                    let first = columns.iter().find_map(|column| column.as_ref().err());
                    format!("no column can be read: {}", first.map(codec::Error::to_string).unwrap_or_default())
                }
            };
            return Err(refused(format!("the header says {} rows, but {why}", header.rows)));
        }
        opening.check()?;
        let (budget, count) = (store.budget().clone(), columns.len());
        Ok(Arc::new_cyclic(|this| Self {
            opening,
            header,
            columns,
            places: Cache::new(&budget),
            blocks: Cache::new(&budget),
            streams: (0..count).map(|_| RequestStreams::default()).collect(),
            met: Mutex::default(),
            this: this.clone(),
        }))
    }

    /// A column's header, and the type and packing of its values.
    pub(super) fn column(&self, at: usize) -> Result<(&TrevniColumn, TrevniType, TrevniPacking), Error> {
        let column = self.header.columns.get(at).ok_or_else(|| refused(format!("there is no column {at}")))?;
        let failed = |reason: &codec::Error| Error::unsupported(path_of(column), reason);
        let (kind, packing) = *column.form.as_ref().map_err(failed)?;
        self.columns.get(at).map_or(Ok(()), |seen| seen.as_ref().map(drop)).map_err(failed)?;
        Ok((column, kind, packing))
    }

    /// Records that a column breaks a rule, if nothing was recorded for it before.
    pub(super) fn report(&self, at: usize, rule: &'static Rule, found: String) {
        if let Some(column) = self.header.columns.get(at) {
            self.met.lock().entry(at).or_insert_with(|| Finding::new(path_of(column), rule, found));
        }
    }
}

/// The path under which a column is shown.
pub(super) fn path_of(column: &TrevniColumn) -> String {
    format!("/{}", column.name)
}

fn refused(reason: String) -> Error {
    Error::unsupported("/", reason)
}

/// Reads the header, from as much of the file as it turns out to take.
fn header(opening: &Opening, interrupt: &Interrupt) -> Result<TrevniHeader, Error> {
    let (total, mut length) = (opening.source().identity().size, FIRST_LOOK);
    loop {
        let bytes = length.min(total).min(LONGEST_HEADER);
        opening.store().admit("/", bytes.saturating_mul(HEADER_WEIGHT), || "the header".into())?;
        let mut first = Vec::new();
        // This is at most 16 MiB.
        opening.append_at(0, bytes as usize, &mut first, interrupt)?;
        match TrevniHeader::read(&first, total) {
            Ok(header) => return Ok(header),
            Err(Stop::Bad(reason)) => return Err(refused(reason.to_string())),
            Err(Stop::More) if bytes < LONGEST_HEADER && bytes < total => length = length.saturating_mul(8),
            Err(Stop::More) => return Err(refused(format!("a header of more than {LONGEST_HEADER} bytes"))),
        }
    }
}

/// Surveys the block descriptors of a column.
///
/// # Errors
/// The file cannot be read, or the caller was interrupted. The inner error is a fault of the column.
fn survey(
    opening: &Opening,
    header: &TrevniHeader,
    column: &TrevniColumn,
    interrupt: &Interrupt,
) -> Result<Result<Survey, codec::Error>, Error> {
    let size = opening.source().identity().size;
    if column.start < header.length || column.start > size {
        let start = column.start;
        return Ok(Err(
            format!("it begins at byte {start}: the header ends at {}, the file at {size}", header.length).into()
        ));
    }
    let mut survey = Survey::default();
    let descriptors = Descriptors::new(opening, column);
    let end = descriptors.read(interrupt, &mut |block| survey.add(column, block))?;
    Ok(end.and_then(|end| survey.end(column, end, size)))
}
