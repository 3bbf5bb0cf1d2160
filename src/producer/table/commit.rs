//! Writes a table into a file, in these steps:
//!
//! ```text
//! group and datasets, not linked │ chunks, as they come │ labels, attributes │ NROWS │ the link of the group
//! ```

use std::ffi::CString;

use super::encode::{Encoded, EncodedPiece, PieceContent};
use super::planned::{ColumnDatasets, Existing, PlannedDataset, PlannedTable};
use crate::catalogue::Charset;
use crate::codec::Compression;
use crate::dialects::hep001::names::{
    ARROW_TYPE, CATEGORIES, CATEGORIES_GROUP, COLUMN_ORDER, GENERATION, INDEX, INDEX_COLUMNS, LIST_CLASS, ROWS,
    STRINGS_CLASS, TABLE_CLASS,
};
use crate::h5::element::{AttributeValue, ElementType, FillSetting};
use crate::h5::steps::{NewDataset, NewElement, Step, TargetObject};
use crate::h5::{self, WritingClient};
use crate::producer::Error;
use crate::producer::boolean;
use crate::producer::options::Revision;
use crate::producer::steps::Steps;
use crate::source::Interrupt;

/// Most bytes of all names in an attribute.
const MOST_NAMES: usize = 60_000;

/// Most bytes of labels to write at once.
const LABELS: usize = 4 << 20;

/// A table under construction.
#[derive(Debug)]
pub struct TableWriter<'a> {
    table: &'a PlannedTable,
    group: TargetObject,
    /// The dataset of each part, and its extent so far.
    parts: Vec<(TargetObject, u64)>,
    /// The objects to link into the group, in the order of the columns.
    columns: Vec<TargetObject>,
}

impl<'a> TableWriter<'a> {
    /// Creates the datasets, to which nothing links yet. Those of an existing table are only looked up.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn begin(
        table: &'a PlannedTable,
        writing: &mut WritingClient<'_>,
        interrupt: &Interrupt,
    ) -> Result<Self, Error> {
        writing.step(Step::Begin, interrupt)?;
        if table.existing.is_some() {
            let mut parts: Vec<(usize, TargetObject, u64)> = Vec::new();
            for column in &table.columns {
                column.shape.each(&mut |part| {
                    if let Some(resumed) = &part.resumed {
                        parts.push((part.number, TargetObject::Path(resumed.path.clone()), resumed.extent));
                    }
                });
            }
            parts.sort_by_key(|part| part.0);
            let parts = parts.into_iter().map(|(_, object, extent)| (object, extent)).collect();
            let group = TargetObject::Path(table.path.clone().into_bytes());
            return Ok(Self { table, group, parts, columns: Vec::new() });
        }
        let mut steps = Steps { writing, interrupt };
        let group = steps.make(Step::Group)?;
        let mut maker = Maker { steps: &mut steps, parts: Vec::new() };
        let mut columns = Vec::with_capacity(table.columns.len());
        for column in &table.columns {
            columns.push(maker.shape(&column.shape)?);
        }
        let parts = maker.parts.into_iter().map(|object| (object, 0)).collect();
        Ok(Self { table, group, parts, columns })
    }

    /// Writes a piece of a dataset, which grows if need be.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn put(
        &mut self,
        piece: &EncodedPiece,
        writing: &mut WritingClient<'_>,
        interrupt: &Interrupt,
    ) -> Result<(), Error> {
        let Some((object, length)) = self.parts.get_mut(piece.part) else { return Ok(()) };
        let end = piece.start + piece.count;
        if end > *length {
            writing.step(Step::Extend { object: object.clone(), extents: vec![end] }, interrupt)?;
            *length = end;
        }
        match &piece.content {
            PieceContent::Chunk(bytes) => writing.chunk(object, &[piece.start], bytes, interrupt)?,
            PieceContent::Strings(elements) => {
                writing.elements(object, [&[piece.start], &[piece.count]], elements, interrupt)?;
            }
        }
        Ok(())
    }

    /// Writes labels and attributes, then the link that makes the table visible. If the table `replaces` an existing
    /// object, that link takes the place of the old one. Ends the change.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn finish(
        self,
        encoded: &[Encoded],
        replaces: bool,
        writing: &mut WritingClient<'_>,
        interrupt: &Interrupt,
    ) -> Result<(), Error> {
        if let Some(existing) = &self.table.existing {
            return self.extended(existing, encoded, writing, interrupt);
        }
        let Self { table, group, columns, .. } = self;
        let mut steps = Steps { writing, interrupt };
        let is_july = table.revision == Revision::July;
        let class = if is_july { AttributeValue::ascii(TABLE_CLASS) } else { AttributeValue::padded(TABLE_CLASS) };
        steps.attribute(&group, "CLASS", class)?;
        steps.attribute(&group, "VERSION", AttributeValue::ascii("1.0"))?;
        let names: Vec<&str> = table.columns.iter().map(|column| column.name.as_str()).collect();
        let longest = names.iter().map(|name| name.len()).max().unwrap_or(0);
        if !names.is_empty() && (longest + 1) * names.len() <= MOST_NAMES {
            steps.attribute(&group, COLUMN_ORDER, AttributeValue::texts(&names))?;
        }
        let mut categories = None;
        for ((column, object), encoded) in table.columns.iter().zip(&columns).zip(encoded) {
            for (name, value) in &column.attributes {
                steps.attribute(object, name, value.clone())?;
            }
            if let ColumnDatasets::Codes(_, is_ordered) = &column.shape {
                let labels = steps.labels(table, &encoded.labels, *is_ordered)?;
                let to = if is_july {
                    if categories.is_none() {
                        categories = Some(steps.make(Step::Group)?);
                    }
                    categories.clone().unwrap_or_else(|| group.clone())
                } else {
                    group.clone()
                };
                let role = if is_july { CATEGORIES[0] } else { "categories" };
                let name = format!("{}__{role}", column.name);
                steps.link(labels.clone(), Some(&to), name.into_bytes())?;
                let attribute = CATEGORIES[usize::from(!is_july)];
                steps.references(object, attribute, table.references, vec![labels], false)?;
            }
        }
        for (column, object) in table.columns.iter().zip(&columns) {
            steps.link(object.clone(), Some(&group), column.name.clone().into_bytes())?;
        }
        if let Some(categories) = categories {
            steps.link(categories, Some(&group), CATEGORIES_GROUP.into())?;
        }
        let labels: Vec<TargetObject> = table.labels.iter().filter_map(|at| columns.get(*at).cloned()).collect();
        if let Some(first) = table.labels.first().and_then(|at| table.columns.get(*at)) {
            steps.attribute(&group, INDEX, AttributeValue::utf8(&first.name))?;
            if is_july {
                steps.references(&group, INDEX_COLUMNS, table.references, labels, true)?;
            }
        }
        let rows = encoded.first().map_or(0, |encoded| encoded.rows);
        if is_july {
            steps.attribute(&group, ROWS, AttributeValue::number(rows))?;
        }
        steps.step(Step::Flush)?;
        steps.step(Step::Link { object: group, group: None, replaces, path: table.path.clone().into_bytes() })?;
        steps.step(Step::Commit { removes: false })
    }
}

