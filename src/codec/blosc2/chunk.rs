//! A chunk of Blosc 2.
//!
//! It begins like a chunk of Blosc 1 and has 16 bytes more: six filters, a user-defined compressor and its parameter, a
//! parameter for each filter, two bytes of flags. A stream may also repeat one byte, and a whole chunk one value.

use super::super::blosc::{
    BIT_SHUFFLED, BlockStreams, BloscHeader, COPIED, Compressor, MOST_STREAMS, SHUFFLED, UNSPLIT, decompress,
    decompress_planes, from_start, unshuffle_bits,
};
use super::super::space::{Space, lend};
use super::super::{shuffle, target};
use crate::codec::Error;

/// Flags of both kinds of shuffling, which together announce the additional 16 bytes.
const EXTENDED: u8 = SHUFFLED | BIT_SHUFFLED;

/// Offset of the starts of blocks, or of a repeated value.
const BODY: usize = 32;

const FILTERS: std::ops::Range<usize> = 16..22;
const PARAMETERS: usize = 24;

thread_local! {
    static BLOCK: Space = const { Space::new(Vec::new()) };
}

/// A filter to undo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Unshuffle the bytes of elements of this size.
    Bytes(usize),
    /// Unshuffle bits.
    Bits,
    /// Undo delta: words of the first block are XORed with the word before, those of other blocks with those of the
    /// first.
    Delta,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Content<'a> {
    /// These bytes, repeated.
    Repeated(&'a [u8]),
    /// All bytes, uncompressed.
    Copied(&'a [u8]),
    Compressed {
        compressor: Compressor,
        /// The filters to undo, in this order.
        steps: Vec<Step>,
    },
}

/// A chunk whose header was read.
#[derive(Debug)]
pub(super) struct Blosc2Chunk<'a> {
    data: &'a [u8],
    size: usize,
    block: usize,
    element: usize,
    is_split: bool,
    content: Content<'a>,
}

impl<'a> Blosc2Chunk<'a> {
    pub(super) fn read(data: &'a [u8]) -> Result<Self, Error> {
        let header = BloscHeader::read(data)?;
        let extension = data.first_chunk::<BODY>().ok_or("the header is cut short")?;
        if header.flags & EXTENDED != EXTENDED {
            return Err("a chunk of Blosc 1 in a frame".into());
        }
        let stored = header.stored;
        let data = data.get(..stored).ok_or_else(|| format!("a chunk of {stored} bytes is cut short"))?;
        let body = data.get(BODY..).ok_or("the header is cut short")?;
        let [flags2, flags] = [extension[30], extension[31]];
        if flags2 != 0 {
            return Err(format!(
                "a chunk with blocks of variable length or of a version to come (flags {flags2:#04x})"
            )
            .into());
        }
        let special = flags >> 4 & 7;
        let content = if special == 3 {
            Content::Repeated(body)
        } else if special != 0 {
            Content::Repeated(repeated(special, header.element)?)
        } else if flags & 0x89 != 0 {
            let kind = if flags & 1 != 0 { "compressed with a dictionary" } else { "lazy or instrumented" };
            return Err(format!("a chunk that is {kind}").into());
        } else if header.flags & COPIED != 0 {
            Content::Copied(Some(body).filter(|body| body.len() == header.size).ok_or("a copied chunk is cut short")?)
        } else {
            Self::compressed(header, extension)?
        };
        let is_split = header.flags & UNSPLIT == 0;
        let block = header.block.min(header.size.max(1));
        Ok(Self { data, size: header.size, block, element: header.element, is_split, content })
    }

    fn compressed(header: BloscHeader, extension: &[u8; BODY]) -> Result<Content<'a>, Error> {
        let compressor = match header.flags >> 5 {
            6 => return Err(format!("compressor {} of Blosc2 is not known", extension[22]).into()),
            number => Compressor::new(number)?,
        };
        let mut steps = Vec::new();
        for (i, filter) in extension[FILTERS].iter().enumerate().rev() {
            // The first versions left the sixth filter uninitialised.
            if i == 5 && header.version == 3 {
                continue;
            }
            steps.push(match filter {
                // There is no filter, or it has dropped bits, which cannot be undone.
                0 | 4 => continue,
                1 => Step::Bytes(match extension[PARAMETERS + i] {
                    0 => header.element,
                    group => usize::from(group),
                }),
                2 => Step::Bits,
                3 => Step::Delta,
                _ => return Err(format!("filter {filter} of Blosc2 is not known").into()),
            });
        }
        Ok(Content::Compressed { compressor, steps })
    }

    /// A chunk without stored bytes: `size` bytes of one value.
    pub(super) fn special(kind: u8, element: usize, size: usize) -> Result<Blosc2Chunk<'static>, Error> {
        // Blosc 2 tests these bits in this order; values that were never written appear as zeros.
        let kind = if kind & 5 != 0 { 1 } else { kind };
        let content = Content::Repeated(repeated(kind, element)?);
        Ok(Blosc2Chunk { data: &[], size, block: size, element, is_split: false, content })
    }

    /// Bytes of all elements.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Bytes of a block; the last may be shorter.
    pub(super) fn block_size(&self) -> usize {
        self.block
    }

    /// Decompresses the chunk into `out`; returns the bytes written.
    pub(super) fn decode(&self, out: &mut [u8]) -> Result<usize, Error> {
        let out = target(out, self.size as u64)?;
        if self.fill(out)? {
            return Ok(self.size);
        }
        let mut blocks = self.blocks();
        for target in out.chunks_mut(self.block) {
            blocks.next(target)?;
        }
        Ok(self.size)
    }

    /// Fills `out` if the chunk repeats one value.
    pub(super) fn fill(&self, out: &mut [u8]) -> Result<bool, Error> {
        let Content::Repeated(value) = self.content else { return Ok(false) };
        if value.is_empty() || !out.len().is_multiple_of(value.len()) {
            return Err(format!("{} bytes of a repeated value of {}", out.len(), value.len()).into());
        }
        match value {
            [byte] => out.fill(*byte),
            _ => out.chunks_exact_mut(value.len()).for_each(|target| target.copy_from_slice(value)),
        }
        Ok(true)
    }

    /// The blocks, from the first on.
    pub(super) fn blocks(&self) -> BlockDecompressor<'_> {
        BlockDecompressor { chunk: self, at: 0, first: Vec::new() }
    }
}

