#![no_main]

use hepfs::codec::trevni::{BlockDescriptor, TrevniHeader, TrevniType, TrevniPacking, TrevniReader, decode, weight};

/// Most bytes that a block may take.
const LIMIT: u64 = 1 << 24;

// A header and descriptors of the bytes, and blocks of every type: what is decoded is as long as was asked.
libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let _ = TrevniHeader::read(input, input.len() as u64);
    let _ = TrevniHeader::read(input, 1 << 40);
    let [choice, entries, runs, block @ ..] = input else { return };
    let (_, kind) = TrevniType::ALL[usize::from(*choice) % TrevniType::ALL.len()];
    let mut reader = TrevniReader::new(block, 1 << 40);
    while let Ok((descriptor, _)) = BlockDescriptor::read(&mut reader, Some(kind)) {
        assert!(descriptor.size < 1 << 31);
    }
    for codec in ["null", "deflate", "snappy", "bzip2"] {
        let packing = TrevniPacking::of(Some(codec.as_bytes()), Some(b"crc32")).expect("names that are known");
        let _ = packing.unpack(block, &mut [0; 300]);
        let _ = packing.check(block, block.get(..4).unwrap_or_default());
    }
    let (is_array, entries) = (*choice >= 128, u64::from(*entries) << (runs / 16));
    if weight(kind, is_array, entries, block.len() as u64) > LIMIT {
        return;
    }
    if let Ok(found) = decode(block, kind, is_array, runs % 2 == 0, entries) {
        let starts = found.starts.as_ref();
        assert_eq!(starts.map_or(entries, |starts| starts.len() as u64 - 1), entries);
        assert_eq!(starts.map_or(entries, |starts| starts[starts.len() - 1] as u64), found.values.len());
    }
});
