//! Elements of an array as numbers, and a window of shades over them.

use crate::catalogue::Datatype;
use crate::views::npy::{NpyByteOrder, NpyKind, NpyType};

/// Reads real numbers from stored elements.
#[derive(Clone, Debug)]
pub struct Numbers {
    order: NpyByteOrder,
    kind: NpyKind,
    /// Bytes of an element.
    pub(super) size: usize,
    /// The element that means missing.
    missing: Option<Vec<u8>>,
}

impl Numbers {
    /// Returns a reader of elements of this type, or of arrays of them, one of which may mean missing: numbers, the
    /// magnitudes of complex ones, and booleans as 0 and 1. `None`: of any other type.
    pub fn of(datatype: &Datatype, missing: Option<&[u8]>) -> Option<Self> {
        let element = match NpyType::of(datatype).ok()? {
            NpyType::Array { base, .. } => *base,
            element => element,
        };
        match element {
            NpyType::Scalar { order, kind, size } => {
                Some(Self { order, kind, size: usize::try_from(size).ok()?, missing: missing.map(<[u8]>::to_vec) })
            }
            NpyType::Bool => {
                let (order, kind) = (NpyByteOrder::Little, NpyKind::Unsigned);
                Some(Self { order, kind, size: 1, missing: missing.map(<[u8]>::to_vec) })
            }
            _ => None,
        }
    }

    /// Whether the numbers are the magnitudes of complex ones.
    pub(super) fn are_magnitudes(&self) -> bool {
        self.kind == NpyKind::Complex
    }

    /// Whether an element's least significant byte comes first.
    pub(super) fn is_little(&self) -> bool {
        self.order == NpyByteOrder::Little
    }

    /// Returns the number of one element; NaN if it is missing.
    pub(super) fn number(&self, element: &[u8]) -> f64 {
        if self.missing.as_deref() == Some(element) {
            return f64::NAN;
        }
        match self.kind {
            NpyKind::Complex => {
                let (real, imaginary) = element.split_at(element.len() / 2);
                self.part(NpyKind::Float, real).hypot(self.part(NpyKind::Float, imaginary))
            }
            kind => self.part(kind, element),
        }
    }

    /// Returns the number that some bytes are.
    fn part(&self, kind: NpyKind, element: &[u8]) -> f64 {
        let mut bits = [0; 8];
        let size = element.len().min(8);
        match self.order {
            NpyByteOrder::Little => bits[..size].copy_from_slice(element),
            NpyByteOrder::Big => bits.iter_mut().zip(element.iter().rev()).for_each(|(to, from)| *to = *from),
        }
        let raw = u64::from_le_bytes(bits);
        let unused = 64 - 8 * size as u32;
        match (kind, size) {
            (NpyKind::Float, 2) => half::f16::from_bits(raw as u16).to_f64(),
            (NpyKind::Float, 4) => f64::from(f32::from_bits(raw as u32)),
            (NpyKind::Float, _) => f64::from_bits(raw),
            (NpyKind::Signed, _) => (((raw << unused) as i64) >> unused) as f64,
            _ => raw as f64,
        }
    }
}

/// The share of values below, and above, the window of shades.
const OUTSIDE: f64 = 0.005;

/// Values that lie further than this many medians out are drawn by their logarithm, if all are positive.
const MOST_MEDIANS: f64 = 20.0;

/// The numbers that the shades of a picture stand for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shades {
    /// It has colours of its own.
    Colours,
    /// From black to white.
    Between {
        /// The numbers that are black and white.
        ends: [f64; 2],
        /// Whether shades follow the logarithm.
        is_logarithmic: bool,
    },
    /// All numbers are this one.
    All(f64),
    /// There is no finite number.
    Nothing,
}

/// The numbers between which shades run from black to white.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Window {
    pub least: f64,
    pub greatest: f64,
    /// Whether shades follow the logarithm.
    pub is_logarithmic: bool,
}

impl Window {
    /// Returns the window over a sample, of which 0.5 % lie below and above it; missing and infinite values do not
    /// count.
    pub fn over(sample: &[f64]) -> Self {
        let mut finite: Vec<f64> = sample.iter().copied().filter(|value| value.is_finite()).collect();
        finite.sort_unstable_by(f64::total_cmp);
        let Some(last) = finite.len().checked_sub(1) else {
            return Self { least: 0.0, greatest: 0.0, is_logarithmic: false };
        };
        let [least, median, greatest] =
            [OUTSIDE, 0.5, 1.0 - OUTSIDE].map(|share| finite[((last as f64 * share).round() as usize).min(last)]);
        Self { least, greatest, is_logarithmic: finite[0] > 0.0 && greatest > MOST_MEDIANS * median }
    }

    /// Returns the numbers that shades of this sample stand for.
    pub fn shades(&self, sample: &[f64]) -> Shades {
        let mut values = sample.iter().filter(|value| !value.is_nan());
        let Some(first) = values.next() else { return Shades::Nothing };
        match values.all(|value| value == first) {
            true => Shades::All(*first),
            false => Shades::Between { ends: [self.least, self.greatest], is_logarithmic: self.is_logarithmic },
        }
    }

    /// Returns the shade of a number, from 1 to 255; 0 if it is missing.
    pub fn shade(&self, number: f64) -> u8 {
        if number.is_nan() {
            return 0;
        }
        let (number, least, greatest) = match self.is_logarithmic {
            true => (number.max(f64::MIN_POSITIVE).ln(), self.least.ln(), self.greatest.ln()),
            false => (number, self.least, self.greatest),
        };
        // Halves first: the difference of two numbers may overflow.
        let (above, width) = (number / 2.0 - least / 2.0, greatest / 2.0 - least / 2.0);
        let share = if width > 0.0 { (above / width).clamp(0.0, 1.0) } else { 0.5 };
        1 + (share * 254.0).round() as u8
    }
}
