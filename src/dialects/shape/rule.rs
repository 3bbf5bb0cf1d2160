//! The rule that decides, by a group's listing, whether its members make a table.
//!
//! The rule uses no values, and of names only the numbers in them and the few listed below. `scripts/check/shape`
//! implements the rule a second time.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bstr::{BString, ByteSlice};

use crate::catalogue::{Attribute, Class, Dataset, Group, Link, Object, Target, attribute, product};
use crate::dialects::attributes::text;

/// To be increased whenever the rule changes its verdict on any group.
pub(super) const VERSION: u32 = 7;

/// Tables of up to this many rows need [`SOME_COLUMNS`] columns, or texts or compounds beside other columns, or three
/// columns of texts.
const FEW_ROWS: u64 = 3;
/// Fewest columns of one kind in a table of up to [`FEW_ROWS`] rows.
const SOME_COLUMNS: usize = 4;

/// In tables of up to this many rows, more than two thirds of the members must have that many rows; in longer ones,
/// more than half.
const SHORT: u64 = 16;

/// In a table of three rows, fewer columns of floats than this count as vectors in space.
const SOME_VECTORS: usize = 6;

/// Arrays of one inner shape that have more elements in a row than this, and no line beside them, are fields on a grid.
const MOST_ALIKE: u64 = 16;

/// Parts of names that do not describe the content of a dataset.
const NO_NAMES: [&str; 2] = ["dataset", "dset"];
/// Names that, before a number or without one, do not describe the content of a dataset.
const TYPES: [&str; 7] = ["int", "uint", "float", "double", "bool", "string", "complex"];

/// With more single values per column than this, the group is a record. A group of two or three rows may have only as
/// many single values as columns.
const MOST_VALUES: usize = 4;

/// Most columns in a table: each takes some KiB while its group is listed.
const MOST_COLUMNS: usize = 16_384;

/// Numbers of dimensions of space: as many columns may be the axes of space.
const AXES: [u64; 2] = [2, 3];

/// Most further row sets that a group may show.
const MOST_SETS: usize = 64;

/// Most elements in a row of a column.
const MOST_WIDE: u64 = 1 << 20;
/// Most elements in a row of rank 3 or more, which may be an image, beside two other columns.
const MOST_NESTED: u64 = 1_024;

/// Names of groups that serve the groups and datasets beside them.
const SERVANTS: [&str; 3] = ["__categories", "@library", "indexes"];

/// Suffix of the names of pointers into compressed rows or columns: the lengths of datasets beside them agree only by
/// chance.
const POINTERS: &str = "indptr";

/// Pairs of member names that belong to one thing.
const PARTS: [[&str; 2]; 6] = [
    ["eigenvalues", "eigenvectors"],
    ["ir", "jc"],
    ["cumulative_length", "flattened_data"],
    ["values", "mask"],
    ["values", "offsets"],
    // A positioner of NeXus: its actual and its demanded position.
    ["value", "value_set"],
];

/// Suffix of the names of astropy's descriptions of a table, which have lines instead of rows.
const DESCRIPTION: &str = ".__table_column_meta__";

/// Names of members that have a number for each axis.
const SIZES: [&str; 6] = ["dims", "dimension", "dimensions", "shape", "origin", "spacing"];
/// Most axes for which one member may have numbers.
const MOST_AXES: u64 = 8;

/// Groups that MATLAB keeps beside its variables.
const OF_MATLAB: [&str; 2] = ["/#refs#", "/#subsystem#"];

/// Attributes that the root group of a file of Keras has.
const OF_KERAS: [&str; 3] = ["keras_version", "model_config", "layer_names"];

/// The verdict of the rule on a group.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ShapeMatch {
    /// The group is a table, with this number of rows.
    Table(u64),
    /// The group is not a table, for this reason, although some members have the same length.
    Nearly(String),
    Nothing,
}

