//! Columns read as another type than the file's (`--type`).

use arrow_array::cast::AsArray;
use arrow_array::timezone::Tz;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_cast::display::array_value_to_string;
use arrow_cast::{CastOptions, can_cast_types, cast, cast_with_options};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};

use super::{Batches, Input};
use crate::producer::table::Profile;
use crate::query::one_zero;
use crate::table::did_you_mean;

/// Names of types.
const KNOWN: &str = "int8 to int64, uint8 to uint64, float16 to float64, bool, text, date, timestamp[UNIT], \
                     timestamp[UNIT,ZONE], time[UNIT], decimal(DIGITS,SCALE); units are s, ms, us and ns";

/// A column, and the type to read it as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cli) struct Typed {
    column: String,
    data_type: DataType,
}

impl Typed {
    /// Parses `COLUMN=TYPE`.
    pub fn parse(text: &str) -> Result<Self, String> {
        // Names and zones may contain an equals sign.
        let mut pairs = text.match_indices('=').map(|(at, _)| (&text[..at], &text[at + 1..]));
        let found = pairs.find_map(|(column, name)| Some((column, data_type(name)?)));
        let (column, data_type) = found.ok_or_else(|| format!("it is COLUMN=TYPE, and types are {KNOWN}"))?;
        Ok(Self { column: column.to_owned(), data_type })
    }

    /// Whether the type is for this column.
    pub fn is_of(&self, column: &str) -> bool {
        self.column == column
    }
}

/// A type by its name; `None`: unknown name.
fn data_type(name: &str) -> Option<DataType> {
    let (name, parameters) = match name.split_once(['[', '(']) {
        Some((name, rest)) => (name, rest.strip_suffix([']', ')'])?),
        None => (name, ""),
    };
    let (first, second) = parameters.split_once(',').map_or((parameters, None), |(a, b)| (a, Some(b)));
    let (first, second) = (first.trim(), second.map(str::trim));
    let unit = || match first {
        "s" => Some(TimeUnit::Second),
        "ms" => Some(TimeUnit::Millisecond),
        "us" | "" => Some(TimeUnit::Microsecond),
        "ns" => Some(TimeUnit::Nanosecond),
        _ => None,
    };
    Some(match (name, parameters, second) {
        ("int8", "", _) => DataType::Int8,
        ("int16", "", _) => DataType::Int16,
        ("int32", "", _) => DataType::Int32,
        ("int64", "", _) => DataType::Int64,
        ("uint8", "", _) => DataType::UInt8,
        ("uint16", "", _) => DataType::UInt16,
        ("uint32", "", _) => DataType::UInt32,
        ("uint64", "", _) => DataType::UInt64,
        ("float16", "", _) => DataType::Float16,
        ("float32", "", _) => DataType::Float32,
        ("float64", "", _) => DataType::Float64,
        ("bool", "", _) => DataType::Boolean,
        ("text" | "string" | "utf8", "", _) => DataType::Utf8,
        ("date", "", _) => DataType::Date32,
        ("timestamp", _, zone) => {
            let zone = zone.map(|zone| zone.strip_prefix("tz=").unwrap_or(zone));
            let is_known = zone.is_none_or(|zone| zone.parse::<Tz>().is_ok());
            is_known.then_some(DataType::Timestamp(unit()?, zone.map(Into::into)))?
        }
        ("time", _, None) => match unit()? {
            unit @ (TimeUnit::Second | TimeUnit::Millisecond) => DataType::Time32(unit),
            unit => DataType::Time64(unit),
        },
        ("decimal", _, Some(scale)) => {
            let (digits, scale): (u8, i8) = (first.parse().ok()?, scale.parse().ok()?);
            let is_one = (1..=38).contains(&digits) && (0..=i16::from(digits)).contains(&i16::from(scale));
            is_one.then_some(DataType::Decimal128(digits, scale))?
        }
        _ => return None,
    })
}

/// An input whose columns are cast as they are read.
pub(super) struct Cast {
    input: Box<dyn Input>,
    schema: SchemaRef,
}

impl Cast {
    /// Wraps an input; returns the input itself if no column is read as another type.
    ///
    /// # Errors
    /// If there is no such column, or no cast to its type.
    pub fn of(input: Box<dyn Input>, types: &[Typed]) -> Result<Box<dyn Input>, String> {
        let mut fields: Vec<Field> = input.schema().fields().iter().map(|field| field.as_ref().clone()).collect();
        for Typed { column, data_type } in types {
            let Some(field) = fields.iter_mut().find(|field| field.name() == column) else {
                let names = input.schema().fields().iter().map(|field| field.name());
                return Err(format!("--type {column}: there is no such column{}", did_you_mean(column, names)));
            };
            field.set_data_type(data_type.clone());
        }
        let schema: SchemaRef = Schema::new_with_metadata(fields, input.schema().metadata().clone()).into();
        for (from, to) in input.schema().fields().iter().zip(schema.fields()) {
            let (name, from, to) = (to.name(), from.data_type(), to.data_type());
            if !can_cast_types(from, to) {
                return Err(format!("--type {name}: values of {from} cannot become {to}"));
            }
        }
        Ok(if schema == *input.schema() { input } else { Box::new(Self { input, schema }) })
    }

