//! Lists simple files without a worker.

use super::requests::{ClientState, PrefetchedCatalogue, SharedClient};
use crate::codec::structure::simple::{self, SimpleFile};
use crate::source::Interrupt;

impl SharedClient {
    /// Lists the source, if it is simple; `false`: only a worker can. Plugins change what is said of filters.
    pub(super) fn list_simple(&self, state: &mut ClientState, interrupt: &Interrupt) -> bool {
        if !self.options.lists_simple || self.options.plugins.is_some() || !self.source.comes_whole() {
            return false;
        }
        let fill = |offset: u64, out: &mut [u8]| self.source.read_at(offset, out, interrupt).ok();
        let Some(SimpleFile { info, groups, chunks }) = simple::read(&fill, self.source.identity().size) else {
            return false;
        };
        state.info = Some(info);
        state.simple = Some(PrefetchedCatalogue { groups, chunks });
        true
    }
}
