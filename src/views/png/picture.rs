//! A small picture of an array of two or more dimensions, from a few of its chunks.
//!
//! The last two axes are drawn, of more than two dimensions some frames side by side. A small array is drawn whole.
//! Of a large one, chunks spread evenly are drawn beside each other, each in place of those around it.

use std::sync::Arc;

use super::chunks::{ColourType, push_chunk, push_end, push_header, push_transparent_zero};
use super::palette::{PALETTE, colours_of};
use super::samples::{Numbers, Shades, Window};
use crate::activity::words::count;
use crate::catalogue::{Datatype, product};
use crate::source::Interrupt;
use crate::store::{Error, Rows};
use crate::table::{Colour, Interlace, Single, SingleForm};

/// Pixels of a picture, at most.
const WIDTH: u64 = 256;
const HEIGHT: u64 = 64;

/// Most bytes of the chunks of a picture without its pixels: also of a palette, and around blocks of pixels that cannot
/// be compressed.
const AROUND_PIXELS: u64 = 256 + PALETTE as u64;

/// Most bytes to decode for a picture.
const DECODED: u64 = 16 << 20;

/// Bytes that take as long to read as one seek in a contiguous array.
const SEEK: u64 = 64 << 10;

/// Most bytes of a row that are read at once.
const MOST_BETWEEN: u64 = 256 << 10;

/// Narrowest frame, and most values of a last axis that is taken for the colours of a pixel.
const NARROWEST: u64 = 32;
const MOST_COLOURS: u64 = 4;

/// An array of numbers that can be drawn.
#[derive(Clone, Debug)]
pub struct PicturedArray {
    pub(super) rows: Arc<dyn Rows>,
    pub(super) numbers: Numbers,
    /// Frames, height, width, and values of a pixel.
    extents: [u64; 4],
    /// Rows and columns that are decoded together.
    grain: (u64, u64),
    /// Frames that are decoded together.
    frames: u64,
}

/// A picture of an array.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    /// The picture as PNG, of at most [`PicturedArray::longest`] bytes. Empty: there is nothing to be seen.
    pub png: Vec<u8>,
    /// Width in pixels; a picture is 64 pixels high.
    pub width: u32,
    /// The frames or parts that it shows, such as `4 of 8 frames`.
    pub parts: String,
    /// The numbers that its shades stand for.
    pub shades: Shades,
    /// Whether values of them are missing.
    pub has_gaps: bool,
    /// Whether shades stand for the magnitudes of complex numbers.
    pub are_magnitudes: bool,
}

/// The colours of an array's elements.
#[derive(Clone, Debug, Default)]
pub struct Colours {
    /// Whether it is marked as an image, whose pixels are as wide as high.
    is_image: bool,
    /// Whether elements are red, green and blue.
    are_rgb: bool,
    palette: Option<Arc<dyn Rows>>,
}

impl Colours {
    /// The colours of a dataset, which may be marked as an image.
    pub fn of(single: &Single, is_image: bool) -> Self {
        let are_rgb = single.files.iter().any(|file| {
            let SingleForm::Png(pixels) = &file.form else { return false };
            pixels.colour == Colour::Rgb && pixels.interlace == Some(Interlace::Pixel)
        });
        Self { is_image, are_rgb, palette: single.palette.clone() }
    }
}

/// Places along an axis: that of each pixel, and the chunk from which it comes.
pub(super) struct Axis(pub Vec<(u64, u64)>);

impl Axis {
    /// `pixels` places on an axis of `extent` elements in chunks of `grain`, from `units` chunks.
    pub fn new(pixels: u64, extent: u64, grain: u64, units: u64) -> Self {
        let chunks = extent.div_ceil(grain);
        let places = (0..pixels).map(|pixel| {
            // All in halves of a pixel, since a pixel shows the element at its middle.
            let middle = 2 * pixel + 1;
            if units >= chunks {
                let at = (u128::from(middle) * u128::from(extent) / u128::from(2 * pixels)) as u64;
                return (at, at / grain);
            }
            let unit = middle * units / (2 * pixels);
            let chunk = ((u128::from(2 * unit + 1) * u128::from(chunks)) / u128::from(2 * units)) as u64;
            let of_chunk = grain.min(extent - chunk * grain);
            let share = middle * units - unit * 2 * pixels;
            (chunk * grain + (u128::from(share) * u128::from(of_chunk) / u128::from(2 * pixels)) as u64, chunk)
        });
        Self(places.collect())
    }

    /// The pixels of each chunk.
    fn units(&self) -> Vec<std::ops::Range<usize>> {
        let mut start = 0;
        let units = self.0.chunk_by(|one, next| one.1 == next.1).map(|unit| {
            let first = start;
            start += unit.len();
            first..start
        });
        units.collect()
    }
}

