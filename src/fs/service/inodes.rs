//! The inode numbers that the kernel knows nodes by.
//!
//! A name keeps its number as long as the kernel knows it. If the HDF5 file changes, a node of its past state keeps its
//! number for programs that have it open, and the name gets another one: so pages that the kernel cached under the old
//! number never appear in the new file.
//!
//! A number is a keyed hash of the parent's number and the name, so a listing can compute a name's number without
//! storing the name: a directory of a million names costs nothing until the kernel looks them up.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use bstr::{BStr, BString, ByteSlice};
use hashbrown::HashTable;
use parking_lot::Mutex;

use crate::fs::node::{EntryKind, NodeRef};

/// The root's number, set by the protocol.
pub const ROOT: u64 = 1;

/// The inode numbers of the names that the kernel knows.
pub struct Inodes {
    hasher: RandomState,
    state: Mutex<State>,
}

struct State {
    /// Boxed: up to half of the places of a table may be free.
    known: HashMap<u64, Box<Known>>,
    /// Numbers of names, indexed by directory and name.
    names: HashTable<u64>,
    clock: u64,
}

struct Known {
    node: NodeRef,
    parent: u64,
    name: BString,
    /// Lookups that the kernel counts on this number, less those it forgot.
    lookups: u64,
    /// Number of handles that have the file open.
    handles: u32,
    exact: Option<u64>,
    wholeness: Wholeness,
    last_told: u64,
}

/// Whether a small file was read whole. The second open finds out: programs open many files only once.
#[derive(Clone, Copy, Debug, Default)]
pub enum Wholeness {
    /// No program has opened the file.
    #[default]
    Unopened,
    /// A program has opened the file, but we have not read it whole.
    Opened,
    /// We have read it whole, with (`true`) or without success.
    Read(bool),
}

/// The record of a number.
#[derive(Clone)]
pub struct Inode {
    /// The inode number.
    pub number: u64,
    /// The node with this number.
    pub node: NodeRef,
    /// The file's size in bytes, once it is known exactly.
    pub exact: Option<u64>,
    /// Whether the file is open.
    pub is_open: bool,
}

/// A name that the kernel knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownName {
    /// The number of its directory.
    pub parent: u64,
    /// The name in that directory.
    pub name: BString,
    /// The number of the node under this name.
    pub number: u64,
}

impl Inodes {
    /// A table of the root alone.
    pub fn new(root: NodeRef) -> Self {
        let root = Known {
            node: root,
            parent: ROOT,
            name: BString::default(),
            lookups: 1,
            handles: 0,
            exact: None,
            wholeness: Wholeness::default(),
            last_told: 0,
        };
        let state = State { known: HashMap::from([(ROOT, Box::new(root))]), names: HashTable::new(), clock: 0 };
        Self { hasher: RandomState::new(), state: Mutex::new(state) }
    }

    /// The record of `number`; `None`: the kernel does not know the number.
    pub fn get(&self, number: u64) -> Option<Inode> {
        self.state.lock().inode(number)
    }

    /// The record of a name; `None`: the kernel does not know the name, or its node is no longer current.
    pub fn child(&self, parent: u64, name: &BStr) -> Option<Inode> {
        let state = self.state.lock();
        let inode = state.inode(state.named(self.hash(parent, name), parent, name)?)?;
        drop(state);
        inode.node.is_current().then_some(inode)
    }

    /// The number of the parent directory of `number`; the root is its own parent.
    pub fn parent(&self, number: u64) -> u64 {
        self.state.lock().known.get(&number).map_or(ROOT, |known| known.parent)
    }

    /// The number that a name has or would get; does not store it.
    pub fn number(&self, parent: u64, name: &BStr) -> u64 {
        let state = self.state.lock();
        let known = state.named(self.hash(parent, name), parent, name);
        known.unwrap_or_else(|| self.free_number(&state, parent, name))
    }

