//! A whole array as a PNG file.
//!
//! Deflate stores blocks without compressing them, so the size is arithmetic. Each block is an IDAT chunk of its own:
//! its CRC-32 needs the pixels of that block alone. Only the Adler-32 of the last four bytes needs all pixels. Those of
//! blocks that were read are kept, and the others are read when it is asked for.

use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use super::chunks::{AROUND_CHUNK, ColourType, push_chunk, push_end, push_header, push_transparent_zero};
use super::picture::PicturedArray;
use super::samples::{Numbers, Window};
use crate::source::Interrupt;
use crate::store::{Answer, Error, Rows};
use crate::table::{Colour, Interlace, Pixels};
use crate::views::wanted::WantedBytes;
use crate::views::{Effort, Misfit, Size, View};

/// Most bytes of a stored block of deflate.
const BLOCK: u64 = 0xffff;

/// Bytes before the data of a stored block: a flag, the length, its complement.
const BEFORE_BLOCK: u64 = 5;

/// Bytes of a palette of 256 colours.
const PALETTE: usize = 768;

/// Characters of the sentence that says which numbers the shades stand for.
const SENTENCE: usize = 200;

/// Modulus of Adler-32.
const ADLER: u64 = 65_521;

/// An array of numbers as an image.
pub struct PngView {
    pixels: Pixels,
    numbers: Numbers,
    rows: Arc<dyn Rows>,
    /// Its pictures tell the window of shades.
    array: PicturedArray,
    palette: Option<Arc<dyn Rows>>,
    /// Bytes of a pixel in a row of the image.
    pixel: u64,
    head: OnceLock<Vec<u8>>,
    window: OnceLock<Window>,
    /// Adler-32 of each block read so far; 0, which no block has, for others.
    sums: Mutex<Vec<u32>>,
}

impl PngView {
    /// Returns the image of `array`, whose stored elements are `rows`. `palette` has the colours of
    /// [`Colour::Palette`]. `None`: see [`PngView::check`].
    pub fn new(pixels: &Pixels, array: PicturedArray, palette: Option<Arc<dyn Rows>>) -> Option<Self> {
        let (numbers, rows) = (array.numbers.clone(), array.rows.clone());
        let is_stored = Self::check(pixels, rows.as_ref()).is_ok();
        let sample = if pixels.colour == Colour::Scaled { 1 } else { numbers.size as u64 };
        let pixel = samples(pixels) * sample;
        let (head, window, sums) = Default::default();
        let pixels = pixels.clone();
        is_stored.then_some(Self { pixels, numbers, rows, array, palette, pixel, head, window, sums })
    }

    /// Checks that rows have the elements of an image.
    ///
    /// # Errors
    /// [`Misfit`] has the reason.
    pub fn check(pixels: &Pixels, rows: &dyn Rows) -> Result<(), Misfit> {
        let numbers = rows.stored_type().and_then(|stored| Numbers::of(stored, None));
        let stored = rows.stored_width().and_then(|width| rows.len().checked_mul(width));
        let elements = u64::from(pixels.width) * u64::from(pixels.height) * samples(pixels);
        match numbers {
            Some(numbers) if stored == Some(elements * numbers.size as u64) => Ok(()),
            _ => Err(Misfit::Type("its values are not the numbers of one dataset".into())),
        }
    }

    /// Bytes of a row of the image: its filter, then its pixels.
    fn row_bytes(&self) -> u64 {
        1 + u64::from(self.pixels.width) * self.pixel
    }

    /// Bytes of all rows.
    fn image_bytes(&self) -> u64 {
        u64::from(self.pixels.height) * self.row_bytes()
    }

    fn blocks(&self) -> u64 {
        self.image_bytes().div_ceil(BLOCK)
    }

    /// Bytes before the first block.
    fn head_bytes(&self) -> u64 {
        let start = 8 + AROUND_CHUNK + 13;
        let zlib = AROUND_CHUNK + 2;
        start
            + zlib
            + match self.pixels.colour {
                Colour::Grey { .. } | Colour::Rgb => 0,
                Colour::Palette(_) => AROUND_CHUNK + PALETTE as u64,
                Colour::Scaled => 2 * AROUND_CHUNK + 2 + (b"Description\0".len() + SENTENCE) as u64,
            }
    }

    fn bytes(&self) -> u64 {
        let tail = AROUND_CHUNK + 4 + AROUND_CHUNK;
        self.head_bytes() + self.image_bytes() + self.blocks() * (AROUND_CHUNK + BEFORE_BLOCK) + tail
    }

    fn window(&self, interrupt: &Interrupt) -> Result<Window, Error> {
        if let Some(window) = self.window.get() {
            return Ok(*window);
        }
        let window = self.array.window(interrupt)?;
        Ok(*self.window.get_or_init(|| window))
    }