impl PicturedArray {
    /// Returns the array of these extents whose stored elements are `rows`. `chunk` has the extents of its chunks, and
    /// `missing` is the element that means missing. `None`: it has fewer than two dimensions or no elements, or they
    /// are no real numbers.
    pub fn new(shape: &[u64], chunk: Option<&[u64]>, rows: &Arc<dyn Rows>, missing: Option<&[u8]>) -> Option<Self> {
        let numbers = Numbers::of(rows.stored_type()?, missing)?;
        let (axes, colours) = match shape {
            [axes @ .., colours @ 1..=MOST_COLOURS] if axes.len() >= 2 => (axes, *colours),
            _ => (shape, 1),
        };
        let [leading @ .., height, width] = axes else { return None };
        let frames = product(leading)?;
        let all = product(shape)?.checked_mul(numbers.size as u64)?;
        let stored = rows.len().checked_mul(rows.stored_width()?)?;
        if all == 0 || all != stored {
            return None;
        }
        let (grain, together) = match chunk.filter(|chunk| chunk.len() == shape.len()) {
            Some(chunk) => {
                let at = leading.len();
                let together = product(chunk.get(..at)?)?;
                ((*chunk.get(at)?, *chunk.get(at + 1)?), together)
            }
            None => ((1, (SEEK / (numbers.size as u64 * colours)).max(1)), 1),
        };
        let grain = (grain.0.clamp(1, *height), grain.1.clamp(1, *width));
        let extents = [frames, *height, *width, colours];
        Some(Self { rows: rows.clone(), numbers, extents, grain, frames: together })
    }

    /// Most bytes of the picture of an array of these extents and elements; opens nothing. 0: it cannot be drawn.
    pub fn longest(shape: &[u64], datatype: &Datatype) -> usize {
        if shape.len() < 2 || shape.contains(&0) || Numbers::of(datatype, None).is_none() {
            return 0;
        }
        let samples = if let [_, _, 3] = shape { 3 } else { 1 };
        ((samples * WIDTH + 1) * HEIGHT + AROUND_PIXELS) as usize
    }

