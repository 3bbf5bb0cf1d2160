//! The view of an Arrow IPC file.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use arrow_array::Array;
use arrow_array::cast::AsArray;
use parking_lot::Mutex;

use super::IpcColumn;
use super::file::IpcFile;
use super::layout::Placed;
use super::plan::{BufferRole, IpcNodeKind};
use super::render::ColumnPiece;
use super::table::{Grain, Head, IpcTable, has_labels};
use crate::learnt::pass::{Keeper, PassProgress};
use crate::source::Interrupt;
use crate::store::{Answer, Error};
use crate::views::Misfit;
use crate::views::rendered::{BlockCache, next_view};
use crate::views::wanted::WantedBytes;
use crate::views::{Effort, Size, Standing, UNKNOWN_SIZE, View};

/// Takes the column's place in cache keys of blocks that belong to no column.
const HEADERS: u64 = u64::MAX;

/// The view of an Arrow IPC file over columns of equal length.
#[derive(Debug)]
pub struct IpcView {
    id: u64,
    columns: Vec<IpcColumn>,
    rendered: Arc<BlockCache>,
    keeper: Option<Keeper>,
    grain: Grain,
    opened: OnceLock<IpcFile>,
    opening: Mutex<()>,
}

impl IpcView {
    /// Returns the view of a file of `columns` that [`super::check`] accepts. Rendered bytes are cached in `rendered`.
    /// Reads nothing.
    pub fn new(columns: Vec<IpcColumn>, rendered: Arc<BlockCache>, keeper: Option<Keeper>) -> Self {
        Self {
            id: next_view(),
            columns,
            rendered,
            keeper,
            grain: Grain::default(),
            opened: OnceLock::new(),
            opening: Mutex::default(),
        }
    }

    /// Sets the sizes of batches and pieces.
    #[cfg(test)]
    pub(super) fn cut(mut self, grain: Grain) -> Self {
        self.grain = grain;
        self
    }

    fn open(&self, interrupt: &Interrupt) -> Result<&IpcFile, Error> {
        if let Some(opened) = self.opened.get() {
            return Ok(opened);
        }
        let _one = self.opening.lock();
        if let Some(opened) = self.opened.get() {
            return Ok(opened);
        }
        let source = self.keeper.as_ref().map(|keeper| keeper.file.source().identity().size);
        let table = IpcTable::new(self.columns.clone(), self.grain, source, interrupt)?;
        let file = IpcFile::new(table, self.keeper.clone());
        Ok(self.opened.get_or_init(|| file))
    }
}

impl Drop for IpcView {
    fn drop(&mut self) {
        self.rendered.forget(self.id);
    }
}

impl View for IpcView {
    fn size(&self, effort: Effort, interrupt: &Interrupt) -> Result<Size, Error> {
        if matches!(effort, Effort::Known | Effort::Free) {
            // Without labels, opening reads nothing, but allocates some kilobytes per column.
            let opened = match self.opened.get() {
                None if effort == Effort::Free && !self.columns.iter().any(has_labels) => self.open(interrupt).ok(),
                opened => opened,
            };
            let promised = opened.and_then(|file| file.promised.get().copied().flatten());
            let known = opened.and_then(IpcFile::known);
            let bound = Size::AtMost(promised.unwrap_or(UNKNOWN_SIZE));
            return Ok(known.map_or(bound, |placed| Size::Exact(placed.size())));
        }
        let file = self.open(interrupt)?;
        if effort == Effort::Prepared {
            file.nulls.count_all(interrupt)?;
        }
        match file.promised(interrupt)? {
            Some(promised) if effort == Effort::Quick && !file.is_found(interrupt)? => Ok(Size::AtMost(promised)),
            _ => Ok(Size::Exact(file.placement(interrupt)?.size())),
        }
    }

    fn standing(&self) -> Standing {
        match self.opened.get().map(|file| file.pass.as_ref()) {
            Some(Some(pass)) if pass.meter.is_distrusted() => Standing::Outdated,
            Some(None) => Standing::Lasting,
            _ => Standing::Provisional,
        }
    }

    fn progress(&self) -> Option<PassProgress> {
        let Some(file) = self.opened.get() else {
            // Labels may have to be read before the progress is known.
            return Some(PassProgress::default());
        };
        let passes = [file.pass.as_ref().map(|pass| pass.meter.progress()), file.nulls.progress()];
        PassProgress::sum(passes.into_iter().flatten())
    }

