//! Bodies of answers: read piece by piece on threads that may block, no faster than the client takes them.

use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::{AbortHandle, spawn_blocking};

use super::failure::RequestError;
use super::walk::ServedFile;
use crate::source::Interrupt;

/// Most bytes of a body in one piece.
const PIECE: usize = 256 << 10;

/// Most bytes of a piece while much memory is free. Each piece passes between threads twice, so large ones are faster.
const LARGE_PIECE: usize = 1 << 20;

/// Most bytes of pieces that are read, wait, or are on their way to clients.
const MEMORY: usize = 64 << 20;

/// Threads that look up names, read bytes, and list keys, each at most.
const LOOKING: usize = 64;
const READING: usize = 32;
const LISTING: usize = 4;

/// Passes over values that run at once.
const MEASURING: usize = 8;

/// Most threads that may block.
pub const THREADS: usize = LOOKING + READING + LISTING + MEASURING;

/// Threads and memory that all requests share.
pub struct Resources {
    pub looking: Arc<Semaphore>,
    pub reading: Arc<Semaphore>,
    pub listing: Arc<Semaphore>,
    pub measuring: Arc<Semaphore>,
    memory: Arc<Semaphore>,
}

impl Default for Resources {
    fn default() -> Self {
        let [looking, reading, listing, measuring, memory] =
            [LOOKING, READING, LISTING, MEASURING, MEMORY].map(|room| Arc::new(Semaphore::new(room)));
        Self { looking, reading, listing, measuring, memory }
    }
}

/// Raises an interrupt when it is dropped: its request has gone.
struct Raised(Interrupt);

impl Drop for Raised {
    fn drop(&mut self) {
        self.0.raise();
    }
}

/// Works on a thread that may block. The work is interrupted when the returned future is dropped.
///
/// # Errors
/// [`RequestError::Broken`] if the work panics.
pub async fn blocking<T: Send + 'static>(
    lane: &Arc<Semaphore>,
    work: impl FnOnce(&Interrupt) -> T + Send + 'static,
) -> Result<T, RequestError> {
    let place = lane.clone().acquire_owned().await.map_err(|_| RequestError::Broken)?;
    let interrupt = Interrupt::new();
    let _raised = Raised(interrupt.clone());
    let done = spawn_blocking(move || {
        let _place = place;
        work(&interrupt)
    });
    done.await.map_err(|_| RequestError::Broken)
}

/// Bytes that count against the memory of all answers until they are sent.
struct Counted {
    bytes: Vec<u8>,
    _room: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The body of an answer.
#[derive(Default)]
pub struct PiecedBody {
    /// Bytes at hand.
    first: Option<Bytes>,
    rest: Option<Rest>,
    left: u64,
}

/// Bytes that are still to be read.
struct Rest {
    pieces: mpsc::Receiver<Result<Bytes, RequestError>>,
    task: AbortHandle,
}

impl Drop for Rest {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl From<Vec<u8>> for PiecedBody {
    fn from(bytes: Vec<u8>) -> Self {
        Self { left: bytes.len() as u64, first: Some(bytes.into()), rest: None }
    }
}

impl PiecedBody {
    /// The bytes of a range of a file. The first piece is read before this returns: if it cannot be read, the client
    /// gets a reason instead of a body that ends too early.
    ///
    /// # Errors
    /// See [`RequestError`].
    pub async fn of_file(
        room: &Arc<Resources>,
        file: &Arc<ServedFile>,
        range: Range<u64>,
    ) -> Result<Self, RequestError> {
        let left = range.end.saturating_sub(range.start);
        if left == 0 {
            return Ok(Self::default());
        }
        let first = piece(room, file, &range).await?;
        let next = range.start + first.len() as u64;
        if next >= range.end {
            return Ok(Self { first: Some(first), rest: None, left });
        }
        // One piece waits while the one before is sent and the one behind is read.
        let (sender, pieces) = mpsc::channel(1);
        let (room, file) = (room.clone(), file.clone());
        let task = tokio::spawn(async move {
            let mut at = next;
            while at < range.end {
                let piece = piece(&room, &file, &(at..range.end)).await;
                at += piece.as_ref().map_or(u64::MAX - at, |piece| piece.len() as u64);
                if sender.send(piece).await.is_err() {
                    return;
                }
            }
        });
        Ok(Self { first: Some(first), rest: Some(Rest { pieces, task: task.abort_handle() }), left })
    }
}

/// Reads the first piece of a range.
async fn piece(room: &Arc<Resources>, file: &Arc<ServedFile>, range: &Range<u64>) -> Result<Bytes, RequestError> {
    let (offset, left) = (range.start, range.end - range.start);
    // Small pieces leave more clients their share.
    let most = if room.memory.available_permits() > MEMORY / 4 * 3 { LARGE_PIECE } else { PIECE };
    let length = usize::try_from(left).map_or(most, |left| left.min(most));
    let counted = room.memory.clone().acquire_many_owned(length as u32).await.map_err(|_| RequestError::Broken)?;
    let file = file.clone();
    let bytes = blocking(&room.reading, move |interrupt| file.read(offset, length, interrupt)).await??;
    Ok(Bytes::from_owner(Counted { bytes, _room: counted }))
}

impl Body for PiecedBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let piece = match (self.first.take(), &mut self.rest) {
            (Some(first), _) => Some(Ok(first)),
            (None, Some(rest)) => match rest.pieces.poll_recv(cx) {
                Poll::Ready(piece) => piece,
                Poll::Pending => return Poll::Pending,
            },
            (None, None) => None,
        };
        Poll::Ready(piece.map(|piece| match piece {
            Ok(bytes) => {
                self.left = self.left.saturating_sub(bytes.len() as u64);
                Ok(Frame::data(bytes))
            }
            // The connection ends before the promised length: no client takes that for the whole.
            Err(failure) => {
                failure.log();
                Err(io::Error::other(failure.to_string()))
            }
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
