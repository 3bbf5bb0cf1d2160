//! Positions of batches and buffers.

use std::sync::Arc;

use arrow_array::{Int64Array, LargeStringArray};
use arrow_ipc::{root_as_footer, root_as_message};

use super::*;
use crate::store::rows::in_memory::Endless;
use crate::views::Size;

/// Buffers of each batch: position in the file and length.
fn buffers(bytes: &[u8]) -> Vec<Vec<(u64, u64)>> {
    let end = bytes.len();
    assert_eq!(&bytes[..8], b"ARROW1\0\0");
    assert_eq!(&bytes[end - 6..], b"ARROW1");
    let length = u32::from_le_bytes(bytes[end - 10..end - 6].try_into().unwrap()) as usize;
    // A flatbuffer is read where it is aligned.
    let footer = bytes[end - 10 - length..end - 10].to_vec();
    let footer = root_as_footer(&footer).unwrap();
    let blocks = footer.recordBatches().unwrap();
    let batch = |block: &arrow_ipc::Block| {
        let (start, metadata) = (block.offset() as usize, block.metaDataLength() as usize);
        assert_eq!(bytes[start..start + 4], [0xff; 4]);
        let length = u32::from_le_bytes(bytes[start + 4..start + 8].try_into().unwrap()) as usize;
        assert_eq!(length + 8, metadata);
        let message = bytes[start + 8..start + metadata].to_vec();
        let message = root_as_message(&message).unwrap();
        assert_eq!(message.bodyLength(), block.bodyLength());
        let body = (start + metadata) as u64;
        let buffers = message.header_as_record_batch().unwrap().buffers().unwrap();
        buffers.iter().map(|buffer| (body + buffer.offset() as u64, buffer.length() as u64)).collect()
    };
    blocks.iter().map(batch).collect()
}

#[test]
fn long_values_begin_on_pages_and_all_else_on_lines() {
    let numbers = Arc::new(Int64Array::from_iter_values(0..300_000));
    let words = LargeStringArray::from_iter_values((0..300_000).map(|row| row.to_string()));
    let rows = Arc::new(MemoryRows::new(numbers).stored_as_values().nullable(true));
    let columns =
        vec![memory("s", Arc::new(words), Some(fixed_string(6))), column("x", rows.clone(), Some(integer(8, true)))];
    let view = view(columns);
    let bytes = whole(&view);
    let batches = buffers(&bytes);
    // 131,072 rows, twice, and what is left.
    assert_eq!(batches.len(), 3);
    for (number, buffers) in batches.iter().enumerate() {
        // Views have a data buffer for texts that grow to more than 12 bytes.
        let rows = [131_072, 131_072, 37_856][number];
        let lengths: Vec<u64> = buffers.iter().map(|(_, length)| *length).collect();
        assert_eq!(lengths, [0, rows * 16, rows * 18, rows / 8, rows * 8]);
        assert!(buffers.iter().all(|(position, _)| position % 64 == 0));
        assert!([1, 4].iter().all(|buffer| buffers[*buffer].0 % 4096 == 0), "{buffers:?}");
        let values = buffers[4].0 as usize;
        assert_eq!(bytes[values..values + 8], (number as i64 * 131_072).to_le_bytes());
    }
    // Values were never decoded for themselves: once for each count of nulls, once for each bitmap.
    assert_eq!(rows.calls(), (2 + 2 + 1) + 3);
}

#[test]
fn no_rows_are_a_file_without_batches() {
    let empty = |name| memory(name, Arc::new(LargeStringArray::from(Vec::<&str>::new())), None);
    let bytes = whole(&view(vec![empty("a"), empty("b")]));
    assert!(buffers(&bytes).is_empty());
    let (schema, batches) = read(bytes);
    assert_eq!((schema.fields().len(), batches.len()), (2, 0));
}

#[test]
fn a_thousand_columns_of_a_billion_rows_are_laid_out_without_reading() {
    let rows: Arc<dyn Rows> = Arc::new(Endless::new(1_000_000_000, DataType::Float64, true));
    let columns = (0..1000).map(|number| column(&format!("c{number}"), rows.clone(), Some(double()))).collect();
    let view = view(columns);
    let size = view.size(Effort::Free, &Interrupt::new()).unwrap().bytes() as usize;
    // Values and bitmaps, and not a thousandth more.
    let least = 1000 * (8_000_000_000 + 125_000_000);
    assert!((least..least + least / 1000).contains(&size), "{size}");
    assert_eq!(view.size(Effort::Exact, &Interrupt::new()).unwrap(), Size::Exact(size as u64));
    let end = gathered(&view, size as u64 - 10, 100).unwrap();
    assert_eq!(end[4..], *b"ARROW1");
    let footer = u32::from_le_bytes(end[..4].try_into().unwrap());
    assert!(footer < 1 << 20, "{footer}");
}

#[test]
fn what_cannot_be_shown_says_why() {
    let check = |rows: u64, data_type, datatype| {
        super::super::check(&[column("x", Arc::new(Endless::new(rows, data_type, true)), Some(datatype))])
    };
    assert!(check(u64::MAX / 8, DataType::Float64, double()).unwrap_err().to_string().contains("2^60"));
    assert!(check(1, DataType::LargeUtf8, fixed_string(1 << 40)).unwrap_err().to_string().contains("strings of"));
    let opaque = Datatype { size: 1 << 40, class: Class::Opaque { tag: "".into() } };
    assert!(check(1, DataType::FixedSizeBinary(i32::MAX), opaque).is_err());
    assert!(check(1, DataType::Float64, double()).is_ok());
}
