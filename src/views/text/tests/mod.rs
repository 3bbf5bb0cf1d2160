//! Tests over rows in memory.

mod csv;
mod files;
mod passes;
mod values;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::DataType;

use super::{BlockCache, CsvOptions, Format, TextColumn, TextView};
use crate::source::Interrupt;
use crate::store::{Error, RowRange, Rows};
use crate::views::View;

/// What a test does when rows are asked for.
type Hook = Box<dyn Fn(&RowRange, &Interrupt) -> Result<(), Error> + Send + Sync>;

/// Rows of an Arrow array.
struct Memory {
    array: ArrayRef,
    natural: Option<u64>,
    hook: Option<Hook>,
    calls: AtomicUsize,
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rows", self.array.len())
    }
}

impl Memory {
    fn new(array: ArrayRef) -> Self {
        Self { array, natural: None, hook: None, calls: AtomicUsize::new(0) }
    }

    fn natural(self, rows: u64) -> Self {
        Self { natural: Some(rows), ..self }
    }

    fn hook(self, hook: impl Fn(&RowRange, &Interrupt) -> Result<(), Error> + Send + Sync + 'static) -> Self {
        Self { hook: Some(Box::new(hook)), ..self }
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }
}

impl Rows for Memory {
    fn len(&self) -> u64 {
        self.array.len() as u64
    }

    fn data_type(&self) -> &DataType {
        self.array.data_type()
    }

    fn nullable(&self) -> bool {
        self.array.is_nullable()
    }

    fn array(&self, range: RowRange, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        if let Some(hook) = &self.hook {
            hook(&range, interrupt)?;
        }
        assert!(range.start <= range.end && range.end <= self.len());
        Ok(self.array.slice(range.start as usize, (range.end - range.start) as usize))
    }

    fn stored_width(&self) -> Option<u64> {
        None
    }

    fn append_stored(&self, _: u64, _: usize, _: &mut Vec<u8>, _: &Interrupt) -> Result<(), Error> {
        unreachable!("text asks for arrays")
    }

    fn natural_rows(&self) -> Option<u64> {
        self.natural
    }
}

fn column(name: &str, rows: Arc<Memory>) -> TextColumn {
    TextColumn { name: name.into(), rows, longest: None }
}

fn usual() -> Arc<CsvOptions> {
    Arc::default()
}

fn cache() -> Arc<BlockCache> {
    Arc::new(BlockCache::new(16 << 20))
}

/// A view over columns `a`, `b`, ….
fn view(format: Format, arrays: &[ArrayRef]) -> TextView {
    view_with(format, &usual(), arrays)
}

fn view_with(format: Format, csv: &Arc<CsvOptions>, arrays: &[ArrayRef]) -> TextView {
    let names = ["a", "b", "c", "d", "e", "f"];
    let columns = names.iter().zip(arrays).map(|(name, array)| column(name, Arc::new(Memory::new(array.clone()))));
    TextView::new(columns.collect(), format, csv, None, cache(), None)
}

/// All bytes, read as `cat` does.
fn whole(view: &TextView) -> Vec<u8> {
    let mut out = Vec::new();
    loop {
        let before = out.len();
        view.read(before as u64, 128 << 10, &mut out, &Interrupt::new()).unwrap();
        if out.len() == before {
            return out;
        }
    }
}

fn text(format: Format, arrays: &[ArrayRef]) -> String {
    String::from_utf8(whole(&view(format, arrays))).unwrap()
}
