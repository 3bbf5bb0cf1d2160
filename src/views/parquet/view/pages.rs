//! Renders the wanted pages of the file.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_buffer::Buffer;
use arrow_schema::DataType;

use super::{Frame, Shared, broken};
use crate::learnt::pass;
use crate::source::Interrupt;
use crate::store::{Error, RowRange, Span};
use crate::views::parquet::body::leaf::Body;
use crate::views::parquet::body::plain::{PageSelection, append_fixed};
use crate::views::parquet::columns::{ParquetColumn, PreparedLeaf};
use crate::views::parquet::layout::{PagePlace, ParquetRegion};
use crate::views::parquet::thrift::page::{
    DATA_HEADER, DICTIONARY_HEADER, PageHeaderForm, data_header, data_header_2, dictionary_header,
};
use crate::views::rendered::RenderedBlock;
use crate::views::wanted::WantedBytes;

/// Length in bytes of the longest page to render ahead; a longer one holds a single value.
const LONGEST_AHEAD: u64 = 2 << 20;

/// Number of bytes of stored values to scan at a time: few enough for the processor's cache, in memory used before.
const LOOKED_AT: usize = 64 << 10;

/// Blocks read in order for which a reader gets one block behind the end of its row group.
const PASSED: usize = 32;

/// In cache keys: marks the bytes before the cells of a leaf's pages.
const LEADS: u64 = 1 << 32;

/// In cache keys: marks the numbers that the codes of a leaf stand for.
const NUMBERS: u64 = 1 << 33;

impl Shared {
    /// Copies the wanted bytes of a dictionary page.
    pub fn dictionary(
        &self,
        frame: &Frame,
        leaf: usize,
        start: u64,
        wanted: &mut WantedBytes<'_>,
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
        // All row groups have the same dictionary, which is too long to keep for each of very many columns.
        let body = self.cache.get_or_render((self.id, NUMBERS | leaf as u64, 0), interrupt, |mut out| {
            out.clear();
            let numbers = column
                .rows
                .coded()
                .and_then(|coded| coded.code_values())
                .ok_or_else(|| column.unsupported("no numbers"))?;
            append_fixed(&numbers, &PageSelection::All, &mut out).map_err(|reason| column.unsupported(reason))?;
            Ok(out)
        })?;
        if body.len() as u64 != dictionary.length() {
            return Err(broken(format!("{} bytes of numbers, {length} expected", body.len())));
        }
        wanted.take(start + DICTIONARY_HEADER, &body);
        Ok(())
    }

