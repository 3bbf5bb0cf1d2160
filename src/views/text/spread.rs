//! Shows a column part by part: the elements of its arrays, or the fields of its compounds, each as a column of text.
//!
//! One read of the rows serves all parts.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, UInt64Array};
use arrow_schema::{ArrowError, DataType};

/// Returns the types of the parts of values of `data_type`; empty for a type without parts.
pub(super) fn types(data_type: &DataType) -> Vec<&DataType> {
    match data_type {
        DataType::FixedSizeList(item, length) => vec![item.data_type(); usize::try_from(*length).unwrap_or(0)],
        DataType::Struct(fields) => fields.iter().map(|field| field.data_type()).collect(),
        _ => Vec::new(),
    }
}

/// Returns the parts of some values, each as long as `array`; a part of a null is null.
///
/// # Errors
/// If the array has no parts, or too many values.
pub(super) fn parts(array: &ArrayRef) -> Result<Vec<ArrayRef>, ArrowError> {
    if let Some(list) = array.as_fixed_size_list_opt() {
        let (values, length) = (list.values(), u64::try_from(list.value_length()).unwrap_or(0));
        let rows = list.len() as u64;
        let parts = (0..length).map(|place| {
            let indices = (0..rows).map(|row| list.is_valid(row as usize).then_some(row * length + place));
            arrow_select::take::take(values, &UInt64Array::from_iter(indices), None)
        });
        return parts.collect();
    }
    match array.as_struct_opt() {
        // The arrays of fields do not reflect nulls of the compound.
        Some(compound) if compound.null_count() == 0 => Ok(compound.columns().to_vec()),
        _ => Err(ArrowError::NotYetImplemented(format!("parts of {}", array.data_type()))),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::types::Int32Type;
    use arrow_array::{FixedSizeListArray, StringArray, StructArray};

    use super::*;

    #[test]
    fn places_of_arrays() {
        let rows = [Some(vec![Some(1), None, Some(3)]), None, Some(vec![Some(4), Some(5), Some(6)])];
        let list = FixedSizeListArray::from_iter_primitive::<Int32Type, _, _>(rows, 3);
        // A slice begins at another place.
        for (from, expected) in [(0, [vec![1, 0, 4], vec![0, 0, 5], vec![3, 0, 6]]), (2, [vec![4], vec![5], vec![6]])] {
            let list: ArrayRef = Arc::new(list.slice(from, list.len() - from));
            let parts = parts(&list).unwrap();
            let shown =
                |part: &ArrayRef| part.as_primitive::<Int32Type>().iter().map(Option::unwrap_or_default).collect();
            assert_eq!(parts.iter().map(shown).collect::<Vec<Vec<i32>>>(), expected);
            assert_eq!(types(list.data_type()), vec![&DataType::Int32; 3]);
        }
    }

    #[test]
    fn fields_of_compounds() {
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
        let compound: ArrayRef = Arc::new(StructArray::try_from(vec![("t", texts.clone())]).unwrap());
        assert_eq!(&parts(&compound).unwrap(), &[texts]);
        assert_eq!(types(compound.data_type()), [&DataType::Utf8]);
    }
}
