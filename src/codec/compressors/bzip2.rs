//! Filter 307: a bzip2 stream.

use crate::codec::Error;
use bzip2::{Decompress, Status};

/// Decompresses `data` into `out`; returns the bytes written.
pub(in crate::codec) fn decode(data: &[u8], out: &mut [u8]) -> Result<usize, Error> {
    let mut stream = Decompress::new(false);
    loop {
        let (taken, given) = (stream.total_in() as usize, stream.total_out() as usize);
        let (input, room) = (data.get(taken..).unwrap_or_default(), out.get_mut(given..).unwrap_or_default());
        let full = room.is_empty();
        match stream.decompress(input, room) {
            // Bytes after the stream are ignored.
            Ok(Status::StreamEnd) => return Ok(stream.total_out() as usize),
            Ok(Status::MemNeeded) => return Err("no memory for decompression".into()),
            Ok(_) if stream.total_in() as usize == taken && stream.total_out() as usize == given => {
                return Err(if full {
                    format!("the stream gives more than {} bytes", out.len()).into()
                } else {
                    "the stream is cut short".into()
                });
            }
            Ok(_) => {}
            Err(error) => return Err(format!("the stream is damaged ({error})").into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use proptest::prelude::*;

    use super::*;

    fn encode(data: &[u8]) -> Vec<u8> {
        let mut stream = Vec::new();
        bzip2::read::BzEncoder::new(data, bzip2::Compression::fast()).read_to_end(&mut stream).unwrap();
        stream
    }

    proptest! {
        #[test]
        fn what_was_encoded_is_decoded(data in prop::collection::vec(0u8..4, 1..2000)) {
            let stream = encode(&data);
            let mut out = vec![0; data.len() + 1];
            prop_assert_eq!(decode(&stream, &mut out[..data.len()]), Ok(data.len()));
            prop_assert_eq!(&out[..data.len()], &data);
            prop_assert_eq!(decode(&stream, &mut out), Ok(data.len()));
            let short = decode(&stream, &mut out[..data.len() - 1]);
            prop_assert_eq!(short, Err(format!("the stream gives more than {} bytes", data.len() - 1).into()));
            prop_assert_eq!(decode(&stream[..stream.len() - 1], &mut out), Err("the stream is cut short".into()));
        }

        #[test]
        fn no_bytes_make_it_panic(data in prop::collection::vec(any::<u8>(), 0..200), at in 4usize..60) {
            let _ = decode(&data, &mut [0; 300]);
            let mut stream = encode(&[7; 200]);
            for (target, byte) in stream.iter_mut().skip(at).zip(&data) {
                *target ^= byte;
            }
            let _ = decode(&stream, &mut [0; 300]);
        }
    }
}
