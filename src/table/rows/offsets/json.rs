//! Values of nested types kept as JSON: structs with nullable fields, with times, with lists.

use std::collections::HashSet;
use std::fmt::Write;
use std::sync::Arc;

use arrow_array::builder::LargeStringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Float16Type, Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, LargeStringArray, PrimitiveArray, new_empty_array};
use arrow_json::ReaderBuilder;
use arrow_json::writer::{Encoder, EncoderFactory, EncoderOptions, NullableEncoder, make_encoder};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Fields, TimeUnit};
use bstr::ByteSlice;

use super::StringRows;
use crate::source::Interrupt;
use crate::store::{Error, Facts, Fitting, Hints, RowRange, Rows, fixed_width};

/// Beginning of the value of the attribute `arrow_type` for a column of JSON.
const NAME: &str = "json ";

/// Deepest nesting of a type.
const MOST_LEVELS: usize = 32;

/// Most bytes of a value without content.
const WIDEST: u64 = 64 << 10;

/// Most bytes that a byte of JSON becomes, in the parser and as a number.
const EXPANSION: u64 = 16;

/// Most characters of a value to show in a message.
const SHOWN: usize = 200;

/// Most bytes that the JSON of a block of rows may become: an item `{}` may have room for many fields.
const MOST: u64 = 1 << 30;

/// A nested type whose values are kept as JSON, in the form of [`NestedJson::texts`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NestedJson {
    field: FieldRef,
}

impl NestedJson {
    /// The JSON form of values of this type, which it may simplify: text and lists get 64-bit offsets, labels become
    /// text, seconds become milliseconds. `None`: JSON has no form for the type.
    pub fn of(data_type: &DataType) -> Option<Self> {
        let json = Self::with(simple(data_type)?)?;
        // A reader of the file must find the same type.
        (Self::named(&json.name()).as_ref() == Some(&json)).then_some(json)
    }

    /// The form that a value of the attribute `arrow_type` names: `json Struct("a": Int32, …)`, in the notation of
    /// arrow-rs. `None`: it names no such form.
    pub fn named(name: &str) -> Option<Self> {
        let name = name.strip_prefix(NAME)?;
        // The parser recurses at each parenthesis.
        if name.bytes().filter(|byte| *byte == b'(').count() > MOST_LEVELS {
            return None;
        }
        Self::with(name.parse().ok()?).filter(|json| simple(json.data_type()).as_ref() == Some(json.data_type()))
    }

    fn with(data_type: DataType) -> Option<Self> {
        let is_kept = data_type.is_nested() && fixed_width(&data_type) <= WIDEST;
        is_kept.then(|| Self { field: Arc::new(Field::new("value", data_type, true)) })
    }

    /// The value of the attribute `arrow_type` that names this form; [`NestedJson::named`] reads it.
    pub fn name(&self) -> String {
        format!("{NAME}{}", self.data_type())
    }

    /// The displayed type.
    pub fn data_type(&self) -> &DataType {
        self.field.data_type()
    }

    /// The values as JSON. NaN and infinities become texts, a null stays null.
    ///
    /// # Errors
    /// A value that would come back differently.
    pub fn texts(&self, array: &ArrayRef) -> Result<LargeStringArray, String> {
        let array = arrow_cast::cast(array, self.data_type()).map_err(|error| error.to_string())?;
        let options = EncoderOptions::default().with_encoder_factory(Arc::new(Floats));
        let mut encoder = make_encoder(&self.field, array.as_ref(), &options).map_err(|error| error.to_string())?;
        let mut texts = LargeStringBuilder::new();
        let mut text = Vec::new();
        for row in 0..array.len() {
            if array.is_null(row) {
                texts.append_null();
                continue;
            }
            text.clear();
            encoder.encode(row, &mut text);
            texts.append_value(text.to_str().map_err(|error| error.to_string())?);
        }
        drop(encoder);
        let texts = texts.finish();
        let back = self.values(&texts)?;
        if back.to_data() == array.to_data() {
            return Ok(texts);
        }
        let changed = (0..array.len()).find(|row| back.slice(*row, 1) != array.slice(*row, 1)).unwrap_or(0);
        let text: String = texts.value(changed).chars().take(SHOWN).collect();
        Err(format!("a value comes back from JSON as another one: {text}"))
    }

    /// Most bytes that the values take.
    fn weight(&self, texts: &LargeStringArray) -> u64 {
        let ends = texts.value_offsets();
        let used = ends.first().zip(ends.last()).and_then(|(first, last)| {
            texts.value_data().get(usize::try_from(*first).ok()?..usize::try_from(*last).ok()?)
        });
        let text = used.unwrap_or_default();
        let begun = text.iter().filter(|byte| matches!(byte, b'{' | b'[')).count() + text.find_iter("null").count();
        let rows = (texts.len() as u64).saturating_mul(fixed_width(self.data_type()));
        let items = (begun as u64).saturating_mul(widest_item(self.data_type()));
        (text.len() as u64).saturating_mul(EXPANSION).saturating_add(rows).saturating_add(items)
    }

