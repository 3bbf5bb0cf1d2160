//! Chooses the files that show a dataset, by its type and shape alone.

use crate::catalogue::{Class, Dataset, Datatype, FloatFormat, attribute, product};
use crate::dialects::attributes::{references, text, unsigned};
use crate::table::{Colour, Interlace, Pixels, SingleFile, SingleForm};

/// Most elements of a row that each become a column of a CSV file; arrays with longer rows have no such file.
pub(super) const MOST_PLACES: u64 = 16_384;

/// Most bytes of a row of an array of rank 3 or more in Parquet and Arrow files; arrays with longer rows have no such
/// files.
const MOST_NESTED: u64 = 1 << 20;

/// Sides of an array that is shown as an image though it is not marked as one: shorter ones show nothing, and viewers
/// fail at longer ones.
const SIDES: std::ops::RangeInclusive<u64> = 16..=32_767;

/// Most pixels of an image: 16 bits of each of three colours then stay below 2^40 bytes.
const MOST_PIXELS: u64 = 1 << 36;

/// The files that show a dataset, `.npy` and `.raw` first.
pub(super) fn forms(dataset: &Dataset) -> Vec<SingleFile> {
    if dataset.null {
        return Vec::new();
    }
    let mut files = vec![file(".npy", SingleForm::Npy), file(".raw", SingleForm::Raw)];
    let is_compound = is_compound(&dataset.datatype);
    let inner = product(dataset.shape.get(1..).unwrap_or_default()).unwrap_or(u64::MAX);
    match dataset.shape.as_slice() {
        [] if is_text(dataset) => {
            files.extend([file(".txt", SingleForm::Text), file(".ndjson", SingleForm::JsonValues)]);
        }
        [] => files.push(file(".txt", if is_compound { SingleForm::JsonValues } else { SingleForm::Txt })),
        [_] => files.extend([
            file(".csv", SingleForm::Csv),
            file(".txt", SingleForm::Txt),
            file(".ndjson", SingleForm::Ndjson),
            file(".parquet", SingleForm::Parquet),
            file(".arrow", SingleForm::Arrow),
        ]),
        // Rows without elements have nothing to show.
        _ if inner == 0 => {}
        [_, places] => {
            if *places <= MOST_PLACES {
                files.push(file(".csv", SingleForm::Csv));
            }
            files.extend([
                file(".ndjson", SingleForm::JsonValues),
                file(".parquet", SingleForm::Parquet),
                file(".arrow", SingleForm::Arrow),
            ]);
        }
        _ => {
            if inner.checked_mul(dataset.datatype.size).is_some_and(|bytes| bytes <= MOST_NESTED) {
                files.extend([file(".parquet", SingleForm::Parquet), file(".arrow", SingleForm::Arrow)]);
            }
        }
    }
    files.extend(pixmap(dataset));
    files.extend(png(dataset).map(|pixels| file(".png", SingleForm::Png(pixels))));
    files
}

/// Whether a dataset is a single string.
pub(super) fn is_text(dataset: &Dataset) -> bool {
    let is_string = matches!(dataset.datatype.class, Class::FixedString { .. } | Class::VariableString { .. });
    is_string && dataset.shape.is_empty() && !dataset.null
}

/// Whether elements are compounds other than complex numbers.
pub(super) fn is_compound(datatype: &Datatype) -> bool {
    matches!(datatype.class, Class::Compound { .. }) && datatype.complex_part().is_none()
}

fn file(suffix: &'static str, form: SingleForm) -> SingleFile {
    SingleFile { suffix, form }
}

/// Whether a dataset is marked as an image (HDF5 Image and Palette Specification).
fn is_image(dataset: &Dataset) -> bool {
    text(&dataset.attributes, "CLASS").as_deref() == Some("IMAGE") && !dataset.shape.contains(&0)
}

/// Whether elements are unsigned integers of this many bytes, without padding bits.
fn is_unsigned(datatype: &Datatype, bytes: u64) -> bool {
    datatype.size == bytes && matches!(datatype.class, Class::Integer { signed: false, .. }) && is_plain(datatype)
}

