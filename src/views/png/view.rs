//! A whole array as a PNG file.
//!
//! Deflate stores blocks without compressing them, so the size is arithmetic. Each block is an IDAT chunk of its own:
//! its CRC-32 needs the pixels of that block alone. Only the Adler-32 of the last four bytes needs all pixels. Those of
//! blocks that were read are kept, and the others are read when it is asked for.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use super::chunks::{AROUND_CHUNK, ColourType, push_chunk, push_end, push_header, push_transparent_zero};
use super::palette::{PALETTE, colours_of};
use super::picture::PicturedArray;
use super::samples::{Numbers, Window};
use crate::activity::{Unit, Work};
use crate::learnt::pass::Keeper;
use crate::source::Interrupt;
use crate::store::{Answer, Error, Rows};
use crate::table::{Colour, Interlace, Pixels};
use crate::views::wanted::WantedBytes;
use crate::views::{Effort, Misfit, Size, View};

/// Most bytes of a stored block of deflate.
const BLOCK: u64 = 0xffff;

/// Bytes before the data of a stored block: a flag, the length, its complement.
const BEFORE_BLOCK: u64 = 5;

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
    /// Adler-32 of each block read so far; 0 for others.
    sums: Mutex<Vec<u32>>,
    /// Names the file in lists of work.
    keeper: Keeper,
}

