//! Datatypes as JSON.

use serde_json::{Value, json};

use crate::catalogue::{ByteOrder, Charset, Class, Datatype, FloatFormat, Padding, ReferenceKind};

/// Describes an HDF5 datatype as JSON.
pub(super) fn value(datatype: &Datatype) -> Value {
    let mut value = class(&datatype.class);
    if let Some(object) = value.as_object_mut() {
        object.insert("size".into(), datatype.size.into());
        if datatype.is_boolean() {
            object.insert("boolean".into(), true.into());
        }
    }
    value
}

fn class(class: &Class) -> Value {
    match class {
        Class::Integer { signed, order, precision, offset } => json!({
            "class": "integer", "signed": signed, "order": order_name(*order), "precision": precision, "offset": offset,
        }),
        Class::Float { order, format } => json!({
            "class": "float", "order": order_name(*order), "format": float_name(format),
        }),
        Class::Time { order } => json!({ "class": "time", "order": order_name(*order) }),
        Class::FixedString { padding, charset } => json!({
            "class": "string", "variable": false, "padding": padding_name(*padding), "charset": charset_name(*charset),
        }),
        Class::VariableString { padding, charset } => json!({
            "class": "string", "variable": true, "padding": padding_name(*padding), "charset": charset_name(*charset),
        }),
        Class::Bitfield { order, precision, offset } => json!({
            "class": "bitfield", "order": order_name(*order), "precision": precision, "offset": offset,
        }),
        Class::Opaque { tag } => json!({ "class": "opaque", "tag": tag.to_string() }),
        Class::Compound { fields } => json!({
            "class": "compound",
            "fields": fields.iter().map(|field| json!({
                "name": field.name.to_string(), "offset": field.offset, "datatype": value(&field.datatype),
            })).collect::<Vec<_>>(),
        }),
        Class::Enum { base, members } => json!({
            "class": "enum",
            "base": value(base),
            "members": members.iter().map(|member| json!({
                // JSON readers may not take a 128-bit value for a number.
                "name": member.name.to_string(), "value": member_value(member.value),
            })).collect::<Vec<_>>(),
        }),
        Class::Sequence { base } => json!({ "class": "sequence", "base": value(base) }),
        Class::Array { dims, base } => json!({ "class": "array", "dims": dims, "base": value(base) }),
        Class::Reference(kind) => json!({
            "class": "reference",
            "kind": match kind {
                ReferenceKind::Object => "object",
                ReferenceKind::Region => "region",
                ReferenceKind::Standard => "standard",
            },
        }),
        Class::Complex { base } => json!({ "class": "complex", "base": value(base) }),
        Class::Unknown(class) => json!({ "class": "unknown", "number": class }),
        // hepfs's own classes, which no file has: describe what is stored.
        Class::Flag => json!({ "class": "bitfield" }),
        Class::SplitSeconds { order, .. } => json!({ "class": "time", "order": order_name(*order) }),
    }
}

fn member_value(value: i128) -> Value {
    i64::try_from(value)
        .map(Value::from)
        .or_else(|_| u64::try_from(value).map(Value::from))
        .unwrap_or_else(|_| value.to_string().into())
}

fn order_name(order: ByteOrder) -> &'static str {
    match order {
        ByteOrder::Little => "little",
        ByteOrder::Big => "big",
        ByteOrder::Vax => "vax",
    }
}

fn float_name(format: &FloatFormat) -> Value {
    match format {
        FloatFormat::Half => "binary16".into(),
        FloatFormat::Single => "binary32".into(),
        FloatFormat::Double => "binary64".into(),
        FloatFormat::Extended => "x87".into(),
        FloatFormat::Quadruple => "binary128".into(),
        other => serde_json::to_value(other).unwrap_or_default(),
    }
}

fn padding_name(padding: Padding) -> &'static str {
    match padding {
        Padding::NullTerminated => "null-terminated",
        Padding::NullPadded => "null-padded",
        Padding::SpacePadded => "space-padded",
    }
}

fn charset_name(charset: Charset) -> &'static str {
    match charset {
        Charset::Ascii => "ascii",
        Charset::Utf8 => "utf-8",
    }
}
