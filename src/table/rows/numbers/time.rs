//! A column of instants: integers that count a unit of time from an epoch.

use std::sync::Arc;

use arrow_array::types::{
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};
use arrow_array::{Array, ArrayRef, Int64Array};
use arrow_buffer::Buffer;
use arrow_schema::TimeUnit;

use crate::source::Interrupt;
use crate::store::decode::{Oddities, Oddity, widen};
use crate::store::statistics::{self, Summary};
use crate::store::{Coded, Error, Facts, Hints, RowRange, Rows, StoredBytes, Summaries, Tally};
use crate::table::times::Times;

/// Integers shown as instants. An instant that does not fit into 64 bits of its unit is null. Stored bytes stay those
/// of the integers.
#[derive(Debug)]
pub struct TimeRows {
    numbers: Arc<dyn Rows>,
    times: Times,
    path: String,
    facts: Facts,
    tally: Arc<Tally>,
}

impl TimeRows {
    /// `numbers` must have the integer type that `times` was made for; `tally` counts numbers without an instant.
    pub fn new(path: String, numbers: Arc<dyn Rows>, times: Times, tally: Arc<Tally>) -> Self {
        let inner = numbers.facts();
        let hints = inner.hints.clone();
        let is_wide = inner.stored.width == Some(8);
        let facts = Facts {
            data_type: times.data_type(),
            nullable: inner.nullable || times.bounds().is_some(),
            hints: Hints { stored: hints.stored && is_wide && times.are_stored(), ..hints },
            codes: 0,
            outline_tells_nulls: false,
            fields_lie_apart: false,
            ..inner.clone()
        };
        Self { numbers, times, path, facts, tally }
    }

    fn instants(&self, integers: &Int64Array) -> Int64Array {
        if self.times.are_stored() {
            integers.clone()
        } else if self.times.bounds().is_none() {
            integers.unary(|stored| self.times.unchecked(stored))
        } else {
            integers.unary_opt(|stored| self.times.shown(stored))
        }
    }

    fn timestamps(&self, instants: &Int64Array) -> ArrayRef {
        macro_rules! of {
            ($unit:ty) => {
                Arc::new(instants.reinterpret_cast::<$unit>().with_data_type(self.facts.data_type.clone()))
            };
        }
        match self.times.unit() {
            TimeUnit::Second => of!(TimestampSecondType),
            TimeUnit::Millisecond => of!(TimestampMillisecondType),
            TimeUnit::Microsecond => of!(TimestampMicrosecondType),
            TimeUnit::Nanosecond => of!(TimestampNanosecondType),
        }
    }
}

impl Rows for TimeRows {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn array(&self, range: RowRange, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
        let stored = self.numbers.array(range.clone(), interrupt)?;
        let integers = widen::signed(stored.as_ref())
            .ok_or_else(|| Error::unsupported(&self.path, format!("times of type {}", stored.data_type())))?;
        let instants = self.instants(&integers);
        if instants.null_count() > stored.null_count() {
            let mut odd = Oddities::new();
            odd.add_where(Oddity::TimeOutOfRange, instants.len(), |row| stored.is_valid(row) && instants.is_null(row));
            self.tally.add(range, &odd);
        }
        Ok(self.timestamps(&instants))
    }

    fn bytes(&self) -> Option<&dyn StoredBytes> {
        self.numbers.bytes()
    }

    fn coded(&self) -> Option<&dyn Coded> {
        Some(self)
    }

    fn known(&self) -> Option<&dyn Summaries> {
        Some(self)
    }
}

impl Coded for TimeRows {
    fn values(&self, bytes: Buffer) -> Option<ArrayRef> {
        let stored = self.numbers.coded()?.values(bytes)?;
        let instants = self.instants(&widen::signed(stored.as_ref())?);
        // Numbers without an instant are counted when arrays are read.
        (instants.null_count() == stored.null_count()).then(|| self.timestamps(&instants))
    }

    fn sound_summary_of(&self, values: &dyn Array, _: &Interrupt) -> Option<Summary> {
        statistics::summary(values)
    }
}

impl Summaries for TimeRows {
    /// Summarises the stored integers: statistics of times are kept as integers.
    fn summary(&self, range: RowRange, interrupt: &Interrupt) -> Result<Option<Summary>, Error> {
        self.numbers.known().map_or(Ok(None), |known| known.summary(range, interrupt))
    }
}
