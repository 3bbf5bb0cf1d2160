//! Filter 3: a checksum of four bytes after the data.

use super::Error;

/// Checks the checksum and removes it.
pub(super) fn verify(data: &[u8]) -> Result<&[u8], Error> {
    let (data, stored) = data.split_last_chunk::<4>().ok_or("shorter than its checksum")?;
    let stored = u32::from_le_bytes(*stored);
    let computed = checksum(data);
    // On little-endian machines, HDF5 1.6.2 and earlier swapped the two bytes of each half; libhdf5 accepts both forms.
    let swapped = (computed & 0x00ff_00ff) << 8 | computed >> 8 & 0x00ff_00ff;
    if stored == computed || stored == swapped {
        Ok(data)
    } else {
        Err(format!("checksum is {computed:08x}, {stored:08x} is stored").into())
    }
}

/// Fletcher's checksum over big-endian 16-bit words, an odd last byte counting as the high half of one.
fn checksum(data: &[u8]) -> u32 {
    let (mut low, mut high) = (0u32, 0u32);
    // 360 is the greatest number of words for which neither sum can exceed 32 bits between two foldings.
    for block in data.chunks(720) {
        let words = block.chunks_exact(2);
        let odd = words.remainder().first();
        for word in words {
            low += u32::from(u16::from_be_bytes([word[0], word[1]]));
            high += low;
        }
        if let Some(byte) = odd {
            low += u32::from(*byte) << 8;
            high += low;
        }
        low = fold(low);
        high = fold(high);
    }
    fold(high) << 16 | fold(low)
}

fn fold(sum: u32) -> u32 {
    (sum & 0xffff) + (sum >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_by_hand() {
        // Words 0x0001 and 0x0002: sums 1, 3 below; 1 + 3 = 4 above.
        assert_eq!(checksum(&[0, 1, 0, 2]), 0x0004_0003);
        // An odd byte is the high half of a word.
        assert_eq!(checksum(&[1]), 0x0100_0100);
        // 0xffff is zero modulo 65535 but keeps its form.
        assert_eq!(checksum(&[0xff; 4]), 0xffff_ffff);
    }

    #[test]
    fn sums_of_many_words_do_not_overflow() {
        // n words of 0xfffe are −n modulo 65535, and their second sum −n(n + 1)/2.
        let n = 100_000u64;
        let data: Vec<u8> = [0xff, 0xfe].repeat(n as usize);
        let modulo = |sum: u64| (65535 - sum % 65535) as u32;
        assert_eq!(checksum(&data), modulo(n * (n + 1) / 2) << 16 | modulo(n));
    }

    #[test]
    fn both_byte_orders_are_accepted_and_nothing_else() {
        assert_eq!(verify(&[0, 1, 0, 2, 3, 0, 4, 0]), Ok(&[0, 1, 0, 2][..]));
        assert_eq!(verify(&[0, 1, 0, 2, 0, 3, 0, 4]), Ok(&[0, 1, 0, 2][..]));
        assert!(verify(&[0, 1, 0, 2, 3, 0, 0, 4]).is_err());
        assert!(verify(&[0, 1, 0]).is_err());
    }
}