    /// Parses values from JSON.
    ///
    /// # Errors
    /// A text that is not of the type.
    pub fn values(&self, texts: &LargeStringArray) -> Result<ArrayRef, String> {
        if texts.is_empty() {
            return Ok(new_empty_array(self.data_type()));
        }
        let builder = ReaderBuilder::new_with_field(self.field.clone()).with_strict_mode(true);
        let mut decoder = builder.with_batch_size(texts.len()).build_decoder().map_err(|error| error.to_string())?;
        for (row, text) in texts.iter().enumerate() {
            let text = text.unwrap_or("null");
            let read = decoder.decode(text.as_bytes()).map_err(|error| format!("value {row}: {error}"))?;
            if read < text.trim_end().len() || decoder.len() != row + 1 || decoder.has_partial_record() {
                return Err(format!("value {row}: not one value in JSON"));
            }
        }
        let batch = decoder.flush().map_err(|error| error.to_string())?.ok_or("no value")?;
        Ok(batch.column(0).clone())
    }
}

/// The simplified type for values of another type.
fn simple(data_type: &DataType) -> Option<DataType> {
    let item = |field: &FieldRef| Some(Arc::new(Field::new_list_field(simple(field.data_type())?, true)));
    Some(match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => DataType::LargeUtf8,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => DataType::Binary,
        DataType::Dictionary(_, values) => simple(values)?,
        DataType::RunEndEncoded(_, values) => simple(values.data_type())?,
        DataType::Timestamp(TimeUnit::Second, zone) => DataType::Timestamp(TimeUnit::Millisecond, zone.clone()),
        DataType::Date64 => DataType::Timestamp(TimeUnit::Millisecond, None),
        DataType::Time32(_) => DataType::Time32(TimeUnit::Millisecond),
        DataType::Decimal32(digits, scale)
        | DataType::Decimal64(digits, scale)
        | DataType::Decimal128(digits, scale)
            if *scale >= 0 =>
        {
            DataType::Decimal128(*digits, *scale)
        }
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field) => DataType::LargeList(item(field)?),
        DataType::FixedSizeList(field, count) if *count > 0 => DataType::FixedSizeList(item(field)?, *count),
        DataType::Struct(fields) if !fields.is_empty() => {
            let fields = fields.iter().map(|field| Some(Field::new(field.name(), simple(field.data_type())?, true)));
            let fields = fields.collect::<Option<Fields>>()?;
            // Keys of a JSON object are unique.
            let mut keys = HashSet::new();
            return fields.iter().all(|field| keys.insert(field.name())).then(|| DataType::Struct(fields.clone()));
        }
        DataType::Boolean | DataType::Timestamp(..) | DataType::Date32 | DataType::Time64(_) => data_type.clone(),
        DataType::FixedSizeBinary(width) if *width > 0 => data_type.clone(),
        number if number.is_integer() || number.is_floating() => number.clone(),
        _ => return None,
    })
}

/// Most bytes of an item of lists inside values of this type.
fn widest_item(data_type: &DataType) -> u64 {
    match data_type {
        DataType::Struct(fields) => fields.iter().map(|field| widest_item(field.data_type())).max().unwrap_or(0),
        DataType::FixedSizeList(item, _) => widest_item(item.data_type()),
        DataType::LargeList(item) => fixed_width(item.data_type()).max(widest_item(item.data_type())),
        _ => 0,
    }
}

/// The hints of values whose parts can all be missing.
fn of_any(data_type: &DataType) -> Hints {
    let known = Hints { nullable: true, ..Hints::default() };
    match data_type {
        DataType::Struct(fields) => {
            Hints { fields: fields.iter().map(|field| of_any(field.data_type())).collect(), ..known }
        }
        DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            Hints { items: Some(Box::new(of_any(item.data_type()))), ..known }
        }
        _ => known,
    }
}

/// Writes floats; those without a JSON number become texts, which are read back as the same floats.
#[derive(Debug)]
struct Floats;

impl EncoderFactory for Floats {
    fn make_default_encoder<'a>(
        &self,
        _: &'a FieldRef,
        array: &'a dyn Array,
        _: &'a EncoderOptions,
    ) -> Result<Option<NullableEncoder<'a>>, ArrowError> {
        let encoder: Box<dyn Encoder + 'a> = match array.data_type() {
            DataType::Float16 => Box::new(Float(array.as_primitive::<Float16Type>())),
            DataType::Float32 => Box::new(Float(array.as_primitive::<Float32Type>())),
            DataType::Float64 => Box::new(Float(array.as_primitive::<Float64Type>())),
            _ => return Ok(None),
        };
        Ok(Some(NullableEncoder::new(encoder, array.nulls().cloned())))
    }
}

struct Float<'a, T: ArrowPrimitiveType>(&'a PrimitiveArray<T>);