    fn gather(&self, offset: u64, length: usize, answer: &mut Answer, interrupt: &Interrupt) -> Result<(), Error> {
        let file = self.open(interrupt)?;
        let placed = file.placement(interrupt)?;
        let head = &file.table.head;
        let mut wanted = WantedBytes::new(offset, length, answer);
        while let Some(at) = wanted.next().filter(|at| *at < placed.size()) {
            if at < head.length {
                take_head(head, at, &mut wanted);
            } else if at >= placed.end {
                wanted.take(placed.end, &placed.tail);
            } else if at >= placed.batches_end {
                wanted.zeros(at, placed.end - at);
            } else {
                self.batch(file, placed.batch_at(file, at), at, &mut wanted, interrupt)?;
            }
            if wanted.next() == Some(at) {
                return Err(nothing(at));
            }
        }
        Ok(())
    }
}

impl IpcView {
    /// Copies the wanted bytes, from byte `at` on, of a batch that begins at byte `start`: a buffer, or the bytes up to
    /// the next one.
    fn batch(
        &self,
        file: &IpcFile,
        (batch, start): (u64, u64),
        at: u64,
        wanted: &mut WantedBytes<'_>,
        interrupt: &Interrupt,
    ) -> Result<(), Error> {
        let body = start + file.header;
        if at < body {
            let header = self
                .rendered
                .get_or_render((self.id, HEADERS, batch), interrupt, |_| file.header_of(batch, interrupt))?;
            wanted.take(start, &header);
            return Ok(());
        }
        let layout = file.layout(batch, interrupt)?;
        match layout.around(at - body, &file.table) {
            (Some((buffer, within)), _) => match wanted.part(at - within, buffer.extent.length) {
                Some(part) => self.buffer(file, batch, buffer, part, wanted, interrupt),
                None => Ok(()),
            },
            (None, next) => {
                wanted.zeros(at, (body + next).saturating_sub(at).max(1));
                Ok(())
            }
        }
    }

    /// Appends a part of a buffer.
    fn buffer(
        &self,
        file: &IpcFile,
        batch: u64,
        buffer: &Placed,
        part: Range<u64>,
        wanted: &mut WantedBytes<'_>,
        interrupt: &Interrupt,
    ) -> Result<(), Error> {
        let (from, to) = (buffer.start + part.start, buffer.start + part.end);
        if let Some((column, stored)) = file.stored(batch, buffer) {
            return wanted.answer.append_stored(column.rows.as_ref(), stored + from, (to - from) as usize, interrupt);
        }
        let count = (to - from) as usize;
        let position = file.position(batch, buffer.column).ok_or_else(|| nothing(from))?;
        let plan = position.plan;
        let stream = plan.streams.get(buffer.stream).ok_or_else(|| nothing(from))?;
        if let (BufferRole::Shared, Some(IpcNodeKind::Views(views))) =
            (stream.role, plan.nodes.get(stream.node).map(|node| &node.kind))
        {
            let shared = views.shared.as_ref().ok_or_else(|| nothing(from))?;
            let shared = shared.bytes.get(from as usize..to as usize).ok_or_else(|| nothing(from))?;
            wanted.answer.made().extend_from_slice(shared);
            return Ok(());
        }
        let (number, part) = plan.part_of(buffer.stream).ok_or_else(|| nothing(from))?;
        let out = wanted.answer.made();
        let base = out.len();
        let mut piece = first_with(position.pieces(), |piece| position.share(stream, piece).end > from);
        while piece < position.pieces() && position.share(stream, piece).start < to {
            let share = position.share(stream, piece);
            if share.end > from && share.start < share.end {
                let piece = ColumnPiece { position, number: piece, part };
                let block = self.piece(file, &piece, number, interrupt)?;
                let bytes = stream_of(&block, buffer.stream - part.streams.start, part.streams.len());
                merge(bytes, share, from..to, base, out);
            }
            piece += 1;
        }
        out.resize(base + count, 0);
        Ok(())
    }

