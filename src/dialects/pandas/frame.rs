//! Makes the table of a frame or a series in the format `table`.

use std::sync::Arc;

use bstr::{BStr, BString};

use super::encoding::StatedEncoding;
use super::plan::{FrameColumn, FramePlan};
use super::rules;
use super::stored::PandasAttribute;
use super::values::ColumnContent;
use super::{Pandas, is_table_format, servants, table_of};
use crate::catalogue::{Class, ColumnId, CompoundField, Dataset, Datatype, Fill, Group, Object, join};
use crate::dialects::attributes::text;
use crate::dialects::compound::{self, Covered, Indexed, System};
use crate::dialects::{Dialect, Of, Site, datasets, times};
use crate::source::Interrupt;
use crate::store::decode::FillTest;
use crate::store::{self, RowPart, Rows, Tally};
use crate::table::{
    Categories, CategoryRows, Column, DecodedRows, Finding, LabelRows, Meaning, Origin, OriginalName, Rule,
    SearchIndex, Table, Unreadable,
};

/// Makes the table of a group in the format `table`.
pub(super) fn table(site: &Site<'_>, group: &Group, interrupt: &Interrupt) -> Table {
    let empty = Table { attributes: group.attributes.clone(), ..Table::empty(site.path, Pandas.about().name) };
    let Some(dataset) = table_of(group) else {
        let found = "there is no table: a write that failed leaves such a group behind";
        let rule = &rules::TABLE;
        return Table { findings: vec![Finding::new(site.path, rule, found)], ..empty };
    };
    let mut frame = Frame::new(site, group, dataset, interrupt);
    let (columns, contents) = frame.columns();
    let columns: Vec<Column> = columns.into_iter().map(|column| column.with_missing_nan(site.file)).collect();
    let indexes = frame.indexes(&columns, &contents);
    Table {
        revision: "table format".into(),
        rows: dataset.shape.first().copied().unwrap_or(0),
        columns,
        indexes,
        categories: frame.categories,
        servants: servants(group, dataset).cloned().collect(),
        findings: frame.findings,
        ..empty
    }
}

/// The field that a column shows as a whole, and its content. `None`: the column shows part of a field, or other values
/// than the field's index covers.
type Whole<'a> = Option<(&'a CompoundField, ColumnContent)>;

/// The categories of a field, opened, and their content.
struct Labels {
    path: String,
    labels: Arc<dyn Rows>,
    datatype: Datatype,
    content: ColumnContent,
}

/// A frame whose columns are being made.
struct Frame<'a> {
    site: &'a Site<'a>,
    group: &'a Group,
    dataset: &'a Arc<Dataset>,
    /// All columns share one opened dataset, since that holds the state of reading ahead.
    opened: Result<Arc<store::StoredDataset>, Unreadable>,
    path: String,
    encoding: StatedEncoding,
    interrupt: &'a Interrupt,
    categories: Vec<Categories>,
    findings: Vec<Finding>,
}

impl<'a> Frame<'a> {
    fn new(site: &'a Site<'a>, group: &'a Group, dataset: &'a Arc<Dataset>, interrupt: &'a Interrupt) -> Self {
        let path = join(site.path, b"table");
        let opened = datasets::open(site.file, &path, dataset);
        let encoding = StatedEncoding::of(PandasAttribute::text(&group.attributes, "encoding").as_deref());
        Self { site, group, dataset, opened, path, encoding, interrupt, categories: Vec::new(), findings: Vec::new() }
    }

