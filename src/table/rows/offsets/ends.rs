//! Offsets of lists from stored ends.

use std::sync::Arc;

use arrow_array::{ArrayRef, UInt64Array};
use arrow_schema::DataType;

use crate::source::Interrupt;
use crate::store::decode::widen;
use crate::store::{Alike, Error, Facts, RowRange, Rows};

/// A zero, followed by the end of each list.
#[derive(Debug)]
pub struct EndRows {
    ends: Arc<dyn Rows>,
    path: String,
    facts: Facts,
}

impl EndRows {
    /// Puts a zero before `ends`.
    ///
    /// # Errors
    /// The type of `ends`, if they are not integers.
    pub fn new(path: String, ends: Arc<dyn Rows>) -> Result<Self, String> {
        match ends.data_type() {
            integers if integers.is_integer() => {
                let facts = Facts {
                    nullable: ends.nullable(),
                    natural_rows: ends.natural_rows(),
                    alike: Alike::new({
                        let ends = ends.clone();
                        // The zero is like no other row.
                        move |row, interrupt| match row.checked_sub(1) {
                            Some(at) => Ok(ends.alike_until(at, interrupt)?.saturating_add(1)),
                            None => Ok(row),
                        }
                    }),
                    containers: ends.facts().containers.clone(),
                    ..Facts::new(ends.len().saturating_add(1), DataType::UInt64)
                };
                Ok(Self { ends, path, facts })
            }
            other => Err(format!("ends of type {other}")),
        }
    }

    fn failed(&self, reason: &str) -> Error {
        Error::unsupported(&self.path, reason)
    }
}

impl Rows for EndRows {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn array(&self, range: RowRange, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
        let stored = self.ends.array(range.start.saturating_sub(1)..range.end.saturating_sub(1), interrupt)?;
        let ends = widen::unsigned(&stored).ok_or_else(|| self.failed("ends that are no integers"))?;
        if range.start > 0 || range.is_empty() {
            return Ok(Arc::new(ends));
        }
        Ok(Arc::new(std::iter::once(Some(0)).chain(&ends).collect::<UInt64Array>()))
    }
}