impl<T: ArrowPrimitiveType> Encoder for Float<'_, T>
where
    T::Native: Into<f64>,
{
    fn encode(&mut self, row: usize, out: &mut Vec<u8>) {
        let value = self.0.value(row);
        // The fewest digits that identify the value in its type.
        let mut text = String::new();
        let _ = write!(text, "{value:?}");
        let is_number = value.into().is_finite();
        let quote: &[u8] = if is_number { b"" } else { b"\"" };
        [quote, text.as_bytes(), quote].into_iter().for_each(|part| out.extend_from_slice(part));
    }
}

/// JSON texts, shown as their values.
#[derive(Debug)]
pub struct JsonRows {
    texts: StringRows,
    json: NestedJson,
    path: String,
    facts: Facts,
}

impl JsonRows {
    /// `texts` must be text, not bytes ([`StringRows::as_bytes`]).
    pub fn new(path: String, texts: StringRows, json: NestedJson) -> Self {
        let inner = texts.facts();
        let data_type = json.data_type().clone();
        let facts = Facts {
            nullable: true,
            hints: of_any(&data_type),
            natural_rows: inner.natural_rows,
            alike: inner.alike.clone(),
            containers: inner.containers.clone(),
            ..Facts::new(inner.len, data_type)
        };
        Self { texts, json, path, facts }
    }
}

impl Rows for JsonRows {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn array(&self, range: RowRange, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
        let texts = self.texts.array(range.clone(), interrupt)?;
        let told = |reason: String| {
            Error::unsupported(&self.path, format!("rows from {} on, {}: {reason}", range.start, self.json.name()))
        };
        let texts = texts.as_string_opt().ok_or_else(|| told("no text".into()))?;
        let bytes = self.json.weight(texts);
        if bytes > MOST {
            let (path, what) = (self.path.clone(), "a block of JSON".into());
            return Err(Error::TooLarge { path, what, bytes, limit: MOST, option: "bytes of values at once" });
        }
        self.json.values(texts).map_err(told)
    }

    fn fitting(&self, range: RowRange, bytes: u64, interrupt: &Interrupt) -> Result<Fitting, Error> {
        let texts = self.texts.fitting(range.clone(), bytes / EXPANSION, interrupt)?;
        let values = Fitting::fixed(&range, fixed_width(&self.facts.data_type), bytes);
        let together = texts.bytes.saturating_mul(EXPANSION).saturating_add(values.bytes);
        Ok(Fitting { end: texts.end.min(values.end), bytes: together })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME_OF_POINT: &str = "json Struct(\"x\": Float32, \"t\": LargeList(Int16))";

    #[test]
    fn names_lead_back_to_their_types() {
        let json = NestedJson::named(NAME_OF_POINT).unwrap();
        assert_eq!(json.name(), NAME_OF_POINT);
        let fields = [Field::new("a \"b\", (c", DataType::Utf8, false), Field::new("é", DataType::Date64, true)];
        let json = NestedJson::of(&DataType::Struct(fields.into_iter().collect()));
        assert!(json.is_none_or(|json| NestedJson::named(&json.name()) == Some(json)));
        let far = format!("json {}Int8{}", "LargeList(".repeat(100_000), ")".repeat(100_000));
        let wide = "json FixedSizeList(2147483647 x Int64)";
        let twice = "json Struct(\"a\": Int8, \"a\": Int8)";
        for name in [&far, wide, twice, "json Int8", "json Map(", "json ", "utf8", "json Struct()"] {
            assert_eq!(NestedJson::named(name), None, "{}", &name[..name.len().min(40)]);
        }
    }

    #[test]
    fn what_is_no_value_is_told() {
        let json = NestedJson::named(NAME_OF_POINT).unwrap();
        let values = |text: &str| json.values(&LargeStringArray::from(vec![Some("{}"), None, Some(text)]));
        let array = values(" {\"t\":[1,null], \"x\":\"NaN\"} ").unwrap();
        assert_eq!((array.len(), array.null_count()), (3, 1));
        assert!(array.as_struct().column(0).as_primitive::<Float32Type>().value(2).is_nan());
        for text in ["", "{", "{}{}", "{} {}", "[]", "1", "{\"y\":1}", "{\"t\":[70000]}", "{\"x\":\"a\"}", "nul"] {
            assert!(values(text).is_err(), "{text}");
        }
    }

    #[test]
    fn items_are_weighed_by_their_type() {
        let fields = (0..1000).map(|at| format!("\"{at}\": Int64")).collect::<Vec<_>>().join(", ");
        let json = NestedJson::named(&format!("json LargeList(Struct({fields}))")).unwrap();
        let texts = LargeStringArray::from(vec![format!("[{}{{}}]", "{},".repeat(999))]);
        assert!((8_000_000..9_000_000).contains(&json.weight(&texts)));
        assert_eq!(json.values(&texts).unwrap().as_list::<i64>().value_length(0), 1000);
    }
}
