//! Statistics as the cache folder keeps them.
#![allow(dead_code, reason = "what makes statistics is not needed to read them")]

#[path = "../../src/store/statistics/blocks.rs"]
mod blocks;
#[path = "../../src/store/statistics/format.rs"]
mod format;
#[path = "../../src/store/statistics/scalar.rs"]
mod scalar;

use scalar::Kind;

use super::Blocked;

/// Statistics of rows, and how they are kept.
pub fn read(bytes: &[u8], kind: u8, rows: u64) -> Option<Vec<u8>> {
    let kinds = [Kind::Bool, Kind::Int, Kind::UInt, Kind::Float, Kind::Text];
    let blocked = Blocked::new(rows, blocks::GRAIN, None);
    format::decode(bytes, kinds[usize::from(kind) % kinds.len()], &blocked).map(|blocks| format::encode(&blocks))
}
