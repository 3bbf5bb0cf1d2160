//! The pages of the file, as far as they are wanted.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_buffer::Buffer;
use arrow_schema::DataType;

use super::{Frame, Shared, broken};
use crate::source::Interrupt;
use crate::store::pass;
use crate::store::{Error, Nan, RowRange};
use crate::views::parquet::body::leaf::Body;
use crate::views::parquet::body::plain::{Selection, append_fixed};
use crate::views::parquet::columns::{ParquetColumn, PreparedLeaf};
use crate::views::parquet::layout::{PagePlace, Place};
use crate::views::parquet::thrift::page::{
    DATA_HEADER, DICTIONARY_HEADER, Header, data_header, data_header_2, dictionary_header,
};
use crate::views::parquet::wanted::Wanted;
use crate::views::rendered::Block;

/// A page longer than this, of a single value, is not rendered ahead.
const LONGEST_AHEAD: u64 = 2 << 20;

/// In the keys of rendered blocks, marks what precedes the cells of a leaf column's pages.
const LEADS: u64 = 1 << 32;

/// The same of the numbers that stand for its codes.
const NUMBERS: u64 = 1 << 33;

impl Shared {
    /// Takes what is wanted of a dictionary page.
    pub fn dictionary(
        &self,
        frame: &Frame,
        leaf: usize,
        start: u64,
        wanted: &mut Wanted<'_>,
        interrupt: &Interrupt,
    ) -> Result<(), Error> {
        let (prepared, column) = self.leaf(frame, leaf).ok_or_else(|| broken("no such leaf".into()))?;
        let dictionary = prepared.leaf.dictionary().ok_or_else(|| broken("no dictionary".into()))?;
        let mut header = Vec::with_capacity(DICTIONARY_HEADER as usize);
        let length = u32::try_from(dictionary.length()).unwrap_or(u32::MAX);
        dictionary_header(dictionary.entries(), length, &mut header);
        wanted.take(start, &header);
        if let Some(body) = dictionary.body() {
            wanted.take(start + DICTIONARY_HEADER, body);
            return Ok(());
        }
        // The same before each row group, and too long to be kept for each of very many columns.
        let body = self.cache.get_or_render((self.id, NUMBERS | leaf as u64, 0), interrupt, |mut out| {
            out.clear();
            let numbers = column.rows.code_values().ok_or_else(|| column.unsupported("no numbers".into()))?;
            append_fixed(&numbers, &Selection::All, &mut out).map_err(|reason| column.unsupported(reason))?;
            Ok(out)
        })?;
        if body.len() as u64 != dictionary.length() {
            return Err(broken(format!("{} bytes of numbers, {length} expected", body.len())));
        }
        wanted.take(start + DICTIONARY_HEADER, &body);
        Ok(())
    }

    /// Takes what is wanted of a data page.
    pub fn page(
        self: &Arc<Self>,
        frame: &Arc<Frame>,
        page: &PagePlace,
        wanted: &mut Wanted<'_>,
        interrupt: &Interrupt,
    ) -> Result<(), Error> {
        let Some((leaf, column)) = self.leaf(frame, page.leaf) else { return Err(broken("no such leaf".into())) };
        let rows = page.rows.end - page.rows.start;
        let Some(cells) = leaf.cells(rows) else {
            let block = self.rendered(frame, leaf, column, page, interrupt)?;
            wanted.take(page.start, &block);
            self.read_ahead(frame, page);
            return Ok(());
        };
        let entries = rows.saturating_mul(leaf.slots.as_ref().map_or(1, |slots| slots.entries));
        let start = page.start + DATA_HEADER + cells.before;
        if wanted.next().is_some_and(|at| at < start) {
            let mut header = Vec::with_capacity(DATA_HEADER as usize);
            data_header(entries as u32, leaf.leaf.encoding, (page.bytes - DATA_HEADER) as u32, None, &mut header);
            wanted.take(page.start, &header);
            // Levels of arrays, which may be megabytes: the same in all pages of as many rows.
            let key = (self.id, LEADS | page.leaf as u64, rows);
            let lead = self.cache.get_or_render(key, interrupt, |mut out| {
                out.clear();
                leaf.leaf.lead(rows, &mut out).map_err(|reason| column.unsupported(reason))?;
                Ok(out)
            })?;
            if lead.len() as u64 != cells.before {
                return Err(broken(format!("{} bytes of levels, {} expected", lead.len(), cells.before)));
            }
            wanted.take(page.start + DATA_HEADER, &lead);
        }
        if let Some(part) = wanted.part(start, rows * cells.width) {
            let first = page.rows.start;
            if stored(leaf, column) {
                let from = first * cells.width + part.start;
                column.rows.append_stored(from, (part.end - part.start) as usize, wanted.out, interrupt)?;
            } else {
                let under = first + part.start / cells.width..first + part.end.div_ceil(cells.width);
                let skip = (part.start % cells.width) as usize;
                let values = cells_of(leaf, column, under, interrupt)?;
                let taken = values.get(skip..skip + (part.end - part.start) as usize);
                wanted.out.extend_from_slice(taken.ok_or_else(|| broken("cells are too short".into()))?);
            }
        }
        wanted.zeros(start + rows * cells.width, cells.after);
        Ok(())
    }

