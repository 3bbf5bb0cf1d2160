//! Surveys the files of a dataset at the first look into its directory: which have a table at its path, and their
//! common schema.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use bstr::{BString, ByteSlice};
use parking_lot::Mutex;

use super::chain::Chain;
use super::lookup::{At, RecentFiles, names_below, table_of};
use super::names::{WITHIN, partition};
use super::part::PartFile;
use super::schema::{CommonField, FileField, common_schema, fields};
use super::{LeftOut, Tallies};
use crate::activity::{Unit, Work};
use crate::session::contents::Contents;
use crate::session::directory::Directory;
use crate::session::file::{ObjectAttributes, ShownFile};
use crate::session::files::FileMaker;
use crate::session::in_use::InUse;
use crate::session::listing::ShownArray;
use crate::session::rules;
use crate::session::sources::{self, FileRoot, Sources};
use crate::session::{Error, Session, lock};
use crate::source::{self, Identity, Interrupt, is_address};
use crate::store::cores;
use crate::table::{Finding, Rule, Table, unreadable};
use crate::views::metadata::DirectoryKind;
use crate::views::printable;

/// Least time for which a survey stays valid on a file system without notifications.
const FRESH: Duration = Duration::from_secs(1);

/// A survey stays valid for this many times as long as the search for files took.
const SELDOM: u32 = 10;

/// Most names and columns kept, counting only those that differ from the file before.
const MOST_KEPT: usize = 1 << 20;

/// Most files looked into at a time: half as many as there may be workers.
const MOST_AT_ONCE: usize = 4;

/// The table that several files have at one path.
pub(crate) struct MultiFileTable {
    session: Arc<Session>,
    sources: Arc<dyn Sources>,
    recent: Arc<RecentFiles>,
    /// Names as shown; a last empty name stands for the table that a group with members is itself.
    path: Vec<BString>,
    /// The dataset above and the name in it: a file known there to lack the name need not be opened.
    above: Option<(Arc<MultiFileTable>, BString)>,
    surveyed: Mutex<Option<Survey>>,
    /// The current state, which parts and lists of left-out files compare themselves with.
    now: Mutex<Now>,
    parts: Mutex<InUse<BString, PartFile>>,
    /// Tables and directories found by surveys from now on, kept for a reader of all files.
    held: Mutex<Option<HashMap<BString, At>>>,
}

/// The inputs that decide which files are shown, as of the last survey.
#[derive(Default)]
struct Now {
    changes: u64,
    fields: Arc<[CommonField]>,
    left_out: Arc<[LeftOut]>,
}

/// The result of a survey, and its time.
struct Survey {
    changes: u64,
    at: Instant,
    /// How long it stays valid.
    fresh: Duration,
    seen: BTreeMap<BString, Seen>,
    outcome: Arc<Outcome>,
}

/// The result of a survey for one file.
#[derive(Clone)]
struct Seen {
    identity: Option<Identity>,
    source: PathBuf,
    /// The columns of its table, if it has one.
    fields: Option<Arc<[FileField]>>,
    /// Names below the path.
    below: Arc<[BString]>,
    /// The rule that the file breaks, and why it is left out; `None`: no fault was found.
    failed: Option<(&'static Rule, String)>,
    /// Whether the survey of the dataset above already reported this failure.
    is_known_above: bool,
}

impl Seen {
    /// A file with no table and no names below the path.
    fn nothing(identity: Option<Identity>, source: &Path) -> Self {
        let (source, below) = (source.to_owned(), Arc::default());
        Self { identity, source, fields: None, below, failed: None, is_known_above: false }
    }
}

/// A file to survey, and what an earlier survey saw in it.
struct Candidate {
    path: BString,
    file: Arc<FileRoot>,
    identity: Option<Identity>,
    known: Option<Seen>,
}

/// The contents of a directory below `.datasets`.
pub(crate) struct Outcome {
    /// The columns of the dataset.
    pub fields: Arc<[CommonField]>,
    /// When the columns last changed in this mount.
    since: Option<SystemTime>,
    /// Partitions, each with the shown path of its file.
    pub files: BTreeMap<BString, BString>,
    /// Files left out: they have a table here that cannot join, or cannot be read. Empty if no file has a table.
    pub left_out: Arc<[LeftOut]>,
    /// When this list last changed in this mount.
    pub left_out_since: SystemTime,
    /// Names of the directories below.
    pub below: BTreeSet<BString>,
}

impl MultiFileTable {
    pub fn new(
        session: &Arc<Session>,
        sources: &Arc<dyn Sources>,
        recent: &Arc<RecentFiles>,
        path: Vec<BString>,
        above: Option<(Arc<MultiFileTable>, BString)>,
    ) -> Self {
        Self {
            above,
            session: session.clone(),
            sources: sources.clone(),
            recent: recent.clone(),
            path,
            surveyed: Mutex::new(None),
            now: Mutex::default(),
            parts: Mutex::default(),
            held: Mutex::default(),
        }
    }

