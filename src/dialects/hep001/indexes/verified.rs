//! The rules of HEP001 §8 that only verification can tell: see [`crate::indexes::verify()`].

use crate::table::{BitmapRules, BloomRules, MinMaxRules, SortedRules};

pub(super) static MIN_MAX: MinMaxRules = MinMaxRules {
    rows: "HEP001 §8.4: n is the number of rows in the chunk",
    missing: "HEP001 §8.4: fill_count is the number of missing values in the chunk",
    nans: "HEP001 §8.4: nan_count is the number of NaN in the chunk",
    least: "HEP001 §8.4: min is the least value of the chunk",
    greatest: "HEP001 §8.4: max is the greatest value of the chunk",
};

pub(super) static SORTED: SortedRules = SortedRules {
    elements: "HEP001 §8.5: elements are rows of the column",
    order: "HEP001 §8.5: rows are in the order of their values, missing ones and NaN last, ties by row",
    tails: "HEP001 §8.5: fill_tail_length and nan_tail_length are the numbers of missing rows and of NaN",
};

pub(super) static BITMAP: BitmapRules = BitmapRules {
    distinct: "HEP001 §8.6: the values of a bitmap are distinct",
    exhaustive: "HEP001 July: an exhaustive bitmap has every value of its column",
    bits: "HEP001 §8.6: a bit is set where, and only where, the row has the value",
};

pub(super) static BLOOM: BloomRules =
    BloomRules { values: "HEP001 §8.7: the filter of a chunk holds every value of the chunk" };
