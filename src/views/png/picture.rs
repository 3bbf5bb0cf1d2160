//! A small picture of an array of two or more dimensions, from a few of its chunks.
//!
//! The last two axes are drawn, of more than two dimensions some frames side by side. A small array is drawn whole.
//! Of a large one, chunks spread evenly are drawn beside each other, each in place of those around it.

use std::sync::Arc;

use super::chunks::{ColourType, push_chunk, push_end, push_header, push_transparent_zero};
use super::samples::{Numbers, Window};
use crate::catalogue::{Datatype, product};
use crate::source::Interrupt;
use crate::store::{Error, Rows};

/// Pixels of a picture, at most.
const WIDTH: u64 = 256;
const HEIGHT: u64 = 64;

/// Most bytes of a picture as PNG: all its pixels, in three blocks at most if they cannot be compressed, and the other
/// chunks.
pub const LONGEST_PICTURE: u64 = (WIDTH + 1) * HEIGHT + 256;

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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// The picture as PNG, of at most [`LONGEST_PICTURE`] bytes.
    pub png: Vec<u8>,
    /// Width in pixels; a picture is 64 pixels high.
    pub width: u32,
    /// The frames or parts that it shows, such as `4 of 8 frames, logarithmic`.
    pub sentence: String,
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
        let grain = (grain.0.min(*height), grain.1.min(*width));
        let extents = [frames, *height, *width, colours];
        Some(Self { rows: rows.clone(), numbers, extents, grain, frames: together })
    }

    /// Whether an array of these extents and elements can probably be drawn; opens nothing.
    pub fn is_likely(shape: &[u64], datatype: &Datatype) -> bool {
        shape.len() >= 2 && !shape.contains(&0) && Numbers::of(datatype, None).is_some()
    }

    /// Draws the array, decoding at most about `most` bytes, but at least a chunk of a frame. `None`: a chunk has more.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn picture(&self, most: u64, interrupt: &Interrupt) -> Result<Option<Picture>, Error> {
        let Some(drawn) = self.sample(most, interrupt)? else { return Ok(None) };
        let window = Window::over(&drawn.numbers);
        let width = drawn.width as usize;
        let mut image = Vec::with_capacity((width + 1) * HEIGHT as usize);
        for row in drawn.numbers.chunks(width) {
            image.push(0);
            image.extend(row.iter().map(|number| window.shade(*number)));
        }
        let mut png = Vec::new();
        push_header(drawn.width, HEIGHT as u32, ColourType::Grey, 8, &mut png);
        push_transparent_zero(&mut png);
        let mut compressor = libdeflater::Compressor::new(libdeflater::CompressionLvl::default());
        let mut packed = vec![0; compressor.zlib_compress_bound(image.len())];
        let length = compressor.zlib_compress(&image, &mut packed);
        let length = length.map_err(|error| Error::unsupported("a picture", error.to_string()))?;
        push_chunk(b"IDAT", &mut png, |out| out.extend_from_slice(&packed[..length]));
        push_end(&mut png);
        let scale = if window.is_logarithmic { ", logarithmic" } else { "" };
        let sentence = format!("{}{scale}", drawn.sentence);
        Ok(Some(Picture { png, width: drawn.width, sentence }))
    }

    /// The window of shades over the pixels of a picture.
    ///
    /// # Errors
    /// See [`Error`].
    pub(super) fn window(&self, interrupt: &Interrupt) -> Result<Window, Error> {
        Ok(Window::over(&self.sample(u64::MAX, interrupt)?.map(|drawn| drawn.numbers).unwrap_or_default()))
    }

    /// The numbers of the pixels of a picture.
    fn sample(&self, most: u64, interrupt: &Interrupt) -> Result<Option<Drawn>, Error> {
        let [frames, height, width, colours] = self.extents;
        let frame_width =
            if frames == 1 { WIDTH } else { (HEIGHT.saturating_mul(width) / height.max(1)).clamp(NARROWEST, WIDTH) };
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
        let mut numbers = vec![f64::NAN; (all * HEIGHT) as usize];
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
                    let pixels = &mut numbers[row * all as usize + (at * frame_width) as usize..][columns.clone()];
                    for (pixels, places) in pixels.chunks_mut(together).zip(places.chunks(together)) {
                        let (first, last) = (places[0].0, places[places.len() - 1].0);
                        bytes.clear();
                        let length = ((last - first + 1) * element) as usize;
                        stored.append((line + first) * element, length, &mut bytes, interrupt)?;
                        for (pixel, (place, _)) in pixels.iter_mut().zip(places) {
                            let own = bytes.get(((place - first) * element) as usize..).unwrap_or_default();
                            let values = own.chunks_exact(self.numbers.size).take(colours as usize);
                            *pixel = values.map(|value| self.numbers.number(value)).sum::<f64>() / colours as f64;
                        }
                    }
                }
            }
        }
        let of_frames = if frames > 1 { format!("{shown} of {frames} frames") } else { "the whole array".to_owned() };
        let sentence = match (is_whole, frames) {
            (true, _) => of_frames,
            (false, 1) => format!("{} of its {} parts", rows * columns, down.saturating_mul(across)),
            (false, _) => {
                format!("{of_frames}, {} of the {} parts of each", rows * columns, down.saturating_mul(across))
            }
        };
        Ok(Some(Drawn { numbers, width: all as u32, sentence }))
    }
}

/// The numbers of the pixels of a picture, row by row.
struct Drawn {
    numbers: Vec<f64>,
    width: u32,
    sentence: String,
}