    fn is_cast(&self, column: usize) -> bool {
        self.schema.field(column).data_type() != self.input.schema().field(column).data_type()
    }
}

impl Input for Cast {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn rows(&self) -> Option<u64> {
        self.input.rows()
    }

    fn counted(&self) -> Option<u64> {
        self.input.counted()
    }

    fn is_columnar(&self) -> bool {
        self.input.is_columnar()
    }

    fn believe(&self, column: usize, profile: &mut Profile) -> bool {
        !self.is_cast(column) && self.input.believe(column, profile)
    }

    fn scan(&self, columns: &[usize]) -> Result<Batches, ArrowError> {
        let schema = self.schema.project(columns)?;
        let mut rows = 0;
        Ok(Box::new(self.input.scan(columns)?.map(move |batch| {
            let batch = batch?;
            let arrays = batch.columns().iter().zip(schema.fields()).map(|(array, field)| match field.data_type() {
                same if same == array.data_type() => Ok(array.clone()),
                to => checked(array, to).map_err(|(row, why)| {
                    let row = rows + row;
                    ArrowError::CastError(format!("column {:?}, row {row}: {why}", field.name()))
                }),
            });
            let arrays = arrays.collect::<Result<Vec<_>, _>>()?;
            rows += batch.num_rows();
            let fields = schema.fields().iter().zip(&arrays);
            let fields = fields
                .map(|(field, array)| Field::new(field.name(), array.data_type().clone(), true))
                .collect::<Vec<_>>();
            RecordBatch::try_new(Schema::new(fields).into(), arrays)
        })))
    }
}

/// Casts values, all of which must fit; otherwise returns the first row that does not, and the reason.
fn checked(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, (usize, String)> {
    let from = array.data_type();
    let told = |row: usize| {
        let value = array_value_to_string(array, row).unwrap_or_default();
        (row, format!("{value:?} is no {to}"))
    };
    let options = CastOptions { safe: false, ..CastOptions::default() };
    let done = cast_with_options(array, to, &options).map_err(|error| {
        let forced = cast(array, to).ok();
        let is_lost = |row: &usize| array.is_valid(*row) && forced.as_ref().is_some_and(|forced| forced.is_null(*row));
        (0..array.len()).find(is_lost).map_or_else(|| (0, error.to_string()), told)
    })?;
    // A cast would silently drop fractions, digits, or parts of a second.
    if let (DataType::Utf8, Some(most)) = (from, digits(to)) {
        let texts = array.as_string::<i32>();
        let is_longer = |text: Option<&str>| text.is_some_and(|text| digits_of(text) > most);
        return texts.iter().position(is_longer).map_or(Ok(done), |row| Err(told(row)));
    }
    let is_exact = |kind: &DataType| kind.is_integer() || kind.is_decimal();
    let is_clock = |kind: &DataType| matches!(kind, DataType::Time32(_) | DataType::Time64(_));
    let may_lose = from.is_numeric() && is_exact(to)
        || matches!((from, to), (DataType::Timestamp(..), DataType::Timestamp(..)))
        || is_clock(from) && is_clock(to);
    if may_lose {
        let (whole, back) = (one_zero(array.clone()), cast(&done, from).map_err(|error| (0, error.to_string()))?);
        if whole.as_ref() != back.as_ref()
            && let Some(row) = (0..array.len()).find(|row| whole.slice(*row, 1) != back.slice(*row, 1))
        {
            return Err(told(row));
        }
    }
    Ok(done)
}

/// Digits after the point that a type can hold, if it has a limit.
fn digits(data_type: &DataType) -> Option<i64> {
    match data_type {
        DataType::Decimal128(_, scale) => Some((*scale).into()),
        DataType::Timestamp(unit, _) | DataType::Time32(unit) | DataType::Time64(unit) => Some(match unit {
            TimeUnit::Second => 0,
            TimeUnit::Millisecond => 3,
            TimeUnit::Microsecond => 6,
            TimeUnit::Nanosecond => 9,
        }),
        _ => None,
    }
}

/// Digits after the point in a text, without trailing zeros: for `1.250e-2`, 4.
fn digits_of(text: &str) -> i64 {
    let fraction = text.split_once('.').map_or("", |(_, rest)| rest);
    let end = fraction.find(|character: char| !character.is_ascii_digit()).unwrap_or(fraction.len());
    let digits = fraction[..end].trim_end_matches('0').len() as i64;
    let exponent = text.rsplit_once(['e', 'E']).and_then(|(_, exponent)| exponent.parse::<i32>().ok());
    digits - i64::from(exponent.unwrap_or(0))
}