    fn head(&self, interrupt: &Interrupt) -> Result<&[u8], Error> {
        if let Some(head) = self.head.get() {
            return Ok(head);
        }
        let mut out = Vec::with_capacity(self.head_bytes() as usize);
        let (colour, bits) = match self.pixels.colour {
            Colour::Grey { .. } => (ColourType::Grey, 8 * self.numbers.size as u8),
            Colour::Rgb => (ColourType::Rgb, 8 * self.numbers.size as u8),
            Colour::Palette(_) => (ColourType::Palette, 8),
            Colour::Scaled => (ColourType::Grey, 8),
        };
        push_header(self.pixels.width, self.pixels.height, colour, bits, &mut out);
        match self.pixels.colour {
            Colour::Palette(_) => {
                let colours = self.palette(interrupt)?;
                push_chunk(b"PLTE", &mut out, |out| out.extend(colours));
            }
            Colour::Scaled => {
                push_transparent_zero(&mut out);
                let Window { least, greatest, is_logarithmic } = self.window(interrupt)?;
                let how = if is_logarithmic { "by the logarithm" } else { "in proportion" };
                let sentence = format!(
                    "Grey 1 to 255 is {least:e} to {greatest:e} {how}, from a sample; beyond them 1 and 255; 0, \
                     transparent, is missing."
                );
                push_chunk(b"tEXt", &mut out, |out| {
                    out.extend(b"Description\0");
                    out.extend(format!("{sentence:<SENTENCE$.SENTENCE$}").bytes());
                });
            }
            Colour::Grey { .. } | Colour::Rgb => {}
        }
        // Deflate with a window of 32 KiB, without a dictionary.
        push_chunk(b"IDAT", &mut out, |out| out.extend([0x78, 0x01]));
        Ok(self.head.get_or_init(|| out))
    }

    /// The 256 colours of the palette. Those behind its last one are black.
    fn palette(&self, interrupt: &Interrupt) -> Result<[u8; PALETTE], Error> {
        let unsupported = |reason: &str| Error::unsupported("the palette", reason.to_owned());
        let rows = self.palette.as_deref().ok_or_else(|| unsupported("PALETTE leads to no dataset of colours"))?;
        let bytes = rows.stored_width().and_then(|width| rows.len().checked_mul(width));
        let is_colours = rows.stored_width() == Some(3)
            && rows.stored_type().and_then(|stored| Numbers::of(stored, None)).is_some_and(|bytes| bytes.size == 1);
        let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok()).filter(|bytes| *bytes <= PALETTE);
        let bytes = bytes.filter(|_| is_colours).ok_or_else(|| unsupported("not up to 256 rows of three bytes"))?;
        let mut stored = Vec::with_capacity(bytes);
        rows.stored_bytes()?.append(0, bytes, &mut stored, interrupt)?;
        let mut colours = [0; PALETTE];
        colours[..stored.len()].copy_from_slice(&stored);
        Ok(colours)
    }

    /// Appends an IDAT chunk with the stored block of this number.
    fn push_block(&self, block: u64, out: &mut Vec<u8>, interrupt: &Interrupt) -> Result<(), Error> {
        let mut pixels = Vec::with_capacity(BLOCK as usize);
        let (start, end) = (block * BLOCK, self.image_bytes().min((block + 1) * BLOCK));
        let row = self.row_bytes();
        for at in start / row..end.div_ceil(row) {
            let first = start.saturating_sub(at * row);
            let last = (end - at * row).min(row);
            if first == 0 {
                // No filter.
                pixels.push(0);
            }
            self.push_row(at, first.saturating_sub(1)..last - 1, &mut pixels, interrupt)?;
        }
        self.keep_sum(block, libdeflater::adler32(&pixels));
        push_chunk(b"IDAT", out, |out| {
            let length = pixels.len() as u16;
            out.push(u8::from(block + 1 == self.blocks()));
            out.extend(length.to_le_bytes());
            out.extend((!length).to_le_bytes());
            out.append(&mut pixels);
        });
        Ok(())
    }

    /// Appends the bytes of a range of a row's pixels.
    fn push_row(
        &self,
        row: u64,
        wanted: std::ops::Range<u64>,
        out: &mut Vec<u8>,
        interrupt: &Interrupt,
    ) -> Result<(), Error> {
        let first = wanted.start / self.pixel;
        let count = wanted.end.div_ceil(self.pixel) - first;
        let mut pixels = self.stored_pixels(row, first, count, interrupt)?;
        match &self.pixels.colour {
            Colour::Scaled => {
                let window = self.window(interrupt)?;
                let numbers = pixels.chunks_exact(self.numbers.size).map(|element| self.numbers.number(element));
                pixels = numbers.map(|number| window.shade(number)).collect();
            }
            colour => {
                // PNG has the most significant byte first.
                if self.numbers.size == 2 && self.numbers.is_little() {
                    pixels.chunks_exact_mut(2).for_each(|sample| sample.swap(0, 1));
                }
                if *colour == (Colour::Grey { is_zero_white: true }) {
                    pixels.iter_mut().for_each(|byte| *byte = !*byte);
                }
            }
        }
        let skip = (wanted.start - first * self.pixel) as usize;
        let length = (wanted.end - wanted.start) as usize;
        out.extend_from_slice(pixels.get(skip..skip + length).unwrap_or_default());
        Ok(())
    }

    /// The stored elements of `count` pixels of a row, those of one pixel together.
    fn stored_pixels(&self, row: u64, first: u64, count: u64, interrupt: &Interrupt) -> Result<Vec<u8>, Error> {
        let (width, height) = (u64::from(self.pixels.width), u64::from(self.pixels.height));
        let size = self.numbers.size as u64;
        let stored = self.rows.stored_bytes()?;
        let read = |element: u64, count: u64| {
            let mut out = Vec::with_capacity((count * size) as usize);
            stored.append(element * size, (count * size) as usize, &mut out, interrupt)?;
            Ok::<_, Error>(out)
        };
        // The place of the first pixel in the plane of each colour.
        let planes = match self.pixels.interlace {
            None => return read(row * width + first, count),
            Some(Interlace::Pixel) => return read((row * width + first) * 3, count * 3),
            Some(Interlace::Line) => [0, 1, 2].map(|plane| (row * 3 + plane) * width + first),
            Some(Interlace::Plane) => [0, 1, 2].map(|plane| (plane * height + row) * width + first),
        };
        let planes = planes.map(|element| read(element, count));
        let mut out = Vec::with_capacity((count * size) as usize * 3);
        let [red, green, blue] = planes;
        let (red, green, blue) = (red?, green?, blue?);
        let size = self.numbers.size;
        for ((red, green), blue) in red.chunks(size).zip(green.chunks(size)).zip(blue.chunks(size)) {
            [red, green, blue].iter().for_each(|sample| out.extend_from_slice(sample));
        }
        Ok(out)
    }

    fn keep_sum(&self, block: u64, sum: u32) {
        let mut sums = self.sums.lock();
        if sums.is_empty() {
            sums.resize(self.blocks() as usize, 0);
        }
        if let Some(kept) = sums.get_mut(block as usize) {
            *kept = sum;
        }
    }

    /// Adler-32 of all rows.
    fn sum(&self, interrupt: &Interrupt) -> Result<u32, Error> {
        let mut all = 1;
        for block in 0..self.blocks() {
            let known = |view: &Self| view.sums.lock().get(block as usize).copied().filter(|sum| *sum != 0);
            let sum = match known(self) {
                Some(sum) => sum,
                None => {
                    interrupt.check()?;
                    self.push_block(block, &mut Vec::new(), interrupt)?;
                    known(self).unwrap_or_default()
                }
            };
            all = joined(all, sum, (self.image_bytes() - block * BLOCK).min(BLOCK));
        }
        Ok(all)
    }
}

