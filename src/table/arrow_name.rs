//! Names of Arrow types.

use arrow_schema::DataType;

/// Names the type of values, as in `metadata.json` and messages: `int64`, `dictionary<utf8>`, `list<float32>`, …
pub fn arrow_name(data_type: &DataType) -> String {
    match data_type {
        DataType::LargeUtf8 | DataType::Utf8 | DataType::Utf8View => "utf8".into(),
        DataType::Boolean => "boolean".into(),
        DataType::Timestamp(unit, zone) => {
            let zone = zone.as_ref().map_or_else(String::new, |zone| format!(", {zone}"));
            format!("timestamp[{unit}{zone}]")
        }
        DataType::Duration(unit) => format!("duration[{unit}]"),
        DataType::FixedSizeBinary(width) => format!("binary[{width}]"),
        DataType::Dictionary(_, values) => format!("dictionary<{}>", arrow_name(values)),
        DataType::LargeList(field) | DataType::List(field) => format!("list<{}>", arrow_name(field.data_type())),
        DataType::FixedSizeList(field, extent) => format!("list<{}>[{extent}]", arrow_name(field.data_type())),
        DataType::Struct(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|field| format!("{}: {}", field.name(), arrow_name(field.data_type()))).collect();
            format!("struct<{}>", fields.join(", "))
        }
        other => other.to_string().to_ascii_lowercase(),
    }
}