    /// Makes the columns. Also returns, for each that shows a whole field, the field and its content.
    fn columns(&mut self) -> (Vec<Column>, Vec<Whole<'a>>) {
        let Class::Compound { fields } = &self.dataset.datatype.class else { return Default::default() };
        let fields = compound::in_order(fields, System::PYTABLES).collect();
        let (dataset, group) = (self.dataset, self.group);
        let attributes = [&*group.attributes, &*dataset.attributes];
        let plan = FramePlan::new(self.site.path, attributes, fields, &mut self.findings);
        if let StatedEncoding::Unknown(name) = &self.encoding {
            self.report(&rules::ENCODING, format!("{name}: shown as if in UTF-8"));
        }
        let count = plan.columns.len();
        let (mut columns, mut contents) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for planned in &plan.columns {
            let field = planned.field.name.to_string();
            let content = ColumnContent::of(&field, planned.datatype, &plan, attributes, planned.is_label);
            let called = if planned.is_nameless { OriginalName::Nothing } else { OriginalName::Name };
            let origin = Origin { called, axis: plan.names.clone().filter(|_| !planned.is_label), ..Origin::default() };
            columns.push(self.column(planned, &content).with_origin(origin));
            let is_whole = std::ptr::eq(planned.datatype, &planned.field.datatype);
            // The search index covers the codes, not the instants or durations that they stand for.
            let is_counted =
                columns.last().is_some_and(|column| column.meaning.times.is_some() || column.meaning.units.is_some());
            let is_indexed = !(is_counted && matches!(content, ColumnContent::Codes { .. }));
            contents.push((is_whole && is_indexed).then_some((planned.field, content)));
        }
        datasets::tell_apart(&mut columns);
        (columns, contents)
    }

