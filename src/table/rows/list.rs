//! A list column: each row a slice of a values member (HEP001 July, "List columns").

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, LargeListArray, new_empty_array};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field};

use super::offsets::Level;
use crate::source::Interrupt;
use crate::store::{Error, Hints, RowRange, Rows, Tally};

/// Most values read at once for one block of rows; a hostile file can make one list span them all.
const MOST_VALUES: u64 = 1 << 27;

/// Lists of any depth: the values may be lists themselves.
#[derive(Debug)]
pub struct ListRows {
    level: Level,
    values: Arc<dyn Rows>,
    data_type: DataType,
}

impl ListRows {
    /// At most `len` lists over `values`. `offsets` must be integers, `mask` booleans.
    pub fn new(
        path: String,
        offsets: Arc<dyn Rows>,
        values: Arc<dyn Rows>,
        mask: Option<Arc<dyn Rows>>,
        len: u64,
        tally: Arc<Tally>,
    ) -> Self {
        let data_type = DataType::LargeList(Arc::new(Field::new_list_field(values.data_type().clone(), true)));
        Self { level: Level::new(path, offsets, mask, len, tally), values, data_type }
    }

    fn read(&self, start: u64, end: u64, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
        if end - start > MOST_VALUES {
            return Err(Error::TooLarge {
                path: self.level.path.clone(),
                what: format!("a block of lists with {} values", end - start),
                bytes: end - start,
                limit: MOST_VALUES,
                option: "values at once",
            });
        }
        self.values.array(start..end, interrupt)
    }
}

impl Rows for ListRows {
    fn len(&self) -> u64 {
        self.level.len
    }

    fn data_type(&self) -> &DataType {
        &self.data_type
    }

    fn examine(&self, interrupt: &Interrupt) -> Result<(), Error> {
        self.level.examine(interrupt)?;
        self.values.examine(interrupt)
    }

    fn nullable(&self) -> bool {
        // By the mask, or because offsets are invalid.
        true
    }

    fn hints(&self) -> Hints {
        // Any value of a list may be missing.
        let items = Hints { nullable: true, ..self.values.hints() };
        Hints { items: Some(Box::new(items)), nullable: true, ..Hints::default() }
    }

    fn array(&self, range: RowRange, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
        let entries = self.level.entries(range, self.values.len(), interrupt)?;
        let values = match entries.contiguous() {
            Some((start, end)) => self.read(start, end, interrupt)?,
            None => {
                // Offsets that jump (a broken list between sound ones): gather list by list.
                let mut pieces = Vec::new();
                let mut total = 0u64;
                for &(start, end) in entries.spans.iter().filter(|(start, end)| start < end) {
                    total = total.saturating_add(end - start);
                    if total > MOST_VALUES {
                        self.read(0, total, interrupt)?;
                    }
                    interrupt.check()?;
                    pieces.push(self.read(start, end, interrupt)?);
                }
                let pieces: Vec<&dyn Array> = pieces.iter().map(AsRef::as_ref).collect();
                arrow_select::concat::concat(&pieces).map_err(|error| self.arrow_error(&error))?
            }
        };
        let lengths = entries.spans.iter().map(|(start, end)| (end - start) as usize);
        let DataType::LargeList(field) = &self.data_type else { return Ok(new_empty_array(&self.data_type)) };
        // An enumeration's dictionary type is fixed, so values always have the declared type.
        let list = LargeListArray::try_new(field.clone(), OffsetBuffer::from_lengths(lengths), values, entries.nulls)
            .map_err(|error| self.arrow_error(&error))?;
        Ok(Arc::new(list))
    }

    fn stored_width(&self) -> Option<u64> {
        None
    }

    fn append_stored(&self, _: u64, _: usize, _: &mut Vec<u8>, _: &Interrupt) -> Result<(), Error> {
        Err(Error::Unsupported { path: self.level.path.clone(), reason: "a list column has no fixed width".into() })
    }

    fn natural_rows(&self) -> Option<u64> {
        self.level.offsets.natural_rows()
    }
}

impl ListRows {
    fn arrow_error(&self, error: &arrow_schema::ArrowError) -> Error {
        Error::Unsupported { path: self.level.path.clone(), reason: error.to_string() }
    }
}
