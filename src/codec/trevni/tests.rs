//! Worked bytes: the tables and the file of the format's digest, and blocks made by hand.

use std::io::Read;

use proptest::prelude::*;

use super::*;

/// The whole file of the digest.
const FILE: &[u8] = include_bytes!("../../../tests/data/trevni/digest.trv");

fn long(value: i64) -> Vec<u8> {
    let mut n = (value << 1 ^ value >> 63) as u64;
    let mut bytes = Vec::new();
    while n >= 0x80 {
        bytes.push(n as u8 | 0x80);
        n >>= 7;
    }
    bytes.push(n as u8);
    bytes
}

fn longs(values: &[i64]) -> Vec<u8> {
    values.iter().flat_map(|value| long(*value)).collect()
}

#[test]
fn varints_are_those_of_the_digest() {
    for (value, bytes) in [
        (0, &b"\x00"[..]),
        (-1, b"\x01"),
        (1, b"\x02"),
        (-64, b"\x7f"),
        (64, b"\x80\x01"),
        (i64::from(i32::MAX), b"\xfe\xff\xff\xff\x0f"),
        (i64::from(i32::MIN), b"\xff\xff\xff\xff\x0f"),
        // Longer than it need be.
        (0, b"\x80\x00"),
    ] {
        assert_eq!(TrevniReader::of_all(bytes).long(), Ok(value), "{bytes:?}");
        assert_eq!(TrevniReader::of_all(bytes).int().map(i64::from), Ok(value), "{bytes:?}");
    }
    for value in [i64::MIN, i64::MAX] {
        assert_eq!(TrevniReader::of_all(&long(value)).long(), Ok(value));
    }
    // The low 32 bits count.
    assert_eq!(TrevniReader::of_all(b"\x82\x80\x80\x80\x70").int(), Ok(1));
    let too_long = [[0x80; 10].as_slice(), &[0]].concat();
    assert!(matches!(TrevniReader::of_all(&too_long).long(), Err(Stop::Bad(_))));
    assert!(matches!(TrevniReader::of_all(&too_long[4..]).int(), Err(Stop::Bad(_))));
    assert!(matches!(TrevniReader::of_all(b"\x80").long(), Err(Stop::Bad(_))));
    assert_eq!(TrevniReader::new(b"\x80", 9).long(), Err(Stop::More));
}

#[test]
fn the_file_of_the_digest_is_read() {
    let total = FILE.len() as u64;
    assert_eq!(total, 371);
    let header = TrevniHeader::read(FILE, total).unwrap();
    assert_eq!((header.version, header.rows, header.length), (2, 4, 0xfa));
    assert_eq!(header.metadata.get("trevni.checksum"), Some(&b"crc32"[..]));
    let packing = TrevniPacking { codec: TrevniCodec::Null, checksum: Checksum::Crc32 };
    let told: Vec<_> = header.columns.iter().map(|c| (c.name.as_str(), c.form.clone(), c.start)).collect();
    assert_eq!(
        told,
        [
            ("n", Ok((TrevniType::Int, packing)), 0xfa),
            ("ok", Ok((TrevniType::Boolean, packing)), 0x127),
            ("r", Ok((TrevniType::Null, packing)), 0x13c),
            ("r.v", Ok((TrevniType::Float, packing)), 0x153),
        ]
    );
    let marks: Vec<_> = header.columns.iter().map(|c| (c.has_values, c.is_array, c.parent)).collect();
    assert_eq!(marks, [(true, false, None), (false, false, None), (false, true, None), (false, false, Some(2))]);
    // Its descriptors, and the data behind them.
    let block = |start: usize, first, entries| {
        let reader = &mut TrevniReader::of_all(&FILE[start + 4..]);
        let (descriptor, follow) = BlockDescriptor::read(reader, first).unwrap();
        assert_eq!((descriptor.size, follow), (descriptor.stored, 0));
        (descriptor, entries)
    };
    assert_eq!(block(0xfa, Some(TrevniType::Int), 2).0, BlockDescriptor { rows: 2, size: 3, stored: 3 });
    assert_eq!(block(0x153, None, 3).0, BlockDescriptor { rows: 4, size: 12, stored: 12 });
    let values = |data: &[u8], kind, array, entries| {
        let (bytes, checksum) = data.split_at(data.len() - 4);
        assert_eq!(packing.check(bytes, checksum), Ok(Checked::Right));
        decode(bytes, kind, array, true, entries).unwrap()
    };
    let plain = |values| BlockContent { starts: None, values };
    assert_eq!(values(&FILE[0x119..0x120], TrevniType::Int, false, 2), plain(TrevniValues::Int(vec![5, -65])));
    assert_eq!(values(&FILE[0x120..0x127], TrevniType::Int, false, 2), plain(TrevniValues::Int(vec![300, 0])));
    assert_eq!(
        values(&FILE[0x137..0x13c], TrevniType::Boolean, false, 4),
        plain(TrevniValues::Boolean(vec![0b1101], 4))
    );
    let lists = BlockContent { starts: Some(vec![0, 0, 0, 2, 3]), values: TrevniValues::Null(3) };
    assert_eq!(values(&FILE[0x14c..0x153], TrevniType::Null, true, 4), lists);
    assert_eq!(
        values(&FILE[0x163..0x173], TrevniType::Float, false, 3),
        plain(TrevniValues::Float(vec![1.5, -2.0, 0.25]))
    );
}