    /// Counts one answer that gives a name's number to the kernel. The present node of the name stays, unless it is
    /// stale or of another kind.
    pub fn remember(&self, parent: u64, name: &BStr, node: NodeRef) -> Inode {
        // Called before taking the lock: `is_current` is foreign code.
        let keep = self.child(parent, name).filter(|old| old.node.attributes().kind == node.attributes().kind);
        let state = &mut *self.state.lock();
        state.clock += 1;
        if let Some(old) = keep
            && let Some(known) = state.known.get_mut(&old.number)
        {
            known.lookups = known.lookups.saturating_add(1);
            known.last_told = state.clock;
            return known.inode(old.number);
        }
        let number = self.free_number(state, parent, name);
        let known = Known {
            node,
            parent,
            name: name.to_owned(),
            lookups: 1,
            handles: 0,
            exact: None,
            wholeness: Wholeness::default(),
            last_told: state.clock,
        };
        let inode = known.inode(number);
        state.known.insert(number, Box::new(known));
        let State { known, names, .. } = state;
        let hash = self.hash(parent, name);
        match names.find_mut(hash, |at| known.get(at).is_some_and(|known| known.is(parent, name))) {
            Some(other) => *other = number,
            None => {
                names.insert_unique(hash, number, |at| {
                    known.get(at).map_or(0, |known| self.hash(known.parent, known.name.as_bstr()))
                });
            }
        }
        inode
    }

    /// Subtracts `count` lookups of a number that the kernel forgot.
    pub fn forget(&self, number: u64, count: u64) {
        if number == ROOT {
            return;
        }
        let mut guard = self.state.lock();
        let state = &mut *guard;
        let Some(known) = state.known.get_mut(&number) else { return };
        known.lookups = known.lookups.saturating_sub(count);
        if known.lookups > 0 {
            return;
        }
        let Some(gone) = state.known.remove(&number) else { return };
        let Known { node, parent, name, .. } = *gone;
        if let Ok(found) = state.names.find_entry(self.hash(parent, name.as_bstr()), |at| *at == number) {
            found.remove();
        }
        drop(guard);
        // This drop may close an opening, which writes its findings to the cache folder.
        drop(node);
    }

    /// Records a file's exact size.
    pub fn set_exact(&self, number: u64, bytes: u64) {
        if let Some(known) = self.state.lock().known.get_mut(&number) {
            known.exact = Some(bytes);
        }
    }

    /// Whether a small file was read whole.
    pub fn wholeness(&self, number: u64) -> Wholeness {
        self.state.lock().known.get(&number).map_or_else(Wholeness::default, |known| known.wholeness)
    }

    /// Records whether a small file was read whole.
    pub fn set_wholeness(&self, number: u64, wholeness: Wholeness) {
        if let Some(known) = self.state.lock().known.get_mut(&number) {
            known.wholeness = wholeness;
        }
    }

    /// Counts an open file.
    pub fn opened(&self, number: u64) {
        if let Some(known) = self.state.lock().known.get_mut(&number) {
            known.handles = known.handles.saturating_add(1);
        }
    }

    /// Counts a closed file.
    pub fn closed(&self, number: u64) {
        if let Some(known) = self.state.lock().known.get_mut(&number) {
            known.handles = known.handles.saturating_sub(1);
        }
    }

    /// Forgets every name, so that each is looked up anew. Numbers that the kernel holds stay valid.
    pub fn distrust_names(&self) {
        self.state.lock().names.clear();
    }

    /// Number of known inodes.
    pub fn len(&self) -> usize {
        self.state.lock().known.len()
    }

    /// All known names whose node `choose` picks.
    pub fn names(&self, choose: impl Fn(&NodeRef) -> bool) -> Vec<KnownName> {
        let all: Vec<(KnownName, NodeRef)> = {
            let state = self.state.lock();
            let named = state.known.iter().filter(|(number, _)| **number != ROOT);
            named.map(|(number, known)| (known.named(*number), known.node.clone())).collect()
        };
        all.into_iter().filter(|(_, node)| choose(node)).map(|(name, _)| name).collect()
    }