    pub fn path(&self) -> &[BString] {
        &self.path
    }

    /// The path in HDF5's notation, for findings.
    fn hdf5_path(&self) -> String {
        format!("/{}", bstr::join("/", &self.path).as_bstr())
    }

    /// Whether parts with these columns still show the current files. Never slow: after any change of a source it
    /// returns `false` until the next survey.
    pub fn is_current(&self, fields: &Arc<[CommonField]>) -> bool {
        let now = self.now.lock();
        now.changes == source::changes() && Arc::ptr_eq(&now.fields, fields)
    }

    /// Whether the dataset still leaves out exactly these files. Never slow, as [`MultiFileTable::is_current`].
    pub fn leaves_out(&self, left_out: &Arc<[LeftOut]>) -> bool {
        let now = self.now.lock();
        now.changes == source::changes() && Arc::ptr_eq(&now.left_out, left_out)
    }

    /// Surveys all files, unless the last survey is still valid. Files unchanged since are not opened.
    ///
    /// # Errors
    /// If the request was interrupted, or no source can be listed.
    pub fn outcome(&self, interrupt: &Interrupt) -> Result<Arc<Outcome>, Error> {
        let mut surveyed = lock(&self.surveyed, interrupt)?;
        let changes = source::changes();
        if let Some(survey) =
            surveyed.as_ref().filter(|survey| survey.changes == changes && survey.at.elapsed() < survey.fresh)
        {
            return Ok(survey.outcome.clone());
        }
        let (before, began) = (surveyed.as_ref(), Instant::now());
        let mut seen: BTreeMap<BString, Seen> = BTreeMap::new();
        let (mut kept, mut last): (usize, Option<Seen>) = (0, None);
        let mut files = Vec::new();
        for (path, file) in sources::files(self.sources.as_ref(), interrupt)? {
            interrupt.check()?;
            let identity = self.session.opener.stat(file.path()).ok().map(|found| found.identity);
            let known = before.and_then(|survey| survey.seen.get(&path)).filter(|seen| seen.identity == identity);
            let known = match known {
                Some(known) if identity.is_some() => Some(known.clone()),
                _ => self.known_above(&path, identity),
            };
            files.push(Candidate { path, file, identity, known });
        }
        let fresh = FRESH.max(began.elapsed() * SELDOM);
        self.look_at_all(&files, interrupt, |path, mut one| {
            // Most files are alike, so equal lists share memory.
            if let Some(last) = &last {
                one.fields = one.fields.map(|own| last.fields.clone().filter(|fields| *fields == own).unwrap_or(own));
                one.below = if one.below == last.below { last.below.clone() } else { one.below };
            }
            let is_new = last.as_ref().is_none_or(|last| !Arc::ptr_eq(&last.below, &one.below));
            kept += if is_new { one.below.len() } else { 0 };
            let columns = one.fields.as_ref().map_or(0, |fields| fields.len());
            let of_last = last.as_ref().map(|last| last.fields.as_ref().map(Arc::as_ptr));
            let has_new = of_last != Some(one.fields.as_ref().map(Arc::as_ptr));
            kept += if has_new { columns } else { 0 };
            if kept > MOST_KEPT {
                one = Seen {
                    fields: None,
                    below: Arc::default(),
                    failed: Some((
                        &rules::SCHEMA,
                        format!("files have more than {MOST_KEPT} different names and columns"),
                    )),
                    ..one
                };
            }
            last = Some(one.clone());
            seen.insert(path.clone(), one);
        })?;
        let outcome = Arc::new(self.conclude(&seen, before.map(|survey| survey.outcome.as_ref())));
        let (fields, left_out) = (outcome.fields.clone(), outcome.left_out.clone());
        *self.now.lock() = Now { changes, fields, left_out };
        *surveyed = Some(Survey { changes, at: Instant::now(), fresh, seen, outcome: outcome.clone() });
        Ok(outcome)
    }