/// The value that a special chunk repeats.
fn repeated(special: u8, element: usize) -> Result<&'static [u8], Error> {
    const NAN: [u8; 4] = f32::NAN.to_le_bytes();
    const NAN_DOUBLE: [u8; 8] = f64::NAN.to_le_bytes();
    Ok(match (special, element) {
        (1 | 4, _) => &[0],
        (2, 4) => &NAN,
        (2, 8) => &NAN_DOUBLE,
        _ => return Err(format!("a chunk of special value {special} in elements of {element} bytes").into()),
    })
}

/// Decompresses the blocks of a chunk one after another.
pub(super) struct BlockDecompressor<'a> {
    chunk: &'a Blosc2Chunk<'a>,
    at: usize,
    /// The first block, if the others refer to it.
    first: Vec<u8>,
}

impl BlockDecompressor<'_> {
    /// Decompresses the next block, which must fill `out`.
    pub(super) fn next(&mut self, out: &mut [u8]) -> Result<(), Error> {
        let (at, chunk) = (self.at, self.chunk);
        self.at += 1;
        match &chunk.content {
            Content::Repeated(_) => chunk.fill(out).map(|_| ()),
            Content::Copied(data) => {
                let bytes = at.checked_mul(chunk.block).and_then(|start| data.get(start..)?.get(..out.len()));
                out.copy_from_slice(bytes.ok_or("a copied chunk is cut short")?);
                Ok(())
            }
            Content::Compressed { compressor, steps } => {
                let input = from_start(chunk.data, at.saturating_mul(4).saturating_add(BODY))?;
                let streams = if chunk.is_split && out.len() == chunk.block { chunk.element } else { 1 };
                // Each stream is a plane.
                if **steps == [Step::Bytes(streams)] && (2..=MOST_STREAMS).contains(&streams) {
                    return lend(&BLOCK, out.len(), |space| {
                        decompress_planes(*compressor, input, streams, BlockStreams::OrRuns, (space, out))
                    });
                }
                self.undo(steps, out, |target| decompress(*compressor, input, streams, BlockStreams::OrRuns, target))?;
                if at == 0 && steps.contains(&Step::Delta) {
                    self.first = out.to_vec();
                }
                Ok(())
            }
        }
    }

    /// Decodes a block: `decompress` gives its filtered bytes, and the filters are undone.
    fn undo(
        &self,
        steps: &[Step],
        out: &mut [u8],
        decompress: impl FnOnce(&mut [u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let element = self.chunk.element;
        let Some(last) = steps.iter().rposition(|step| *step != Step::Delta) else {
            decompress(out)?;
            steps.iter().for_each(|_| undo_delta(out, &self.first, element));
            return Ok(());
        };
        let length = out.len();
        lend(&BLOCK, if last == 0 { length } else { length.saturating_mul(2) }, |space| {
            let (mut block, mut spare) = space.split_at_mut(length);
            decompress(block)?;
            for step in &steps[..last] {
                if *step == Step::Delta {
                    undo_delta(block, &self.first, element);
                } else {
                    step.undo(element, block, spare)?;
                    std::mem::swap(&mut block, &mut spare);
                }
            }
            steps[last].undo(element, block, out)?;
            steps[last + 1..].iter().for_each(|_| undo_delta(out, &self.first, element));
            Ok(())
        })
    }
}

impl Step {
    fn undo(self, element: usize, data: &[u8], out: &mut [u8]) -> Result<(), Error> {
        match self {
            Step::Bytes(group) => shuffle::decode(data, out, group).map(|_| ()),
            Step::Bits => unshuffle_bits(data, out, element),
            Step::Delta => Err("delta moves nothing".into()),
        }
    }
}

/// Undoes delta in a block. `first` is the first block; empty if this is the first.
fn undo_delta(block: &mut [u8], first: &[u8], element: usize) {
    let word = match element {
        1 | 2 | 4 => element,
        _ if element.is_multiple_of(8) => 8,
        _ => 1,
    };
    let whole = block.len() / word * word;
    if first.is_empty() {
        for i in word..whole {
            block[i] ^= block[i - word];
        }
    } else {
        for (byte, first) in block[..whole].iter_mut().zip(first) {
            *byte ^= first;
        }
    }
}