/// The members of a group that may be columns, and what was counted of them.
#[derive(Debug)]
pub(super) struct Shapes<'a> {
    members: Vec<(&'a BString, &'a Arc<Dataset>)>,
    /// Counts of members, by the length of their first axis.
    counts: HashMap<u64, Count<'a>>,
    /// Whether some member is longer than one. Then members of a single element, or of none, do not count.
    has_longer: bool,
    /// Number of datasets with a single element, scalars included.
    values: usize,
    /// A member of which lines label two axes, if there is one.
    grid: Option<&'a BString>,
    /// For each of [`AXES`], a member with as many numbers, such as an origin or a spacing.
    of_axes: [Option<&'a BString>; AXES.len()],
}

/// Counts of the members of one length.
#[derive(Clone, Copy, Debug)]
struct Count<'a> {
    rows: u64,
    /// Number of members of any rank.
    all: usize,
    /// Number of members that are neither images nor wider than a column may be.
    narrow: usize,
    /// Number of members of rank 1, or with a single element in each row.
    lines: usize,
    /// Number of members of a higher rank that are not [deep](is_deep).
    wide: usize,
    /// Number of lines of numbers.
    numbers: usize,
    /// Number of columns that have a letter in their names.
    named: usize,
    /// Number of columns whose names do not describe them.
    nameless: usize,
    /// The name of one column.
    name: Option<&'a BString>,
    /// Whether the names of all columns differ only in numbers.
    alike: bool,
    /// The inner extents of one column.
    inner: Option<&'a [u64]>,
    /// Whether all columns have the same inner extents.
    uniform: bool,
    /// The largest extent of a column along an axis other than the first.
    longest: u64,
    /// Whether a line of numbers is as long as a column along an axis other than the first.
    labelled: bool,
    integers: usize,
    floats: usize,
    /// Number of columns of texts or compounds.
    texts: usize,
    /// Number of lines of compounds.
    compounds: usize,
    /// Number of columns of texts of a single byte.
    characters: usize,
    /// Whether all columns can grow.
    grows: bool,
}

impl Count<'_> {
    const NONE: Self = Self {
        rows: 0,
        all: 0,
        narrow: 0,
        lines: 0,
        wide: 0,
        numbers: 0,
        named: 0,
        nameless: 0,
        name: None,
        alike: true,
        inner: None,
        uniform: true,
        longest: 0,
        labelled: false,
        integers: 0,
        floats: 0,
        texts: 0,
        compounds: 0,
        characters: 0,
        grows: true,
    };

    fn columns(&self) -> usize {
        self.lines + self.wide
    }

    /// Whether images count as columns, because fewer than two other members have this length.
    fn has_images(&self) -> bool {
        self.narrow < 2
    }

    /// Whether there are enough columns for a table.
    fn is_pair(&self) -> bool {
        self.columns() >= 2 && (self.lines >= 1 || self.is_of_arrays())
    }

    /// Whether the first axis is that of rows, although no line shows it. It must be longer than all others, no line of
    /// numbers may label those, and the columns must differ.
    fn is_of_arrays(&self) -> bool {
        // Columns are narrow enough for this product not to overflow.
        let elements = self.inner.unwrap_or_default().iter().product::<u64>();
        let is_field = self.uniform && elements > MOST_ALIKE;
        self.rows > FEW_ROWS && self.longest < self.rows && !self.labelled && !self.alike && !is_field
    }
}

