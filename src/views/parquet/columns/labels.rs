//! The occurrences of labels in rows, from a verified bitmap: the input of Bloom filters.

use arrow_array::ArrayRef;

use super::ParquetColumn;
use crate::indexes::{self, Occurring, Trust, canonical};
use crate::source::Interrupt;
use crate::store::Error;
use crate::table::IndexContent;
use crate::views::parquet::body::leaf::{ParquetLeaf, Physical};

/// The labels of a leaf column.
#[derive(Debug)]
pub(in crate::views::parquet) struct LabelsOf {
    /// Position of the leaf column.
    pub leaf: usize,
    /// Number of values of the column's bitmap.
    pub values: usize,
    /// For each value, its text in the dictionary, if the dictionary has it; and the rows where values occur. `None`:
    /// not known.
    pub known: Option<(Vec<Option<Vec<u8>>>, Occurring)>,
}

impl ParquetColumn {
    /// Finds the labels of a leaf in the column's bitmap. `None`: the leaf gets no filters in any case.
    ///
    /// # Errors
    /// If the values of a verified bitmap cannot be read.
    pub(in crate::views::parquet) fn filtered(
        &self,
        position: usize,
        leaf: &ParquetLeaf,
        interrupt: &Interrupt,
    ) -> Result<Option<LabelsOf>, Error> {
        let (Some((form, is_used)), Some(labels), Some(dictionary)) = (&self.bitmap, &self.labels, leaf.dictionary())
        else {
            return Ok(None);
        };
        let Some(body) = dictionary.body() else { return Ok(None) };
        let IndexContent::Bitmap { values, .. } = &form.kind else { return Ok(None) };
        // If labels are equal or null, codes are not indices of the dictionary.
        if leaf.path.len() > 1
            || leaf.physical != Physical::ByteArray
            || labels.len() != u64::from(dictionary.entries())
            || !Occurring::is_gathered(values.len(), form.rows())
        {
            return Ok(None);
        }
        let facts = if *is_used { indexes::facts(form, Trust::Verify) } else { None };
        let occurring = facts.and_then(|facts| facts.occurring);
        let shows = form.file.shows(&format!("{} {:?} filters", form.path, form.objects), occurring.is_some());
        let known = match occurring.filter(|_| shows) {
            // Verification of the bitmap has read the values already.
            Some(occurring) => Some((labels_of(&values.array(0..values.len(), interrupt)?, body), occurring)),
            None => None,
        };
        Ok(Some(LabelsOf { leaf: position, values: values.len() as usize, known }))
    }
}

/// Returns the dictionary entry of each code.
fn labels_of(codes: &ArrayRef, mut body: &[u8]) -> Vec<Option<Vec<u8>>> {
    let mut entries = Vec::new();
    while let Some((length, rest)) = body.split_first_chunk() {
        let Some((text, rest)) = rest.split_at_checked(u32::from_le_bytes(*length) as usize) else { break };
        entries.push(text);
        body = rest;
    }
    let mut labels = vec![None; codes.len()];
    canonical::for_each(codes.as_ref(), |row, code| {
        let mut number = [0; 8];
        number.iter_mut().zip(code).for_each(|(byte, of_code)| *byte = *of_code);
        let entry = usize::try_from(u64::from_le_bytes(number)).ok().and_then(|code| entries.get(code));
        if let Some(label) = labels.get_mut(row) {
            *label = entry.map(|text| text.to_vec());
        }
    });
    labels
}