    /// Copies the wanted bytes of a data page. The request `passes` the end of a row group before it, or not: then its
    /// reader may stop at the end of this column chunk.
    pub fn page(
        self: &Arc<Self>,
        frame: &Arc<Frame>,
        (page, passes): (&PagePlace, bool),
        wanted: &mut WantedBytes<'_>,
        interrupt: &Interrupt,
    ) -> Result<(), Error> {
        let Some((leaf, column)) = self.leaf(frame, page.leaf) else { return Err(broken("no such leaf".into())) };
        let rows = page.rows.end - page.rows.start;
        let Some(cells) = leaf.cells(rows) else {
            let block = self.rendered(frame, leaf, column, (page, passes), interrupt)?;
            let taken = wanted.take(page.start, &block);
            let behind = page.bytes.saturating_sub(block.len() as u64);
            if let Some(width) = leaf.leaf.stored_cell().filter(|_| behind > 0) {
                let (start, first) = (page.start + block.len() as u64, page.rows.start.saturating_mul(width));
                let rest = (!passes).then(|| page.until.saturating_sub(page.rows.end).saturating_mul(width));
                return wanted.take_stored((start, behind), column.rows.as_ref(), (first, rest), interrupt);
            }
            // A buffer that nobody holds serves the next page.
            drop(block);
            if masked_cell(leaf, column).is_some() {
                // Copying stored bytes again is cheaper than fresh memory for the next page, so the block is released
                // once read.
                self.cache.hand_out(&(self.id, page.leaf as u64, page.rows.start), taken);
            }
            self.read_ahead(frame, page, passes);
            return Ok(());
        };
        let entries = rows.saturating_mul(leaf.slots.as_ref().map_or(1, |slots| slots.entries));
        let start = page.start + DATA_HEADER + cells.before;
        if wanted.next().is_some_and(|at| at < start) {
            let mut header = Vec::with_capacity(DATA_HEADER as usize);
            data_header(entries as u32, leaf.leaf.encoding, (page.bytes - DATA_HEADER) as u32, None, &mut header);
            wanted.take(page.start, &header);
            // The lead has levels of arrays, which may take megabytes, and is equal in all pages of equally many rows.
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
        let (first, bytes) = (page.rows.start, rows * cells.width);
        if stored(leaf, column) {
            let rest = (!passes).then(|| page.until.saturating_sub(page.rows.end).saturating_mul(cells.width));
            let first = first * cells.width;
            wanted.take_stored((start, bytes), column.rows.as_ref(), (first, rest), interrupt)?;
        } else if let Some(part) = wanted.part(start, bytes) {
            let under = first + part.start / cells.width..first + part.end.div_ceil(cells.width);
            let skip = (part.start % cells.width) as usize;
            let interrupt = bounded(interrupt, (page, passes), &under);
            let values = cells_of(leaf, column, under, &interrupt)?;
            let taken = values.get(skip..skip + (part.end - part.start) as usize);
            wanted.answer.made().extend_from_slice(taken.ok_or_else(|| broken("cells are too short".into()))?);
        }
        wanted.zeros(start + bytes, cells.after);
        Ok(())
    }

    /// Renders the next blocks of a sequential reader on other cores. A reader of one column chunk does not need the
    /// next chunk, nor a reader of one row group the next row group, which another process may read.
    fn read_ahead(self: &Arc<Self>, frame: &Arc<Frame>, page: &PagePlace, passes: bool) {
        let Some(ahead) = self.streams.lock().touch(page.start, page.bytes, passes) else { return };
        let since = frame.layout.locate(ahead.since);
        let is_passing = !matches!(since, ParquetRegion::Page(since) if since.leaf == page.leaf);
        let mut next = page.start + page.bytes;
        // A single core renders one block ahead.
        for number in 0..ahead.blocks.min(pass::threads().saturating_sub(1).max(1)) {
            let ParquetRegion::Page(next_page) = frame.layout.locate(next) else { return };
            let may_pass = if next_page.until == page.until {
                is_passing || next_page.leaf == page.leaf
            } else {
                ahead.passes || number < ahead.run / PASSED
            };
            if !may_pass {
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
                    // A reader of the page will see the error itself.
                    drop(shared.rendered(&frame, leaf, column, (&page, false), &Interrupt::new()));
                }
            });
        }
    }

    /// Renders a page once for all readers that need it: the whole page, or just the part before the values if these
    /// can be copied from the stored bytes.
    fn rendered(
        &self,
        frame: &Frame,
        leaf: &PreparedLeaf,
        column: &ParquetColumn,
        (page, passes): (&PagePlace, bool),
        interrupt: &Interrupt,
    ) -> Result<RenderedBlock, Error> {
        let position = page.leaf as u64;
        self.cache.get_or_render((self.id, position, page.rows.start), interrupt, |mut out| {
            let whole = usize::try_from(page.bytes).map_err(|error| column.unsupported(error))?;
            let kind = frame.layout.leaves().get(page.leaf).map_or(PageHeaderForm::Exact, |size| size.pages.header());
            let (header, padded) = (kind.bytes() as usize, kind.is_padded());
            // The body comes first, since the header contains its length. It is placed where it most likely stays:
            // after a header without padding, or after that of a page without NaN.
            let ahead = match masked_cell(leaf, column) {
                Some(width) => {
                    let count = (page.rows.end - page.rows.start) as usize;
                    leaf.leaf.append_present(count, &mut out).map_err(|misfit| column.unsupported(misfit))?;
                    whole.saturating_sub(out.len() + count * width as usize)
                }
                None => {
                    out.reserve(whole);
                    header
                }
            };
            out.clear();
            out.resize(ahead, 0);
            let interrupt = &bounded(interrupt, (page, passes), &page.rows);
            let body = append_body(leaf, column, page.rows.clone(), &mut out, interrupt)?;
            let stored = (ahead as u64 + body.bytes).saturating_sub(out.len() as u64) as usize;
            let parts = match kind {
                PageHeaderForm::Squeezed => {
                    Some(leaf.leaf.to_version_2(ahead, whole.saturating_sub(header), &mut out).map_err(|misfit| column.unsupported(misfit))?)
                }
                PageHeaderForm::Exact | PageHeaderForm::Padded => None,
            };
            let made = out.len() - ahead;
            let bytes = header + made + stored;
            let rest = whole.checked_sub(bytes).filter(|rest| padded || *rest == 0);
            let rest = rest.ok_or_else(|| {
                let rows = &page.rows;
                frame.started.sizes.distrust(page.leaf);
                column.unsupported(format!(
                    "rows {}..{} take {bytes} bytes as shown, not the {whole} that there is room for (bytes that are no \
                     UTF-8 grow to three): the file is laid out anew for whoever opens it next",
                    rows.start, rows.end
                ))
            })?;
            let mut start = Vec::with_capacity(header + rest);
            let encoding = leaf.leaf.encoding;
            match parts {
                Some(parts) => {
                    // A row group has no more rows than fit in 32 bits.
                    let counts = (body.entries, body.nulls, (page.rows.end - page.rows.start) as u32);
                    data_header_2(counts, encoding, (parts, made as u32), rest, &mut start);
                }
                None => data_header(body.entries, encoding, body.bytes as u32, padded.then_some(rest), &mut start),
            }
            // The header includes the padding. If its length differs from the expected one, the body moves.
            let end = start.len() + made;
            if start.len() != ahead {
                out.resize(end.max(out.len()), 0);
                out.copy_within(ahead..ahead + made, start.len());
                out.truncate(end);
            }
            out[..start.len()].copy_from_slice(&start);
            if stored > 0 {
                // This frees the room of values that are copied from the stored bytes.
                out.shrink_to_fit();
            }
            Ok(out)
        })
    }
}