impl<'a> Shapes<'a> {
    pub fn of(group: &'a Group) -> Self {
        let mut members: Vec<_> = group.links.iter().filter_map(|link| member(link).ok()).collect();
        let has_longer = members.iter().any(|(_, dataset)| dataset.shape[0] > 1);
        let values = group.links.iter().filter_map(|link| link.target.object());
        let values = values.filter(|object| matches!(object, Object::Dataset(dataset) if is_value(dataset))).count();
        members.retain(|(_, dataset)| !has_longer || !is_value(dataset) && dataset.shape[0] > 0);
        let is_number = |dataset: &Dataset| is_line(dataset) && !is_text(dataset);
        let of_axes = AXES.map(|axes| {
            members.iter().find(|(_, dataset)| is_number(dataset) && dataset.shape[0] == axes).map(|(name, _)| *name)
        });
        members.retain(|(name, dataset)| !is_size(name, dataset));
        let numbers = members.iter().filter(|(_, dataset)| is_number(dataset));
        let of_numbers: HashSet<u64> = numbers.map(|(_, dataset)| dataset.shape[0]).collect();
        let names = members.iter().filter(|(_, dataset)| is_line(dataset) && is_text(dataset) && !is_compound(dataset));
        let of_names: HashSet<u64> = names.map(|(_, dataset)| dataset.shape[0]).collect();
        let mut counts = HashMap::<u64, Count<'a>>::new();
        for (_, dataset) in &members {
            let rows = dataset.shape[0];
            let count = counts.entry(rows).or_insert(Count { rows, ..Count::NONE });
            count.all += 1;
            count.narrow += usize::from(!is_deep(dataset, false));
        }
        for (name, dataset) in &members {
            let (rows, inner) = (dataset.shape[0], &dataset.shape[1..]);
            let Some(count) = counts.get_mut(&rows) else { continue };
            if is_line(dataset) {
                count.lines += 1;
                count.numbers += usize::from(!is_text(dataset));
                count.compounds += usize::from(is_compound(dataset));
            } else if !is_deep(dataset, count.has_images()) {
                count.wide += 1;
            } else {
                continue;
            }
            count.named += usize::from(name.iter().any(|byte| byte.is_ascii_alphabetic() || !byte.is_ascii()));
            count.uniform &= *count.inner.get_or_insert(inner) == inner;
            count.longest = inner.iter().copied().fold(count.longest, u64::max);
            count.labelled |= inner.iter().any(|extent| *extent > FEW_ROWS && of_numbers.contains(extent));
            count.integers += usize::from(matches!(dataset.datatype.class, Class::Integer { .. }));
            count.floats += usize::from(matches!(dataset.datatype.class, Class::Float { .. }));
            count.nameless += usize::from(says_nothing(name));
            count.alike &= stem(count.name.get_or_insert(name)).eq(stem(name));
            count.texts += usize::from(is_text(dataset));
            count.characters += usize::from(is_character(dataset));
            count.grows &=
                dataset.max_shape.first().is_some_and(|most| most.is_none_or(|most| most > dataset.shape[0]));
        }
        let grid = members.iter().find(|(_, dataset)| {
            let Some((rows, inner)) = dataset.shape.split_first() else { return false };
            // If there are more lines than the dataset has axes, the lines do not label its axes, and it is a column of
            // arrays.
            if counts.get(rows).is_some_and(|count| count.lines > dataset.shape.len()) {
                return false;
            }
            // Two lines of two or three numbers are vectors, and label nothing.
            let extents = std::iter::once(rows).chain(inner).filter(|extent| **extent > 1).filter(|extent| {
                let has_lines = counts.get(extent).is_some_and(|count| count.lines >= 2);
                !AXES.contains(extent) || *extent == rows || !has_lines
            });
            // Beside numbers, texts and compounds name rows, or elements of a row, as sites beside a time line do.
            // Without numbers, they name the rows and columns of a matrix.
            if of_numbers.is_empty() {
                extents.filter(|extent| of_names.contains(*extent)).collect::<HashSet<_>>().len() >= 2
            } else {
                extents.filter(|extent| of_numbers.contains(*extent)).count() >= 2
            }
        });
        let grid = grid.map(|(name, _)| *name);
        Self { members, counts, has_longer, values, grid, of_axes }
    }