    /// The least recently answered names, as many as exceed `kept`, without open ones. A directory counts as recent as
    /// the most recent name below it: when the kernel forgets a directory, it forgets all names below.
    pub fn oldest(&self, kept: usize) -> Vec<KnownName> {
        let state = self.state.lock();
        // For each number, when it or the most recent name below it was answered, and how far below that name is: the
        // deepest comes first.
        let mut told: HashMap<u64, (u64, u32)> = HashMap::with_capacity(state.known.len());
        for (number, known) in &state.known {
            let mut last = (if known.handles > 0 { u64::MAX } else { known.last_told }, 0);
            let (mut number, mut known) = (*number, known);
            while number != ROOT && told.get(&number).is_none_or(|before| *before < last) {
                told.insert(number, last);
                number = known.parent;
                last.1 += 1;
                match state.known.get(&number) {
                    Some(parent) => known = parent,
                    None => break,
                }
            }
        }
        let mut closed: Vec<((u64, u32), u64)> =
            told.into_iter().filter(|(_, (last, _))| *last < u64::MAX).map(|(number, last)| (last, number)).collect();
        closed.sort_unstable();
        closed.truncate(state.known.len().saturating_sub(kept));
        closed.iter().filter_map(|(_, number)| Some(state.known.get(number)?.named(*number))).collect()
    }

    fn hash(&self, parent: u64, name: &BStr) -> u64 {
        self.hasher.hash_one((parent, name.as_bytes()))
    }

    /// The first free number of a name's hash sequence.
    fn free_number(&self, state: &State, parent: u64, name: &BStr) -> u64 {
        let mut attempt = 0_u64;
        loop {
            // 63 bits: some programs read an inode number into a signed integer. 0 means no inode.
            let number = self.hasher.hash_one((parent, name.as_bytes(), attempt)) >> 1;
            if number > ROOT && !state.known.contains_key(&number) {
                return number;
            }
            attempt += 1;
        }
    }
}

impl State {
    /// The number of a name with this hash; `None`: the kernel does not know the name.
    fn named(&self, hash: u64, parent: u64, name: &BStr) -> Option<u64> {
        self.names.find(hash, |at| self.known.get(at).is_some_and(|known| known.is(parent, name))).copied()
    }

    fn inode(&self, number: u64) -> Option<Inode> {
        self.known.get(&number).map(|known| known.inode(number))
    }
}

impl Known {
    fn is(&self, parent: u64, name: &BStr) -> bool {
        self.parent == parent && self.name == *name
    }

    fn inode(&self, number: u64) -> Inode {
        Inode { number, node: self.node.clone(), exact: self.exact, is_open: self.handles > 0 }
    }

    fn named(&self, number: u64) -> KnownName {
        KnownName { parent: self.parent, name: self.name.clone(), number }
    }
}