/// The interrupt for some rows of a page, with where its reader may stop.
fn bounded(interrupt: &Interrupt, (page, passes): (&PagePlace, bool), rows: &RowRange) -> Interrupt {
    match passes {
        true => interrupt.clone(),
        false => interrupt.followed_by(page.until.saturating_sub(rows.end), rows.end - rows.start),
    }
}

/// Whether the stored bytes are the leaf's cells.
fn stored(leaf: &PreparedLeaf, column: &ParquetColumn) -> bool {
    let width = leaf.cells.map(|full| full.width);
    leaf.leaf.stored && width.is_some() && column.rows.stored_width() == width && !column.rows.nullable()
}

/// Reads the rows of a leaf in the form that pages take.
fn array_of(
    leaf: &PreparedLeaf,
    column: &ParquetColumn,
    rows: RowRange,
    interrupt: &Interrupt,
) -> Result<ArrayRef, Error> {
    if !leaf.leaf.takes_codes() {
        return column.rows.array_for_field(&leaf.leaf.fields(), rows, interrupt);
    }
    let codes = column.rows.coded().map_or(Ok(None), |coded| coded.codes(rows, interrupt))?;
    codes.ok_or_else(|| column.unsupported("no codes"))
}

/// Appends the body of a page of some rows.
fn append_body(
    leaf: &PreparedLeaf,
    column: &ParquetColumn,
    rows: RowRange,
    out: &mut Vec<u8>,
    interrupt: &Interrupt,
) -> Result<Body, Error> {
    if let Some(body) = append_without_nan(leaf, column, &rows, out, interrupt)? {
        return Ok(body);
    }
    if leaf.leaf.takes_byte_keys() {
        // Nearly always all codes are labels. An array of the keys would be eight times as large, with more passes over
        // it.
        let mut keys = Vec::new();
        if let Some(coded) = column.rows.coded()
            && coded.append_byte_keys(rows.clone(), &mut keys, interrupt)?
        {
            return leaf.leaf.append_byte_keys(&keys, out).map_err(|misfit| column.unsupported(misfit));
        }
    }
    let array = array_of(leaf, column, rows, interrupt)?;
    leaf.leaf.append(&array, out).map_err(|misfit| column.unsupported(misfit))
}