/// Whether elements are integers or IEEE numbers that fill 1, 2, 4 or 8 bytes.
fn is_plain(datatype: &Datatype) -> bool {
    match datatype.class {
        Class::Integer { precision, offset: 0, .. } => {
            matches!(datatype.size, 1 | 2 | 4 | 8) && u64::from(precision) == 8 * datatype.size
        }
        Class::Float { format: FloatFormat::Half | FloatFormat::Single | FloatFormat::Double, .. } => true,
        _ => false,
    }
}

/// The file of an image with one byte per sample, grey or of interlaced pixels. `None`: not such an image.
fn pixmap(dataset: &Dataset) -> Option<SingleFile> {
    let is_byte = dataset.datatype.size == 1 && matches!(dataset.datatype.class, Class::Integer { signed: false, .. });
    if !is_byte || !is_image(dataset) {
        return None;
    }
    let (suffix, magic, height, width) = match *dataset.shape {
        [height, width] => (".pgm", "P5", height, width),
        [height, width, 3] => (".ppm", "P6", height, width),
        _ => return None,
    };
    let header = format!("{magic}\n{width} {height}\n255\n");
    Some(file(suffix, SingleForm::Pixmap(header.into_bytes())))
}

/// The pixels of a marked image, or of an array of numbers of two or three dimensions: grey, in three dimensions frames
/// below each other, or (height, width, 3) of unsigned integers. `None`: it is no image.
fn png(dataset: &Dataset) -> Option<Pixels> {
    let (datatype, shape) = (&dataset.datatype, dataset.shape.as_slice());
    let is_marked = is_image(dataset);
    let is_sample = is_unsigned(datatype, 1) || is_unsigned(datatype, 2);
    let interlace = match text(&dataset.attributes, "INTERLACE_MODE").as_deref().filter(|_| is_marked) {
        Some("INTERLACE_LINE") => Interlace::Line,
        Some("INTERLACE_PLANE") => Interlace::Plane,
        _ => Interlace::Pixel,
    };
    let colours = match (interlace, shape) {
        _ if !is_sample => None,
        (Interlace::Pixel, [height, width, 3])
        | (Interlace::Line, [height, 3, width])
        | (Interlace::Plane, [3, height, width]) => Some((*height, *width)),
        _ => None,
    };
    let (height, width, interlace) = match (colours, shape) {
        (Some((height, width)), _) => (height, width, Some(interlace)),
        (None, [height, width]) => (*height, *width, None),
        (None, [frames, height, width]) if !is_marked => {
            (Some(*frames).filter(|_| SIDES.contains(height))?.checked_mul(*height)?, *width, None)
        }
        _ => return None,
    };
    let is_shown = is_marked || SIDES.contains(&height) && SIDES.contains(&width);
    if !is_plain(datatype) || !is_shown || height.checked_mul(width).is_none_or(|pixels| pixels > MOST_PIXELS) {
        return None;
    }
    let palette = attribute(&dataset.attributes, "PALETTE").filter(|_| is_marked && is_unsigned(datatype, 1));
    let palette = palette.and_then(references).and_then(|palettes| *palettes.first()?);
    let colour = match (interlace, palette) {
        (Some(_), _) => Colour::Rgb,
        (None, Some(palette)) => Colour::Palette(palette),
        (None, None) if is_sample => {
            Colour::Grey { is_zero_white: is_marked && unsigned(&dataset.attributes, "IMAGE_WHITE_IS_ZERO") == Some(1) }
        }
        (None, None) => Colour::Scaled,
    };
    Some(Pixels { width: side(width)?, height: side(height)?, colour, interlace })
}

/// A side of an image. `None`: PNG, which counts pixels of a side in 31 bits, has no such side.
fn side(extent: u64) -> Option<u32> {
    u32::try_from(extent).ok().filter(|extent| *extent > 0 && *extent < 1 << 31)
}
