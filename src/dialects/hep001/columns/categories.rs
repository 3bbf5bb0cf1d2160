//! Label sets, and the columns whose codes lead into them (HEP001 §6.6).

use std::collections::HashMap;
use std::sync::Arc;

use bstr::ByteSlice;

use crate::catalogue::{Attribute, Object, ObjectId, join};
use crate::dialects::attributes::{boolean, references};
use crate::dialects::datasets;
use crate::dialects::hep001::names::CATEGORIES_GROUP;
use crate::dialects::hep001::parts::TableGroup;
use crate::source::Interrupt;
use crate::store::decode::FillTest;
use crate::store::{DatasetRows, Rows, Tally};
use crate::table::{Categories, CategoryRows, Unreadable};

/// The label sets opened so far, one for each categories dataset.
#[derive(Default)]
pub(in crate::dialects::hep001) struct CategorySets {
    sets: Vec<Categories>,
    /// Oddities counted in the labels of each set.
    tallies: Vec<Arc<Tally>>,
    by_id: HashMap<ObjectId, usize>,
}

impl CategorySets {
    /// Path of a label set, and the oddities counted in its labels. `None`: no such set.
    pub fn below(&self, set: usize) -> Option<(String, Arc<Tally>)> {
        Some((self.sets.get(set)?.path.clone(), self.tallies.get(set)?.clone()))
    }

    /// All label sets opened so far.
    pub fn into_sets(self) -> Vec<Categories> {
        self.sets
    }

    /// Shows the codes of the column at `path` as labels of the set that the column's attribute `name` refers to.
    /// Returns the number of that set, and the rows of labels.
    ///
    /// # Errors
    /// Why the column breaks the rule of categorical columns.
    pub fn label(
        &mut self,
        parts: &TableGroup<'_>,
        path: &str,
        (name, target): (&str, &Attribute),
        codes: Arc<dyn Rows>,
        tally: &Arc<Tally>,
        interrupt: &Interrupt,
    ) -> Result<(usize, Arc<dyn Rows>), Unreadable> {
        let targets = references(target).ok_or_else(|| format!("{name} holds no reference"))?;
        let [Some(id)] = targets else {
            return Err(format!("{name} is a null or dangling reference, or not just one").into());
        };
        if !codes.data_type().is_integer() {
            return Err(format!("codes of type {}", codes.data_type()).into());
        }
        let set = self.get(parts, *id, interrupt).map_err(|reason| format!("{name} leads to {reason}"))?;
        let labels = self.sets[set].labels.clone()?;
        let is_ordered = self.sets[set].ordered == Some(true);
        let rows = CategoryRows::new(path.to_owned(), codes, labels, tally.clone()).ordered(is_ordered);
        Ok((set, Arc::new(rows)))
    }

    /// Returns the number of the label set of a categories dataset, which is opened at first use.
    fn get(&mut self, parts: &TableGroup<'_>, id: ObjectId, interrupt: &Interrupt) -> Result<usize, Unreadable> {
        if let Some(at) = self.by_id.get(&id) {
            return Ok(*at);
        }
        let object = parts.file.object(id, interrupt)?;
        let Object::Dataset(dataset) = object else { return Err("no dataset".into()) };
        if dataset.shape.len() != 1 || dataset.null {
            return Err(format!("a dataset of rank {}, not 1", dataset.shape.len()).into());
        }
        let path = path_of(parts, id, interrupt);
        let ordered = boolean(&dataset.attributes, "ordered");
        let tally = Arc::<Tally>::default();
        let labels = datasets::open(parts.file, &path, &dataset)
            .map(|dataset| DatasetRows::new(dataset, u64::MAX, FillTest::none(), tally.clone()))
            .map(|rows| Arc::new(rows) as Arc<dyn Rows>);
        self.sets.push(Categories { path, labels, datatype: dataset.datatype.clone(), ordered });
        self.tallies.push(tally);
        self.by_id.insert(id, self.sets.len() - 1);
        Ok(self.sets.len() - 1)
    }
}

/// Path of a categories dataset. If no link of the table group leads to it, the path is made up from its address,
/// except in a full check.
fn path_of(parts: &TableGroup<'_>, id: ObjectId, interrupt: &Interrupt) -> String {
    let direct = parts.group.links.iter().find(|link| link.target.object().is_some_and(|o| o.id() == id));
    match direct {
        Some(link) => parts.path_of(link.name.as_bstr()),
        None => {
            // A search for the path walks the whole file.
            parts.is_full.then(|| parts.file.path_of(id, interrupt).ok().flatten()).flatten().unwrap_or_else(|| {
                format!("{} (categories at {})", join(parts.path, CATEGORIES_GROUP.as_bytes()), id.address)
            })
        }
    }
}