impl Inode {
    /// The kind of the node.
    pub fn kind(&self) -> EntryKind {
        self.node.attributes().kind
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::SystemTime;

    use super::*;
    use crate::fs::node::{Attributes, Node};

    struct Toy(AtomicBool);

    impl Node for Toy {
        fn attributes(&self) -> Attributes {
            let time = SystemTime::UNIX_EPOCH;
            Attributes { kind: EntryKind::File, mode: 0o444, mtime: time, ctime: time, atime: time, identity: 0 }
        }
        fn is_current(&self) -> bool {
            self.0.load(Ordering::Relaxed)
        }
    }

    fn toy() -> Arc<Toy> {
        Arc::new(Toy(AtomicBool::new(true)))
    }

    #[test]
    fn a_name_keeps_its_number_while_known_and_goes_when_forgotten() {
        let table = Inodes::new(toy());
        let promised = table.number(ROOT, b"a".into());
        let first = table.remember(ROOT, b"a".into(), toy());
        let second = table.remember(ROOT, b"a".into(), toy());
        assert_eq!(first.number, promised);
        assert_eq!(second.number, promised);
        assert!(Arc::ptr_eq(&first.node, &second.node), "a current node stays");
        assert_ne!(table.number(ROOT, b"b".into()), promised);
        table.forget(promised, 1);
        assert!(table.get(promised).is_some());
        table.forget(promised, 1);
        assert!(table.get(promised).is_none());
        assert!(table.child(ROOT, b"a".into()).is_none());
        assert_eq!(table.len(), 1);
    }

    #[test]
    fn a_past_node_keeps_its_number_and_the_name_gets_another() {
        let table = Inodes::new(toy());
        let old = toy();
        let before = table.remember(ROOT, b"a".into(), old.clone());
        old.0.store(false, Ordering::Relaxed);
        assert!(table.child(ROOT, b"a".into()).is_none());
        let after = table.remember(ROOT, b"a".into(), toy());
        assert_ne!(before.number, after.number);
        assert!(!table.get(before.number).unwrap().node.is_current());
        table.forget(before.number, 1);
        assert_eq!(table.child(ROOT, b"a".into()).unwrap().number, after.number);
    }

    #[test]
    fn the_root_is_never_forgotten_and_counts_never_wrap() {
        let table = Inodes::new(toy());
        table.forget(ROOT, u64::MAX);
        assert!(table.get(ROOT).is_some());
        assert_eq!(table.parent(ROOT), ROOT);
        let a = table.remember(ROOT, b"a".into(), toy());
        assert_eq!(table.parent(a.number), ROOT);
        table.forget(a.number, u64::MAX);
        table.forget(a.number, 1);
        assert!(table.get(a.number).is_none());
    }

    /// A node that records whether the table was free at its drop.
    struct Last(Arc<Inodes>, Arc<AtomicBool>);

    impl Node for Last {
        fn attributes(&self) -> Attributes {
            toy().attributes()
        }
        fn is_current(&self) -> bool {
            true
        }
    }

    impl Drop for Last {
        fn drop(&mut self) {
            self.1.store(self.0.state.try_lock().is_some(), Ordering::Relaxed);
        }
    }

    #[test]
    fn a_node_goes_when_the_table_is_free() {
        let table = Arc::new(Inodes::new(toy()));
        let was_free = Arc::new(AtomicBool::new(false));
        let number = table.remember(ROOT, b"a".into(), Arc::new(Last(table.clone(), was_free.clone()))).number;
        table.forget(number, 1);
        assert!(was_free.load(Ordering::Relaxed));
    }

    #[test]
    fn the_oldest_closed_names_come_first() {
        let table = Inodes::new(toy());
        let numbers: Vec<u64> = [b"a", b"b", b"c"].map(|n| table.remember(ROOT, n.as_bstr(), toy()).number).to_vec();
        table.remember(ROOT, b"a".into(), toy());
        table.opened(numbers[1]);
        // The root counts, too.
        assert_eq!(oldest(&table, 2), ["c", "a"]);
    }

    fn oldest(table: &Inodes, kept: usize) -> Vec<BString> {
        table.oldest(kept).into_iter().map(|name| name.name).collect()
    }

    #[test]
    fn a_directory_is_as_young_as_the_youngest_name_below_it() {
        let table = Inodes::new(toy());
        let number = |parent, name: &str| table.remember(parent, name.into(), toy()).number;
        let outer = number(ROOT, "outer");
        let inner = number(outer, "inner");
        let other = number(ROOT, "other");
        let leaf = number(inner, "leaf");
        number(other, "last");
        assert_eq!(table.len(), 6);
        assert_eq!(oldest(&table, 5), ["leaf"]);
        assert_eq!(oldest(&table, 1), ["leaf", "inner", "outer", "last", "other"]);
        table.opened(leaf);
        assert_eq!(oldest(&table, 1), ["last", "other"]);
        // The parent directory of this one is gone already.
        table.closed(leaf);
        table.forget(inner, 1);
        assert_eq!(oldest(&table, 1), ["outer", "leaf", "last", "other"]);
    }
}