    /// Returns the rendered streams of a piece of rows, the last one first, followed by the end of each. `part` is the
    /// number of the piece's part.
    fn piece(
        &self,
        file: &IpcFile,
        piece: &ColumnPiece<'_>,
        part: usize,
        interrupt: &Interrupt,
    ) -> Result<Arc<Vec<u8>>, Error> {
        let ColumnPiece { position, number, .. } = *piece;
        let rows = position.rows_of(number);
        position.admit(number)?;
        // Columns, and parts of one column, number far below 2^32.
        let key = (part as u64) << 32 | position.column as u64;
        self.rendered.get_or_render((self.id, key, rows.start), interrupt, |block| {
            let Some(column) = position.table.columns.get(position.column) else { return Ok(block) };
            let refuse = |misfit: Misfit| Error::unsupported(column.name.to_string(), misfit);
            let array = match piece.part.field {
                None => column.rows.array(rows.clone(), interrupt)?,
                Some(field) => {
                    let array = column.rows.array_for_field(&[field], rows.clone(), interrupt)?;
                    let field = array.as_struct_opt().and_then(|compounds| compounds.columns().get(field));
                    field.ok_or_else(|| refuse(Misfit::Array(format!("no field in {}", array.data_type()))))?.clone()
                }
            };
            if array.len() as u64 != rows.end - rows.start {
                return Err(refuse(Misfit::Array(format!(
                    "rows {}..{} came as {} values",
                    rows.start,
                    rows.end,
                    array.len()
                ))));
            }
            let mut streams = piece.render(&array, block).map_err(refuse)?;
            if let Err(misfit) = check(piece, &streams) {
                file.distrust(position.column);
                return Err(refuse(misfit));
            }
            // For most types the last stream is the longest.
            let Some(mut block) = streams.pop() else { return Ok(Vec::new()) };
            let mut ends = vec![block.len() as u64];
            for stream in &streams {
                block.extend_from_slice(stream);
                ends.push(block.len() as u64);
            }
            block.extend(ends.into_iter().flat_map(u64::to_le_bytes));
            Ok(block)
        })
    }
}

/// Checks that streams have the lengths that the pass learnt.
fn check(piece: &ColumnPiece<'_>, streams: &[Vec<u8>]) -> Result<(), Misfit> {
    let ColumnPiece { position, number, part } = *piece;
    let planned = position.plan.streams.get(part.streams.clone()).unwrap_or_default();
    for (stream, bytes) in planned.iter().zip(streams) {
        let share = position.share(stream, number);
        let exact = matches!(stream.role, BufferRole::Bytes | BufferRole::Offsets);
        let (now, before) = (bytes.len() as u64, share.end - share.start);
        if now > before || (exact && now != before) {
            return Err(Misfit::Array(format!(
                "a buffer of rows {:?} took {before} bytes before and {now} now (bytes that are no UTF-8 grow to three, \
                 and a NUL ends a text): the file is laid out anew for whoever opens it next",
                position.rows_of(number)
            )));
        }
    }
    Ok(())
}

/// Extracts one stream from a rendered piece of `streams` streams.
fn stream_of(block: &[u8], stream: usize, streams: usize) -> &[u8] {
    let (bytes, ends) = block.split_at(block.len().saturating_sub(8 * streams));
    let end = |number: usize| usize::try_from(u64::from_le_bytes(*ends.as_chunks().0.get(number)?)).ok();
    let number = (stream + 1) % streams.max(1);
    let start = number.checked_sub(1).map_or(Some(0), end);
    start.zip(end(number)).and_then(|(start, end)| bytes.get(start..end)).unwrap_or_default()
}

/// Merges the bytes `wanted` of a stream, which lie at `share`, into `out` after its first `base` bytes. Gaps between
/// shares are zeros. Pieces may share a byte of a bitmap.
fn merge(bytes: &[u8], share: Range<u64>, wanted: Range<u64>, base: usize, out: &mut Vec<u8>) {
    let index = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    let skipped = index(wanted.start.saturating_sub(share.start));
    let ahead = index(share.start.saturating_sub(wanted.start));
    let left = index(wanted.end - wanted.start).saturating_sub(ahead);
    let bytes = bytes.get(skipped..).unwrap_or_default();
    let bytes = bytes.get(..left).unwrap_or(bytes);
    // Stays within the wanted bytes, since the share begins before their end.
    let place = base + ahead;
    out.resize(out.len().max(place), 0);
    let shared = (out.len() - place).min(bytes.len());
    out[place..].iter_mut().zip(bytes).for_each(|(to, byte)| *to |= byte);
    out.extend_from_slice(&bytes[shared..]);
}

/// Returns the first number below `count` for which `holds`, a monotone predicate, is true.
fn first_with(count: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

/// Copies the wanted bytes, from byte `at` on, of the head: one of its parts, and the zeros after it.
fn take_head(head: &Head, at: u64, wanted: &mut WantedBytes<'_>) {
    let next = head.parts.partition_point(|(start, _)| *start <= at);
    let end = head.parts.get(next).map_or(head.length, |(start, _)| *start);
    if let Some((start, bytes)) = next.checked_sub(1).and_then(|part| head.parts.get(part)) {
        wanted.take(*start, bytes);
    }
    if let Some(at) = wanted.next() {
        wanted.zeros(at, end.saturating_sub(at));
    }
}

fn nothing(at: u64) -> Error {
    Error::unsupported("arrow", format!("nothing lies at byte {at}"))
}
