//! Conversions of integers to instants.

use super::Unreadable;
use arrow_schema::{DataType, TimeUnit};

use crate::calendar::{self, DAY, Instant, SECOND};
use crate::store::statistics::{Scalar, Summary};

/// The units in which instants can be shown, the coarsest first, with their lengths in attoseconds.
const UNITS: [(TimeUnit, i128); 4] = [
    (TimeUnit::Second, SECOND),
    (TimeUnit::Millisecond, SECOND / 1_000),
    (TimeUnit::Microsecond, SECOND / 1_000_000),
    (TimeUnit::Nanosecond, SECOND / 1_000_000_000),
];

/// A year beyond the range of 64 bits of seconds, in either direction.
const FARTHEST: i64 = 999_999_999_999;

/// The conversion of a column's integers to instants: stored × `factor` + `offset` units since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    unit: TimeUnit,
    /// Units of the instants in a unit of the stored integers, at least 1.
    factor: i64,
    offset: i64,
    /// The least and the greatest stored value whose instant fits; values beyond are shown as null.
    bounds: [i128; 2],
    /// Whether the column's type has values outside of these bounds.
    is_partial: bool,
    /// The time zone of the Arrow type; instants count from 1970 in UTC in any zone.
    zone: Option<Zone>,
}

/// Arrow's name for a time zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Zone {
    name: [u8; Zone::LONGEST],
    length: usize,
}

impl Zone {
    /// Longest name in bytes; IANA's names have at most 32.
    const LONGEST: usize = 40;

    /// The zone of this name, or UTC if the name is longer than [`Zone::LONGEST`].
    fn new(name: &str) -> Self {
        let name = if name.len() > Self::LONGEST { "UTC" } else { name };
        let mut zone = Self { name: [0; Self::LONGEST], length: name.len() };
        zone.name[..name.len()].copy_from_slice(name.as_bytes());
        zone
    }

    fn name(&self) -> &str {
        std::str::from_utf8(&self.name[..self.length]).unwrap_or("UTC")
    }
}

impl Times {
    /// Instants of `step` attoseconds per unit of a column of `stored` integers, counted from `epoch`, in the coarsest
    /// exact unit of seconds, milli-, micro- and nanoseconds.
    ///
    /// # Errors
    /// Why these integers cannot be shown as instants.
    pub fn new(step: i128, epoch: Instant, stored: &DataType) -> Result<Self, Unreadable> {
        let range = range(stored).ok_or_else(|| format!("values of {stored} are no integers"))?;
        let finest = UNITS.iter().find(|(_, unit)| epoch.attoseconds % unit == 0 && step % unit == 0);
        let finest = finest.filter(|_| epoch.is_exact && step > 0);
        let (unit, attoseconds) = *finest.ok_or("it is finer than nanoseconds")?;
        let far = |_| "it is too far from 1970".to_owned();
        let factor = i64::try_from(step / attoseconds).map_err(far)?;
        let offset = i64::try_from(epoch.attoseconds / attoseconds).map_err(far)?;
        // Parquet has no seconds: instants in seconds must also fit as milliseconds.
        let most = i128::from(i64::MAX) / if unit == TimeUnit::Second { 1_000 } else { 1 };
        let least = -most - i128::from(unit != TimeUnit::Second);
        let (wide, from) = (i128::from(factor), i128::from(offset));
        let fitting = [-(from - least).div_euclid(wide), (most - from).div_euclid(wide)];
        let bounds = [fitting[0].max(range[0]), fitting[1].min(range[1])];
        Ok(Self { unit, factor, offset, bounds, is_partial: bounds != range, zone: Some(Zone::new("UTC")) })
    }

    /// The conversion of 64-bit integers that count this unit from 1970.
    pub fn counts(unit: TimeUnit, zone: Option<&str>) -> Option<Self> {
        let step = UNITS.iter().find(|(known, _)| *known == unit)?.1;
        let epoch = Instant { attoseconds: 0, is_exact: true };
        Some(Self::new(step, epoch, &DataType::Int64).ok()?.in_zone(zone))
    }

    /// The same instants in this time zone, or in no zone.
    pub fn in_zone(self, zone: Option<&str>) -> Self {
        Self { zone: zone.map(Zone::new), ..self }
    }

    /// The same instants in a unit that Parquet has. Nanoseconds lose their zone: DuckDB 2.0 reads nanoseconds with a
    /// zone as a type that `year()` and similar functions reject.
    pub fn of_parquet(self) -> Self {
        match self.unit {
            // An overflow that wraps here is undone later: within the bounds, an instant fits.
            TimeUnit::Second => Self {
                unit: TimeUnit::Millisecond,
                factor: self.factor.wrapping_mul(1_000),
                offset: self.offset.wrapping_mul(1_000),
                ..self
            },
            TimeUnit::Nanosecond => self.in_zone(None),
            _ => self,
        }
    }

    /// The Arrow type of the instants.
    pub fn data_type(&self) -> DataType {
        DataType::Timestamp(self.unit, self.zone.as_ref().map(|zone| zone.name().into()))
    }

    /// The unit of instants.
    pub fn unit(&self) -> TimeUnit {
        self.unit
    }

    /// Whether instants equal the stored integers, if these have 64 bits.
    pub fn are_stored(&self) -> bool {
        (self.factor, self.offset, self.is_partial) == (1, 0, false)
    }

    /// The least and the greatest stored value with an instant. `None`: all values have one. Values outside are null.
    pub fn bounds(&self) -> Option<[i128; 2]> {
        self.is_partial.then_some(self.bounds)
    }

