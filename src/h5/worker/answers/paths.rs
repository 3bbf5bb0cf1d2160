//! Finds the paths of objects: a reference has only an address.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use bstr::ByteSlice;

use super::listing::found;
use crate::catalogue::ObjectId;
use crate::h5::library::ffi;
use crate::h5::protocol::{PAGE, WorkerAnswer, WorkerRefusal};
use crate::h5::worker::address::{address_in, address_of};
use crate::h5::worker::kept::Paths;
use crate::h5::worker::session::WorkerSession;

/// Most objects that the walk for paths visits.
const MAX_OBJECTS: usize = 1_000_000;

/// Time after which the walk pauses; the daemon asks again.
const WALK_TIME: Duration = Duration::from_secs(3);

/// Longest path, in bytes.
const MAX_TEXT: usize = 64 << 10;

impl WorkerSession {
    /// Answers with the paths of the objects at these addresses, as many as fit.
    pub fn paths(&mut self, file: u32, addresses: &[u64]) -> Result<WorkerAnswer, WorkerRefusal> {
        let mut wanted = addresses.to_vec();
        wanted.sort_unstable();
        wanted.dedup();
        if !self.walk(file, &wanted, Instant::now())? {
            return Ok(WorkerAnswer::Again);
        }
        let found = self.object_paths.as_ref();
        let mut length = 0;
        let mut paths = Vec::new();
        for address in addresses {
            if length > PAGE {
                break;
            }
            let path = found.and_then(|paths| paths.found.get(address)).cloned();
            length += path.as_ref().map_or(1, String::len);
            paths.push(path);
        }
        Ok(WorkerAnswer::Paths(paths))
    }

    /// Walks on until every wanted object has a path, or none is left to visit; `false`: the time ran out first.
    fn walk(&mut self, file: u32, wanted: &[u64], began: Instant) -> Result<bool, WorkerRefusal> {
        let own = self.file(file)?;
        let (address_size, root) = (own.address_size, address_of(own.id.raw(), own.address_size)?);
        let mut paths = match self.object_paths.take() {
            Some(paths) if paths.file == file => paths,
            _ => Paths { file, found: HashMap::from([(root, "/".into())]), queue: VecDeque::from([root]) },
        };
        let mut missing = wanted.iter().filter(|address| !paths.found.contains_key(address)).count();
        let mut done = true;
        while missing > 0
            && let Some(address) = paths.queue.pop_front()
        {
            if began.elapsed() > WALK_TIME {
                paths.queue.push_front(address);
                done = false;
                break;
            }
            let Ok(group) = self.open_object(ObjectId { file, address }) else { continue };
            // SAFETY: an open object.
            if unsafe { ffi::H5Iget_type(group.raw()) } != ffi::I_GROUP {
                continue;
            }
            let Ok(links) = found(&group, ObjectId { file, address }) else { continue };
            let prefix = paths.found.get(&address).filter(|path| *path != "/").cloned().unwrap_or_default();
            for link in links.iter().filter(|link| link.kind == ffi::L_HARD) {
                let address = address_in(link.token, address_size);
                if paths.found.len() >= MAX_OBJECTS {
                    break;
                }
                if paths.found.contains_key(&address) || prefix.len() + link.name.len() > MAX_TEXT {
                    continue;
                }
                missing -= usize::from(wanted.binary_search(&address).is_ok());
                paths.found.insert(address, format!("{prefix}/{}", link.name.to_str_lossy()));
                paths.queue.push_back(address);
            }
        }
        self.object_paths = Some(paths);
        Ok(done)
    }
}