impl TableWriter<'_> {
    /// Commits appended rows: first everything that readers do not count as rows yet, then the new number of rows.
    fn extended(
        self,
        existing: &Existing,
        encoded: &[Encoded],
        writing: &mut WritingClient<'_>,
        interrupt: &Interrupt,
    ) -> Result<(), Error> {
        let Self { table, group, parts, .. } = self;
        let mut steps = Steps { writing, interrupt };
        for (column, encoded) in table.columns.iter().zip(encoded) {
            let Some(known) = &column.known else { continue };
            let fresh = encoded.labels.get(known.labels.len()..).unwrap_or_default();
            if let Some(label) = fresh.iter().find(|label| label.len() > known.width) {
                let reason = format!("the label {label:?} is longer than the {} bytes that labels have", known.width);
                return Err(Error::refused(&column.name, reason));
            }
            let object = TargetObject::Path(known.path.clone());
            if !fresh.is_empty() {
                let extents = vec![encoded.labels.len() as u64];
                steps.step(Step::Extend { object: object.clone(), extents })?;
                steps.texts(&object, known.labels.len() as u64, fresh, known.width)?;
            }
        }
        // All columns of a table are given one length, even if an earlier append was cut off.
        let numbers = table.columns.iter().filter_map(|column| match &column.shape {
            ColumnDatasets::Cells(part, _) | ColumnDatasets::Codes(part, _) | ColumnDatasets::Strings(part) => {
                Some(part.number)
            }
            ColumnDatasets::Lists { .. } | ColumnDatasets::Texts { .. } => None,
        });
        let lengths: Vec<&(TargetObject, u64)> = numbers.filter_map(|number| parts.get(number)).collect();
        let longest = lengths.iter().map(|(_, length)| *length).max().unwrap_or(0);
        for (object, _) in lengths.iter().filter(|(_, length)| *length < longest) {
            steps.step(Step::Extend { object: object.clone(), extents: vec![longest] })?;
        }
        steps.step(Step::Commit { removes: false })?;
        let more = encoded.first().map_or(0, |encoded| encoded.rows);
        let rows = existing.rows.checked_add(more);
        let rows = rows.ok_or_else(|| Error::refused(&table.path, "NROWS would pass 2^64"))?;
        steps.step(Step::Begin)?;
        if let Some(generation) = existing.generation {
            steps.attribute(&group, GENERATION, AttributeValue::number(generation.wrapping_add(1)))?;
        }
        steps.attribute(&group, ROWS, AttributeValue::number(rows))?;
        steps.step(Step::Commit { removes: false })
    }
}

/// Creates the groups and datasets of columns.
struct Maker<'s, 'a, 'b> {
    steps: &'s mut Steps<'a, 'b>,
    /// The dataset of each part, by part number.
    parts: Vec<TargetObject>,
}

