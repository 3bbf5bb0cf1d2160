//! From the values of a sample to the data of a picture, and to figures.

use std::cmp::Ordering;
use std::collections::HashMap;

use super::values::{Form, Kind, Piece};
use super::{
    Bars, BarsOf, ColumnPicture, Counted, Figures, Label, Labels, NoPicture, Number, Order, Scale, Stretch, Trace,
    Values, Width, edges, words,
};
use crate::store::statistics::{Scalar, Summary};

/// Bars of numbers.
const BARS: u64 = 48;

/// Bars of times.
const BARS_OF_TIMES: u64 = 160;

/// Most bars with one value each.
const MOST_SINGLE: i128 = 130;

/// The part of the values that lies within the bars, from either end.
const QUANTILE: f64 = 0.005;

/// By how much of their span bars go beyond these.
const BEYOND: f64 = 0.06;

/// How many medians the upper quantile of positive numbers exceeds where their axis is logarithmic.
const SKEWED: f64 = 20.0;

/// How many spans of the bars lie between least and greatest value where an axis over the rows is cut.
const CUT: f64 = 10.0;

/// Labels that are named.
const NAMED: usize = 5;

/// Fewest texts whose lengths are drawn where nearly all differ.
const FEW_TEXTS: u64 = 20;

/// A column's sample, and the known facts of all its rows.
pub struct Sampled<'a> {
    pub kind: Kind,
    /// Rows of the column.
    pub rows: u64,
    pub pieces: &'a [Piece],
    /// Statistics of all rows.
    pub known: Option<Summary>,
    /// Labels in the column's set.
    pub labels: Option<u64>,
    /// Whether the sample has all rows.
    pub is_whole: bool,
}

/// A number of a column.
trait Value: Copy + PartialOrd {
    fn order(&self, other: &Self) -> Ordering;
    fn real(self) -> f64;
    /// How far it is above another number, with the digits that a float has.
    fn above(self, origin: Self) -> f64;
    /// Where it is between two others, from 0 to 1.
    fn between(self, ends: [Self; 2]) -> f64;
    /// Its place on an axis over the rows: a logarithmic one has no origin.
    fn on(self, scale: Scale, origin: Self) -> f64 {
        if scale == Scale::Log { self.real() } else { self.above(origin) }
    }
    /// The number that halves the distance of two.
    fn halfway(self, other: Self) -> f64;
    fn is_finite(self) -> bool;
    fn of(scalar: &Scalar) -> Option<Self>;
}

impl Value for i128 {
    fn order(&self, other: &Self) -> Ordering {
        self.cmp(other)
    }

    fn real(self) -> f64 {
        self as f64
    }

    fn above(self, origin: Self) -> f64 {
        (self - origin) as f64
    }

    fn between(self, [from, to]: [Self; 2]) -> f64 {
        (self - from) as f64 / (to - from) as f64
    }

    fn halfway(self, other: Self) -> f64 {
        (self + other) as f64 / 2.0
    }

    fn is_finite(self) -> bool {
        true
    }

    fn of(scalar: &Scalar) -> Option<Self> {
        match scalar {
            Scalar::Int(value) => Some((*value).into()),
            Scalar::UInt(value) => Some((*value).into()),
            _ => None,
        }
    }
}

impl Value for f64 {
    fn order(&self, other: &Self) -> Ordering {
        self.total_cmp(other)
    }

    fn real(self) -> f64 {
        self
    }

    fn above(self, _: Self) -> f64 {
        self
    }

    fn between(self, [from, to]: [Self; 2]) -> f64 {
        // Halves, since the span of two floats may overflow.
        (self / 2.0 - from / 2.0) / (to / 2.0 - from / 2.0)
    }

    fn halfway(self, other: Self) -> f64 {
        if self == other { self } else { self / 2.0 + other / 2.0 }
    }

    fn is_finite(self) -> bool {
        f64::is_finite(self)
    }

    fn of(scalar: &Scalar) -> Option<Self> {
        if let Scalar::Float(value) = scalar { Some(*value) } else { None }
    }
}