    fn conclude(&self, seen: &BTreeMap<BString, Seen>, before: Option<&Outcome>) -> Outcome {
        let tables = seen.iter().filter_map(|(path, seen)| Some((path, seen, seen.fields.as_ref()?)));
        let tables: Vec<_> = tables.collect();
        let common = common_schema(&tables.iter().map(|(.., fields)| (*fields).clone()).collect::<Vec<_>>());
        let path = self.hdf5_path();
        let said = common.said.into_iter().filter_map(|(at, said)| {
            let (_, seen, _) = tables.get(at)?;
            Some((seen.source.clone(), Finding::new(&path, &rules::SCHEMA, said)))
        });
        let of_file = |file: &BString, seen: &Seen, rule, reason: &str| LeftOut {
            file: file.clone(),
            source: seen.source.clone(),
            finding: Finding::new(&path, rule, reason),
        };
        let failed = seen.iter().filter_map(|(file, seen)| {
            let (rule, reason) = seen.failed.as_ref()?;
            Some((of_file(file, seen, rule, reason), seen.is_known_above))
        });
        let failed: Vec<(LeftOut, bool)> = failed.collect();
        let others = common.left_out.into_iter().filter_map(|(at, reason)| {
            let (file, seen, _) = tables.get(at)?;
            Some(of_file(file, seen, &rules::SCHEMA, &reason))
        });
        let others: Vec<LeftOut> = others.collect();
        let new = failed.iter().filter(|(_, is_known)| !is_known).map(|(one, _)| one).chain(&others);
        let new = new.map(|one| {
            let found = format!("{}; the file is left out", one.finding.found);
            (one.source.clone(), Finding { found, ..one.finding.clone() })
        });
        let findings = new.chain(said).collect();
        self.session.datasets.lock().insert(path.clone(), findings);
        let known = failed.iter().filter(|(_, is_known)| *is_known).map(|(one, _)| one.file.clone());
        let known: BTreeSet<BString> = known.collect();
        let mut left_out: Vec<LeftOut> = failed.into_iter().map(|(one, _)| one).chain(others).collect();
        left_out.sort_by(|one, other| one.file.cmp(&other.file));
        if tables.is_empty() {
            left_out.clear();
        }
        let now = SystemTime::now();
        let (left_out, left_out_since) = match before.filter(|before| before.left_out.iter().eq(&left_out)) {
            Some(before) => (before.left_out.clone(), before.left_out_since),
            None => {
                // Skip the warning if the survey of the dataset above already named these files.
                let is_known = left_out.iter().all(|one| known.contains(&one.file));
                if let Some(first) = left_out.first().filter(|_| !is_known) {
                    let (some, all) = (left_out.len(), common.joined.len() + left_out.len());
                    let (name, first) = (printable(path.trim_end_matches('/')), printable(&first.to_string()));
                    tracing::warn!("dataset {name}: {some} of {all} files are left out: {first}");
                }
                (left_out.into(), now)
            }
        };
        let same = before.filter(|before| before.fields.iter().eq(&common.fields));
        let fields = same.map_or_else(|| common.fields.into(), |before| before.fields.clone());
        let since = if before.is_none() || same.is_some() { before.and_then(|before| before.since) } else { Some(now) };
        let files = common.joined.iter().filter_map(|at| {
            let (path, ..) = tables.get(*at)?;
            Some((partition(path.as_bstr()), (*path).clone()))
        });
        let below = seen.values().flat_map(|seen| seen.below.iter().cloned());
        // Names within a table are listed in the directory above, beside the table.
        let below = if tables.is_empty() { below.collect() } else { BTreeSet::new() };
        Outcome { fields, since, files: files.collect(), left_out, left_out_since, below }
    }

