//! Compares an index with its whole column, on all cores (HEP001 §12).
//!
//! It trusts nothing in the index: numbers are checked before they are used as positions, and column and budget bound
//! the memory. Reading the column also teaches its statistics.

mod bitmap;
mod bloom;
mod column;
mod gather;
mod minmax;
mod passes;
mod runs;
mod sorted;
mod values;

use super::verdict::{self, Verdict};
use crate::source::Interrupt;
use crate::store::Error;
use crate::table::{IndexContent, IndexForm};

/// Called with the number of rows read since the last call; in total, all rows of the column.
pub type VerifyProgress<'a> = &'a (dyn Fn(u64) + Sync);

/// The inputs of a verification.
struct Task<'a> {
    form: &'a IndexForm,
    interrupt: &'a Interrupt,
    progress: VerifyProgress<'a>,
}

/// Returns the verdict on an index: the known one, or a new one, which is then remembered.
///
/// # Errors
/// Those of [`Rows::array`](crate::store::Rows::array), for column and index; they leave no verdict.
/// [`Error::Interrupted`] soon after `interrupt` is raised.
pub fn verify(form: &IndexForm, interrupt: &Interrupt, progress: VerifyProgress<'_>) -> Result<Verdict, Error> {
    verify_within(form, form.file.store().budget().limit() / 2, interrupt, progress)
}

/// As [`verify`]; a sorted index may take `memory` bytes of the budget for values of its column.
///
/// # Errors
/// As [`verify`].
pub fn verify_within(
    form: &IndexForm,
    memory: u64,
    interrupt: &Interrupt,
    progress: VerifyProgress<'_>,
) -> Result<Verdict, Error> {
    if let Some(known) = verdict::known(form) {
        progress(form.rows());
        return Ok(known);
    }
    if !form.file.has_one_content() {
        let why = form.file.why_not_kept().unwrap_or("the file's identity does not stand for its content");
        return Ok(Verdict::Unverifiable { why: why.to_owned() });
    }
    let task = Task { form, interrupt, progress };
    let verdict = match &form.kind {
        IndexContent::MinMax { entries, rules } => minmax::verify(&task, entries.as_ref(), rules)?,
        IndexContent::SortedRows { order, tails, rules } => {
            let order = gather::RowOrder { rows: order.as_ref(), rule: rules.elements };
            sorted::verify(&task, &order, *tails, rules, memory)?
        }
        IndexContent::SortedValues { values, order, run, rules } => {
            let order = gather::RowOrder { rows: order.as_ref(), rule: rules.elements };
            values::verify(&task, &values::IndexValues { rows: values.as_ref(), run: *run, rules }, &order, memory)?
        }
        IndexContent::Bounds { bounds, rules } => runs::verify(&task, bounds.as_ref(), rules)?,
        IndexContent::Bitmap { bits, row_bytes, values, exhaustive, rules, .. } => {
            let bits = bitmap::Bits { bits, row_bytes: *row_bytes, rules };
            bitmap::verify(&task, &bits, values.as_ref(), *exhaustive)?
        }
        IndexContent::Bloom { filters, filter_bytes, k, schemes, rules } => {
            bloom::verify(&task, &bloom::BloomIndex { filters, bytes: *filter_bytes, k: *k, rules }, schemes)?
        }
    };
    // Index and column must come from one state of the file.
    form.file.check()?;
    verdict::remember(form, &verdict);
    Ok(verdict)
}