impl Sampled<'_> {
    /// The picture and the figures.
    pub fn drawn(&self) -> (Result<ColumnPicture, NoPicture>, Figures) {
        let mut numbers = self.numbers();
        let picture = match self.kind {
            Kind::Whole(form) => {
                let of = if matches!(form, Form::Instant(_)) { BarsOf::Times } else { BarsOf::Values };
                self.of_wholes(&self.wholes(), form, of, &mut numbers)
            }
            Kind::Lengths => self.of_wholes(&self.wholes(), Form::Integer, BarsOf::Lengths, &mut numbers),
            Kind::Real => self.of_reals(&mut numbers),
            Kind::Booleans | Kind::Labels => self.of_labels(&mut numbers),
            Kind::Plain => Err(NoPicture::Type),
        };
        (picture, numbers)
    }

    /// Rows of the sample.
    fn sampled(&self) -> u64 {
        self.pieces.iter().map(Piece::row_count).sum()
    }

    /// The figures of every kind.
    fn numbers(&self) -> Figures {
        let (missing, nans, rows, is_exact) = match &self.known {
            Some(known) => (known.nulls, known.nans, known.rows, true),
            None => (
                self.pieces.iter().map(|piece| piece.missing).sum(),
                self.pieces.iter().map(|piece| piece.nans).sum(),
                self.sampled(),
                self.is_whole,
            ),
        };
        let nans = (nans > 0).then_some(Counted { of: [nans, rows], is_exact });
        // Of a column whose values are not read, nothing is known to be missing or not.
        let missing = (rows > 0).then_some(Counted { of: [missing, rows], is_exact });
        Figures { nans, missing, ..Figures::default() }
    }

    fn wholes(&self) -> Vec<&[i128]> {
        self.pieces.iter().map(Piece::wholes).collect()
    }

    fn of_wholes(
        &self,
        values: &[&[i128]],
        form: Form,
        of: BarsOf,
        numbers: &mut Figures,
    ) -> Result<ColumnPicture, NoPicture> {
        let seen = Seen::new(self, values, of != BarsOf::Bytes).ok_or(NoPicture::Missing)?;
        let span = seen.greatest - seen.least;
        if of != BarsOf::Bytes {
            [numbers.least, numbers.greatest] = [seen.least, seen.greatest]
                .map(|end| Some(Counted { of: Number(form.text(end, span, false)), is_exact: seen.is_exact }));
            let [a, b] = seen.middle();
            let text = match form {
                Form::Integer if (a + b) % 2 != 0 => words::half(a + b),
                _ => form.text((a + b).div_euclid(2), span, false),
            };
            numbers.median = Some(Counted { of: Number(text), is_exact: self.is_whole });
            numbers.order = seen.order();
        }
        let (bars, range) = seen.whole_bars(form, of);
        let trace = seen.trace(&bars, range);
        Ok(ColumnPicture { values: Values::Bars(bars), trace })
    }

    fn of_reals(&self, numbers: &mut Figures) -> Result<ColumnPicture, NoPicture> {
        let values: Vec<&[f64]> = self.pieces.iter().map(Piece::reals).collect();
        let seen = Seen::new(self, &values, true).ok_or(NoPicture::Missing)?;
        let [a, b] = seen.middle();
        let figures = [(seen.least, seen.is_exact), (a.halfway(b), self.is_whole), (seen.greatest, seen.is_exact)];
        [numbers.least, numbers.median, numbers.greatest] = figures.map(|(number, is_exact)| {
            let text = words::real_within(number, seen.greatest - seen.least);
            Some(Counted { of: Number(text), is_exact })
        });
        numbers.order = seen.order();
        let (bars, range) = seen.real_bars().ok_or(NoPicture::Missing)?;
        let trace = seen.trace(&bars, range);
        Ok(ColumnPicture { values: Values::Bars(bars), trace })
    }

    fn of_labels(&self, numbers: &mut Figures) -> Result<ColumnPicture, NoPicture> {
        let maps: Vec<&HashMap<String, u64>> = self.pieces.iter().filter_map(Piece::labels).collect();
        let mut counts: HashMap<&str, u64> = HashMap::new();
        for (text, count) in maps.iter().copied().flatten() {
            *counts.entry(text).or_default() += count;
        }
        let (values, distinct) = (counts.values().sum::<u64>(), counts.len() as u64);
        if values == 0 {
            return Err(NoPicture::Missing);
        }
        let are_booleans = self.kind == Kind::Booleans;
        if !are_booleans {
            let is_exact = self.is_whole || self.labels == Some(distinct);
            numbers.distinct = Some(Counted { of: distinct, is_exact });
        }
        let mut all: Vec<(&str, u64)> = counts.into_iter().collect();
        match are_booleans {
            true => all.sort_by_key(|(text, _)| *text != "true"),
            false => all.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0))),
        }
        let commonest = all.first().map_or(0, |(_, count)| *count);
        if !are_booleans && values >= FEW_TEXTS && distinct * 2 > values && commonest <= 2.max(values / 200) {
            let lengths = maps.iter().map(|map| {
                let each = map.iter().map(|(text, count)| (text.len() as i128, *count as usize));
                each.flat_map(|(length, count)| std::iter::repeat_n(length, count)).collect()
            });
            let lengths: Vec<Vec<i128>> = lengths.collect();
            let lengths: Vec<&[i128]> = lengths.iter().map(Vec::as_slice).collect();
            return self.of_wholes(&lengths, Form::Integer, BarsOf::Bytes, numbers);
        }
        let others = all.split_off(all.len().min(NAMED));
        let others = [others.len() as u64, others.iter().map(|(_, count)| count).sum()];
        let commonest = all.into_iter().map(|(text, count)| {
            let over = maps.iter().map(|map| map.get(text).copied().unwrap_or(0)).collect();
            Label { text: edges::cut(text), count, over }
        });
        let labels = Labels { commonest: commonest.collect(), others, rows: self.sampled(), are_booleans };
        let stretches = self.pieces.iter().map(|piece| Stretch {
            rows: piece.row_count(),
            missing: piece.missing,
            nans: 0,
            values: None,
        });
        Ok(ColumnPicture {
            values: Values::Labels(labels),
            trace: Trace { stretches: stretches.collect(), scale: Scale::Linear, ends: None, is_cut: false },
        })
    }
}

