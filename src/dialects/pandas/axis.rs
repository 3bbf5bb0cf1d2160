//! Gathers the types of the names of a frame's columns, where these are more than texts.

use std::sync::Arc;

use arrow_schema::TimeUnit;

use crate::codec::pickle::PandasLabel;
use crate::table::{NameAxis, NameKind, NameLevel};

/// Most levels that an axis may have.
pub(super) const MOST_LEVELS: usize = 1000;

/// Collects the types of the labels of an axis, level by level.
#[derive(Debug, Default)]
pub(super) struct Kinds {
    levels: Vec<NameKind>,
    /// Whether a label has an unknown type, or labels differ in their number of levels or, if they have no levels, in
    /// type.
    is_unknown: bool,
    /// Whether some labels have several levels.
    has_levels: bool,
}

impl Kinds {
    /// Collects the types of these labels. `None` stands for an unknown label.
    pub fn of<'a>(labels: impl IntoIterator<Item = Option<PandasLabel<'a>>>) -> Self {
        let mut kinds = Self::default();
        labels.into_iter().for_each(|label| kinds.add(label.as_ref()));
        kinds
    }

    /// Adds the type of one label.
    pub fn add(&mut self, label: Option<&PandasLabel<'_>>) {
        self.has_levels |= matches!(label, Some(PandasLabel::Tuple(_)));
        let levels = match label {
            // pandas reads names of several levels as Python literals, and of these types only the two have literals.
            Some(PandasLabel::Tuple(labels)) if (2..=MOST_LEVELS).contains(&labels.len()) => labels
                .iter()
                .map(|label| kind(label).filter(|kind| matches!(kind, NameKind::Text | NameKind::Integer)))
                .collect(),
            label => label.and_then(kind).map(|kind| vec![kind]),
        };
        match levels {
            Some(levels) if self.levels.is_empty() => self.levels = levels,
            Some(levels) if self.levels == levels => {}
            Some(levels) if levels.len() > 1 && self.levels.len() == levels.len() => {
                let both = self.levels.iter_mut().zip(levels).filter(|(of_all, own)| *of_all != own);
                both.for_each(|(of_all, _)| *of_all = NameKind::Mixed);
            }
            _ => self.is_unknown = true,
        }
    }

    /// Makes the axis; `name` gives the name of a level. `None`: all names are plain texts, or they have levels, and
    /// types that are unknown.
    pub fn axis(self, name: impl Fn(usize) -> Option<String>) -> Option<Arc<NameAxis>> {
        let levels = match self.is_unknown {
            true if self.has_levels => return None,
            true => vec![NameKind::Text],
            false => self.levels,
        };
        let named = levels.into_iter().enumerate().map(|(at, kind)| NameLevel { name: name(at), kind });
        let levels: Vec<NameLevel> = named.collect();
        let is_plain = levels.iter().all(|level| level.name.is_none() && level.kind == NameKind::Text);
        (levels.len() > 1 || !is_plain).then(|| Arc::new(NameAxis { levels }))
    }
}

fn kind(label: &PandasLabel<'_>) -> Option<NameKind> {
    Some(match label {
        PandasLabel::Text(_) => NameKind::Text,
        PandasLabel::Integer(value) => i64::try_from(*value).ok().map(|_| NameKind::Integer)?,
        PandasLabel::Float(_) => NameKind::Float,
        PandasLabel::Timestamp { per_second, zone, .. } => {
            let unit = match per_second {
                1 => TimeUnit::Second,
                1_000 => TimeUnit::Millisecond,
                1_000_000 => TimeUnit::Microsecond,
                1_000_000_000 => TimeUnit::Nanosecond,
                _ => return None,
            };
            NameKind::Instant { unit, zone: zone.clone() }
        }
        _ => return None,
    })
}