    /// The verdict of the survey of the dataset above on a file in this state, if the file lacks the name or cannot be
    /// listed.
    fn known_above(&self, file: &BString, identity: Option<Identity>) -> Option<Seen> {
        let (above, name) = self.above.as_ref()?;
        let surveyed = above.surveyed.try_lock()?;
        let seen = surveyed.as_ref()?.seen.get(file).filter(|seen| identity.is_some() && seen.identity == identity)?;
        let nothing = Seen::nothing(identity, &seen.source);
        match &seen.failed {
            Some(_) => Some(Seen { failed: seen.failed.clone(), is_known_above: true, ..nothing }),
            None => (!seen.below.contains(name)).then_some(nothing),
        }
    }

    /// Surveys files in parallel, since most of the time goes into starting a worker for each. Calls `take` in the
    /// order of the files; no thread runs more than two files ahead.
    fn look_at_all(
        &self,
        files: &[Candidate],
        interrupt: &Interrupt,
        mut take: impl FnMut(&BString, Seen),
    ) -> Result<(), Error> {
        let look = |candidate: &Candidate| match &candidate.known {
            Some(known) => Ok(known.clone()),
            None => self.look(candidate, interrupt),
        };
        let unknown = files.iter().filter(|candidate| candidate.known.is_none()).count();
        let work = Work::begin(self.hdf5_path().trim_matches('/'), "looking into files", Unit::Files);
        work.expect(files.len() as u64);
        // A thread mostly waits for its worker, or for a store.
        let most = if files.iter().any(|candidate| is_address(candidate.file.path())) {
            sources::MOST_OBJECTS_AT_ONCE
        } else {
            MOST_AT_ONCE.min(2 * cores())
        };
        let threads = most.min(unknown);
        thread::scope(|scope| {
            let told = (0..threads).map(|first| {
                let (tell, told) = sync_channel(1);
                let own = files.iter().skip(first).step_by(threads);
                // The receiver is gone once the request has ended.
                let started = thread::Builder::new()
                    .spawn_scoped(scope, move || own.map(look).try_for_each(|seen| tell.send(seen).ok()));
                started.ok().map(|_| told)
            });
            let told: Vec<_> = told.collect();
            for (at, candidate) in files.iter().enumerate() {
                interrupt.check()?;
                let seen = at.checked_rem(threads).and_then(|thread| told.get(thread)?.as_ref()?.recv().ok());
                take(&candidate.path, seen.unwrap_or_else(|| look(candidate))?);
                work.add(1);
            }
            Ok(())
        })
    }

    /// Surveys one file.
    fn look(&self, candidate: &Candidate, interrupt: &Interrupt) -> Result<Seen, Error> {
        let file = &candidate.file;
        let mut seen = Seen::nothing(candidate.identity, file.path());
        match RecentFiles::find(file, &self.path, interrupt) {
            Err(error @ (Error::Interrupted | Error::Stale)) => return Err(error),
            Err(error) => {
                let reason = error.to_string();
                seen.failed = Some((unreadable(&reason), reason));
            }
            Ok((at, looked)) => {
                if let (Some(held), Some(at)) = (self.held.lock().as_mut(), &at) {
                    held.insert(candidate.path.clone(), at.clone());
                }
                match at {
                    Some(At::Dataset(_, single)) => seen.fields = Some(fields(&single.whole)),
                    Some(At::Directory(directory, contents)) => {
                        self.see(&directory, &contents, &mut seen, interrupt)?;
                    }
                    None => {}
                }
                self.recent.keep(looked);
            }
        }
        Ok(seen)
    }

    /// Records the columns and the names of a directory at the path.
    fn see(
        &self,
        directory: &Arc<Directory>,
        contents: &Contents,
        seen: &mut Seen,
        interrupt: &Interrupt,
    ) -> Result<(), Error> {
        let table = table_of(contents);
        // The root's table, and one that only adds names, are shown within the directory of their members, not in its
        // place.
        let is_beside = self.path.last().is_none_or(|last| {
            !last.is_empty() && table.is_some_and(|table| table.only_adds && contents.called == DirectoryKind::Group)
        });
        seen.fields = table.filter(|_| !is_beside).map(fields);
        let mut below = Vec::new();
        if is_beside && table.is_some() {
            below.push(WITHIN.into());
        }
        names_below(directory, contents, &BString::default(), 0, &mut below, interrupt)?;
        seen.below = below.into();
        Ok(())
    }