/// The numbers of a sample: at least one.
struct Seen<'a, T> {
    of: &'a Sampled<'a>,
    /// By stretch, in the order of the rows.
    values: &'a [&'a [T]],
    sorted: Vec<T>,
    least: T,
    greatest: T,
    /// Whether least and greatest are of all rows.
    is_exact: bool,
    order: Option<Order>,
}

impl<'a, T: Value> Seen<'a, T> {
    /// `None`: there is no number.
    fn new(of: &'a Sampled<'a>, values: &'a [&'a [T]], is_in_order: bool) -> Option<Self> {
        let mut sorted: Vec<T> = values.concat();
        sorted.sort_unstable_by(T::order);
        let ends = [*sorted.first()?, *sorted.last()?];
        let known = of.known.as_ref().filter(|_| is_in_order);
        let known = known.and_then(|known| Some([T::of(known.min.as_ref()?)?, T::of(known.max.as_ref()?)?]));
        let [least, greatest] = known.unwrap_or(ends);
        let in_rows = values.iter().copied().flatten();
        // The ends of a column that rises are in the sample.
        let may_be = is_in_order && sorted.len() > 1 && least == ends[0] && greatest == ends[1];
        let order = match may_be {
            true if least == greatest => Some(Order::Constant),
            true if in_rows.clone().is_sorted_by(|a, b| a <= b) => Some(Order::Rising),
            true if in_rows.is_sorted_by(|a, b| a >= b) => Some(Order::Falling),
            _ => None,
        };
        Some(Self { of, values, sorted, least, greatest, is_exact: known.is_some() || of.is_whole, order })
    }

    fn order(&self) -> Option<Counted<Order>> {
        let order = self.order?;
        // Equal least and greatest values of all rows leave no other.
        let is_exact = self.of.is_whole || (order == Order::Constant && self.is_exact);
        Some(Counted { of: order, is_exact })
    }

    /// The two numbers in the middle: one, if their number is odd.
    fn middle(&self) -> [T; 2] {
        let count = self.sorted.len();
        [self.sorted[(count - 1) / 2], self.sorted[count / 2]]
    }

    /// Whether bars count all rows: those between stretches in proportion.
    fn rises(&self) -> bool {
        // Values of arrays have no rows of their own.
        let is_each = self
            .of
            .pieces
            .iter()
            .zip(self.values)
            .all(|(piece, values)| piece.missing == 0 && values.len() as u64 == piece.row_count());
        is_each && self.order == Some(Order::Rising) && self.least.is_finite() && self.greatest.is_finite()
    }

    /// Values below an edge, or also at it, in the sample; in all rows of a column that `rises`.
    fn below(&self, edge: T, with_edge: bool, rises: bool) -> u64 {
        let at = self.sorted.partition_point(|value| if with_edge { *value <= edge } else { *value < edge });
        if !rises {
            return at as u64;
        }
        let (Some(value), Some(last)) = (self.sorted.get(at), at.checked_sub(1)) else {
            return if at == 0 { 0 } else { self.of.rows };
        };
        // Sorted, they are in the order of the rows.
        let begin = self.row(last) + 1;
        let between = self.row(at) - begin;
        // A float may be greater than the rows that it counts.
        begin.saturating_add((between as f64 * edge.between([self.sorted[last], *value])).round() as u64)
    }

    /// The row of a value of the sample, counted in the order of the rows.
    fn row(&self, at: usize) -> u64 {
        let mut rest = at as u64;
        for piece in self.of.pieces {
            if rest < piece.row_count() {
                return piece.rows.start + rest;
            }
            rest -= piece.row_count();
        }
        self.of.rows
    }

    /// The counts between edges; at the last one also those at it, if `with_last`.
    fn counts(&self, edges: &[T], with_last: bool, rises: bool) -> (Vec<u64>, u64) {
        let last = edges.len().saturating_sub(1);
        let below = edges.iter().enumerate().map(|(at, edge)| self.below(*edge, with_last && at == last, rises));
        let below: Vec<u64> = below.collect();
        let counts: Vec<u64> = below.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
        let all = if rises { self.of.rows } else { self.sorted.len() as u64 };
        let outside = all.saturating_sub(counts.iter().sum());
        (counts, outside)
    }

    /// How values run over the rows; the bars show those in `range`.
    fn trace(&self, bars: &Bars, range: [T; 2]) -> Trace {
        let (origin, scale) = (self.sorted[0], bars.scale);
        let stretches = self.of.pieces.iter().zip(self.values).map(|(piece, values)| {
            let mut values = values.to_vec();
            values.sort_unstable_by(T::order);
            let values = values.len().checked_sub(1).map(|last| {
                let places = [0, last / 2, last.div_ceil(2), last];
                let [least, a, b, greatest] = places.map(|place| values[place].on(scale, origin));
                [least, a.halfway(b), greatest]
            });
            Stretch { rows: piece.row_count(), missing: piece.missing, nans: piece.nans, values }
        });
        let stretches: Vec<Stretch> = stretches.collect();
        // Not of the stretches: the greatest value of each may be infinite.
        let mut finite = self.sorted.iter().filter(|value| value.is_finite()).map(|value| value.on(scale, origin));
        let full = finite.clone().next().zip(finite.next_back()).map(|(least, greatest)| [least, greatest]);
        // A few values far away would leave no height for all others.
        let [low, high] = range.map(|end| end.on(scale, origin));
        let may_be_cut = bars.outside > 0 && scale == Scale::Linear && high > low;
        let cut = full.filter(|[least, greatest]| may_be_cut && greatest - least > CUT * (high - low));
        let ends = cut.map(|_| {
            let medians = stretches.iter().filter_map(|stretch| Some(stretch.values?[1])).filter(|one| one.is_finite());
            medians.fold([low, high], |[low, high], median| [low.min(median), high.max(median)])
        });
        Trace { stretches, scale, ends: ends.or(full), is_cut: ends.is_some() }
    }
}

