//! What the names of a frame's columns are beside texts.

use std::sync::Arc;

use arrow_schema::TimeUnit;

use super::plan::MOST_LEVELS;
use crate::codec::pickle::Label;
use crate::table::{NameAxis, NameKind, NameLevel};

/// Gathers the kinds of an axis' labels, level by level.
#[derive(Debug, Default)]
pub(super) struct Kinds {
    levels: Vec<NameKind>,
    /// Labels are of several kinds, or of one that is not told.
    is_unknown: bool,
    /// Some have several levels.
    has_levels: bool,
}

impl Kinds {
    /// Gathers them of these labels; `None` is a label that is not understood.
    pub fn of<'a>(labels: impl IntoIterator<Item = Option<Label<'a>>>) -> Self {
        let mut kinds = Self::default();
        labels.into_iter().for_each(|label| kinds.add(label.as_ref()));
        kinds
    }

    /// Adds what one more label is.
    pub fn add(&mut self, label: Option<&Label<'_>>) {
        self.has_levels |= matches!(label, Some(Label::Tuple(_)));
        let levels = match label {
            // pandas reads names of several levels as literals of Python: other labels than these have none.
            Some(Label::Tuple(labels)) if (2..=MOST_LEVELS).contains(&labels.len()) => labels
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

    /// Makes the axis; `name` tells what a level is called. `None` where names are no more than their texts.
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

fn kind(label: &Label<'_>) -> Option<NameKind> {
    Some(match label {
        Label::Text(_) => NameKind::Text,
        Label::Integer(value) => i64::try_from(*value).ok().map(|_| NameKind::Integer)?,
        Label::Float(_) => NameKind::Float,
        Label::Timestamp { per_second, zone, .. } => {
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