#[test]
fn a_header_is_read_from_more_and_more_of_it() {
    for length in 0..0xfa {
        assert_eq!(TrevniHeader::read(&FILE[..length], 371).err(), Some(Stop::More), "{length} bytes");
        // A file that ends there.
        assert!(matches!(TrevniHeader::read(&FILE[..length], length as u64), Err(Stop::Bad(_))), "{length} bytes");
    }
    assert!(TrevniHeader::read(&FILE[..0xfa], 371).is_ok());
}

#[test]
fn runs_of_lengths_are_those_of_the_digest() {
    for (length, zeros_or_ones) in
        [(-1, &[0, 0][..]), (-2, &[1, 1]), (-3, &[0; 3]), (-4, &[1; 3]), (-5, &[0; 4]), (-6, &[1; 4])]
    {
        let bytes = long(length);
        let entries = zeros_or_ones.len() as u64;
        let found = decode(&bytes, TrevniType::Null, true, true, entries).unwrap();
        let starts: Vec<i64> = std::iter::once(0)
            .chain(zeros_or_ones.iter().scan(0, |sum, length| {
                *sum += length;
                Some(*sum)
            }))
            .collect();
        assert_eq!(found.starts.as_deref(), Some(starts.as_slice()), "{length}");
        // Beyond the block, and in the version that has no runs.
        assert!(
            decode(&bytes, TrevniType::Null, true, true, entries - 1)
                .unwrap_err()
                .to_string()
                .contains("beyond the block")
        );
        assert!(decode(&bytes, TrevniType::Null, true, false, entries).unwrap_err().to_string().contains("version 1"));
    }
    // The values of a run of ones follow one by one.
    let bytes = longs(&[-4, 7, 8, 9, 2, 10, 11, 0]);
    let found = decode(&bytes, TrevniType::Long, true, true, 5).unwrap();
    assert_eq!(
        found,
        BlockContent { starts: Some(vec![0, 1, 2, 3, 5, 5]), values: TrevniValues::Long(vec![7, 8, 9, 10, 11]) }
    );
    // Behind each length of a run, booleans begin a new byte.
    let found = decode(b"\x03\x01\x00\x04\x03\x06\x05", TrevniType::Boolean, true, true, 4).unwrap();
    let bits = 0b0101_1101;
    assert_eq!(found, BlockContent { starts: Some(vec![0, 1, 2, 4, 7]), values: TrevniValues::Boolean(vec![bits], 7) });
}