impl Seen<'_, i128> {
    /// Bars of whole numbers, and the range that they show.
    fn whole_bars(&self, form: Form, of: BarsOf) -> (Bars, [i128; 2]) {
        // Lengths of lists seldom rise, and their pictures have less room.
        let rises = matches!(of, BarsOf::Values | BarsOf::Times) && self.rises();
        let span = self.greatest - self.least;
        let most_single = if of == BarsOf::Bytes { BARS.into() } else { MOST_SINGLE };
        let [low, high] = [QUANTILE, 1.0 - QUANTILE].map(|part| {
            let (at, rest) = place(self.sorted.len(), part);
            let next = self.sorted.get(at + 1).unwrap_or(&self.sorted[at]);
            self.sorted[at] + ((next - self.sorted[at]) as f64 * rest).round() as i128
        });
        let [a, b] = self.middle();
        let is_single = span < most_single;
        if form == Form::Integer && !is_single && self.least > 0 && high as f64 > SKEWED * a.halfway(b) {
            let edges = log_edges([low, high].map(|end| end as f64), [self.least, self.greatest].map(|end| end as f64));
            // A whole number is below an edge where it is below the next whole number.
            let mut whole: Vec<i128> = edges.iter().map(|edge| edge.ceil() as i128).collect();
            let ends = [whole[0], edges[edges.len() - 1].floor() as i128];
            whole.pop();
            whole.push(ends[1] + 1);
            let (counts, outside) = self.counts(&whole, false, rises);
            let shown = ends.map(|end| Number(words::whole(end)));
            let exact = [edges[0], edges[edges.len() - 1]].map(|end| end.to_string());
            return (Bars { of, counts, exact, shown, scale: Scale::Log, width: Width::Part, outside, rises }, ends);
        }
        let beyond = ((high - low) as f64 * BEYOND).ceil() as i128;
        let [first, last] = match is_single || rises {
            true => [self.least, self.greatest],
            false => [self.least.max(low - beyond), self.greatest.min(high + beyond)],
        };
        let values = last - first + 1;
        let most = if of == BarsOf::Times { BARS_OF_TIMES } else { BARS };
        let is_single = values <= most_single;
        let width = if is_single { 1 } else { (values - 1) / i128::from(most) + 1 };
        let edges: Vec<i128> = (0..=(values - 1) / width + 1).map(|at| first + at * width).collect();
        let (counts, outside) = self.counts(&edges, false, rises);
        let shown = [first, last].map(|end| Number(form.text(end, last - first, true)));
        let exact = [first, last].map(|end| end.to_string());
        let width = match u64::try_from(width) {
            Ok(1) => Width::One,
            // A bar of the whole span of 64 bits is narrower than 2^64.
            width => Width::Whole(width.unwrap_or(u64::MAX)),
        };
        (Bars { of, counts, exact, shown, scale: Scale::Linear, width, outside, rises }, [first, last])
    }
}

