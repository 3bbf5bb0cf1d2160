//! Datasets outside of tables: each is a table of its own, shown as files side by side.
//!
//! | dataset | rows | columns of `.csv` |
//! | --- | --- | --- |
//! | scalar | one | – |
//! | rank 1 | its elements | one, named after the dataset |
//! | rank 2 | its rows, each a list | one for each element of a row: `0`, `1`, … |
//! | higher rank | slices along the first axis, as nested lists | – |
//!
//! An element is missing if it equals the attribute `_FillValue`, provided that this is a single value that the
//! dataset's type can hold exactly. A time of NumPy is missing if it is `NaT`.

mod forms;

use std::sync::Arc;

use bstr::BString;

use super::attributes::text;
use super::compound::{self, System};
use super::times::{self, OfNumpy};
use super::{About, Dialect, ListedObject, Mark, Of, Site, datasets, scales};
use crate::catalogue::{Class, ColumnId, Dataset, Fill, Object, product};
use crate::source::Interrupt;
use crate::store::decode::FillTest;
use crate::store::{self, DatasetRows, File, Rows, StoredStrings, Tally};
use crate::table::{Colour, Column, Meaning, Pixels, Single, SingleFile, SingleForm, Table, Unreadable};

/// The dialect of datasets that no other dialect claims.
#[derive(Debug)]
pub struct Arrays;

static ABOUT: About = About {
    attributes: &[
        "CLASS",
        "DIMENSION_LIST",
        "IMAGE_WHITE_IS_ZERO",
        "INTERLACE_MODE",
        "NAME",
        "PALETTE",
        "_FillValue",
        "calendar",
        "description",
        "units",
        "scale_factor",
        "add_offset",
    ],
    ..About::named("array")
};

impl Dialect for Arrays {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn mark(&self, _: &str, object: ListedObject<'_>) -> Mark {
        match object {
            ListedObject::Dataset(_) => Mark::Files,
            ListedObject::Group(_) => Mark::No,
        }
    }

    fn files(&self, site: &Site<'_>, name: &BString, interrupt: Option<&Interrupt>) -> Result<Single, Unreadable> {
        match site.of {
            Of::Dataset(dataset) => {
                let of_numpy = OfNumpy::of(&dataset.datatype);
                let dataset = &read(dataset, of_numpy.as_ref());
                let array = Array { file: site.file, path: site.path, name, dataset, of_numpy, by_fill: false };
                let single = array.single()?;
                Ok(match interrupt {
                    Some(interrupt) => {
                        let (parts, labels) = (parts(&dataset.shape), array.labels(interrupt));
                        Single { parts, labels, palette: array.palette(&single.files, interrupt), ..single }
                    }
                    None => single,
                })
            }
            Of::Group(_) | Of::Made { .. } => Err("no dataset".into()),
        }
    }
}

impl Arrays {
    /// Makes the files of a dataset whose elements `whole` gives in other rows than stored, of the extents `shape`:
    /// characters joined to texts, or a vector without its axis of length 1.
    pub(super) fn of_rows(path: &str, stored: &Arc<Dataset>, shape: Vec<u64>, whole: Column) -> Single {
        let rows = shape.first().copied().unwrap_or(1);
        let parts = parts(&shape);
        let files = forms::forms(&stored.described(|dataset| dataset.shape = shape));
        let attributes = stored.attributes.clone();
        Single {
            whole: Table { rows, columns: vec![whole], attributes, ..Table::empty(path, Arrays.about().name) },
            parts,
            labels: None,
            text: None,
            palette: None,
            shape: stored.shape.clone(),
            datatype: stored.datatype.clone(),
            files,
        }
    }
}

/// The column that a dataset at `path` makes in a table: slices along its first axis, read as they are for the dataset
/// by itself.
pub(super) fn column(file: &Arc<File>, path: &str, name: &BString, dataset: &Arc<Dataset>) -> Column {
    column_of(file, path, name, dataset, false)
}