    /// The row set to which most members belong, or else the one with the most lines.
    fn first(&self) -> Option<&Count<'a>> {
        self.counts
            .values()
            .max_by_key(|count| (count.is_pair() && self.is_most(count), count.lines, count.wide, count.rows))
    }

    /// Whether most members belong to this row set.
    fn is_most(&self, count: &Count<'_>) -> bool {
        let all = self.members.len();
        if count.rows > SHORT { 2 * count.all > all } else { 3 * count.all > 2 * all }
    }

    /// Whether some row set has enough columns for a table.
    pub fn is_pair(&self) -> bool {
        self.first().is_some_and(Count::is_pair)
    }

    /// Decides whether the group is a table. With `is_loose`, most members need not be columns, and rows may be few.
    pub fn table(&self, is_loose: bool) -> ShapeMatch {
        let Some(count) = self.first().filter(|count| count.is_pair()) else { return ShapeMatch::Nothing };
        let (rows, columns) = (count.rows, count.columns());
        if let Some(reason) = self.refused(count, is_loose) {
            return ShapeMatch::Nearly(reason);
        }
        if !is_loose && !self.is_most(count) {
            let others = self.members.len() - count.all;
            return ShapeMatch::Nearly(format!("{columns} datasets have {rows} rows, and {others} others have not"));
        }
        ShapeMatch::Table(rows)
    }

    /// Why the members of one length are not a table. `None`: they are one.
    fn refused(&self, count: &Count<'_>, is_loose: bool) -> Option<String> {
        let (rows, columns) = (count.rows, count.columns());
        if columns > MOST_COLUMNS {
            return Some(format!("{columns} datasets have {rows} rows; a table has at most {MOST_COLUMNS} columns"));
        }
        if let Some(name) = self.grid {
            return Some(format!("{name} has two axes as long as other datasets: a grid"));
        }
        if rows == 0 && self.counts.len() > 1 {
            return Some(format!("{columns} datasets have no rows, others have"));
        }
        let is_few = (2..=FEW_ROWS).contains(&rows);
        if self.values > columns.saturating_mul(if is_few { 1 } else { MOST_VALUES }) {
            return Some(format!("{columns} datasets have {rows} rows beside {} single values: a record", self.values));
        }
        let is_numbers = count.integers == columns && columns >= SOME_COLUMNS;
        let is_series = count.alike && (is_numbers || count.texts == columns || columns as u64 >= rows);
        if count.named == 0 || is_series {
            return Some(format!("{columns} datasets of {rows} rows are numbered: items of a list"));
        }
        if 2 * count.nameless >= columns {
            return Some(format!("the names of {columns} datasets of {rows} rows do not describe them"));
        }
        if count.compounds == columns && (rows <= FEW_ROWS || !self.is_of_like_fields(rows)) {
            return Some(format!("{columns} datasets of {rows} compounds: tables beside each other"));
        }
        if count.characters == columns {
            return Some(format!("{columns} datasets of {rows} single characters: texts"));
        }
        let of_axes =
            AXES.iter().zip(self.of_axes).find(|(axes, _)| **axes == columns as u64 && count.numbers == columns);
        if let Some((_, Some(name))) = of_axes.filter(|_| rows != columns as u64) {
            return Some(format!("{name} has a number for each of {columns} datasets of {rows} rows: axes"));
        }
        if rows < 2 && !count.grows {
            return Some(format!("{columns} datasets have {rows} rows, and not all of them can grow"));
        }
        if !is_loose
            && rows <= FEW_ROWS
            && columns < if rows == 3 && count.floats == columns { SOME_VECTORS } else { SOME_COLUMNS }
            && (count.texts == 0 || columns == 2 && count.texts == 2)
        {
            return Some(format!(
                "{columns} datasets of one kind have {rows} rows; up to {FEW_ROWS} rows take more of them"
            ));
        }
        None
    }

    /// Whether the compounds of one length have the same field names.
    fn is_of_like_fields(&self, rows: u64) -> bool {
        let mut names = self.columns(rows).map(|(_, dataset)| match &dataset.datatype.class {
            Class::Compound { fields } => fields.iter().map(|field| &field.name).collect(),
            _ => Vec::new(),
        });
        let first = names.next();
        names.all(|own| Some(own) == first)
    }

    /// Lengths of the group's further row sets, in ascending order.
    pub fn others(&self, own: u64, is_loose: bool) -> Vec<u64> {
        let mut sets: Vec<&Count<'_>> = self
            .counts
            .values()
            .filter(|count| count.rows != own && count.is_pair() && self.refused(count, is_loose).is_none())
            .collect();
        sets.sort_by_key(|count| std::cmp::Reverse((count.columns(), count.rows)));
        let mut rows: Vec<u64> = sets.into_iter().take(MOST_SETS).map(|count| count.rows).collect();
        rows.sort_unstable();
        rows
    }

    fn has_images(&self, rows: u64) -> bool {
        self.counts.get(&rows).is_some_and(Count::has_images)
    }

    /// The columns of the row set of one length.
    pub fn columns(&self, rows: u64) -> impl Iterator<Item = (&'a BString, &'a Arc<Dataset>)> {
        let with_images = self.has_images(rows);
        self.members.iter().filter(move |(_, dataset)| no_column(dataset, rows, with_images).is_none()).copied()
    }

    /// Why the target of a link is not a column of the group's table. `None`: it is one, or it is not a dataset.
    pub fn left_out(&self, link: &Link, rows: u64) -> Option<Cow<'static, str>> {
        link.target.dataset()?;
        match member(link) {
            Err(reason) => Some(reason.into()),
            Ok((name, dataset)) if is_size(name, dataset) => Some("a number for each axis".into()),
            Ok((_, dataset)) if self.has_longer && is_value(dataset) => Some("one value beside longer ones".into()),
            Ok((_, dataset)) => no_column(dataset, rows, self.has_images(rows)),
        }
    }
}

