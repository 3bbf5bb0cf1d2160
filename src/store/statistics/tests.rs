//! Summaries of codes equal those of the dictionary arrays that they stand for.

use std::sync::Arc;

use arrow_array::types::{
    ArrowPrimitiveType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, DictionaryArray, Int8Array, Int16Array, Int32Array, Int64Array, LargeStringArray, PrimitiveArray,
    UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use proptest::prelude::*;

use super::{CodeLabels, summary};

/// The array of rows with these codes; null without a label.
fn shown(codes: &[Option<i64>], labels: &LargeStringArray) -> ArrayRef {
    let keys = codes.iter().map(|code| code.filter(|code| (0..labels.len() as i64).contains(code)));
    let keys: Int64Array = keys.collect();
    Arc::new(DictionaryArray::<Int64Type>::new(keys, Arc::new(labels.clone())))
}

/// The same codes in every type that holds them all.
fn typed(codes: &[Option<i64>]) -> Vec<ArrayRef> {
    fn of<T: ArrowPrimitiveType>(codes: &[Option<i64>]) -> Option<ArrayRef>
    where
        T::Native: TryFrom<i64>,
    {
        let codes = codes.iter().map(|code| code.map(T::Native::try_from).transpose());
        Some(Arc::new(codes.collect::<Result<PrimitiveArray<T>, _>>().ok()?))
    }
    let types = [
        of::<Int8Type>,
        of::<Int16Type>,
        of::<Int32Type>,
        of::<Int64Type>,
        of::<UInt8Type>,
        of::<UInt16Type>,
        of::<UInt32Type>,
        of::<UInt64Type>,
    ];
    types.iter().filter_map(|of| of(codes)).collect()
}

proptest! {
    #[test]
    fn codes_are_summed_as_their_labels(
        labels in prop::collection::vec("[a-c]{0,2}|b{64,66}|é", 1..150),
        codes in prop::collection::vec(0i64..150, 0..3000),
        odd in prop::collection::vec(
            (any::<prop::sample::Index>(), prop::sample::select(vec![-1i64, 127, 128, 255, 1 << 40, i64::MIN])),
            0..3,
        ),
        missing in prop::collection::vec(any::<prop::sample::Index>(), 0..3),
    ) {
        let most = labels.len() as i64;
        let labels = LargeStringArray::from(labels);
        let mut codes: Vec<Option<i64>> = codes.into_iter().map(|code| Some(code % most)).collect();
        if !codes.is_empty() {
            let some = odd.iter().map(|(at, code)| (at, Some(*code)));
            for (at, code) in some.chain(missing.iter().map(|at| (at, None))) {
                let at = at.index(codes.len());
                codes[at] = code;
            }
        }
        let expected = summary(shown(&codes, &labels).as_ref()).unwrap();
        let known = CodeLabels::new(&(Arc::new(labels) as ArrayRef)).unwrap();
        let arrays = typed(&codes);
        prop_assert!(!arrays.is_empty());
        for array in arrays {
            prop_assert_eq!(&known.summary(array.as_ref()).unwrap(), &expected, "{}", array.data_type());
        }
    }
}

#[test]
fn bytes_past_127_are_labels_of_unsigned_codes_only() {
    let labels = LargeStringArray::from((0..200).map(|label| format!("{label:03}")).collect::<Vec<_>>());
    let known = CodeLabels::new(&(Arc::new(labels.clone()) as ArrayRef)).unwrap();
    let of = |codes: ArrayRef, same: &[Option<i64>]| {
        assert_eq!(known.summary(codes.as_ref()), summary(shown(same, &labels).as_ref()));
    };
    of(Arc::new(UInt8Array::from(vec![199, 200, 128])), &[Some(199), None, Some(128)]);
    of(Arc::new(Int8Array::from(vec![-57, 127])), &[None, Some(127)]);
    of(Arc::new(Int16Array::from(vec![-1, 3])), &[None, Some(3)]);
    of(Arc::new(UInt16Array::from(vec![u16::MAX, 3])), &[None, Some(3)]);
    of(Arc::new(Int32Array::from(vec![i32::MIN])), &[None]);
    of(Arc::new(UInt32Array::from(vec![Some(9), None])), &[Some(9), None]);
    of(Arc::new(UInt64Array::from(vec![u64::MAX, 9])), &[None, Some(9)]);
}

#[test]
fn labels_that_are_no_text_or_missing_have_none() {
    let none = |labels: ArrayRef| assert!(CodeLabels::new(&labels).is_none());
    none(Arc::new(Int32Array::from(vec![1, 2])));
    none(Arc::new(LargeStringArray::from(vec![Some("a"), None])));
    none(Arc::new(LargeStringArray::from(Vec::<&str>::new())));
}