/// Elements of a pixel.
fn samples(pixels: &Pixels) -> u64 {
    if pixels.interlace.is_some() { 3 } else { 1 }
}

/// Adler-32 of two pieces, the second of which has `length` bytes.
pub(super) fn joined(first: u32, second: u32, length: u64) -> u32 {
    let parts = |sum: u32| (u64::from(sum & 0xffff), u64::from(sum >> 16));
    let ((low, high), (second_low, second_high)) = (parts(first), parts(second));
    let low_before = low + ADLER - 1;
    let high = (high + second_high + low_before * (length % ADLER)) % ADLER;
    ((high << 16) | ((low_before + second_low) % ADLER)) as u32
}

impl View for PngView {
    fn size(&self, _: Effort, _: &Interrupt) -> Result<Size, Error> {
        Ok(Size::Exact(self.bytes()))
    }

    fn gather(&self, offset: u64, length: usize, answer: &mut Answer, interrupt: &Interrupt) -> Result<(), Error> {
        let mut wanted = WantedBytes::new(offset, length, answer);
        let head = self.head_bytes();
        if offset < head {
            wanted.take(0, self.head(interrupt)?);
        }
        let around = AROUND_CHUNK + BEFORE_BLOCK;
        let blocks_end = head + self.image_bytes() + self.blocks() * around;
        let mut made = Vec::new();
        while let Some(at) = wanted.next().filter(|at| *at < blocks_end) {
            let block = (at - head) / (BLOCK + around);
            made.clear();
            self.push_block(block, &mut made, interrupt)?;
            wanted.take(head + block * (BLOCK + around), &made);
        }
        if wanted.next().is_some() {
            made.clear();
            let sum = self.sum(interrupt)?;
            push_chunk(b"IDAT", &mut made, |out| out.extend(sum.to_be_bytes()));
            push_end(&mut made);
            wanted.take(blocks_end, &made);
        }
        Ok(())
    }
}
