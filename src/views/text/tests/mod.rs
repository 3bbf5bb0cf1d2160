//! Tests over rows in memory.

mod csv;
mod files;
mod passes;
mod values;

use std::sync::Arc;

use arrow_array::ArrayRef;

use super::{BlockCache, CsvOptions, TextColumn, TextFormat, TextView};
use crate::store::rows::in_memory::MemoryRows;
use crate::views::gathered;

fn column(name: &str, rows: Arc<MemoryRows>) -> TextColumn {
    TextColumn::new(name.into(), rows)
}

fn usual() -> Arc<CsvOptions> {
    Arc::default()
}

fn cache() -> Arc<BlockCache> {
    Arc::new(BlockCache::new(16 << 20))
}

/// A view over columns `a`, `b`, ….
fn view(format: TextFormat, arrays: &[ArrayRef]) -> TextView {
    view_with(format, &usual(), arrays)
}

fn view_with(format: TextFormat, csv: &Arc<CsvOptions>, arrays: &[ArrayRef]) -> TextView {
    let names = ["a", "b", "c", "d", "e", "f"];
    let columns = names.iter().zip(arrays).map(|(name, array)| column(name, Arc::new(MemoryRows::new(array.clone()))));
    TextView::new(columns.collect(), format, csv, None, cache(), None)
}

/// All bytes, read as `cat` does.
fn whole(view: &TextView) -> Vec<u8> {
    let mut out = Vec::new();
    loop {
        let more = gathered(view, out.len() as u64, 128 << 10).unwrap();
        if more.is_empty() {
            return out;
        }
        out.extend(more);
    }
}

fn text(format: TextFormat, arrays: &[ArrayRef]) -> String {
    String::from_utf8(whole(&view(format, arrays))).unwrap()
}
