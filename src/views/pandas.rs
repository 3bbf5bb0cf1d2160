//! The metadata that pandas writes beside the columns of a data frame, so that row labels come back as its index, and
//! column names with their types.

use arrow_array::timezone::Tz;
use arrow_schema::{DataType, TimeUnit};
use serde_json::{Value, json};

use crate::table::{NameAxis, NameKind, NameLevel, Origin, OriginalName};

/// Key of pandas's metadata in an Arrow or Parquet schema.
pub(super) const KEY: &str = "pandas";

/// A column, described for pandas.
pub(super) struct PandasColumn<'a> {
    /// Name of the column's field.
    pub name: &'a str,
    /// Type of the column's field.
    pub data_type: &'a DataType,
    /// Time zone of the column's instants, if the type lacks it.
    pub zone: Option<&'a str>,
    /// Whether the column labels rows.
    pub is_label: bool,
    /// The column's origin in the software that wrote it.
    pub origin: &'a Origin,
}

impl PandasColumn<'_> {
    fn lacks_zone(&self) -> bool {
        matches!(self.data_type, DataType::Timestamp(_, None)) && self.zone.is_some_and(is_known)
    }

    /// Returns the label that the column's name stands for. `None`: row labels without a name.
    fn called(&self) -> Option<&str> {
        match &self.origin.called {
            OriginalName::Name => Some(self.name),
            OriginalName::Other(name) => Some(name),
            OriginalName::Nothing => None,
        }
    }
}

/// Returns JSON that names the columns of the index, the types that pandas gives to all columns, and the type of the
/// column names. `None`: there are no row labels, zones that types lack, axes of names or masks; or two columns share
/// the name of a row label, so that pandas could not tell them apart.
pub(super) fn metadata(columns: &[PandasColumn<'_>]) -> Option<String> {
    let labels = columns.iter().filter(|column| column.is_label).map(|column| column.name);
    let is_needed = columns.iter().any(|column| {
        column.is_label || column.lacks_zone() || column.origin.axis.is_some() || column.origin.is_masked
    });
    if !is_needed || labels.clone().any(|label| columns.iter().filter(|column| column.name == label).count() != 1) {
        return None;
    }
    let described = columns.iter().map(|column| {
        let (pandas, numpy) = pandas_type(column.data_type);
        let numpy = Some(column.data_type).filter(|_| column.origin.is_masked).and_then(masked_type).unwrap_or(numpy);
        let zone = match column.data_type {
            DataType::Timestamp(_, Some(zone)) => Some(zone.as_ref()),
            _ => column.zone.filter(|_| column.lacks_zone()),
        };
        json!({
            "name": column.called(),
            "field_name": column.name,
            "pandas_type": if column.lacks_zone() { "datetimetz" } else { pandas },
            "numpy_type": numpy,
            "metadata": zone.map(|zone| json!({ "timezone": zone })),
        })
    });
    let data = columns.iter().filter(|column| !column.is_label);
    // All columns usually share one axis, so the comparison is cheap.
    let mut axes = data.clone().map(|column| column.origin.axis.as_ref());
    let axis = axes.next().flatten().filter(|axis| axes.all(|other| other == Some(*axis)));
    let axis = axis.filter(|axis| can_read(axis, data.filter_map(PandasColumn::called)));
    let text = json!({
        "index_columns": labels.collect::<Vec<_>>(),
        "column_indexes": axis.map_or_else(|| vec![level(None, &NameKind::Text)], |axis| levels(axis)),
        "columns": described.collect::<Vec<Value>>(),
        "creator": { "library": "hepfs", "version": env!("CARGO_PKG_VERSION") },
        "pandas_version": "2.0.0",
    });
    Some(text.to_string())
}

/// Whether pyarrow knows a time zone of this name. An unknown one makes the whole frame unreadable.
fn is_known(zone: &str) -> bool {
    zone.parse::<Tz>().is_ok()
}

/// Whether pandas can parse all of these texts as labels of an axis. A text that it cannot parse makes the whole frame
/// unreadable.
fn can_read<'a>(axis: &NameAxis, mut texts: impl Iterator<Item = &'a str> + Clone) -> bool {
    let [NameLevel { kind, .. }] = axis.levels.as_slice() else {
        return texts.all(|text| text.starts_with('(') && text.ends_with(')'));
    };
    match kind {
        NameKind::Text | NameKind::Mixed => true,
        NameKind::Integer => texts.all(|text| text.parse::<i64>().is_ok()),
        NameKind::Float => texts.all(|text| text.parse::<f64>().is_ok()),
        NameKind::Instant { zone, .. } => {
            // Instants within the range of nanoseconds; with zones, all in the form of the first one, with offsets in
            // whole minutes.
            let form = texts.clone().next().map(str::len);
            zone.as_deref().is_none_or(is_known)
                && texts.all(|text| {
                    let year = text.get(..4).filter(|_| text.get(4..5) == Some("-")).and_then(|year| year.parse().ok());
                    let offset = text.len().checked_sub(6).and_then(|at| text.as_bytes().get(at));
                    year.is_some_and(|year: u16| (1678..2262).contains(&year))
                        && (zone.is_none() || Some(text.len()) == form && matches!(offset, Some(b'+' | b'-')))
                })
        }
    }
}

fn levels(axis: &NameAxis) -> Vec<Value> {
    axis.levels.iter().map(|NameLevel { name, kind }| level(name.as_deref(), kind)).collect()
}

fn level(name: Option<&str>, kind: &NameKind) -> Value {
    let (of_values, metadata) = match kind {
        NameKind::Text => (pandas_type(&DataType::Utf8), json!({ "encoding": "UTF-8" })),
        NameKind::Mixed => (("mixed-integer", "object"), Value::Null),
        NameKind::Integer => (pandas_type(&DataType::Int64), Value::Null),
        NameKind::Float => (pandas_type(&DataType::Float64), Value::Null),
        NameKind::Instant { unit, zone } => (
            pandas_type(&DataType::Timestamp(*unit, zone.as_deref().map(Into::into))),
            zone.as_ref().map_or(Value::Null, |zone| json!({ "timezone": zone })),
        ),
    };
    let (pandas, numpy) = of_values;
    json!({ "name": name, "field_name": name, "pandas_type": pandas, "numpy_type": numpy, "metadata": metadata })
}

/// Returns the `numpy_type` of integers and booleans with a mask.
fn masked_type(data_type: &DataType) -> Option<&'static str> {
    Some(match data_type {
        DataType::Int8 => "Int8",
        DataType::Int16 => "Int16",
        DataType::Int32 => "Int32",
        DataType::Int64 => "Int64",
        DataType::UInt8 => "UInt8",
        DataType::UInt16 => "UInt16",
        DataType::UInt32 => "UInt32",
        DataType::UInt64 => "UInt64",
        DataType::Boolean => "boolean",
        _ => return None,
    })
}

/// Returns the `pandas_type` and `numpy_type` of a column.
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
        DataType::Duration(unit) => {
            let numpy = match unit {
                TimeUnit::Second => "timedelta64[s]",
                TimeUnit::Millisecond => "timedelta64[ms]",
                TimeUnit::Microsecond => "timedelta64[us]",
                TimeUnit::Nanosecond => "timedelta64[ns]",
            };
            ("timedelta", numpy)
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => ("unicode", "object"),
        DataType::FixedSizeBinary(_) | DataType::Binary => ("bytes", "object"),
        // fastparquet requires a number of categories for a categorical type, so it is not declared here; pyarrow
        // recognises it by the field's type.
        DataType::Dictionary(_, labels) => pandas_type(labels),
        _ => ("object", "object"),
    }
}