impl Maker<'_, '_, '_> {
    fn dataset(&mut self, part: &PlannedDataset) -> Result<TargetObject, Error> {
        let layout = NewDataset {
            element: NewElement::Of(part.element.clone()),
            extents: vec![0],
            grows: vec![true],
            chunk: vec![part.chunk.max(1)],
            compression: part.compression,
            shuffles: part.shuffles,
            fill: part.fill.clone(),
        };
        let object = self.steps.make(Step::Dataset(layout))?;
        for (name, value) in &part.attributes {
            self.steps.attribute(&object, name, AttributeValue::utf8(value))?;
        }
        if self.parts.len() <= part.number {
            self.parts.resize(part.number + 1, object.clone());
        }
        if let Some(place) = self.parts.get_mut(part.number) {
            *place = object.clone();
        }
        Ok(object)
    }

    fn group(&mut self, class: &str) -> Result<TargetObject, Error> {
        let group = self.steps.make(Step::Group)?;
        self.steps.attribute(&group, "CLASS", AttributeValue::ascii(class))?;
        if class == LIST_CLASS {
            self.steps.attribute(&group, "KIND", AttributeValue::ascii("OFFSETS"))?;
        }
        Ok(group)
    }

    /// Creates the datasets of a column, or of the items of lists.
    fn shape(&mut self, shape: &ColumnDatasets) -> Result<TargetObject, Error> {
        match shape {
            ColumnDatasets::Cells(part, _) | ColumnDatasets::Codes(part, _) | ColumnDatasets::Strings(part) => {
                self.dataset(part)
            }
            ColumnDatasets::Lists { offsets, mask, items } => {
                let group = self.group(LIST_CLASS)?;
                self.member(&group, "OFFSETS", offsets)?;
                mask.as_ref().map_or(Ok(()), |mask| self.member(&group, "MASK", mask))?;
                let items = self.shape(items)?;
                self.steps.link(items, Some(&group), b"VALUES".to_vec())?;
                Ok(group)
            }
            ColumnDatasets::Texts { offsets, mask, bytes, stands_for } => {
                let group = self.group(if stands_for.is_some() { LIST_CLASS } else { STRINGS_CLASS })?;
                if let Some(arrow_type) = stands_for {
                    self.steps.attribute(&group, ARROW_TYPE, AttributeValue::utf8(&arrow_type.name()))?;
                }
                self.member(&group, "OFFSETS", offsets)?;
                mask.as_ref().map_or(Ok(()), |mask| self.member(&group, "MASK", mask))?;
                self.member(&group, if stands_for.is_some() { "VALUES" } else { "CHARS" }, bytes)?;
                Ok(group)
            }
        }
    }

    fn member(&mut self, group: &TargetObject, name: &str, part: &PlannedDataset) -> Result<(), Error> {
        let dataset = self.dataset(part)?;
        self.steps.link(dataset, Some(group), name.into())
    }
}

impl Steps<'_, '_> {
    /// Writes labels from `first` on, each in `width` bytes.
    fn texts(&mut self, object: &TargetObject, first: u64, labels: &[Box<str>], width: usize) -> Result<(), Error> {
        let each = (LABELS / width.max(1)).max(1);
        for (at, labels) in (first..).step_by(each).zip(labels.chunks(each)) {
            let mut elements = h5::ElementPayload::default();
            for label in labels {
                elements.bytes.extend_from_slice(label.as_bytes());
                elements.bytes.resize(elements.bytes.len() + width - label.len(), 0);
            }
            self.elements(object, &[at], &[labels.len() as u64], &elements)?;
        }
        Ok(())
    }

    /// Creates the dataset of labels.
    fn labels(&mut self, table: &PlannedTable, labels: &[Box<str>], is_ordered: bool) -> Result<TargetObject, Error> {
        let width = labels.iter().map(|label| label.len()).max().unwrap_or(0).max(1);
        let element = ElementType::Text { charset: Charset::Utf8, size: width, is_terminated: false };
        let count = labels.len() as u64;
        let layout = NewDataset {
            element: NewElement::Of(element),
            extents: vec![count],
            grows: vec![true],
            chunk: vec![count.clamp(64, ((LABELS / width) as u64).clamp(64, 65_536))],
            // libhdf5 itself compresses these.
            compression: if table.is_compressed { Compression::Deflate(6) } else { Compression::None },
            shuffles: false,
            fill: FillSetting::Unset,
        };
        let object = self.make(Step::Dataset(layout))?;
        self.texts(&object, 0, labels, width)?;
        self.attribute(&object, "ordered", boolean::value(is_ordered))?;
        if table.revision == Revision::April {
            self.attribute(&object, "encoding-type", AttributeValue::utf8("categorical"))?;
        }
        Ok(object)
    }
}

/// Whether a name can be a component of an HDF5 path.
pub(super) fn is_name(name: &str) -> bool {
    !name.is_empty() && name != "." && CString::new(name).is_ok()
}
