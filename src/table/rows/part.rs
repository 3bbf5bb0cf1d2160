//! A field of a column of compounds as a column.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, make_array};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;

use crate::source::Interrupt;
use crate::store::{Error, Facts, Fitting, Hints, RowRange, Rows, StoredFacts};

/// The values of a compound's field, or of a field inside a field. They are null where the compound is null.
#[derive(Debug)]
pub struct PartRows {
    whole: Arc<dyn Rows>,
    /// Positions of the fields, outermost first.
    fields: Vec<usize>,
    facts: Facts,
    path: String,
}

impl PartRows {
    /// The field `name` of `whole`, with dots for fields inside fields: `x`, `momentum.x`. `None`: no such field.
    pub fn of(whole: &Arc<dyn Rows>, name: &[u8]) -> Option<Self> {
        let name = std::str::from_utf8(name).ok()?;
        let mut fields = Vec::new();
        let data_type = find(whole.data_type(), name, &mut fields)?.clone();
        let inner = whole.facts();
        let mut hints = &inner.hints;
        let unknown = Hints::default();
        for at in &fields {
            hints = hints.fields.get(*at).unwrap_or(&unknown);
        }
        let facts = Facts {
            data_type,
            nullable: true,
            hints: Hints { stored: false, nullable: true, ..hints.clone() },
            // A field has neither bytes nor an outline of its own.
            stored: StoredFacts::default(),
            codes: 0,
            outline_tells_nulls: false,
            fields_lie_apart: false,
            ..inner.clone()
        };
        Some(Self { whole: whole.clone(), fields, facts, path: name.to_owned() })
    }
}

/// The type of a field; adds its positions to `fields`. A field whose own name has dots takes precedence.
fn find<'a>(data_type: &'a DataType, name: &str, fields: &mut Vec<usize>) -> Option<&'a DataType> {
    let DataType::Struct(known) = data_type else { return None };
    if let Some((at, field)) = known.find(name) {
        fields.push(at);
        return Some(field.data_type());
    }
    name.match_indices('.').find_map(|(point, _)| {
        let (at, field) = known.find(&name[..point])?;
        fields.push(at);
        let found = find(field.data_type(), &name[point + 1..], fields);
        if found.is_none() {
            fields.pop();
        }
        found
    })
}

impl Rows for PartRows {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn array(&self, range: RowRange, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
        let mut array = self.whole.array_for_field(&self.fields, range, interrupt)?;
        let failed = |reason: String| Error::unsupported(&self.path, reason);
        for at in &self.fields {
            let compounds =
                array.as_struct_opt().ok_or_else(|| failed("a field of rows that are no compounds".into()))?;
            let field = compounds.columns().get(*at).ok_or_else(|| failed(format!("there is no field {at}")))?;
            let nulls = NullBuffer::union(compounds.nulls(), field.nulls());
            let data = field.to_data().into_builder().nulls(nulls).build();
            array = make_array(data.map_err(|error| failed(error.to_string()))?);
        }
        Ok(array)
    }

    fn fitting(&self, range: RowRange, bytes: u64, interrupt: &Interrupt) -> Result<Fitting, Error> {
        self.whole.fitting(range, bytes, interrupt)
    }
}
