//! Answers requests of the daemon that only read.
//!
//! Each room imports from those above it in this list:
//!
//! | room | task |
//! | --- | --- |
//! | `attribute` | the attributes of an object |
//! | `grid` | numbers chunks by their position |
//! | `listed` | corrects the listing of a chunk index |
//! | `dataset` | the description of a dataset, and its chunk map |
//! | `object` | the description of an object |
//! | `listing` | the links of a group, as libhdf5 lists them |
//! | `link` | pages of links, and the resolution of paths |
//! | `mapping` | the mappings of a virtual dataset |
//! | `paths` | the paths of objects |
//! | `read` | elements |
//! | `ahead` | groups and chunk maps of a small file, in one answer |

mod ahead;
mod attribute;
mod dataset;
mod grid;
mod link;
mod listed;
mod listing;
mod mapping;
mod object;
mod paths;
mod read;

#[cfg(feature = "fuzzing")]
pub use listed::ListedChunks;

use super::session::WorkerSession;
use super::{driver, sandbox};
use crate::h5::protocol::{Fault, Request, WorkerAnswer, WorkerRefusal};

/// Answers a request.
pub(super) fn answer(session: &mut WorkerSession, request: &Request) -> Result<WorkerAnswer, WorkerRefusal> {
    session.plain = matches!(request, Request::Group { plain: true, .. });
    match request {
        Request::Open => session.open(),
        Request::Group { id, start, end, .. } => session.group(*id, *start, *end),
        Request::Ahead => session.ahead(),
        Request::Object { id } => Ok(WorkerAnswer::Object(session.object(*id, attribute::OF_ONE))),
        Request::Chunks { id, limit, start } => session.chunks(*id, *limit, *start),
        Request::Mappings { id, start, by_chunk } => session.mappings(*id, *start, *by_chunk),
        Request::Read { id, start, count } => session.read(*id, start, count),
        Request::Paths { file, addresses } => session.paths(*file, addresses),
        Request::Write(_) => Err(WorkerRefusal::Hdf5("this worker only reads".into())),
        Request::Probe => Ok(WorkerAnswer::Probe(sandbox::probe())),
        Request::Fault(Fault::Crash) => std::process::abort(),
        Request::Fault(Fault::Hang) => loop {
            std::thread::sleep(std::time::Duration::from_secs(1));
        },
        Request::Fault(Fault::Panic) => panic!("as asked"),
        Request::Fault(Fault::Greed) => {
            let got = driver::want(u64::MAX, 1);
            Err(WorkerRefusal::Hdf5(format!("bytes behind all files: {got:?}")))
        }
        Request::Fault(Fault::Repeat(length)) => loop {
            if let Err(error) = driver::want(0, *length) {
                break Err(WorkerRefusal::Hdf5(error.to_string()));
            }
        },
    }
}
