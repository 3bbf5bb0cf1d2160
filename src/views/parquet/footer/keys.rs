//! Key-value pairs of the footer.

use std::collections::HashMap;

use arrow_schema::{Fields, Schema};
use parquet::arrow::{ARROW_SCHEMA_META_KEY, encode_arrow_schema};

use crate::views::pandas::{self, PandasColumn};
use crate::views::parquet::columns::ParquetColumn;

/// The writer, in the form that engines parse: `NAME version X (build Y)`. `build` counts layouts, so that one version
/// produces the same bytes everywhere.
pub(in crate::views::parquet) const CREATED_BY: &str =
    concat!("hepfs version ", env!("CARGO_PKG_VERSION"), " (build layout-1)");

/// Returns the Arrow schema, row labels for pandas, and notes on columns, such as `energy.units`.
pub(in crate::views::parquet) fn key_values(columns: &[ParquetColumn], fields: &Fields) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    let described = columns.iter().zip(fields).map(|(column, field)| PandasColumn {
        name: field.name(),
        data_type: field.data_type(),
        zone: column.zone.as_deref(),
        is_label: column.is_label,
        origin: &column.origin,
    });
    if let Some(index) = pandas::metadata(&described.collect::<Vec<_>>()) {
        pairs.push((pandas::KEY.into(), index));
    }
    for (column, field) in columns.iter().zip(fields) {
        let notes = column.notes.iter();
        pairs.extend(notes.map(|(key, text)| (format!("{}.{key}", field.name()), text.clone())));
    }
    // If there is an Arrow schema, pyarrow takes the file's metadata from it and ignores the rest.
    let said = pairs.iter().cloned().collect::<HashMap<_, _>>();
    let schema = Schema::new_with_metadata(fields.clone(), said);
    pairs.push((ARROW_SCHEMA_META_KEY.to_owned(), encode_arrow_schema(&schema)));
    pairs
}
