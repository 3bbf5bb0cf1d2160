//! A dataset that is a table by itself, shown as files side by side instead of a directory.

use std::sync::Arc;

use bstr::BString;

use super::Table;
use crate::catalogue::{Datatype, ObjectId};
use crate::store::Rows;

/// The content of a dataset's files.
#[derive(Debug)]
pub struct Single {
    /// A table of one column: slices along the first axis, unchanged; a scalar is one row.
    pub whole: Table,
    /// Names of the elements in a row of an array of rank 2. Empty if only the choice of files was asked for.
    pub parts: Vec<BString>,
    /// The labels of these elements, as many as [`Single::parts`]. `None`: no labels.
    pub labels: Option<Arc<dyn Rows>>,
    /// The bytes of a scalar string, for [`SingleForm::Text`].
    pub text: Option<Arc<dyn Rows>>,
    /// The colours of an image whose elements are places in a palette. `None`: no palette, or it is no dataset.
    pub palette: Option<Arc<dyn Rows>>,
    /// Extents of the dataset.
    pub shape: Vec<u64>,
    /// The type as which its elements are read.
    pub datatype: Datatype,
    /// Its files. No other suffix applies to this dataset.
    pub files: Vec<SingleFile>,
}

/// A file of a dataset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SingleFile {
    /// Suffix of the name: `.csv`.
    pub suffix: &'static str,
    /// The form of the bytes.
    pub form: SingleForm,
}

/// The form of a file of a dataset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SingleForm {
    /// Elements as stored.
    Raw,
    /// Elements as stored after a NumPy header.
    Npy,
    /// A line of names (those of the parts, if there are any), then lines of values.
    Csv,
    /// A value on each line.
    Txt,
    /// The bytes of one string, without additions or escapes.
    Text,
    /// A JSON object on each line.
    Ndjson,
    /// A JSON value on each line, without a name.
    JsonValues,
    /// Apache Parquet.
    Parquet,
    /// An Arrow IPC file.
    Arrow,
    /// An image of the netpbm family: this header, then the elements.
    Pixmap(Vec<u8>),
    /// A PNG image.
    Png(Pixels),
}

/// The pixels of an image, and how elements become colours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pixels {
    /// Pixels of a row.
    pub width: u32,
    /// Rows of pixels.
    pub height: u32,
    /// How elements become colours.
    pub colour: Colour,
    /// Where red, green and blue of a pixel are stored. `None`: a pixel is one element.
    pub interlace: Option<Interlace>,
}

/// How elements become colours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Colour {
    /// Unsigned integers of one or two bytes are shades of grey.
    Grey {
        /// Whether 0 is white, not black.
        is_zero_white: bool,
    },
    /// Unsigned integers of one or two bytes are red, green and blue.
    Rgb,
    /// Bytes are places in the palette that this object is.
    Palette(ObjectId),
    /// Numbers become shades of grey between the least and the greatest of a sample.
    Scaled,
}

/// Where red, green and blue of a pixel are stored (HDF5 Image Specification).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interlace {
    /// Beside each other: (height, width, 3).
    Pixel,
    /// A row of each: (height, 3, width).
    Line,
    /// An image of each: (3, height, width).
    Plane,
}