#[test]
fn values_that_are_cut_short_or_left_over_are_errors() {
    for (kind, bytes, entries) in [
        (TrevniType::Int, &b"\x02\x02"[..], 2),
        (TrevniType::Long, b"\x02\x02", 2),
        (TrevniType::Boolean, b"\x02\x02", 9),
        (TrevniType::Fixed32, b"\x02\x02\0\0", 1),
        (TrevniType::Double, b"\x02\x02\0\0\0\0\0\0", 1),
        (TrevniType::String, b"\x04ab\x00", 2),
    ] {
        assert!(decode(bytes, kind, false, true, entries).is_ok(), "{kind:?}");
        assert!(decode(bytes, kind, false, true, entries * 9).is_err(), "{kind:?}");
        assert!(decode(bytes, kind, false, true, 0).unwrap_err().to_string().contains("left over"), "{kind:?}");
        assert!(decode(&bytes[..bytes.len() - 1], kind, false, true, entries).is_err(), "{kind:?}");
    }
    assert!(decode(b"\x06ab", TrevniType::Bytes, false, true, 1).is_err());
    assert!(decode(b"\x01", TrevniType::String, false, true, 1).unwrap_err().to_string().contains("length -1"));
    // Nulls take nothing, however many.
    assert_eq!(
        decode(b"", TrevniType::Null, false, true, u64::from(u32::MAX)).unwrap().values.len(),
        u64::from(u32::MAX)
    );
    let most = longs(&[i64::from(i32::MAX), i64::from(i32::MAX)]);
    assert_eq!(decode(&most, TrevniType::Null, true, true, 2).unwrap().values.len(), 2 * i32::MAX as u64);
    let more = longs(&[i64::from(i32::MAX); 600]);
    assert!(decode(&more, TrevniType::Null, true, true, 600).unwrap_err().to_string().contains("more than"));
}

#[test]
fn what_contradicts_itself_in_a_header_is_refused() {
    let text = |text: &str| [long(text.len() as i64), text.into()].concat();
    let pairs = |pairs: &[(&str, &str)]| {
        let all = pairs.iter().flat_map(|(key, value)| [text(key), text(value)].concat());
        long(pairs.len() as i64).into_iter().chain(all).collect::<Vec<u8>>()
    };
    let header = |columns: &[&[(&str, &str)]]| {
        let mut bytes =
            [b"Trv\x02".as_slice(), &[1, 0, 0, 0, 0, 0, 0, 0], &(columns.len() as u32).to_le_bytes()].concat();
        bytes.extend(long(0));
        columns.iter().for_each(|column| bytes.extend(pairs(column)));
        bytes.resize(bytes.len() + 8 * columns.len(), 0);
        TrevniHeader::read(&bytes, bytes.len() as u64)
    };
    let (name, kind) = ("trevni.name", "trevni.type");
    let (array, values, parent) = (("trevni.array", ""), ("trevni.values", ""), ("trevni.parent", "a"));
    for (columns, reason) in [
        (&[&[(name, "a"), (kind, "int")][..], &[(name, "a"), (kind, "int")]][..], "two columns"),
        (&[&[(name, "b"), (kind, "int"), parent]], "the parent"),
        (&[&[(name, "b"), (kind, "int"), parent], &[(name, "a"), (kind, "int"), array]], "the parent"),
        (&[&[(name, "a"), (kind, "int")], &[(name, "b"), (kind, "int"), parent]], "the parent"),
        (&[&[(name, "a"), (kind, "int"), array, values]], "first values"),
        (&[&[(name, "a"), (kind, "int"), array], &[(name, "b"), (kind, "int"), parent, values]], "first values"),
        (&[&[(name, "a")]], "trevni.type"),
        (&[&[(kind, "int")]], "trevni.name"),
    ] {
        let Err(Stop::Bad(found)) = header(columns) else { panic!("{reason}") };
        assert!(found.to_string().contains(reason), "{found}");
    }
    // Presence counts, types have any case, the last of two keys wins.
    let found = header(&[&[(name, "x"), (kind, "LONG"), ("trevni.array", "false"), (name, "a")]]).unwrap();
    assert_eq!((found.columns[0].name.as_str(), found.columns[0].is_array), ("a", true));
    assert_eq!(found.columns[0].form.as_ref().unwrap().0, TrevniType::Long);
    // What is not known fails the column alone.
    for (key, value) in [(kind, "decimal"), ("trevni.codec", "zstd"), ("trevni.checksum", "md5")] {
        let found = header(&[&[(name, "a"), (kind, "int"), (key, value)]]).unwrap();
        assert!(found.columns[0].form.as_ref().unwrap_err().to_string().contains(value));
    }
    for (bytes, reason) in [
        (&b"Trv\x03"[..], "version 3"),
        (b"Trx\x02", "Trv"),
        (b"Trv\x02\0\0\0\0\0\0\0\x80\0\0\0\0\0\0", "rows"),
        (b"Trv\x02\0\0\0\0\0\0\0\0\xff\0\0\0\0\0", "columns"),
        (b"Trv\x02\0\0\0\0\0\0\0\0\0\0\0\0\x20\0", "metadata"),
        (b"Trv\x02\0\0\0\0\0\0\0\0\0\0\0\0\x01\0", "metadata"),
    ] {
        let Err(Stop::Bad(found)) = TrevniHeader::read(bytes, bytes.len() as u64) else { panic!("{reason}") };
        assert!(found.to_string().contains(reason), "{found}");
    }
}

