//! Datasets that are no column of a table: each is a table of its own, shown as files beside each other.
//!
//! | dataset | rows | columns of `.csv` |
//! | --- | --- | --- |
//! | scalar | one | – |
//! | rank 1 | its elements | one, named after the dataset; of a compound, one for each field |
//! | rank 2 | its rows, each a list | one for each place of a row: `0`, `1`, … |
//! | higher rank | what lies along the first axis, as nested lists | – |
//!
//! Nothing is missing but what equals the attribute `_FillValue`, where that has the dataset's own type.

mod forms;

use std::sync::Arc;

use bstr::BString;

use super::attributes::text;
use super::{Dialect, Mark, Subject, datasets};
use crate::catalogue::{Class, ColumnId, Dataset, Datatype, Fill, attribute};
use crate::store::arrow::FillTest;
use crate::store::{self, DatasetRows, FieldRows, File, Part, Rows, StoredStrings, Tally, VerbatimStrings};
use crate::table::{Column, Single, Table};

/// The dialect of whatever no other dialect takes.
#[derive(Debug)]
pub struct Arrays;

impl Dialect for Arrays {
    fn name(&self) -> &'static str {
        "array"
    }

    fn mark(&self, _: &str, object: Subject<'_>) -> Mark {
        match object {
            Subject::Dataset(_) => Mark::Files,
            Subject::Group(_) => Mark::No,
        }
    }

    fn files(&self, file: &Arc<File>, path: &str, dataset: &Dataset) -> Result<Single, String> {
        Array { file, path, dataset }.single()
    }
}

/// A dataset while its files are made.
struct Array<'a> {
    file: &'a Arc<File>,
    path: &'a str,
    dataset: &'a Dataset,
}

impl Array<'_> {
    fn single(&self) -> Result<Single, String> {
        let opened = datasets::open(self.file, self.path, self.dataset)?;
        let rows = self.dataset.shape.first().copied().unwrap_or(1);
        Ok(Single {
            whole: self.table(rows, vec![self.whole(&opened)]),
            text: self.text(&opened),
            split: self.split(&opened).map(|columns| self.table(rows, columns)),
            shape: self.dataset.shape.clone(),
            files: forms::forms(self.dataset),
        })
    }

    fn table(&self, rows: u64, columns: Vec<Column>) -> Table {
        Table { rows, columns, attributes: self.dataset.attributes.clone(), ..Table::empty(self.path, Arrays.name()) }
    }

    /// The element that stands for a missing one. Compounds have none: neither has any of their fields.
    fn missing(&self) -> Fill {
        if forms::is_compound(self.dataset) {
            return Fill::Default;
        }
        match attribute(&self.dataset.attributes, "_FillValue") {
            Some(attribute) if attribute.datatype == self.dataset.datatype && attribute.len() == Some(1) => {
                attribute.value.clone().map_or(Fill::Default, Fill::Explicit)
            }
            _ => Fill::Default,
        }
    }

    /// What lies along the first axis, as it is.
    fn whole(&self, opened: &Arc<store::Dataset>) -> Column {
        let tally = Arc::<Tally>::default();
        let missing = FillTest::new(&self.dataset.datatype, &self.missing());
        let rows = Arc::new(DatasetRows::along_first(opened.clone(), missing, tally.clone()));
        let is_text = matches!(self.dataset.datatype.class, Class::VariableString { .. });
        let stored_strings = (is_text && self.dataset.shape.len() <= 1)
            .then(|| Arc::new(StoredStrings::new(opened.clone(), u64::MAX)) as Arc<dyn Rows>);
        let name = BString::from(self.path.rsplit('/').next().unwrap_or_default());
        Column { stored_strings, ..self.column(name, 0, rows, tally) }
    }

    /// The bytes of a scalar string.
    fn text(&self, opened: &Arc<store::Dataset>) -> Option<Arc<dyn Rows>> {
        forms::is_text(self.dataset).then(|| {
            let missing = FillTest::new(&self.dataset.datatype, &self.missing());
            let shown = Arc::new(DatasetRows::along_first(opened.clone(), missing, Arc::default()));
            Arc::new(VerbatimStrings::new(opened.clone(), shown)) as Arc<dyn Rows>
        })
    }

    /// The fields of a compound, or the places of a row.
    fn split(&self, opened: &Arc<store::Dataset>) -> Option<Vec<Column>> {
        let datatype = &self.dataset.datatype;
        let part = |at: usize, name: BString, datatype: &Datatype, offset: u64, missing: FillTest| {
            let tally = Arc::<Tally>::default();
            let part = Part { datatype: datatype.clone(), offset };
            let rows = Arc::new(FieldRows::new(opened.clone(), part, missing, tally.clone()));
            let id = u32::try_from(at).unwrap_or(u32::MAX).saturating_add(1);
            self.column(name, id, rows, tally)
        };
        match (self.dataset.shape.as_slice(), &datatype.class) {
            ([_], Class::Compound { fields }) if forms::is_compound(self.dataset) => {
                let fields = fields.iter().enumerate();
                let field = fields
                    .map(|(at, field)| part(at, field.name.clone(), &field.datatype, field.offset, FillTest::none()));
                Some(field.collect())
            }
            ([_, places], _) if *places <= forms::MOST_PLACES => {
                let missing = FillTest::new(datatype, &self.missing());
                let place = |at: u64| {
                    let name = at.to_string().into();
                    part(at as usize, name, datatype, at.saturating_mul(datatype.size), missing.clone())
                };
                Some((0..*places).map(place).collect())
            }
            _ => None,
        }
    }

    fn column(&self, name: BString, field: u32, rows: Arc<dyn Rows>, tally: Arc<Tally>) -> Column {
        let id = ColumnId { object: self.dataset.id, field };
        Column {
            name,
            path: self.path.to_owned(),
            id,
            is_label: false,
            in_table: true,
            rows: Ok(rows),
            stored_strings: None,
            learner: None,
            tally,
            units: text(&self.dataset.attributes, "units"),
            units_vocabulary: None,
            description: text(&self.dataset.attributes, "description"),
            categories: None,
            attributes: self.dataset.attributes.clone(),
            storage: None,
        }
    }
}
