//! The schema: fields, notes on columns, and row labels for pandas.

use arrow_schema::{DataType, Field, Metadata, Schema};

use crate::views::field_metadata;
use crate::views::ipc::IpcColumn;
use crate::views::ipc::plan::{self, IpcNodeKind, IpcPlan};
use crate::views::pandas::{self, PandasColumn};

/// Returns the schema of columns.
pub(in crate::views::ipc) fn schema(columns: &[IpcColumn], plans: &[IpcPlan]) -> Schema {
    let fields: Vec<Field> = columns.iter().zip(plans).map(|(column, plan)| field(column, plan)).collect();
    let described = columns.iter().zip(&fields).map(|(column, field)| PandasColumn {
        name: field.name(),
        data_type: field.data_type(),
        zone: None,
        is_label: column.is_label,
        origin: &column.origin,
    });
    let index = pandas::metadata(&described.collect::<Vec<_>>());
    let metadata: Metadata = index.into_iter().map(|text| (pandas::KEY, text)).collect();
    Schema::new(fields).with_metadata(metadata)
}

fn field(column: &IpcColumn, plan: &IpcPlan) -> Field {
    let field = plan::field(&column.name.to_string(), plan).with_metadata(field_metadata(&column.notes));
    match (plan.nodes.first().map(|node| &node.kind), field.data_type()) {
        (Some(IpcNodeKind::Keys(_, labels)), DataType::Dictionary(..)) => {
            field.with_dict_is_ordered(labels.is_ordered())
        }
        _ => field,
    }
}
