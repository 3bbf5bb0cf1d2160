//! Trevni's primitives: fixed-width integers, varints, bytes, strings.

use crate::codec::Error;

/// Why bytes could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The slice ends here, but the file continues.
    More,
    /// The bytes break a rule, or the file ends here.
    Bad(Error),
}

impl<E: Into<Error>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Bad(error.into())
    }
}

/// Reads a slice that is the beginning of `total` bytes.
#[derive(Clone, Debug)]
pub struct TrevniReader<'a> {
    bytes: &'a [u8],
    at: usize,
    total: u64,
}

impl<'a> TrevniReader<'a> {
    /// A reader at the first byte; `total` is at least the length of `bytes`.
    pub fn new(bytes: &'a [u8], total: u64) -> Self {
        Self { bytes, at: 0, total }
    }

    /// A reader of bytes that are the whole file.
    pub fn of_all(bytes: &'a [u8]) -> Self {
        Self::new(bytes, bytes.len() as u64)
    }

    /// Number of bytes read.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Number of bytes left in the file, in the slice and after it.
    pub fn left(&self) -> u64 {
        self.total.saturating_sub(self.at as u64)
    }

    /// The next bytes.
    ///
    /// # Errors
    /// [`Stop`].
    pub fn take(&mut self, length: usize) -> Result<&'a [u8], Stop> {
        let found = self.at.checked_add(length).and_then(|end| self.bytes.get(self.at..end));
        match found {
            Some(found) => {
                self.at += length;
                Ok(found)
            }
            None if (length as u64) <= self.left() => Err(Stop::More),
            None => Err(format!("{length} bytes where {} are left", self.left()).into()),
        }
    }

    /// All remaining bytes of the slice.
    pub fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], Stop> {
        let mut bytes = [0; N];
        bytes.copy_from_slice(self.take(N)?);
        Ok(bytes)
    }

    /// One byte.
    ///
    /// # Errors
    /// [`Stop`].
    pub fn u8(&mut self) -> Result<u8, Stop> {
        Ok(u8::from_le_bytes(self.fixed()?))
    }

    /// Four bytes, little-endian.
    ///
    /// # Errors
    /// [`Stop`].
    pub fn u32(&mut self) -> Result<u32, Stop> {
        Ok(u32::from_le_bytes(self.fixed()?))
    }

    /// Eight bytes, little-endian.
    ///
    /// # Errors
    /// [`Stop`].
    pub fn u64(&mut self) -> Result<u64, Stop> {
        Ok(u64::from_le_bytes(self.fixed()?))
    }

    /// A varint of at most `most` bytes: seven bits each, the lowest first.
    #[inline]
    fn varint(&mut self, most: usize) -> Result<u64, Stop> {
        let rest = self.rest();
        if let [first @ 0..0x80, ..] = rest {
            self.at += 1;
            return Ok(u64::from(*first));
        }
        let mut value = 0;
        for (i, byte) in rest.iter().take(most).enumerate() {
            value |= u64::from(byte & 0x7f) << (7 * i as u32);
            if byte & 0x80 == 0 {
                self.at += i + 1;
                return Ok(value);
            }
        }
        if rest.len() >= most {
            return Err(format!("an integer of more than {most} bytes").into());
        }
        Err(if self.left() > rest.len() as u64 { Stop::More } else { "an integer is cut short".into() })
    }

    /// An `int`: the low 32 bits of a zigzag varint of at most 5 bytes.
    ///
    /// # Errors
    /// [`Stop`].
    #[inline]
    pub fn int(&mut self) -> Result<i32, Stop> {
        let n = self.varint(5)? as u32;
        Ok((n >> 1) as i32 ^ -((n & 1) as i32))
    }

    /// A `long`: a zigzag varint of at most 10 bytes.
    ///
    /// # Errors
    /// [`Stop`].
    #[inline]
    pub fn long(&mut self) -> Result<i64, Stop> {
        let n = self.varint(10)?;
        Ok((n >> 1) as i64 ^ -((n & 1) as i64))
    }

    /// The length that precedes `bytes` and `string`, at most the number of bytes left.
    #[inline]
    pub fn length(&mut self) -> Result<usize, Stop> {
        let length = self.long()?;
        let fits = usize::try_from(length).ok().filter(|length| *length as u64 <= self.left());
        fits.ok_or_else(|| format!("bytes of length {length} where {} are left", self.left()).into())
    }

    /// A value of type `bytes`.
    ///
    /// # Errors
    /// [`Stop`].
    #[inline]
    pub fn bytes(&mut self) -> Result<&'a [u8], Stop> {
        let length = self.length()?;
        self.take(length)
    }
}
