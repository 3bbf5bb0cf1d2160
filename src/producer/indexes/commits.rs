//! Writes an index, in several commits (HEP001 July, "Write ordering").
//!
//! ```text
//! commit 1   GENERATION of the table, if it has none (July)
//! commit 2   the dataset, its contents │ flush │ its tokens │ flush │ its link in the group of indexes
//! commit 3   the column's list of indexes
//! ```
//!
//! A commit is all or nothing, so an index that the column lists is whole. An unlisted one does not count as an index.

use bstr::{BString, ByteSlice};

use super::content::{Data, EncodedIndex, IndexLayout};
use super::kind::IndexKind;
use super::stored::{ElementEncoder, width};
use super::subject::IndexedColumn;
use crate::catalogue::join;
use crate::codec::Compression;
use crate::dialects::hep001::names::{ENTRY, GENERATION, SOURCE_GENERATION, SOURCE_ROWS};
use crate::h5::element::{AttributeValue, ElementNumber, ElementType, FillSetting};
use crate::h5::steps::{NewDataset, NewElement, Step, TargetObject};
use crate::h5::{self, WRITE_LIMIT, WritingClient};
use crate::producer::Error;
use crate::producer::options::Revision;
use crate::producer::paths::member;
use crate::producer::steps::Steps;
use crate::source::Interrupt;

/// Writes an index, and adds it to the column's list. Returns its HDF5 path.
///
/// # Errors
/// See [`Error`]. The file is then unchanged, or holds the index, but the column does not list it.
pub(super) fn write(
    writing: &mut WritingClient<'_>,
    subject: &IndexedColumn,
    kind: IndexKind,
    content: &EncodedIndex,
    description: &str,
    interrupt: &Interrupt,
) -> Result<String, Error> {
    let mut writer = Steps { writing, interrupt };
    let table = TargetObject::Path(subject.table.clone().into_bytes());
    let column = TargetObject::Path(member(&subject.table, &subject.name));
    let generation = subject.generation.unwrap_or(0);
    if subject.revision == Revision::July && subject.generation.is_none() {
        writer.step(Step::Begin)?;
        writer.attribute(&table, GENERATION, AttributeValue::number(generation))?;
        writer.step(Step::Commit { removes: false })?;
    }
    writer.step(Step::Begin)?;
    let element = match (&content.elements, kind) {
        (Data::Rows(_, bytes), _) => NewElement::Of(ElementType::Unsigned(*bytes)),
        (_, IndexKind::MinMax) => entry(&column),
        _ => NewElement::Of(u8::ELEMENT),
    };
    let index = writer.dataset(element, &content.layout)?;
    writer.contents(&index, subject, content)?;
    let group = join(&subject.table, subject.names.group.as_bytes());
    let names = free_names(subject, kind);
    let mut made = Vec::new();
    if let Some(values) = &content.values {
        let count = content.layout.extents.first().copied().unwrap_or(0);
        let layout = IndexLayout { extents: vec![count], grows: vec![true], chunk: vec![count.clamp(64, 4096)] };
        let object = writer.dataset(NewElement::Like(column.clone()), &layout)?;
        if count > 0 {
            writer.elements(&object, &[0], &[count], values)?;
        }
        writer.references(&index, subject.names.values, subject.references, vec![object.clone()], false)?;
        made.push((object, names.1));
    }
    let kind_value = match subject.revision {
        Revision::July => AttributeValue::ascii(kind.stored_name()),
        Revision::April => AttributeValue::padded(kind.stored_name()),
    };
    writer.attribute(&index, "KIND", kind_value)?;
    for (name, value) in &content.attributes {
        writer.attribute(&index, name, value.clone())?;
    }
    writer.attribute(&index, "description", AttributeValue::utf8(description))?;
    match subject.revision {
        Revision::July => {
            writer.step(Step::Flush)?;
            writer.attribute(&index, SOURCE_GENERATION, AttributeValue::number(generation))?;
            writer.attribute(&index, SOURCE_ROWS, AttributeValue::number(subject.rows))?;
            writer.step(Step::Flush)?;
        }
        Revision::April => {
            writer.references(&index, subject.names.back, subject.references, vec![column.clone()], true)?;
        }
    }
    made.push((index, names.0.clone()));
    if subject.taken.is_none() {
        let object = writer.make(Step::Group)?;
        writer.link(object, None, group.clone().into_bytes())?;
    }
    for (object, name) in made {
        writer.link(object, None, member(&group, &name))?;
    }
    writer.step(Step::Commit { removes: false })?;

    let to = TargetObject::Path(member(&group, &names.0));
    let list = subject.names.list.to_owned();
    writer.step(Step::Begin)?;
    writer.step(Step::AddReference { object: column, name: list, kind: subject.references, to })?;
    writer.step(Step::Commit { removes: false })?;
    Ok(join(&group, &names.0))
}

