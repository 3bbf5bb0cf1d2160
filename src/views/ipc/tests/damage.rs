//! Rows that cannot be read.

use std::sync::Arc;

use arrow_array::{Int64Array, LargeStringArray};

use super::*;

/// Each byte, where it can be read.
fn bytes(column: IpcColumn) -> Vec<Option<u8>> {
    let view = view(vec![column]).cut(SMALL);
    let byte = |at: usize| {
        let out = gathered(&view, at as u64, 1).ok()?;
        assert_eq!(out.len(), 1);
        Some(out[0])
    };
    (0..size(&view)).map(byte).collect()
}

#[test]
fn broken_values_cost_their_own_bytes() {
    let rows = MemoryRows::new(Arc::new(Int64Array::from_iter_values(0..48))).stored_as_values().broken(20..22);
    let bytes = bytes(column("x", Arc::new(rows), Some(integer(8, true))));
    // Nothing can be missing, so no header looks at values.
    assert_eq!(bytes.iter().filter(|byte| byte.is_none()).count(), 16);
}

#[test]
fn what_depends_on_broken_rows_is_lost_with_its_batch_alone() {
    let words = LargeStringArray::from_iter_values((0..48).map(|row| format!("word {row}")));
    let rows = MemoryRows::new(Arc::new(words)).broken(20..22).nullable(true);
    let bytes = bytes(column("x", Arc::new(rows), None));
    // The schema, and the footer from which a reader finds the other batches.
    assert!(bytes[..8].iter().all(Option::is_some) && bytes[bytes.len() - 500..].iter().all(Option::is_some));
    assert!(bytes.iter().any(Option::is_none));
    let filled: Vec<u8> = bytes.iter().map(|byte| byte.unwrap_or(0)).collect();
    let mut reader = FileReader::try_new(Cursor::new(filled), None).unwrap();
    assert_eq!(reader.num_batches(), 3);
    for (batch, first) in [(0, 0), (2, 32)] {
        reader.set_index(batch).unwrap();
        let texts = reader.next().unwrap().unwrap();
        let expected = LargeStringArray::from_iter_values((first..first + 16).map(|row| format!("word {row}")));
        assert_eq!(texts.column(0).as_ref(), &expected as &dyn Array);
    }
}