    /// The instant of a stored value.
    #[inline]
    pub fn shown(&self, stored: i64) -> Option<i64> {
        let is_within = self.bounds[0] <= i128::from(stored) && i128::from(stored) <= self.bounds[1];
        is_within.then(|| self.unchecked(stored))
    }

    /// The instant of a stored value within the bounds; arbitrary for others.
    #[inline]
    pub fn unchecked(&self, stored: i64) -> i64 {
        stored.wrapping_mul(self.factor).wrapping_add(self.offset)
    }

    /// The greatest stored value at or before an instant, and whether it is exactly that instant.
    pub fn place(&self, instant: Instant) -> (i128, bool) {
        let unit = UNITS.iter().find(|(unit, _)| *unit == self.unit).map_or(SECOND, |(_, attoseconds)| *attoseconds);
        // Both are far below 2^127: 64 bits of seconds, and years of twelve digits.
        let since = instant.attoseconds.saturating_sub(i128::from(self.offset).saturating_mul(unit));
        let step = i128::from(self.factor).saturating_mul(unit).max(1);
        (since.div_euclid(step), since.rem_euclid(step) == 0 && instant.is_exact)
    }

    /// The least stored value at or after the beginning of a year in UTC. Years beyond all values give the ends of the
    /// 128-bit range.
    pub fn begin_of_year(&self, year: i128) -> i128 {
        let beyond = if year < 0 { i128::MIN } else { i128::MAX };
        let near = i64::try_from(year).ok().filter(|year| (-FARTHEST..=FARTHEST).contains(year));
        let Some(day) = near.and_then(|year| calendar::day(year, 1, 1)) else { return beyond };
        let attoseconds = i128::from(day) * i128::from(DAY) * SECOND;
        let (place, is_there) = self.place(Instant { attoseconds, is_exact: true });
        if is_there { place } else { place.saturating_add(1) }
    }

    /// The summary of instants, given that of their stored values. `None`: some values may have no instant.
    pub fn summary(&self, stored: Summary) -> Option<Summary> {
        let [min, max] = [stored.min, stored.max].map(|bound| match bound {
            None => Some(None),
            Some(Scalar::Int(value)) => self.shown(value).map(|value| Some(Scalar::Int(value))),
            Some(Scalar::UInt(value)) => {
                i64::try_from(value).ok().and_then(|value| self.shown(value)).map(|value| Some(Scalar::Int(value)))
            }
            Some(_) => None,
        });
        let (min, max) = (min?, max?);
        Some(Summary { min, max, ..stored })
    }
}

/// The least and the greatest integer of a type. `None`: not an integer type.
fn range(data_type: &DataType) -> Option<[i128; 2]> {
    let bits = data_type.primitive_width().filter(|_| data_type.is_integer())? * 8;
    Some(if data_type.is_signed_integer() { [-(1 << (bits - 1)), (1 << (bits - 1)) - 1] } else { [0, (1 << bits) - 1] })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calendar::instant;

    fn times(step: i128, epoch: &str, stored: DataType) -> Times {
        Times::new(step, instant(epoch).unwrap(), &stored).unwrap()
    }

    #[test]
    fn the_coarsest_exact_unit_is_chosen() {
        let day = 86_400 * SECOND;
        let days = times(day, "2000-01-01", DataType::Int32);
        assert_eq!((days.unit, days.factor, days.offset), (TimeUnit::Second, 86_400, 946_684_800));
        assert_eq!((days.bounds(), days.shown(1)), (None, Some(946_771_200)));
        assert_eq!(times(SECOND, "2000-01-01T00:00:00.5", DataType::Int32).unit, TimeUnit::Millisecond);
        assert_eq!(times(SECOND / 1000, "2000-01-01T00:00:00.000000007", DataType::Int8).unit, TimeUnit::Nanosecond);
        let epoch = instant("2000-01-01T00:00:00.0000000001").unwrap();
        assert!(Times::new(SECOND, epoch, &DataType::Int32).is_err());
        assert!(times(SECOND / 1_000_000_000, "1970-01-01", DataType::Int64).are_stored());
        assert!(!times(SECOND, "1970-01-01", DataType::Int64).are_stored());
    }

    /// Expected values: Python's integers.
    #[test]
    fn what_passes_64_bits_has_no_instant() {
        let seconds = times(SECOND, "2000-01-01", DataType::Int64);
        let [least, greatest] = seconds.bounds().unwrap();
        assert_eq!([least, greatest], [-9_223_372_983_539_575, 9_223_371_090_169_975]);
        let parquet = seconds.of_parquet();
        for stored in [least, greatest] {
            assert!(seconds.shown(stored as i64).is_some() && parquet.shown(stored as i64).is_some());
        }
        assert_eq!(seconds.shown(greatest as i64 + 1), None);
        assert_eq!(seconds.shown(i64::MIN), None);
        let unsigned = times(SECOND / 1_000_000_000, "1970-01-01", DataType::UInt64);
        assert_eq!(unsigned.bounds(), Some([0, i128::from(i64::MAX)]));
        assert!(!unsigned.are_stored());
    }

    #[test]
    fn literals_lie_where_they_lie() {
        let days = times(86_400 * SECOND, "2000-01-01", DataType::Int32);
        assert_eq!(days.place(instant("2000-01-03").unwrap()), (2, true));
        assert_eq!(days.place(instant("2000-01-03T00:00:00.0000000000000000000001").unwrap()), (2, false));
        assert_eq!(days.place(instant("1999-12-31T23:00").unwrap()), (-1, false));
        let ns = times(SECOND / 1_000_000_000, "1970-01-01", DataType::Int64);
        assert_eq!(ns.place(instant("1969-12-31T23:59:59.9999999999").unwrap()), (-1, false));
    }
}