    /// Draws the array, decoding at most about `most` bytes, but at least a chunk of a frame. `None`: a chunk has more.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn picture(&self, colours: &Colours, most: u64, interrupt: &Interrupt) -> Result<Option<Picture>, Error> {
        let samples = if colours.are_rgb { self.extents[3] } else { 1 };
        let Some(drawn) = self.sample((samples, colours.is_image), most, interrupt)? else { return Ok(None) };
        let Drawn { numbers, width, mut parts } = drawn;
        if samples < self.extents[3] {
            parts += ", means along the last axis";
        }
        let window = Window::over(&numbers);
        // A palette that cannot be read leaves shades.
        let palette = colours.palette.as_deref().filter(|_| samples == 1 && self.numbers.size == 1);
        let palette = palette.map(|rows| colours_of(Some(rows), interrupt)).transpose();
        interrupt.check()?;
        let palette = palette.unwrap_or_default();
        let (shades, colour) = match (samples, &palette) {
            (1, Some(_)) => (Shades::Colours, ColourType::Palette),
            (1, None) => (window.shades(&numbers), ColourType::Grey),
            _ => (Shades::Colours, ColourType::Rgb),
        };
        let has_gaps = numbers.iter().any(|number| number.is_nan());
        let are_magnitudes = self.numbers.are_magnitudes();
        let mut picture = Picture { png: Vec::new(), width, parts, shades, has_gaps, are_magnitudes };
        if matches!(shades, Shades::Nothing) || matches!(shades, Shades::All(_)) && !has_gaps {
            return Ok(Some(picture));
        }
        // Samples of two bytes lose the lower one.
        let step = if self.numbers.size == 2 { 257.0 } else { 1.0 };
        let row_length = width as usize * samples as usize;
        let mut image = Vec::with_capacity((row_length + 1) * HEIGHT as usize);
        for row in numbers.chunks(row_length) {
            image.push(0);
            image.extend(row.iter().map(|number| match colour {
                ColourType::Grey => window.shade(*number),
                ColourType::Rgb | ColourType::Palette => (number / step).round() as u8,
            }));
        }
        let png = &mut picture.png;
        push_header(width, HEIGHT as u32, colour, 8, png);
        match &palette {
            Some(palette) => push_chunk(b"PLTE", png, |out| out.extend_from_slice(palette)),
            None if colour == ColourType::Grey => push_transparent_zero(png),
            None => {}
        }
        let mut compressor = libdeflater::Compressor::new(libdeflater::CompressionLvl::default());
        let mut packed = vec![0; compressor.zlib_compress_bound(image.len())];
        let length = compressor.zlib_compress(&image, &mut packed);
        let length = length.map_err(|error| Error::unsupported("a picture", error.to_string()))?;
        push_chunk(b"IDAT", png, |out| out.extend_from_slice(&packed[..length]));
        push_end(png);
        Ok(Some(picture))
    }

    /// The window of shades over the pixels of a picture.
    ///
    /// # Errors
    /// See [`Error`].
    pub(super) fn window(&self, interrupt: &Interrupt) -> Result<Window, Error> {
        Ok(Window::over(&self.sample((1, false), u64::MAX, interrupt)?.map(|drawn| drawn.numbers).unwrap_or_default()))
    }

    /// The numbers of the pixels of a picture, `samples` of each; `is_image`: pixels are as wide as high.
    fn sample(
        &self,
        (samples, is_image): (u64, bool),
        most: u64,
        interrupt: &Interrupt,
    ) -> Result<Option<Drawn>, Error> {
        let [frames, height, width, colours] = self.extents;
        let frame_width = match frames == 1 && !is_image {
            true => WIDTH,
            false => (HEIGHT.saturating_mul(width) / height.max(1)).clamp(NARROWEST, WIDTH),
        };
        let shown = frames.min(WIDTH / frame_width);
        let element = self.numbers.size as u64 * colours;
        let unit = (self.grain.0.saturating_mul(self.grain.1)).saturating_mul(self.frames).saturating_mul(element);
        let cost = unit.max(SEEK);
        if unit > most.max(SEEK) {
            return Ok(None);
        }
        let units = (most.min(DECODED) / cost / shown).max(1);
        let (down, across) = (height.div_ceil(self.grain.0), width.div_ceil(self.grain.1));
        let is_whole = down.checked_mul(across).is_some_and(|all| all <= units);
        let (rows, columns) = match is_whole {
            true => (down, across),
            false => {
                let columns = across.min(frame_width).min((units * 4).isqrt().max(1));
                let rows = down.min(HEIGHT).min((units / columns).max(1));
                (rows, across.min(frame_width).min((units / rows).max(1)))
            }
        };
        let down_axis = Axis::new(HEIGHT, height, self.grain.0, rows);
        let across_axis = Axis::new(frame_width, width, self.grain.1, columns);
        let all = frame_width * shown;
        let mut numbers = vec![f64::NAN; (all * samples * HEIGHT) as usize];
        let stored = self.rows.stored_bytes()?;
        let mut bytes = Vec::new();
        let units: Vec<_> = down_axis
            .units()
            .into_iter()
            .flat_map(|rows| across_axis.units().into_iter().map(move |columns| (rows.clone(), columns)))
            .collect();
        for at in 0..shown {
            let frame = (u128::from(2 * at + 1) * u128::from(frames) / u128::from(2 * shown)) as u64;
            for (rows, columns) in &units {
                interrupt.check()?;
                let places = &across_axis.0[columns.clone()];
                let width_of_all = places.last().zip(places.first()).map_or(0, |(last, first)| last.0 - first.0 + 1);
                // Pixels far from each other are read one by one.
                let together = if width_of_all * element <= MOST_BETWEEN { places.len() } else { 1 };
                for row in rows.clone() {
                    let line = (frame * height + down_axis.0[row].0) * width;
                    let row = row * all as usize + (at * frame_width) as usize;
                    let [start, end] = [columns.start, columns.end].map(|column| (row + column) * samples as usize);
                    let pixels = &mut numbers[start..end];
                    let pixels = pixels.chunks_mut(together * samples as usize);
                    for (pixels, places) in pixels.zip(places.chunks(together)) {
                        let (first, last) = (places[0].0, places[places.len() - 1].0);
                        bytes.clear();
                        let length = ((last - first + 1) * element) as usize;
                        stored.append((line + first) * element, length, &mut bytes, interrupt)?;
                        for (pixel, (place, _)) in pixels.chunks_mut(samples as usize).zip(places) {
                            let own = bytes.get(((place - first) * element) as usize..).unwrap_or_default();
                            let values = own.chunks_exact(self.numbers.size).take(colours as usize);
                            let mut values = values.map(|value| self.numbers.number(value));
                            match pixel {
                                [mean] => *mean = values.sum::<f64>() / colours as f64,
                                pixel => pixel.iter_mut().zip(&mut values).for_each(|(sample, value)| *sample = value),
                            }
                        }
                    }
                }
            }
        }
        let of_frames = match frames {
            1 => "the whole array".to_owned(),
            _ => format!("{shown} of {} frames", count(frames)),
        };
        let (parts, all_parts) = (rows * columns, count(down.saturating_mul(across)));
        let parts = match (is_whole, frames) {
            (true, _) => of_frames,
            (false, 1) => format!("{parts} of its {all_parts} parts"),
            (false, _) => format!("{of_frames}, {parts} of the {all_parts} parts of each"),
        };
        Ok(Some(Drawn { numbers, width: all as u32, parts }))
    }
}

/// The numbers of the pixels of a picture, row by row.
struct Drawn {
    numbers: Vec<f64>,
    width: u32,
    parts: String,
}
