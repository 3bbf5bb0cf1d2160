//! Chooses the files that show a dataset, by its type and shape alone.

use crate::catalogue::{Class, Dataset, Datatype, product};
use crate::dialects::attributes::text;
use crate::table::{SingleFile, SingleForm};

/// Most elements of a row that each become a column of a CSV file; arrays with longer rows have no such file.
pub(super) const MOST_PLACES: u64 = 16_384;

/// Most bytes of a row of an array of rank 3 or more in Parquet and Arrow files; arrays with longer rows have no such
/// files.
const MOST_NESTED: u64 = 1 << 20;

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

/// The file of an image with one byte per sample (HDF5 Image and Palette Specification: `CLASS` is `IMAGE`), grey or of
/// interlaced pixels. `None`: not such an image.
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
    Some(file(suffix, SingleForm::Pixmap(header.into_bytes())))
}
