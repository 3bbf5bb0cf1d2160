//! Strings as they are stored, without their padding: for the text of a scalar string, of which no encoding is assumed.

use std::sync::Arc;

use arrow_array::builder::LargeBinaryBuilder;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;

use super::{Dataset, DatasetRows};
use crate::catalogue::Class;
use crate::source::Interrupt;
use crate::store::decode::variable_padding;
use crate::store::{Error, RowRange, Rows};

/// The bytes of each string. What is missing is missing here too.
#[derive(Debug)]
pub struct VerbatimStrings {
    dataset: Arc<Dataset>,
    shown: Arc<DatasetRows>,
}

impl VerbatimStrings {
    /// The strings of `dataset`, which `shown` shows as text.
    pub fn new(dataset: Arc<Dataset>, shown: Arc<DatasetRows>) -> Self {
        Self { dataset, shown }
    }
}

impl Rows for VerbatimStrings {
    fn len(&self) -> u64 {
        self.shown.len()
    }

    fn data_type(&self) -> &DataType {
        &DataType::LargeBinary
    }

    fn nullable(&self) -> bool {
        self.shown.nullable()
    }

    fn array(&self, range: RowRange, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
        // It also refuses what is too large, and what leads nowhere.
        let shown = self.shown.array(range.clone(), interrupt)?;
        let elements = self.dataset.read_elements(range.clone(), interrupt)?;
        let width = usize::try_from(self.dataset.element_size()).unwrap_or(usize::MAX).max(1);
        let mut cursor = elements.heap.cursor();
        let mut strings = LargeBinaryBuilder::with_capacity(shown.len(), elements.bytes.len());
        for (row, element) in elements.bytes.chunks_exact(width).enumerate() {
            match &self.dataset.description().datatype.class {
                _ if shown.is_null(row) => strings.append_null(),
                Class::FixedString { padding, .. } => strings.append_value(padding.strip(element)),
                Class::VariableString { padding, .. } => {
                    let row = range.start.saturating_add(row as u64);
                    let text = cursor.resolve(element, 1).map_err(|cause| cause.at(self.dataset.path(), row))?;
                    strings.append_value(variable_padding(*padding).strip(text));
                }
                _ => strings.append_value(element),
            }
        }
        Ok(Arc::new(strings.finish()))
    }

    fn stored_width(&self) -> Option<u64> {
        None
    }

    fn append_stored(&self, _: u64, _: usize, _: &mut Vec<u8>, _: &Interrupt) -> Result<(), Error> {
        Err(Error::Unsupported {
            path: self.dataset.path().to_owned(),
            reason: "strings without their padding have no fixed width".into(),
        })
    }

    fn natural_rows(&self) -> Option<u64> {
        self.shown.natural_rows()
    }
}
