//! Time limits of the worker's requests.

use std::time::Duration;

use crate::h5::protocol::Request;

/// Deaths and hangs after which the client refuses a request for good.
pub(super) const STRIKES: u32 = 2;

/// Divisor of the deadline of a file after [`STRIKES`] hangs.
pub(super) const IMPATIENT: u32 = 8;

/// Longest wait for [`Request::Ahead`], which ends by itself after 200 ms unless libhdf5 hangs or the disk is slow.
const AHEAD: Duration = Duration::from_secs(1);

/// The limits of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    wall: Duration,
    /// Processor time of the worker: a slow disk is no hang.
    processor: Duration,
}

impl Patience {
    /// The limits of a request about a file that has hung `hangs` times.
    pub fn of(request: &Request, deadline: Duration, hangs: u32) -> Self {
        let wall = match request {
            Request::Ahead => deadline.min(AHEAD),
            _ if hangs >= STRIKES => deadline / IMPATIENT,
            _ => deadline,
        };
        let processor = match request {
            // libhdf5 visits all entries of a chunk index, and all mappings, in one call.
            Request::Chunks { .. } | Request::Mappings { .. } => wall,
            _ => wall * 3 / 10,
        };
        Self { wall, processor }
    }

    /// The exceeded limit, in words; `None`: both are kept.
    pub fn passed(&self, elapsed: Duration, spent: Duration) -> Option<String> {
        if elapsed >= self.wall {
            return Some(format!("{} s", self.wall.as_secs_f64()));
        }
        (spent >= self.processor).then(|| format!("{} s of processor time", self.processor.as_secs_f64()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::ObjectId;

    #[test]
    fn what_hung_twice_has_little_time_left() {
        let id = ObjectId { file: 0, address: 96 };
        let chunks = Request::Chunks { id, limit: 1, start: 0 };
        let milliseconds = |request, hangs| {
            let Patience { wall, processor } = Patience::of(&request, Duration::from_secs(10), hangs);
            (wall.as_millis(), processor.as_millis())
        };
        assert_eq!(milliseconds(Request::Object { id }, 1), (10_000, 3000));
        assert_eq!(milliseconds(Request::Object { id }, 2), (1250, 375));
        assert_eq!(milliseconds(chunks.clone(), 0), (10_000, 10_000));
        assert_eq!(milliseconds(chunks, 2), (1250, 1250));
        assert_eq!(milliseconds(Request::Ahead, 0), (1000, 300));
    }
}
