//! What pandas writes of a data frame beside its columns, so that row labels come back as its index.

use arrow_schema::{DataType, Field, TimeUnit};
use serde_json::{Value, json};

/// Key of the text below in the metadata of an Arrow or Parquet schema.
pub(super) const KEY: &str = "pandas";

/// Which of `fields` are the index, and what types pandas is to give all of them. `None` without row labels, and where
/// two fields have the name of a label: pandas could not tell which is meant.
pub(super) fn metadata<'a>(fields: impl Iterator<Item = &'a Field> + Clone, labels: &[&str]) -> Option<String> {
    let named = |label: &&str| fields.clone().filter(|field| field.name() == label).count();
    if labels.is_empty() || labels.iter().any(|label| named(label) != 1) {
        return None;
    }
    let described = |field: &Field| {
        let (pandas, numpy) = pandas_type(field.data_type());
        let zone = match field.data_type() {
            DataType::Timestamp(_, Some(zone)) => json!({ "timezone": zone.as_ref() }),
            _ => Value::Null,
        };
        json!({
            "name": field.name(),
            "field_name": field.name(),
            "pandas_type": pandas,
            "numpy_type": numpy,
            "metadata": zone,
        })
    };
    let text = json!({
        "index_columns": labels,
        "column_indexes": [{
            "name": null,
            "field_name": null,
            "pandas_type": "unicode",
            "numpy_type": "object",
            "metadata": { "encoding": "UTF-8" },
        }],
        "columns": fields.clone().map(described).collect::<Vec<Value>>(),
        "creator": { "library": "hepfs", "version": env!("CARGO_PKG_VERSION") },
        "pandas_version": "2.0.0",
    });
    Some(text.to_string())
}

/// `pandas_type` and `numpy_type` of a column.
fn pandas_type(data_type: &DataType) -> (&'static str, &'static str) {
    let number = |name: &'static str| (name, name);
    match data_type {
        DataType::Int8 => number("int8"),
        DataType::Int16 => number("int16"),
        DataType::Int32 => number("int32"),
        DataType::Int64 => number("int64"),
        DataType::UInt8 => number("uint8"),
        DataType::UInt16 => number("uint16"),
        DataType::UInt32 => number("uint32"),
        DataType::UInt64 => number("uint64"),
        DataType::Float32 => number("float32"),
        DataType::Float64 => number("float64"),
        DataType::Boolean => number("bool"),
        DataType::Timestamp(unit, zone) => {
            let numpy = match unit {
                TimeUnit::Second => "datetime64[s]",
                TimeUnit::Millisecond => "datetime64[ms]",
                TimeUnit::Microsecond => "datetime64[us]",
                TimeUnit::Nanosecond => "datetime64[ns]",
            };
            (if zone.is_some() { "datetimetz" } else { "datetime" }, numpy)
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => ("unicode", "object"),
        DataType::FixedSizeBinary(_) | DataType::Binary => ("bytes", "object"),
        // What is said to be categorical must have a number of categories for fastparquet; pyarrow knows it by its
        // type.
        DataType::Dictionary(_, labels) => pandas_type(labels),
        _ => ("object", "object"),
    }
}