#[test]
fn a_block_gives_what_its_descriptor_says() {
    let data: Vec<u8> = (0..5000_u32).flat_map(|i| (i / 7).to_le_bytes()).collect();
    let deflated = {
        let mut compressor = libdeflater::Compressor::new(libdeflater::CompressionLvl::default());
        let mut out = vec![0; compressor.deflate_compress_bound(data.len())];
        let length = compressor.deflate_compress(&data, &mut out).unwrap();
        out.truncate(length);
        out
    };
    let snappy = snap::raw::Encoder::new().compress_vec(&data).unwrap();
    let mut bzip2 = Vec::new();
    bzip2::read::BzEncoder::new(data.as_slice(), bzip2::Compression::fast()).read_to_end(&mut bzip2).unwrap();
    for (name, stored) in [("null", &data), ("deflate", &deflated), ("snappy", &snappy), ("bzip2", &bzip2)] {
        let packing = TrevniPacking::of(Some(name.as_bytes()), Some(b"crc-32")).unwrap();
        let mut out = vec![0; data.len()];
        packing.unpack(stored, &mut out).unwrap();
        assert_eq!(out, data, "{name}");
        assert!(packing.unpack(stored, &mut out[1..]).is_err(), "{name}");
        assert!(packing.unpack(stored, &mut vec![0; data.len() + 1]).is_err(), "{name}");
        let sum = libdeflater::crc32(&data);
        for right in [sum.to_be_bytes(), sum.to_le_bytes()] {
            assert_eq!(packing.check(&data, &right), Ok(Checked::Right));
        }
        assert!(packing.check(&data, &[1, 2, 3, 4]).is_err());
        let is_lenient = packing.check(&data, &[0; 4]) == Ok(Checked::NotComputed);
        assert_eq!(is_lenient, name == "null");
    }
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic_or_take_more_than_was_said(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        kind in prop::sample::select(TrevniType::ALL.map(|(_, kind)| kind).to_vec()),
        array in any::<bool>(),
        entries in 0_u64..400,
    ) {
        if let Ok(found) = decode(&bytes, kind, array, true, entries) {
            let count = found.starts.as_ref().map_or(entries, |starts| starts[starts.len() - 1] as u64);
            prop_assert_eq!(found.values.len(), count);
            prop_assert_eq!(found.starts.map_or(entries, |starts| starts.len() as u64 - 1), entries);
        }
        let _ = TrevniHeader::read(&bytes, 1 << 20);
        let mut file = FILE.to_vec();
        for (at, byte) in bytes.iter().enumerate() {
            file[(at * 37 + usize::from(*byte)) % 371] ^= byte;
        }
        let _ = TrevniHeader::read(&file, 371);
    }

    #[test]
    fn longs_come_back(values in prop::collection::vec(any::<i64>(), 0..200)) {
        let found = decode(&longs(&values), TrevniType::Long, false, true, values.len() as u64).unwrap();
        prop_assert_eq!(found.values, TrevniValues::Long(values));
    }
}
