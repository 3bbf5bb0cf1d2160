//! A column of bin edges.

use std::sync::{Arc, OnceLock};

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{ArrayRef, Float64Array};
use arrow_schema::DataType;

use crate::source::Interrupt;
use crate::store::{Error, Facts, RowRange, Rows, Summaries};

/// The edges of the bins along an axis of a histogram.
#[derive(Debug)]
pub enum Edges {
    /// Bins of equal width.
    Even {
        /// The lower edge of the first bin.
        first: f64,
        /// The upper edge of the last bin.
        last: f64,
        /// Number of bins.
        bins: u64,
    },
    /// Stored edges as float64, one more than there are bins.
    Stored {
        /// The edges.
        rows: Arc<dyn Rows>,
        /// All edges in memory, after the first read.
        read: OnceLock<Float64Array>,
    },
}

impl Edges {
    /// Number of bins.
    pub fn bins(&self) -> u64 {
        match self {
            Self::Even { bins, .. } => *bins,
            Self::Stored { rows, .. } => rows.len().saturating_sub(1),
        }
    }

    /// An edge by its number; for even bins computed as `numpy.linspace` does.
    fn at(&self, edge: u64, interrupt: &Interrupt) -> Result<f64, Error> {
        match self {
            Self::Even { last, bins, .. } if edge >= *bins => Ok(*last),
            Self::Even { first, last, bins } => Ok(edge as f64 * ((last - first) / *bins as f64) + first),
            Self::Stored { rows, read } => {
                let edges = match read.get() {
                    Some(edges) => edges,
                    None => {
                        let edges = rows.array(0..rows.len(), interrupt)?.as_primitive::<Float64Type>().clone();
                        read.get_or_init(|| edges)
                    }
                };
                Ok(edges.values().get(edge as usize).copied().unwrap_or(f64::NAN))
            }
        }
    }
}

/// For each weight of a histogram, an edge of its bin along one axis. The weights lie in one sequence, whatever the
/// number of axes.
#[derive(Debug)]
pub struct EdgeRows {
    edges: Arc<Edges>,
    /// Number of consecutive weights that share a bin of the axis.
    inner: u64,
    facts: Facts,
    /// 0 for lower edges, 1 for upper ones.
    side: u64,
}

impl EdgeRows {
    /// The lower or upper edges for `len` weights; each `inner` consecutive ones share a bin of this axis.
    pub fn new(edges: Arc<Edges>, inner: u64, len: u64, is_upper: bool) -> Self {
        Self { edges, inner, facts: Facts::new(len, DataType::Float64), side: is_upper.into() }
    }
}

impl Rows for EdgeRows {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn array(&self, range: RowRange, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
        let (inner, bins) = (self.inner.max(1), self.edges.bins().max(1));
        let edges = range.map(|row| self.edges.at(row / inner % bins + self.side, interrupt));
        Ok(Arc::new(edges.collect::<Result<Vec<f64>, Error>>().map(Float64Array::from)?))
    }

    fn known(&self) -> Option<&dyn Summaries> {
        Some(self)
    }
}

impl Summaries for EdgeRows {
    fn is_computed(&self, _: &Interrupt) -> bool {
        true
    }
}