    /// The Parquet file of a partition.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the file has no such table, or is left out.
    pub fn part(
        self: &Arc<Self>,
        partition: &BString,
        file: &Arc<FileRoot>,
        interrupt: &Interrupt,
    ) -> Result<Arc<PartFile>, Error> {
        let outcome = self.outcome(interrupt)?;
        if !outcome.files.contains_key(partition) {
            return Err(Error::NotFound);
        }
        let known = self.parts.lock().get(partition);
        if let Some(part) = known.filter(|part| part.is_current()) {
            return Ok(part);
        }
        let fields = outcome.fields.clone();
        let (at, looked) = RecentFiles::find(file, &self.path, interrupt)?;
        let root = looked.root().ok_or(Error::Stale)?;
        // The part holds what it needs of the file from here on.
        self.recent.forget(file);
        let at = at.ok_or(Error::NotFound)?;
        let (table, mut tallies) = (at.table().ok_or(Error::NotFound)?, Tallies::new());
        let (view, attributes) = match &at {
            At::Directory(directory, contents) => {
                let files = directory.files();
                let attributes = ObjectAttributes::new(files.name.clone(), contents.attributes.clone());
                (files.part(table, &fields, &mut tallies)?, attributes)
            }
            At::Dataset(array, _) => {
                let (name, dataset) = (array.name.clone(), &array.dataset);
                let attributes = ObjectAttributes::of_member(name, dataset.attributes.clone(), dataset.id);
                (of_array(root.files(), array).part(table, &fields, &mut tallies)?, attributes)
            }
        };
        let opened = root.opened();
        let file = ShownFile::new(opened, view, attributes);
        let casts = (opened.path().to_owned(), tallies);
        self.session.casts.lock().insert((self.hdf5_path(), partition.clone()), casts);
        let part = Arc::new(PartFile { dataset: self.clone(), fields, since: outcome.since, file });
        self.parts.lock().insert(partition.clone(), &part);
        Ok(part)
    }

    /// Starts to keep what surveys open.
    pub fn hold(&self) {
        self.held.lock().get_or_insert_default();
    }

    /// Returns what was kept, and stops keeping.
    pub fn held(&self) -> HashMap<BString, At> {
        self.held.lock().take().unwrap_or_default()
    }

    /// All partitions as one table, whose files stay open.
    ///
    /// # Errors
    /// [`Error::NotFound`] if no file has a table here, [`Error::Stale`] if files change meanwhile.
    pub fn whole(&self, interrupt: &Interrupt) -> Result<Table, Error> {
        let outcome = self.outcome(interrupt)?;
        if outcome.files.is_empty() {
            return Err(Error::NotFound);
        }
        let mut held = self.held();
        let files = sources::files(self.sources.as_ref(), interrupt)?;
        let mut all = Vec::with_capacity(outcome.files.len());
        for path in outcome.paths() {
            let at = match held.remove(path) {
                Some(at) => Some(at),
                None => {
                    let file = files.get(path).ok_or(Error::Stale)?;
                    RecentFiles::find(file, &self.path, interrupt)?.0
                }
            };
            all.push((path, at.ok_or(Error::Stale)?));
        }
        let mut parts = Vec::with_capacity(all.len());
        for (path, at) in &all {
            parts.push((*path, at.table().ok_or(Error::Stale)?));
        }
        let left_out = outcome.left_out.iter().map(|one| (one.file.clone(), one.reason().to_owned().into())).collect();
        let path = self.hdf5_path();
        // A trailing slash stands for the table of the group itself.
        let path = if path.len() > 1 { path.trim_end_matches('/') } else { &path };
        let table = Chain { path, fields: &outcome.fields, parts }.table(interrupt)?;
        Ok(Table { left_out, ..table })
    }
}

impl Drop for MultiFileTable {
    fn drop(&mut self) {
        let path = self.hdf5_path();
        self.session.datasets.lock().remove(&path);
        self.session.casts.lock().retain(|(of, _), _| *of != path);
    }
}

impl Outcome {
    /// Paths of the files that are partitions, sorted.
    pub fn paths(&self) -> Vec<&BString> {
        let mut paths: Vec<&BString> = self.files.values().collect();
        paths.sort_unstable();
        paths
    }
}

fn of_array(files: &FileMaker, array: &ShownArray) -> FileMaker {
    let title = array.path.trim_matches('/').into();
    FileMaker { id: array.dataset.id, path: array.path.clone(), name: array.name.clone(), title, ..files.clone() }
}
