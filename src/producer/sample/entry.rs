//! Makes entries of a chunk min/max index over the times of events (HEP001 §8.4).

use super::content::missing;
use crate::dialects::hep001::names::ENTRY;
use crate::h5::element::{ElementNumber, ElementType};

/// Element type of an entry.
pub(super) fn element() -> ElementType {
    let [min, max, nan_count, fill_count, n] = ENTRY;
    ElementType::compound([
        (min, i64::ELEMENT),
        (max, i64::ELEMENT),
        (nan_count, u64::ELEMENT),
        (fill_count, u64::ELEMENT),
        (n, u64::ELEMENT),
    ])
}

/// The entry of a chunk of `ts`. Its counts fit into `i64`.
pub(super) fn of(chunk: &[i64]) -> [i64; 5] {
    let present = chunk.iter().copied().filter(|&value| value != missing::I64);
    let [least, greatest] = [present.clone().min(), present.clone().max()].map(|bound| bound.unwrap_or(missing::I64));
    let (missing, n) = (chunk.len() - present.count(), chunk.len());
    [least, greatest, 0, missing as i64, n as i64]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_times_are_counted_and_left_out() {
        let fill = missing::I64;
        assert_eq!(of(&[5, fill, -3]), [-3, 5, 0, 1, 3]);
        assert_eq!(of(&[fill]), [fill, fill, 0, 1, 1]);
    }
}