/// Element type of the entries of a `CHUNK_MINMAX` over a column.
fn entry(column: &TargetObject) -> NewElement {
    let bounds = [NewElement::Like(column.clone()), NewElement::Like(column.clone())];
    let counts = [(); 3].map(|()| NewElement::Of(u64::ELEMENT));
    NewElement::Compound(ENTRY.map(str::to_owned).into_iter().zip(bounds.into_iter().chain(counts)).collect())
}

/// Finds names for the index and for its values that are free in the group.
fn free_names(subject: &IndexedColumn, kind: IndexKind) -> (BString, BString) {
    let taken = subject.taken.as_deref().unwrap_or_default();
    let suffix = match (kind, subject.revision) {
        (IndexKind::MinMax, _) => "chunk_minmax",
        (IndexKind::Sorted, _) => "sorted_rows",
        (IndexKind::Bitmap, _) => "bitmap",
        (IndexKind::Bloom, _) => "chunk_bloom",
    };
    let values = if subject.names.values == "VALUES" { "VALUES" } else { "values" };
    let named = |number: u64| {
        let number = if number == 1 { String::new() } else { format!("_{number}") };
        let name: BString = [subject.name.as_bytes(), b"__", suffix.as_bytes(), number.as_bytes()].concat().into();
        let values: BString = [name.as_bytes(), b"__", values.as_bytes()].concat().into();
        (name, values)
    };
    (1..).map(named).find(|(name, values)| !taken.contains(name) && !taken.contains(values)).unwrap_or_else(|| named(0))
}

impl Steps<'_, '_> {
    fn dataset(&mut self, element: NewElement, layout: &IndexLayout) -> Result<TargetObject, Error> {
        let IndexLayout { extents, grows, chunk } = layout.clone();
        let (compression, fill) = (Compression::Deflate(1), FillSetting::Unset);
        let layout = NewDataset { element, extents, grows, chunk, compression, shuffles: true, fill };
        self.make(Step::Dataset(layout))
    }

    fn contents(&mut self, index: &TargetObject, subject: &IndexedColumn, content: &EncodedIndex) -> Result<(), Error> {
        match &content.elements {
            Data::Entries(entries) => {
                let element = 2 * width(&subject.datatype) + 24;
                let step = (WRITE_LIMIT / 16 / element.max(1)).clamp(1, 65_536) as usize;
                for (at, entries) in (0..).step_by(step).zip(entries.chunks(step)) {
                    let mut encoder = ElementEncoder::new(&subject.datatype, 2);
                    for entry in entries {
                        for bound in [&entry.min, &entry.max] {
                            match bound {
                                Some(bound) => encoder.value(bound),
                                None => encoder.fill(&subject.fill),
                            }
                        }
                        [entry.nan_count, entry.fill_count, entry.n].iter().for_each(|count| encoder.count(*count));
                    }
                    self.elements(index, &[at], &[entries.len() as u64], &encoder.finish())?;
                }
            }
            Data::Rows(rows, bytes) => {
                let chunk = content.layout.chunk.first().copied().unwrap_or(1).max(1) as usize;
                let step = (WRITE_LIMIT as usize / 2 / usize::from(*bytes) / chunk).max(1) * chunk;
                for (at, rows) in (0..).step_by(step).zip(rows.chunks(step)) {
                    let bytes =
                        rows.iter().flat_map(|row| row.to_le_bytes().into_iter().take(usize::from(*bytes))).collect();
                    let elements = h5::ElementPayload { bytes, ..h5::ElementPayload::default() };
                    self.elements(index, &[at], &[rows.len() as u64], &elements)?;
                }
            }
            Data::Bytes(bytes) => self.matrix(index, &content.layout, bytes)?,
        }
        Ok(())
    }

    /// Writes rows of bytes, in boxes of whole chunks.
    fn matrix(&mut self, index: &TargetObject, layout: &IndexLayout, bytes: &[u8]) -> Result<(), Error> {
        let ([rows, width], [chunk_rows, chunk_width]) = (&layout.extents[..], &layout.chunk[..]) else {
            return Ok(());
        };
        let across = ((WRITE_LIMIT / 4 / chunk_rows / chunk_width).max(1) * chunk_width).min(*width);
        let down = (WRITE_LIMIT / 4 / across.max(1) / chunk_rows).max(1) * chunk_rows;
        let mut row = 0;
        while row < *rows && *width > 0 {
            let height = down.min(rows - row);
            let mut column = 0;
            while column < *width {
                let length = across.min(width - column);
                let line =
                    |row: u64| bytes.get((row * width + column) as usize..).and_then(|b| b.get(..length as usize));
                let cut = (row..row + height).filter_map(line).flatten().copied().collect();
                let elements = h5::ElementPayload { bytes: cut, ..h5::ElementPayload::default() };
                self.elements(index, &[row, column], &[height, length], &elements)?;
                column += length;
            }
            row += height;
        }
        Ok(())
    }
}