/// Like [`column`], except that an explicit HDF5 fill value other than zero also means missing, and that rows of one
/// element become scalars. A zero fill does not count: software sets one even if its users set none.
pub(super) fn column_by_fill(file: &Arc<File>, path: &str, name: &BString, dataset: &Arc<Dataset>) -> Column {
    column_of(file, path, name, dataset, true)
}

fn column_of(file: &Arc<File>, path: &str, name: &BString, dataset: &Arc<Dataset>, by_fill: bool) -> Column {
    let of_numpy = OfNumpy::of(&dataset.datatype);
    let read = read(dataset, of_numpy.as_ref());
    let array = Array { file, path, name, dataset: &read, of_numpy, by_fill };
    // A column of elements is not the column of slices, so it gets another number.
    let field = u32::from(array.is_line() && read.shape.len() > 1);
    let column = match datasets::open(file, path, &read) {
        Ok(opened) => array.whole(&opened),
        Err(reason) => array.column(name.clone(), Err(reason), Arc::default()),
    };
    Column { dataset: Some(dataset.clone()), id: ColumnId { field, ..column.id }, ..column }
}

/// The dataset with the type that its producer means: PyTables stores booleans as bitfields, and seconds as times.
fn read(dataset: &Arc<Dataset>, of_numpy: Option<&OfNumpy>) -> Arc<Dataset> {
    let class = text(&dataset.attributes, "CLASS");
    let datatype = match (of_numpy, class.as_deref()) {
        (Some(of_numpy), _) => of_numpy.read.clone(),
        (None, Some("ARRAY" | "CARRAY" | "EARRAY" | "VLARRAY")) => {
            compound::read_as(&dataset.datatype, System::PYTABLES)
        }
        _ => return dataset.clone(),
    };
    if datatype == dataset.datatype {
        dataset.clone()
    } else {
        Arc::new(dataset.described(|dataset| dataset.datatype = datatype))
    }
}

/// A dataset whose files are being made.
struct Array<'a> {
    file: &'a Arc<File>,
    path: &'a str,
    name: &'a BString,
    dataset: &'a Arc<Dataset>,
    of_numpy: Option<OfNumpy>,
    /// Whether the HDF5 fill value also means missing.
    by_fill: bool,
}