    /// Lists the search indexes of fields that are columns.
    fn indexes(&mut self, columns: &[Column], contents: &[Whole<'_>]) -> Vec<SearchIndex> {
        let group = self.group.link(b"_i_table").and_then(|link| link.target.object());
        let Some(Object::Group { id, attributes, .. }) = group else { return Vec::new() };
        if text(attributes, "CLASS").as_deref() != Some("TINDEX") {
            return Vec::new();
        }
        let find = |names: &[BString]| {
            let [name] = names else { return None };
            let fields = columns.iter().zip(contents);
            let (column, (field, content)) = fields
                .filter_map(|(column, content)| Some((column, content.as_ref()?)))
                .find(|(_, (field, _))| field.name == *name)?;
            let is_decoded = matches!((content, &self.encoding), (ColumnContent::Text(_), StatedEncoding::Other(_)));
            let reordered = is_decoded.then_some("its texts are decoded");
            let values = self.opened.clone().and_then(|opened| {
                let datatype = compound::read_as(&field.datatype, System::PYTABLES);
                let part = RowPart { datatype, offset: field.offset };
                compound::rows_of_part(self.dataset, &opened, part, FillTest::none(), &Arc::default())
            });
            let missing = Box::new(|datatype: &Datatype| content.missing(datatype, &Fill::Default));
            Some(Covered { column, below: Vec::new(), values, reordered, missing })
        };
        let path = join(self.site.path, b"_i_table");
        let indexed = Indexed { site: self.site, dataset: self.dataset, find: &find, interrupt: self.interrupt };
        let mut findings = Vec::new();
        let found = indexed.all(&path, *id, &mut findings);
        self.findings.append(&mut findings);
        found
    }

    fn report(&mut self, rule: &'static Rule, found: String) {
        self.findings.push(Finding::new(self.site.path, rule, found));
    }

    fn column(&mut self, planned: &FrameColumn<'_>, content: &ColumnContent) -> Column {
        let tally = Arc::<Tally>::default();
        let mut rows = self.rows(planned, content, &tally);
        let (mut categories, mut of_labels) = (None, None);
        if let (ColumnContent::Codes { ordered }, Ok(codes)) = (content, &rows) {
            let field = planned.field.name.as_slice();
            match self.labels(field) {
                Some(Labels { path, labels, datatype, content }) => {
                    let labelled = CategoryRows::new(path.clone(), codes.clone(), labels.clone(), tally.clone());
                    if content.are_counted() {
                        rows = Ok(Arc::new(LabelRows::new(labelled)));
                        of_labels = Some(content);
                    } else {
                        rows = Ok(Arc::new(labelled.ordered(*ordered)));
                        self.categories.push(Categories {
                            path,
                            labels: Ok(labels),
                            datatype,
                            ordered: Some(*ordered),
                        });
                        categories = Some(self.categories.len() - 1);
                    }
                }
                None => {
                    rows = self.rows(planned, &ColumnContent::Unlabelled, &tally);
                    self.report(&rules::CATEGORIES, format!("{}: there are none, codes are shown", BStr::new(field)));
                }
            }
        }
        let content = of_labels.as_ref().unwrap_or(content);
        let times = rows.as_ref().ok().and_then(|rows| content.times(self.site.file, rows.as_ref()));
        Column {
            is_label: planned.is_label,
            categories,
            dataset: Some(compound::part_of(self.dataset, planned.datatype, Fill::Default)),
            meaning: Meaning {
                times: times.map(Box::new),
                units: content.unit(),
                duration: content.unit().as_deref().and_then(times::unit_of),
                ..Meaning::default()
            },
            ..Column::new(
                planned.name.as_str().into(),
                self.path.clone(),
                ColumnId { object: self.dataset.id, field: planned.part },
                rows,
                tally,
            )
        }
    }

    /// Opens the values of a planned column as stored, with nulls.
    fn rows(
        &self,
        planned: &FrameColumn<'_>,
        content: &ColumnContent,
        tally: &Arc<Tally>,
    ) -> Result<Arc<dyn Rows>, Unreadable> {
        let opened = self.opened.as_ref().map_err(Clone::clone)?;
        let stored = compound::read_as(planned.datatype, System::PYTABLES);
        let of_part = |datatype, missing| {
            let part = RowPart { datatype, offset: planned.offset };
            compound::rows_of_part(self.dataset, opened, part, missing, tally)
        };
        let (StatedEncoding::Other(encoding), ColumnContent::Text(nan)) = (&self.encoding, content) else {
            let missing = content.missing(&stored, &Fill::Default);
            return of_part(stored, missing);
        };
        let bytes = of_part(DecodedRows::undecoded(stored.size), FillTest::none())?;
        let decoded = DecodedRows::new(self.path.clone(), bytes, stored, *encoding, nan.clone(), tally.clone());
        Ok(Arc::new(decoded))
    }

    /// Opens the categories of a field, which are the values of a separate series, `meta/FIELD/meta`. `None`: there are
    /// none that can be read.
    fn labels(&self, field: &[u8]) -> Option<Labels> {
        let below = |group: &Group, name: &[u8]| match group.link(name)?.target.object()? {
            Object::Group { id, .. } => self.site.file.group(*id, self.interrupt).ok(),
            _ => None,
        };
        let meta = below(self.group, b"meta")?;
        let series = below(&below(&meta, field)?, b"meta")?;
        let dataset = table_of(&series).filter(|_| is_table_format(&series.attributes))?;
        let path =
            [&b"meta"[..], field, b"meta"].iter().fold(self.site.path.to_owned(), |path, name| join(&path, name));
        let site =
            Site { file: self.site.file, path: &path, of: Of::Group(&series), servant: None, checks: self.site.checks };
        let mut frame = Frame::new(&site, &series, dataset, self.interrupt);
        let Class::Compound { fields } = &dataset.datatype.class else { return None };
        let fields = compound::in_order(fields, System::PYTABLES).collect();
        let attributes = [&*series.attributes, &*dataset.attributes];
        let plan = FramePlan::new(&path, attributes, fields, &mut frame.findings);
        let values = plan.columns.iter().find(|column| !column.is_label)?;
        let content = ColumnContent::of(&values.field.name.to_string(), values.datatype, &plan, attributes, false);
        let labels = frame.rows(values, &content, &Arc::default()).ok()?;
        Some(Labels { path, labels, datatype: values.datatype.clone(), content })
    }
}
