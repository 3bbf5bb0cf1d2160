//! The rules of HEP001 §8 that only a comparison with the values can decide: see [`crate::indexes::verify()`].

use crate::dialects::hep001::rules;
use crate::table::{BitmapRules, BloomRules, MinMaxRules, SortedRules};

pub(super) static MIN_MAX: MinMaxRules = MinMaxRules {
    rows: &rules::MINMAX_ROWS,
    missing: &rules::MINMAX_MISSING,
    nans: &rules::MINMAX_NANS,
    least: &rules::MINMAX_LEAST,
    greatest: &rules::MINMAX_GREATEST,
};

pub(super) static SORTED: SortedRules =
    SortedRules { elements: &rules::SORTED_ELEMENTS, order: &rules::SORTED_ORDER, tails: &rules::SORTED_COUNTS };

pub(super) static BITMAP: BitmapRules =
    BitmapRules { distinct: &rules::BITMAP_DISTINCT, exhaustive: &rules::BITMAP_EXHAUSTIVE, bits: &rules::BITMAP_BITS };

pub(super) static BLOOM: BloomRules = BloomRules { values: &rules::BLOOM_FILTER };