impl Array<'_> {
    fn single(&self) -> Result<Single, Unreadable> {
        let opened = datasets::open(self.file, self.path, self.dataset)?;
        let rows = self.dataset.shape.first().copied().unwrap_or(1);
        Ok(Single {
            whole: self.table(rows, vec![self.whole(&opened)]),
            parts: Vec::new(),
            labels: None,
            text: self.text(&opened),
            palette: None,
            shape: self.dataset.shape.clone(),
            datatype: self.dataset.datatype.clone(),
            files: forms::forms(self.dataset),
        })
    }

    fn table(&self, rows: u64, columns: Vec<Column>) -> Table {
        Table {
            rows,
            columns,
            attributes: self.dataset.attributes.clone(),
            ..Table::empty(self.path, Arrays.about().name)
        }
    }

    /// The element that means missing.
    fn missing(&self) -> Fill {
        if let Some(of_numpy) = &self.of_numpy {
            return of_numpy.missing.clone();
        }
        match datasets::stated_fill(self.dataset) {
            Fill::Default if self.by_fill && !datasets::is_zero(&self.dataset.fill) => self.dataset.fill.clone(),
            stated => stated,
        }
    }

    /// Whether each row is a single element.
    fn is_line(&self) -> bool {
        self.dataset.shape.get(1..).is_none_or(|inner| inner.is_empty() || self.by_fill && product(inner) == Some(1))
    }

    /// Makes the column of the whole dataset: single elements, or slices along the first axis.
    fn whole(&self, opened: &Arc<store::StoredDataset>) -> Column {
        let tally = Arc::<Tally>::default();
        // A compound as a whole is never missing.
        let missing = if forms::is_compound(&self.dataset.datatype) {
            FillTest::none()
        } else {
            FillTest::new(&self.dataset.datatype, &self.missing())
        };
        let is_line = self.is_line();
        let rows: Arc<dyn Rows> = Arc::new(match is_line {
            true => DatasetRows::new(opened.clone(), u64::MAX, missing, tally.clone()),
            false => DatasetRows::along_first(opened.clone(), missing, tally.clone()),
        });
        let is_text = matches!(self.dataset.datatype.class, Class::VariableString { .. });
        let stored_strings =
            (is_text && is_line).then(|| Arc::new(StoredStrings::new(opened.clone(), u64::MAX)) as Arc<dyn Rows>);
        let times = match &self.of_numpy {
            _ if !is_line => None,
            Some(of_numpy) => of_numpy.times(self.file, rows.as_ref()),
            None => times::of(self.file, &self.dataset.attributes, rows.as_ref()),
        };
        let column = self.column(self.name.clone(), Ok(rows), tally);
        Column { stored_strings, meaning: Meaning { times: times.map(Box::new), ..column.meaning }, ..column }
    }

    /// The text of a scalar string: its bytes as stored, or, if it can be missing, its rows as in any column.
    fn text(&self, opened: &Arc<store::StoredDataset>) -> Option<Arc<dyn Rows>> {
        match self.missing() {
            _ if !forms::is_text(self.dataset) => None,
            Fill::Explicit(_) => self.whole(opened).rows.ok(),
            _ => Some(Arc::new(StoredStrings::new(opened.clone(), 1))),
        }
    }

    /// Opens the scale of the second axis of an array of rank 2, if the scale has a label for each index.
    fn labels(&self, interrupt: &Interrupt) -> Option<Arc<dyn Rows>> {
        let [_, places @ 0..=forms::MOST_PLACES] = *self.dataset.shape.as_slice() else { return None };
        let id = scales::attached(self.dataset, 1)?;
        let Object::Dataset(scale) = self.file.object(id, interrupt).ok()? else { return None };
        if scale.shape != [places] || scale.null || scales::is_pure_dimension(&scale) {
            return None;
        }
        let opened = datasets::open(self.file, self.path, &scale).ok()?;
        Some(Arc::new(DatasetRows::plain(opened, u64::MAX)))
    }

    /// Opens the palette of an image, if one of its files has colours of it.
    fn palette(&self, files: &[SingleFile], interrupt: &Interrupt) -> Option<Arc<dyn Rows>> {
        let mut ids = files.iter().filter_map(|file| match file.form {
            SingleForm::Png(Pixels { colour: Colour::Palette(id), .. }) => Some(id),
            _ => None,
        });
        let Object::Dataset(palette) = self.file.object(ids.next()?, interrupt).ok()? else { return None };
        let opened = datasets::open(self.file, self.path, &palette).ok()?;
        Some(Arc::new(DatasetRows::along_first(opened, FillTest::none(), Arc::default())))
    }

    fn column(&self, name: BString, rows: Result<Arc<dyn Rows>, Unreadable>, tally: Arc<Tally>) -> Column {
        Column {
            attributes: self.dataset.attributes.clone(),
            meaning: Meaning {
                units: times::units(&self.dataset.attributes).or_else(|| self.of_numpy.as_ref()?.units()),
                calendar: times::calendar(&self.dataset.attributes),
                description: text(&self.dataset.attributes, "description"),
                ..Meaning::default()
            },
            ..Column::new(name, self.path.to_owned(), ColumnId::whole(self.dataset.id), rows, tally)
        }
    }
}

/// Names of the elements of a row, one for each column of the CSV file; empty if it does not have such columns.
fn parts(shape: &[u64]) -> Vec<BString> {
    match shape {
        [_, places @ 0..=forms::MOST_PLACES] => (0..*places).map(|at| at.to_string().into()).collect(),
        _ => Vec::new(),
    }
}