impl PngView {
    /// Returns the image of `array`, whose stored elements are `rows`. `palette` has the colours of
    /// [`Colour::Palette`]. `None`: see [`PngView::check`].
    pub fn new(pixels: &Pixels, array: PicturedArray, palette: Option<Arc<dyn Rows>>, keeper: Keeper) -> Option<Self> {
        let (numbers, rows) = (array.numbers.clone(), array.rows.clone());
        let is_stored = Self::check(pixels, rows.as_ref()).is_ok();
        let sample = if pixels.colour == Colour::Scaled { 1 } else { numbers.size as u64 };
        let pixel = samples(pixels) * sample;
        let (head, window, sums) = Default::default();
        let pixels = pixels.clone();
        is_stored.then_some(Self { pixels, numbers, rows, array, palette, pixel, head, window, sums, keeper })
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
                let colours = colours_of(self.palette.as_deref(), interrupt)?;
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

    /// Appends an IDAT chunk with the stored block of this number. Returns the block's Adler-32.
    fn push_block(&self, block: u64, out: &mut Vec<u8>, interrupt: &Interrupt) -> Result<u32, Error> {
        let (start, end) = (block * BLOCK, self.image_bytes().min((block + 1) * BLOCK));
        let row = self.row_bytes();
        // Places among the bytes of all pixels, without the filters of rows.
        let [first, last] = [start, end].map(|at| at - at.div_ceil(row));
        let pixels = self.pixels(first..last, interrupt)?;
        let (mut rest, mut bytes) = (pixels.as_slice(), Vec::with_capacity(BLOCK as usize));
        for at in start / row..end.div_ceil(row) {
            if at * row >= start {
                // No filter.
                bytes.push(0);
            }
            let length = end.min((at + 1) * row) - start.max(at * row + 1);
            let (own, others) = rest.split_at_checked(length as usize).unwrap_or((rest, &[]));
            bytes.extend_from_slice(own);
            rest = others;
        }
        let sum = libdeflater::adler32(&bytes);
        self.keep_sum(block, sum);
        push_chunk(b"IDAT", out, |out| {
            let length = bytes.len() as u16;
            out.push(u8::from(block + 1 == self.blocks()));
            out.extend(length.to_le_bytes());
            out.extend((!length).to_le_bytes());
            out.append(&mut bytes);
        });
        Ok(sum)
    }

    /// Returns a range of the bytes of all pixels.
    fn pixels(&self, wanted: Range<u64>, interrupt: &Interrupt) -> Result<Vec<u8>, Error> {
        let first = wanted.start / self.pixel;
        let mut pixels = self.stored_pixels(first..wanted.end.div_ceil(self.pixel), interrupt)?;
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
        pixels.drain(..pixels.len().min((wanted.start - first * self.pixel) as usize));
        pixels.truncate((wanted.end - wanted.start) as usize);
        Ok(pixels)
    }

    /// The stored elements of a range of all pixels, those of one pixel together.
    fn stored_pixels(&self, wanted: Range<u64>, interrupt: &Interrupt) -> Result<Vec<u8>, Error> {
        let (width, height) = (u64::from(self.pixels.width), u64::from(self.pixels.height));
        let Range { start, end } = wanted;
        let mut out = Vec::with_capacity(((end - start) * samples(&self.pixels)) as usize * self.numbers.size);
        match self.pixels.interlace {
            None => self.push_elements(start..end, &mut out, interrupt)?,
            Some(Interlace::Pixel) => self.push_elements(start * 3..end * 3, &mut out, interrupt)?,
            Some(Interlace::Plane) => {
                self.push_colours(start..end, [0, 1, 2].map(|at| at * height * width), &mut out, interrupt)?
            }
            Some(Interlace::Line) => {
                for row in start / width..end.div_ceil(width) {
                    let own = start.max(row * width)..end.min((row + 1) * width);
                    // Two rows of other colours lie before this one, for each row above.
                    self.push_colours(own, [0, 1, 2].map(|at| (2 * row + at) * width), &mut out, interrupt)?;
                }
            }
        }
        Ok(out)
    }

    /// Appends pixels of three colours. `behind` counts elements from a pixel to its red, green and blue.
    fn push_colours(
        &self,
        pixels: Range<u64>,
        behind: [u64; 3],
        out: &mut Vec<u8>,
        interrupt: &Interrupt,
    ) -> Result<(), Error> {
        let mut planes = [const { Vec::new() }; 3];
        for (plane, behind) in planes.iter_mut().zip(behind) {
            self.push_elements(pixels.start + behind..pixels.end + behind, plane, interrupt)?;
        }
        let [red, green, blue] = planes.each_ref().map(|plane| plane.chunks(self.numbers.size));
        for ((red, green), blue) in red.zip(green).zip(blue) {
            [red, green, blue].iter().for_each(|sample| out.extend_from_slice(sample));
        }
        Ok(())
    }

    /// Appends stored elements.
    fn push_elements(&self, elements: Range<u64>, out: &mut Vec<u8>, interrupt: &Interrupt) -> Result<(), Error> {
        let size = self.numbers.size as u64;
        let length = ((elements.end - elements.start) * size) as usize;
        self.rows.stored_bytes()?.append(elements.start * size, length, out, interrupt)
    }

    fn keep_sum(&self, block: u64, sum: u32) {
        let mut sums = self.sums.lock();
        if sums.is_empty() {
            // The system gives memory only where a sum is written.
            *sums = vec![0; self.blocks() as usize];
        }
        if let Some(kept) = sums.get_mut(block as usize) {
            *kept = sum;
        }
    }

    /// Adler-32 of all rows. Reads blocks that were not read before.
    fn sum(&self, interrupt: &Interrupt) -> Result<u32, Error> {
        let (mut all, mut work) = (1, None);
        for block in 0..self.blocks() {
            let known = self.sums.lock().get(block as usize).copied().filter(|sum| *sum != 0);
            let sum = match known {
                Some(sum) => sum,
                None => {
                    interrupt.check()?;
                    work.get_or_insert_with(|| self.summing()).reach(block);
                    self.push_block(block, &mut Vec::new(), interrupt)?
                }
            };
            all = joined(all, sum, (self.image_bytes() - block * BLOCK).min(BLOCK));
        }
        Ok(all)
    }

    /// Lists the work of reading all blocks.
    fn summing(&self) -> Work {
        let work = Work::begin(&*self.keeper.title, "reading the pixels", Unit::Blocks);
        work.expect(self.blocks());
        work.of(self.keeper.file.source().path())
    }
}

/// Elements of a pixel.
fn samples(pixels: &Pixels) -> u64 {
    if pixels.interlace.is_some() { 3 } else { 1 }
}

/// Adler-32 of two pieces, the second of which has `length` bytes.
pub(super) fn joined(first: u32, second: u32, length: u64) -> u32 {
    let [(low, high), (second_low, second_high)] =
        [first, second].map(|sum| (u64::from(sum & 0xffff), u64::from(sum >> 16)));
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