    /// Renders what a sequential reader will want next, on other cores. Who reads one column chunk alone wants nothing of
    /// the next.
    fn read_ahead(self: &Arc<Self>, frame: &Arc<Frame>, page: &PagePlace) {
        let Some(ahead) = self.streams.lock().touch(page.start, page.bytes) else { return };
        let leaf_at = |at| match frame.layout.locate(at) {
            Place::Page(page) => Some(page.leaf),
            _ => None,
        };
        let is_passing = leaf_at(ahead.since) != Some(page.leaf);
        let mut next = page.start + page.bytes;
        // A core that is alone renders one.
        for _ in 0..ahead.blocks.min(pass::cores().saturating_sub(1).max(1)) {
            let Place::Page(next_page) = frame.layout.locate(next) else { return };
            if next_page.leaf != page.leaf && !is_passing {
                return;
            }
            let page = next_page;
            next += page.bytes;
            let key = (self.id, page.leaf as u64, page.rows.start);
            if page.bytes > LONGEST_AHEAD || self.cache.expects(&key) {
                continue;
            }
            let (shared, frame) = (Arc::downgrade(self), Arc::clone(frame));
            pass::spawn(move || {
                if let Some(shared) = shared.upgrade()
                    && !shared.cache.expects(&key)
                    && let Some((leaf, column)) = shared.leaf(&frame, page.leaf)
                    && leaf.cells.is_none()
                {
                    // A reader of the page meets the error by itself.
                    drop(shared.rendered(&frame, leaf, column, &page, &Interrupt::new()));
                }
            });
        }
    }

    /// Renders a page whole, once for all who need it.
    fn rendered(
        &self,
        frame: &Frame,
        leaf: &PreparedLeaf,
        column: &ParquetColumn,
        page: &PagePlace,
        interrupt: &Interrupt,
    ) -> Result<Block, Error> {
        let position = page.leaf as u64;
        self.cache.get_or_render((self.id, position, page.rows.start), interrupt, |mut out| {
            let failed = |reason| column.unsupported(reason);
            let whole = usize::try_from(page.bytes).map_err(|error| failed(error.to_string()))?;
            let kind = frame.layout.leaves().get(page.leaf).map_or(Header::Exact, |size| size.pages.header());
            let (header, padded) = (kind.bytes() as usize, kind.is_padded());
            // The body first, since the header tells its length; it goes where it would be without padding.
            out.clear();
            out.reserve(whole);
            out.resize(header, 0);
            let body = append_body(leaf, column, page.rows.clone(), &mut out, interrupt)?;
            let parts = match kind {
                Header::Squeezed => {
                    Some(leaf.leaf.to_version_2(header, whole.saturating_sub(header), &mut out).map_err(failed)?)
                }
                Header::Exact | Header::Padded => None,
            };
            let rest = whole.checked_sub(out.len()).filter(|rest| padded || *rest == 0);
            let rest = rest.ok_or_else(|| {
                let (rows, bytes) = (&page.rows, out.len());
                frame.started.sizes.distrust(page.leaf);
                failed(format!(
                    "rows {}..{} take {bytes} bytes as shown, not the {whole} that there is room for (bytes that are no \
                     UTF-8 grow to three): the file is laid out anew for whoever opens it next",
                    rows.start, rows.end
                ))
            })?;
            let mut start = Vec::with_capacity(header + rest);
            let (end, encoding) = (out.len(), leaf.leaf.encoding);
            match parts {
                Some(parts) => {
                    // As many as a row group has at most.
                    let counts = (body.entries, body.nulls, (page.rows.end - page.rows.start) as u32);
                    data_header_2(counts, encoding, (parts, (end - header) as u32), rest, &mut start);
                }
                None => data_header(body.entries, encoding, body.bytes as u32, padded.then_some(rest), &mut start),
            }
            // Padding stands in the header, so that the body moves behind it.
            out.resize(end + start.len() - header, 0);
            out.copy_within(header..end, start.len());
            out[..start.len()].copy_from_slice(&start);
            Ok(out)
        })
    }
}