/// Why a member is not a column of the row set of one length. `None`: it is one.
fn no_column(dataset: &Dataset, rows: u64, with_images: bool) -> Option<Cow<'static, str>> {
    let own = dataset.shape[0];
    if own != rows {
        return Some(format!("{own} rows, the table has {rows}").into());
    }
    let (rank, inner) = (dataset.shape.len(), elements_of_row(dataset));
    is_deep(dataset, with_images).then(|| format!("rank {rank} with {inner} elements in a row").into())
}

/// Whether a row has more elements than a column may have. `with_images` says that images count as columns.
fn is_deep(dataset: &Dataset, with_images: bool) -> bool {
    let is_narrow = dataset.shape.len() > 2 && !with_images;
    elements_of_row(dataset) > if is_narrow { MOST_NESTED } else { MOST_WIDE }
}

/// Whether a dataset has a single element.
fn is_value(dataset: &Dataset) -> bool {
    !dataset.null && product(&dataset.shape) == Some(1)
}

/// Whether each row has a single element. If rows are few, a higher rank does not show which axis is that of rows.
fn is_line(dataset: &Dataset) -> bool {
    dataset.shape.len() == 1 || elements_of_row(dataset) == 1 && dataset.shape[0] > FEW_ROWS
}

/// Whether a member holds one number for each axis.
fn is_size(name: &BString, dataset: &Dataset) -> bool {
    SIZES.iter().any(|size| name.eq_ignore_ascii_case(size.as_bytes()))
        && matches!(*dataset.shape, [axes] if axes <= MOST_AXES)
        && !is_text(dataset)
}

/// Whether a name does not describe the content of a dataset.
fn says_nothing(name: &[u8]) -> bool {
    let word = name.trim_end_with(|end| end.is_ascii_digit());
    TYPES.iter().any(|datatype| word.eq_ignore_ascii_case(datatype.as_bytes()))
        || NO_NAMES.iter().any(|part| name.windows(part.len()).any(|own| own.eq_ignore_ascii_case(part.as_bytes())))
}

/// The name, with each number in it replaced by a zero.
fn stem(name: &[u8]) -> impl Iterator<Item = u8> {
    let is_digit = |at: usize| name.get(at).is_some_and(u8::is_ascii_digit);
    name.iter()
        .enumerate()
        .filter(move |(at, _)| !is_digit(*at) || *at == 0 || !is_digit(*at - 1))
        .map(move |(at, byte)| if is_digit(at) { b'0' } else { *byte })
}

fn elements_of_row(dataset: &Dataset) -> u64 {
    product(&dataset.shape[1..]).unwrap_or(u64::MAX)
}