/// Appends the body of a page of floats stored as their cells whose only nulls are NaN. Without a NaN, this scans
/// adjacent values once and appends only their levels; otherwise it copies them once. `None`: the column is of another
/// kind.
fn append_without_nan(
    leaf: &PreparedLeaf,
    column: &ParquetColumn,
    rows: &RowRange,
    out: &mut Vec<u8>,
    interrupt: &Interrupt,
) -> Result<Option<Body>, Error> {
    let Some(width) = masked_cell(leaf, column) else { return Ok(None) };
    // A page's cells fit in memory.
    let (from, count) = (out.len(), (rows.end - rows.start) as usize);
    let bytes = count * width as usize;
    let looked = look_for_nan(column, width, rows, interrupt)?;
    if looked != Some(false) {
        // If a value is NaN, levels take a bit per value.
        out.reserve(bytes + count / 8 + 64);
    }
    if looked == Some(true) {
        return Ok(None);
    }
    leaf.leaf.append_present(count, out).map_err(|misfit| column.unsupported(misfit))?;
    let start = out.len();
    let entries = u32::try_from(count).map_err(|error| column.unsupported(error))?;
    let body = Body { bytes: (start - from + bytes) as u64, entries, nulls: 0 };
    if looked == Some(false) {
        return Ok(Some(body));
    }
    column.rows.stored_bytes()?.append(rows.start * width, bytes, out, interrupt)?;
    if !has_nan(column.rows.data_type(), &out[start..]) {
        return Ok(Some(body));
    }
    let stored = Buffer::from_vec(out.split_off(start));
    out.truncate(from);
    match column.rows.coded().and_then(|coded| coded.values(stored)) {
        Some(array) => leaf.leaf.append(&array, out).map(Some).map_err(|misfit| column.unsupported(misfit)),
        None => Ok(None),
    }
}

/// Returns the bytes of a cell, for floats stored as their cells whose only nulls are NaN.
fn masked_cell(leaf: &PreparedLeaf, column: &ParquetColumn) -> Option<u64> {
    let width = leaf.leaf.stored_cell().filter(|_| column.misses_nan_alone())?;
    (column.rows.stored_width() == Some(width)).then_some(width)
}

/// Scans adjacent floats for NaN in their stored bytes. `None`: the floats are not adjacent.
fn look_for_nan(
    column: &ParquetColumn,
    width: u64,
    rows: &RowRange,
    interrupt: &Interrupt,
) -> Result<Option<bool>, Error> {
    let data_type = column.rows.data_type();
    let (mut at, end) = (rows.start * width, rows.end * width);
    let mut copy = Vec::new();
    while at < end {
        interrupt.check()?;
        let left = (end - at) as usize;
        let (found, bytes) = match column.rows.stored_bytes()?.span(at, left, interrupt)? {
            Span::Made(bytes) if bytes == left => return Ok(None),
            Span::Lent(lent) => (has_nan(data_type, &lent), lent.len()),
            span => {
                copy.clear();
                column.rows.stored_bytes()?.append(at, span.len().min(LOOKED_AT), &mut copy, interrupt)?;
                (has_nan(data_type, &copy), copy.len())
            }
        };
        if found {
            return Ok(Some(true));
        }
        // A value cut in two would not have been scanned.
        if bytes == 0 || !(bytes as u64).is_multiple_of(width) {
            return Ok(None);
        }
        at += bytes as u64;
    }
    Ok(Some(false))
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

/// Returns the cells of some rows that are not stored as cells.
fn cells_of(
    leaf: &PreparedLeaf,
    column: &ParquetColumn,
    rows: RowRange,
    interrupt: &Interrupt,
) -> Result<Vec<u8>, Error> {
    let place = leaf.leaf.cells(rows.end - rows.start).ok_or_else(|| column.unsupported("rows have no places"))?;
    let array = array_of(leaf, column, rows, interrupt)?;
    let mut page = Vec::new();
    leaf.leaf.append(&array, &mut page).map_err(|misfit| column.unsupported(misfit))?;
    page.drain(..usize::try_from(place.before).map_or(page.len(), |before| before.min(page.len())));
    Ok(page)
}