impl Seen<'_, f64> {
    /// Bars of numbers, and the range that they show. `None`: no number is finite.
    fn real_bars(&self) -> Option<(Bars, [f64; 2])> {
        let rises = self.rises();
        let from = self.sorted.partition_point(|value| *value == f64::NEG_INFINITY);
        let finite = self.sorted[from..].partition_point(|value| value.is_finite());
        let finite = &self.sorted[from..from + finite];
        let ends = [*finite.first()?, *finite.last()?];
        let [least, greatest] = [[self.least, ends[0]], [self.greatest, ends[1]]]
            .map(|[known, own]| if known.is_finite() { known } else { own });
        let [low, high, median] = [QUANTILE, 1.0 - QUANTILE, 0.5].map(|part| quantile(finite, part));
        let scale = if least > 0.0 && high > SKEWED * median { Scale::Log } else { Scale::Linear };
        let beyond = (high - low) * BEYOND;
        let edges = match scale {
            Scale::Log => log_edges([low, high], [least, greatest]),
            Scale::Linear if rises => linear_edges([least, greatest]),
            Scale::Linear => linear_edges([least.max(low - beyond), greatest.min(high + beyond)]),
        };
        let (counts, outside) = self.counts(&edges, true, rises);
        let range = [edges[0], edges[edges.len() - 1]];
        let shown = range.map(|end| Number(words::real_within(end, range[1] - range[0])));
        let exact = range.map(|end| end.to_string());
        Some((Bars { of: BarsOf::Values, counts, exact, shown, scale, width: Width::Part, outside, rises }, range))
    }
}

/// The place of a quantile among `count` numbers, and how far it is to the next one: as NumPy's `linear` method.
fn place(count: usize, part: f64) -> (usize, f64) {
    let at = part * (count - 1) as f64;
    (at.floor() as usize, at.fract())
}

fn quantile(sorted: &[f64], part: f64) -> f64 {
    let (at, rest) = place(sorted.len(), part);
    let (a, b) = (sorted[at], *sorted.get(at + 1).unwrap_or(&sorted[at]));
    if (b - a).is_finite() { a + (b - a) * rest } else { a * (1.0 - rest) + b * rest }
}

/// The edges of bars, as `numpy.linspace` has them.
fn linear_edges([low, high]: [f64; 2]) -> Vec<f64> {
    if low == high {
        return vec![low, high];
    }
    let step = (high - low) / BARS as f64;
    let edges = (0..=BARS).map(|at| match at {
        BARS => high,
        at if step.is_finite() => low + step * at as f64,
        at => low * (1.0 - at as f64 / BARS as f64) + high * (at as f64 / BARS as f64),
    });
    edges.collect()
}

/// The edges of bars that become wider by one factor: from quantiles and a little beyond, within least and greatest.
fn log_edges([low, high]: [f64; 2], [least, greatest]: [f64; 2]) -> Vec<f64> {
    let beyond = (high / low).powf(BEYOND);
    let [low, high] = [least.max(low / beyond), greatest.min(high * beyond)];
    let (from, to) = (low.ln(), high.ln());
    let edges = (0..=BARS).map(|at| match at {
        0 => low,
        BARS => high,
        at => (from + (to - from) * at as f64 / BARS as f64).exp(),
    });
    edges.collect()
}