/// The dataset to which a link leads, if it may be a column, or else why it may not.
fn member(link: &Link) -> Result<(&BString, &Arc<Dataset>), &'static str> {
    let dataset = match &link.target {
        Target::Hard(Object::Dataset(dataset)) => dataset,
        _ => return Err("no hard link to a dataset"),
    };
    match dataset.shape.split_first() {
        _ if dataset.null => Err("a null dataspace"),
        _ if link.name.ends_with(DESCRIPTION.as_bytes()) => Err("a description of the table beside it"),
        None => Err("a scalar"),
        Some((_, inner)) if inner.contains(&0) => Err("rows without elements"),
        Some(_) if dataset.datatype.is_reference() => Err("references alone"),
        Some(_) => Ok((&link.name, dataset)),
    }
}

/// Whether elements are texts or compounds.
fn is_text(dataset: &Dataset) -> bool {
    matches!(dataset.datatype.class, Class::FixedString { .. } | Class::VariableString { .. }) || is_compound(dataset)
}

/// Whether elements are compounds other than complex numbers.
fn is_compound(dataset: &Dataset) -> bool {
    matches!(dataset.datatype.class, Class::Compound { .. }) && dataset.datatype.complex_part().is_none()
}

/// Whether elements are texts of a single byte.
fn is_character(dataset: &Dataset) -> bool {
    matches!(dataset.datatype.class, Class::FixedString { .. }) && dataset.datatype.size == 1
}

/// Finds evidence that a group is something other than its shapes suggest. `root` has the attributes of the root group.
pub(super) fn marked(path: &str, group: &Group, root: &[Attribute]) -> Option<String> {
    let name = path.rsplit('/').next().unwrap_or_default();
    if let Some(above) = OF_MATLAB
        .iter()
        .find(|above| path.strip_prefix(**above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
    {
        return Some(format!("it lies in {above}"));
    }
    if SERVANTS.contains(&name) {
        return Some(format!("a group called {name} serves what is beside it"));
    }
    if let Some(name) = OF_KERAS.iter().find(|name| attribute(root, name).is_some()) {
        return Some(format!("the root group has the attribute {name}"));
    }
    for (whose, attributes) in [("it", &*group.attributes), ("the root group", root)] {
        if let Some(what) = marked_by(attributes) {
            return Some(format!("{whose} has the attribute {what}"));
        }
    }
    if let Some(link) = group.links.iter().find(|link| link.name.ends_with(POINTERS.as_bytes())) {
        return Some(format!("{} points into what is beside it", link.name));
    }
    let mut pairs = PARTS.iter();
    let pair = pairs.find(|parts| parts.iter().all(|part| group.links.iter().any(|link| link.name == **part)));
    if let Some([one, other]) = pair {
        return Some(format!("{one} and {other} are parts of one thing"));
    }
    group.links.iter().find_map(|link| {
        let dataset = link.target.dataset()?;
        let has = |name| attribute(&dataset.attributes, name).is_some();
        if has("MATLAB_class") {
            return Some(format!("{} has the attribute MATLAB_class", link.name));
        }
        let is_scale = text(&dataset.attributes, "CLASS").as_deref() == Some("DIMENSION_SCALE");
        (is_scale || has("DIMENSION_LIST")).then(|| format!("{} belongs to dimension scales (see --grids)", link.name))
    })
}

/// Finds the attribute that states another kind for a group, and what it says.
fn marked_by(attributes: &[Attribute]) -> Option<String> {
    if let Some(name) = ["MATLAB_class", "encoding-type"].iter().find(|name| attribute(attributes, name).is_some()) {
        return Some((*name).to_owned());
    }
    let said = |name: &str| attribute(attributes, name).map(|_| text(attributes, name).unwrap_or_default());
    said("datatype")
        .filter(|said| !said.starts_with("table"))
        .map(|said| format!("datatype {said:?}"))
        .or_else(|| said("CLASS").filter(|said| said != "GROUP").map(|said| format!("CLASS {said:?}")))
}
