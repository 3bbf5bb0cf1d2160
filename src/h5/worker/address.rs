//! Addresses of objects, and the tokens that libhdf5 uses for them.

use crate::h5::library::ffi::{self, Hid, ObjectToken};
use crate::h5::library::{FailureReason, check};

/// The native connector's token: the address in the file's width, little-endian.
pub(super) fn token(address: u64, address_size: u8) -> Result<ObjectToken, FailureReason> {
    let mut token = [0; 16];
    let bytes = address.to_le_bytes();
    let size = usize::from(address_size).min(8);
    if bytes.iter().skip(size).any(|byte| *byte != 0) {
        return Err(FailureReason::new(format!("address {address} is wider than {address_size} bytes")));
    }
    for (to, from) in token.iter_mut().zip(&bytes[..size]) {
        *to = *from;
    }
    Ok(ObjectToken(token))
}

/// The address in a token.
pub(super) fn address_in(token: ObjectToken, address_size: u8) -> u64 {
    let mut bytes = [0; 8];
    for (to, from) in bytes.iter_mut().zip(&token.0[..usize::from(address_size).min(8)]) {
        *to = *from;
    }
    u64::from_le_bytes(bytes)
}

/// libhdf5's information about an open object.
pub(super) fn info_of(object: Hid) -> Result<ffi::ObjectInfo, FailureReason> {
    let mut info = ffi::ObjectInfo {
        file_number: 0,
        token: ObjectToken([0; 16]),
        kind: -1,
        references: 0,
        times: [0; 4],
        attributes: 0,
    };
    // SAFETY: a place for the answer.
    check(unsafe { ffi::H5Oget_info3(object, &mut info, ffi::INFO_BASIC) })?;
    Ok(info)
}

/// The address of an open object; for a file, that of its root group.
pub(super) fn address_of(object: Hid, address_size: u8) -> Result<u64, FailureReason> {
    Ok(address_in(info_of(object)?.token, address_size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_hold_the_address_in_the_files_width() {
        let mut expected = [0; 16];
        expected[..2].copy_from_slice(&[0x34, 0x12]);
        assert_eq!(token(0x1234, 4).unwrap().0, expected);
        assert_eq!(address_in(ObjectToken(expected), 4), 0x1234);
        assert!(token(0x1_0000_0000, 4).is_err());
    }
}
