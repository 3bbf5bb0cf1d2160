//! Which files a dataset has, by its type and shape alone.

use crate::catalogue::{Class, Dataset, product};
use crate::dialects::attributes::text;
use crate::table::{Form, SingleFile};

/// Most places of a row that become columns of a CSV file.
pub(super) const MOST_PLACES: u64 = 16_384;

/// Most bytes of what lies along the first axis of an array of rank 3 or more that is shown as one value.
const MOST_NESTED: u64 = 1 << 20;

/// The files of a dataset, `.npy` and `.raw` first.
pub(super) fn forms(dataset: &Dataset) -> Vec<SingleFile> {
    if dataset.null {
        return Vec::new();
    }
    let mut files = vec![of_whole(".npy", Form::Npy), of_whole(".raw", Form::Raw)];
    let is_compound = is_compound(dataset);
    // An object a line must be JSON as it is, without the escapes of other lines.
    let lines = if is_compound { Form::JsonValues } else { Form::Txt };
    let inner = product(dataset.shape.get(1..).unwrap_or_default()).unwrap_or(u64::MAX);
    match dataset.shape.as_slice() {
        [] if is_text(dataset) => {
            files.extend([of_whole(".txt", Form::Text), of_whole(".ndjson", Form::JsonValues)]);
        }
        [] => files.push(of_whole(".txt", lines)),
        [_] => {
            let each = |suffix, form| SingleFile { suffix, form, is_split: is_compound };
            files.extend([
                each(".csv", Form::Csv),
                of_whole(".txt", lines),
                each(".ndjson", Form::Ndjson),
                each(".parquet", Form::Parquet),
                each(".arrow", Form::Arrow),
            ]);
        }
        // Rows without places have nothing to show.
        _ if inner == 0 => {}
        [_, places] => {
            if *places <= MOST_PLACES {
                files.push(SingleFile { suffix: ".csv", form: Form::Csv, is_split: true });
            }
            files.extend([
                of_whole(".ndjson", Form::JsonValues),
                of_whole(".parquet", Form::Parquet),
                of_whole(".arrow", Form::Arrow),
            ]);
        }
        _ => {
            if inner.checked_mul(dataset.datatype.size).is_some_and(|bytes| bytes <= MOST_NESTED) {
                files.extend([of_whole(".parquet", Form::Parquet), of_whole(".arrow", Form::Arrow)]);
            }
        }
    }
    files.extend(pixmap(dataset));
    files
}

/// Whether the elements are compounds, and no complex numbers.
pub(super) fn is_compound(dataset: &Dataset) -> bool {
    matches!(dataset.datatype.class, Class::Compound { .. }) && dataset.datatype.complex_part().is_none()
}

/// Whether it is one string.
pub(super) fn is_text(dataset: &Dataset) -> bool {
    let is_string = matches!(dataset.datatype.class, Class::FixedString { .. } | Class::VariableString { .. });
    is_string && dataset.shape.is_empty() && !dataset.null
}

fn of_whole(suffix: &'static str, form: Form) -> SingleFile {
    SingleFile { suffix, form, is_split: false }
}

/// An image of one byte a sample (HDF5 Image and Palette Specification: `CLASS` is `IMAGE`), grey or of interlaced pixels.
fn pixmap(dataset: &Dataset) -> Option<SingleFile> {
    let is_byte = dataset.datatype.size == 1 && matches!(dataset.datatype.class, Class::Integer { signed: false, .. });
    if !is_byte || text(&dataset.attributes, "CLASS").as_deref() != Some("IMAGE") || dataset.shape.contains(&0) {
        return None;
    }
    let (suffix, magic, height, width) = match *dataset.shape {
        [height, width] => (".pgm", "P5", height, width),
        [height, width, 3] => (".ppm", "P6", height, width),
        _ => return None,
    };
    let header = format!("{magic}\n{width} {height}\n255\n");
    Some(of_whole(suffix, Form::Pixmap(header.into_bytes())))
}
