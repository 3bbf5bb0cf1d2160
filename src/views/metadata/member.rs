//! Members of groups. A group may have very many, so the description of each is made as it is written.

use std::borrow::Cow;
use std::sync::Arc;

use bstr::BString;
use serde_json::{Map, Value};

use super::{attributes_value, datatype, fill_value, filters_value, insert_name, layout_value};
use crate::catalogue::Dataset;

/// A member of a group, as the listing shows it.
#[derive(Clone, Debug)]
pub struct ShownMember {
    /// Name of the member's link.
    pub name: BString,
    /// Kind of the member: `table`, `group`, `array`, `link`, …
    pub kind: &'static str,
    /// File names under which the member is shown.
    pub shown_as: ShownAs,
    /// Why the member, or one of its views, is not shown.
    pub not_shown: Vec<Cow<'static, str>>,
    /// Why the member is not a column of its group's table.
    pub left_out: Option<Cow<'static, str>>,
    /// Details that depend on the member's kind.
    pub details: Details,
}

/// File names of a member.
#[derive(Clone, Debug, Default)]
pub enum ShownAs {
    /// The member is not shown.
    #[default]
    Nothing,
    /// Shown under one name.
    Name(BString),
    /// Shown under a stem with each of these suffixes.
    Files(BString, Arc<[&'static str]>),
}

/// Details that depend on the kind of a member.
#[derive(Clone, Debug, Default)]
pub enum Details {
    /// No details.
    #[default]
    None,
    /// A dataset that is not a column, and the names of its dimensions.
    Array(Arc<Dataset>, Option<Arc<[Option<BString>]>>),
    /// The target of a soft link.
    Soft(BString),
    /// The file and path of an external link.
    External(Box<(BString, BString)>),
}

impl ShownMember {
    /// Returns a member that is not shown so far.
    pub fn new(name: &BString, kind: &'static str) -> Self {
        let (name, shown_as, details) = (name.clone(), ShownAs::Nothing, Details::None);
        Self { name, kind, shown_as, not_shown: Vec::new(), left_out: None, details }
    }

    /// Returns the member's entry in `metadata.json`; `known` is the value of a small scalar.
    pub fn value(&self, known: Option<&Value>) -> Value {
        let mut value = Map::new();
        insert_name(&mut value, &self.name);
        value.insert("kind".into(), self.kind.into());
        self.insert_views(&mut value);
        match &self.details {
            Details::None => {}
            Details::Array(dataset, axes) => insert_array(&mut value, dataset, axes.as_deref()),
            Details::Soft(path) => {
                value.insert("target".into(), path.to_string().into());
            }
            Details::External(place) => {
                value.insert("file".into(), place.0.to_string().into());
                value.insert("target".into(), place.1.to_string().into());
            }
        }
        if let Some(known) = known {
            value.insert("value".into(), known.clone());
        }
        value.into()
    }

    /// Returns the member's dataset. `None`: the member is a column, or not a dataset.
    pub fn dataset(&self) -> Option<&Dataset> {
        match &self.details {
            Details::Array(dataset, _) => Some(dataset),
            _ => None,
        }
    }

    /// Returns the class of the elements of the member's dataset.
    pub fn class(&self) -> Option<String> {
        Some(datatype::value(&self.dataset()?.datatype)["class"].as_str()?.to_owned())
    }

    /// Returns the names under which the member is shown.
    pub fn names(&self) -> Vec<String> {
        match &self.shown_as {
            ShownAs::Nothing => Vec::new(),
            ShownAs::Name(name) => vec![name.to_string()],
            ShownAs::Files(stem, suffixes) => {
                let stem = stem.to_string();
                suffixes.iter().map(|suffix| format!("{stem}{suffix}")).collect()
            }
        }
    }

    /// Inserts the names under which the member is shown, and the reasons why it, or one of its views, is not.
    pub(super) fn insert_views(&self, value: &mut Map<String, Value>) {
        value.insert("shown_as".into(), self.names().into());
        if !self.not_shown.is_empty() {
            value.insert("not_shown".into(), self.not_shown.iter().map(|reason| &**reason).collect());
        }
    }
}

fn insert_array(value: &mut Map<String, Value>, dataset: &Dataset, axes: Option<&[Option<BString>]>) {
    value.insert("shape".into(), if dataset.null { Value::Null } else { dataset.shape.clone().into() });
    if let Some(axes) = axes {
        let names = axes.iter().map(|axis| axis.as_ref().map_or(Value::Null, |name| name.to_string().into()));
        value.insert("dimensions".into(), names.collect());
    }
    value.insert("datatype".into(), datatype::value(&dataset.datatype));
    value.insert("fill".into(), fill_value(&dataset.datatype, &dataset.fill));
    value.insert("layout".into(), layout_value(&dataset.layout));
    value.insert("filters".into(), filters_value(&dataset.filters));
    value.insert("attributes".into(), attributes_value(&dataset.attributes));
}