/// Whether the file's own bytes are a leaf's cells.
pub(super) fn stored(leaf: &PreparedLeaf, column: &ParquetColumn) -> bool {
    let width = leaf.cells.map(|full| full.width);
    leaf.leaf.stored && width.is_some() && column.rows.stored_width() == width && !column.rows.nullable()
}

/// The rows of a leaf as pages take them.
fn array_of(
    leaf: &PreparedLeaf,
    column: &ParquetColumn,
    rows: RowRange,
    interrupt: &Interrupt,
) -> Result<ArrayRef, Error> {
    match leaf.leaf.takes_codes() {
        true => column.rows.codes(rows, interrupt),
        false => column.rows.array_for_field(&leaf.leaf.fields(), rows, interrupt),
    }
}

/// Appends the body of a page of some rows.
fn append_body(
    leaf: &PreparedLeaf,
    column: &ParquetColumn,
    rows: RowRange,
    out: &mut Vec<u8>,
    interrupt: &Interrupt,
) -> Result<Body, Error> {
    let failed = |reason| column.unsupported(reason);
    if leaf.leaf.takes_byte_keys() {
        // Nearly always all codes are labels. An array of them would be eight times as large, and looked at more often.
        let mut keys = Vec::new();
        if column.rows.append_byte_keys(rows.clone(), &mut keys, interrupt)? {
            return leaf.leaf.append_byte_keys(&keys, out).map_err(failed);
        }
    }
    if let Some(body) = append_without_nan(leaf, column, &rows, out, interrupt)? {
        return Ok(body);
    }
    let array = array_of(leaf, column, rows, interrupt)?;
    leaf.leaf.append(&array, out).map_err(failed)
}

/// Appends the body of a page of floats of which NaN alone is missing, and which are stored as their cells. Where none
/// is NaN, that takes one copy of what is stored. `None` of other columns.
fn append_without_nan(
    leaf: &PreparedLeaf,
    column: &ParquetColumn,
    rows: &RowRange,
    out: &mut Vec<u8>,
    interrupt: &Interrupt,
) -> Result<Option<Body>, Error> {
    let data_type = column.rows.data_type();
    let Some(width) = leaf.leaf.stored_cell().filter(|_| data_type.is_floating()) else { return Ok(None) };
    if column.rows.stored_width() != Some(width) || column.rows.hints().nan != (Nan::Missing { alone: true }) {
        return Ok(None);
    }
    let failed = |reason: String| column.unsupported(reason);
    // A page has room for them in memory.
    let (from, count) = (out.len(), (rows.end - rows.start) as usize);
    leaf.leaf.append_present(count, out).map_err(failed)?;
    let start = out.len();
    column.rows.append_stored(rows.start * width, count * width as usize, out, interrupt)?;
    if !has_nan(data_type, &out[start..]) {
        let entries = u32::try_from(count).map_err(|error| failed(error.to_string()))?;
        return Ok(Some(Body { bytes: (out.len() - from) as u64, entries, nulls: 0 }));
    }
    let stored = Buffer::from_vec(out.split_off(start));
    out.truncate(from);
    match column.rows.stored_values(stored) {
        Some(array) => leaf.leaf.append(&array, out).map(Some).map_err(failed),
        None => Ok(None),
    }
}

/// Whether one of the little-endian floats in some bytes is NaN.
fn has_nan(data_type: &DataType, bytes: &[u8]) -> bool {
    fn any<const N: usize>(bytes: &[u8], is_nan: impl Fn([u8; N]) -> bool) -> bool {
        bytes.as_chunks::<N>().0.iter().fold(false, |any, cell| any | is_nan(*cell))
    }
    match data_type {
        DataType::Float32 => any(bytes, |cell| f32::from_le_bytes(cell).is_nan()),
        DataType::Float64 => any(bytes, |cell| f64::from_le_bytes(cell).is_nan()),
        _ => true,
    }
}

/// The cells of some rows, which are not as stored.
fn cells_of(
    leaf: &PreparedLeaf,
    column: &ParquetColumn,
    rows: RowRange,
    interrupt: &Interrupt,
) -> Result<Vec<u8>, Error> {
    let failed = |reason: String| column.unsupported(reason);
    let place = leaf.leaf.cells(rows.end - rows.start).ok_or_else(|| failed("rows have no places".into()))?;
    let array = array_of(leaf, column, rows, interrupt)?;
    let mut page = Vec::new();
    leaf.leaf.append(&array, &mut page).map_err(failed)?;
    page.drain(..usize::try_from(place.before).map_or(page.len(), |before| before.min(page.len())));
    Ok(page)
}
