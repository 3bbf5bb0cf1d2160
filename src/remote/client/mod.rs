//! Asks stores for objects: all between an address and verified bytes.
//!
//! Requests to buckets are made and signed by `object_store`, those to web servers here. Both go over one `line`, where
//! each answer is held against the request and the version of the object; `reading` asks again for what is lost on its
//! way. [`RemoteStores`] remembers which version was at an address, so that not each question takes a request.
//!
//! **Credentials** of S3 come from the environment, else from the profile, else from the instance. Where the instance
//! has none within two seconds, requests go without: so public buckets can be read anywhere. A refusal then says why
//! none were found.

mod address;
mod bucket;
mod failure;
mod line;
mod object;
mod profile;
mod reading;
mod unnamable;
mod web;

use std::collections::HashMap;
use std::fmt::{self, Debug, Formatter};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant, SystemTime};

use bstr::{BString, ByteSlice};
use parking_lot::Mutex;
use reqwest::Url;
use tokio::runtime::Handle;
use tokio::time::timeout;

use address::{AddressPlace, BucketName, check_line};
use bucket::Bucket;
use line::{HttpLine, ObjectFacts, RequestCounts};
use object::AnyObject;
use reading::{FEW, Forget, ObjectClient, RetryPatience};
use web::WebObject;

use super::fetch::{FetchSettings, Fetcher, Fetching};
use super::{RangeClient, RemoteOptions, runtime};
use crate::source::{self, Identity, Interrupt, Listed, ObjectStore, ObjectVersion, RemoteObject};
use crate::source::{SourceKind, SourceStat, Stamp, StatMemo};
use crate::store::Budget;

pub use address::Address;
pub use failure::RemoteFailure;

/// Longest wait for a look at what was known before. After it, the answer known before serves on.
const LONGEST_LOOK: Duration = Duration::from_secs(2);

/// When to look again after a look that failed.
const AFTER_FAILURE: Duration = Duration::from_secs(5);

/// Most entries of one folder.
const MOST_LISTED: usize = 1 << 20;

/// Most pages of a list in a row without an entry of the folder. Azure and Google send some.
const MOST_EMPTY: u32 = 100;

/// All stores, by the addresses of objects.
#[derive(Clone)]
pub struct RemoteStores(Arc<Inner>);

struct Inner {
    options: RemoteOptions,
    budget: Budget,
    fetching: OnceLock<Arc<Fetching>>,
    line: HttpLine,
    requests: Arc<RequestCounts>,
    buckets: Mutex<HashMap<BucketName, Arc<Bucket>>>,
    known: Mutex<HashMap<PathBuf, Known>>,
    lists: Mutex<HashMap<PathBuf, KnownList>>,
    /// Whether the last look brought no answer, or none in time.
    is_late: AtomicBool,
    me: Weak<Inner>,
}

/// The version that was at an address when it was looked at.
struct Known {
    object: AnyObject,
    /// `None`: it is gone.
    facts: Option<ObjectFacts>,
    due: Instant,
    /// The folder whose list tells it.
    folder: Option<PathBuf>,
}

/// The members of a folder when it was listed.
struct KnownList {
    listed: Arc<Vec<Listed>>,
    due: Instant,
}

impl RemoteStores {
    /// A store of these options, which asks nothing yet and starts no thread. Bytes that are fetched take their memory
    /// from `budget`.
    ///
    /// # Errors
    /// [`RemoteFailure::Setting`] where an option says something that cannot be done.
    pub fn new(options: RemoteOptions, budget: &Budget) -> Result<Self, RemoteFailure> {
        if let Some(endpoint) = &options.endpoint {
            let wrong = |reason: String| RemoteFailure::Setting(format!("--endpoint: {reason}"));
            let url = Url::parse(endpoint).map_err(|error| wrong(error.to_string()))?;
            check_line(&url, options.plain_http).map_err(|failure| wrong(failure.to_string()))?;
            if !url.username().is_empty() || url.password().is_some() || url.query().is_some() {
                return Err(wrong("user and query may be secrets, and this is shown".to_owned()));
            }
        }
        let requests: Arc<RequestCounts> = Arc::default();
        let line = HttpLine::new(&options, requests.clone());
        Ok(Self(Arc::new_cyclic(|me| Inner {
            options,
            budget: budget.clone(),
            fetching: OnceLock::new(),
            line,
            requests,
            buckets: Mutex::default(),
            known: Mutex::default(),
            lists: Mutex::default(),
            is_late: AtomicBool::new(false),
            me: me.clone(),
        })))
    }
}

/// Without secrets.
impl Debug for RemoteStores {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RemoteStores").field(&self.0.options).finish()
    }
}

impl RemoteStores {
    /// Opens the version of an object that is at an address now, to be asked for by ranges.
    ///
    /// # Errors
    /// Those of [`ObjectStore::open`].
    pub fn client(
        &self,
        address: &Path,
        interrupt: &Interrupt,
    ) -> Result<(Arc<dyn RangeClient>, SourceStat), source::Error> {
        let inner = &self.0;
        let fresh = inner.known.lock().get(address).filter(|known| known.due > Instant::now()).and_then(Known::found);
        let (object, facts) = match fresh {
            Some(found) => found,
            None => {
                let runtime = threads(address)?;
                let object = inner.object(address).map_err(|failure| failure.at(address))?;
                let facts = runtime::wait(&runtime, inner.look(address, &object), interrupt)?;
                (object, facts.map_err(|failure| failure.at(address))?)
            }
        };
        let (stat, forget): (_, Weak<dyn Forget>) = (stat(&object, &facts), inner.me.clone());
        let (deadline, requests) = (inner.options.network_deadline, inner.requests.clone());
        let version = ObjectClient { address: address.to_owned(), object, facts, deadline, requests, forget };
        Ok((Arc::new(version), stat))
    }
}

impl ObjectStore for RemoteStores {
    fn open(&self, address: &Path, interrupt: &Interrupt) -> Result<Arc<dyn RemoteObject>, source::Error> {
        let (client, stat) = self.client(address, interrupt)?;
        let fetching = self.0.fetching().map_err(|error| source::Error::Io { path: address.to_owned(), error })?;
        let fetcher = Fetcher::new(fetching, client, stat.identity, address.to_owned());
        Ok(Arc::new(OpenObject { fetcher, stat }))
    }

    fn stat(&self, address: &Path) -> io::Result<SourceStat> {
        let inner = &self.0;
        if inner.known.lock().contains_key(address) {
            inner.look_if_due(address)?;
            // Absent: a reader has met another version meanwhile.
            if let Some(known) = inner.known.lock().get(address) {
                let found = known.found().map(|(object, facts)| stat(&object, &facts));
                return found.ok_or_else(|| io::ErrorKind::NotFound.into());
            }
        }
        let parsed = inner.address(address).map_err(RemoteFailure::io)?;
        if let (true, AddressPlace::Bucket(name, key)) = (parsed.is_folder(), &parsed.place) {
            return Ok(folder_stat(name, key));
        }
        let runtime = runtime::handle()?;
        let object = inner.object(address).map_err(RemoteFailure::io)?;
        let interrupt = StatMemo::patience().ok_or(io::ErrorKind::WouldBlock)?;
        let found = runtime::wait(&runtime, inner.look(address, &object), &interrupt);
        let facts = found.map_err(|_| io::ErrorKind::Interrupted)?.map_err(RemoteFailure::io)?;
        Ok(stat(&object, &facts))
    }

    fn list(&self, folder: &Path, interrupt: &Interrupt) -> Result<Arc<Vec<Listed>>, source::Error> {
        let inner = &self.0;
        let runtime = threads(folder)?;
        let known =
            inner.lists.lock().get_mut(folder).map(|known| (known.listed.clone(), inner.is_due(&mut known.due)));
        Ok(match known {
            Some((listed, false)) => listed,
            Some((listed, true)) => {
                let (looking, folder) = (inner.clone(), folder.to_owned());
                // An answer of before is better than none.
                inner.soon(&runtime, async move { looking.look_into(&folder).await }, interrupt).unwrap_or(listed)
            }
            None => {
                let listed = runtime::wait(&runtime, inner.look_into(folder), interrupt)?;
                listed.map_err(|failure| failure.at(folder))?
            }
        })
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let requests = &self.0.requests;
        let counts = self.0.fetching.get().map(|fetching| fetching.counts()).unwrap_or_default();
        vec![
            ("requests", requests.sent.get()),
            ("asked_again", requests.again.get()),
            ("bytes_fetched", counts.fetched),
            ("bytes_used", counts.used),
            ("most_in_flight", counts.most_in_flight),
            ("rounds", counts.rounds),
            ("waited_ms", u64::try_from(counts.waited.as_millis()).unwrap_or(u64::MAX)),
            ("memory_hits", counts.memory_hits),
            ("disk_hits", counts.disk_hits),
        ]
    }
}

impl Inner {
    /// The address in its whole form.
    fn address(&self, shown: &Path) -> Result<Address, RemoteFailure> {
        let text = match self.options.signed.get(shown) {
            Some(whole) => whole,
            None => {
                shown.to_str().ok_or_else(|| RemoteFailure::Setting("no address: it is not in UTF-8".to_owned()))?
            }
        };
        Address::parse(text, &self.options)
    }

    fn fetching(&self) -> io::Result<&Arc<Fetching>> {
        if let Some(fetching) = self.fetching.get() {
            return Ok(fetching);
        }
        let RemoteOptions { connections, ahead, kept, .. } = &self.options;
        let settings = FetchSettings { connections: *connections, ahead: ahead.unwrap_or(u64::MAX) };
        let new = Fetching::new(settings, &self.budget, kept.clone(), runtime::handle()?);
        Ok(self.fetching.get_or_init(|| new))
    }

    fn bucket(&self, name: BucketName) -> Arc<Bucket> {
        let mut buckets = self.buckets.lock();
        let bucket = buckets
            .entry(name)
            .or_insert_with_key(|name| Arc::new(Bucket::new(name.clone(), self.options.clone(), self.line.clone())));
        bucket.clone()
    }

    /// The object at an address, which need not be there.
    fn object(&self, address: &Path) -> Result<AnyObject, RemoteFailure> {
        if let Some(known) = self.known.lock().get(address) {
            return Ok(known.object.clone());
        }
        let parsed = self.address(address)?;
        if parsed.is_folder() {
            return Err(RemoteFailure::Setting("is the address of a folder".to_owned()));
        }
        match parsed.place {
            AddressPlace::Bucket(name, key) => Ok(AnyObject::InBucket(self.bucket(name), key)),
            AddressPlace::Web(url) => {
                let object = WebObject::new(&self.line, &url, self.options.plain_http)?;
                Ok(AnyObject::OnWeb(self.line.clone(), object))
            }
        }
    }

    /// Looks which version is at an address, and remembers it. After an error, nothing is remembered; what was there
    /// before is gone only where the store says so.
    async fn look(&self, address: &Path, object: &AnyObject) -> Result<ObjectFacts, RemoteFailure> {
        let patience = RetryPatience::new(self.options.network_deadline, FEW);
        let trust_mtime = self.options.trust_mtime;
        let found = patience.ask(&object.host(), &self.requests, || object.head(trust_mtime)).await;
        let mut known = self.known.lock();
        let before = known.get_mut(address);
        let due = Instant::now() + self.options.revalidate;
        match (&found, before) {
            (Ok(facts), Some(known)) => (known.facts, known.due) = (Some(facts.clone()), due),
            (Ok(facts), None) => {
                let new = Known { object: object.clone(), facts: Some(facts.clone()), due, folder: None };
                known.insert(address.to_owned(), new);
            }
            (Err(RemoteFailure::Status { status: 404 | 410, .. }), Some(known)) => {
                (known.facts, known.due) = (None, due)
            }
            (Err(_), _) => {}
        }
        found
    }

    /// Lists a folder, and remembers the versions of its objects.
    async fn look_into(&self, folder: &Path) -> Result<Arc<Vec<Listed>>, RemoteFailure> {
        let AddressPlace::Bucket(name, prefix) = self.address(folder)?.place else {
            return Err(RemoteFailure::NoLists);
        };
        let bucket = self.bucket(name.clone());
        let mut listed = Vec::new();
        let mut objects = HashMap::new();
        let due = Instant::now() + self.options.revalidate;
        let (mut next, mut empty) = (None, 0);
        loop {
            let patience = RetryPatience::new(self.options.network_deadline, FEW);
            let page = patience.ask(bucket.host(), &self.requests, || bucket.list(&prefix, next.clone())).await?;
            // A store may name the folder itself, without its slash.
            let below = |key: &str| key.strip_prefix(&prefix).filter(|name| !name.is_empty()).map(BString::from);
            let before = listed.len();
            let folders = page.folders.iter().filter_map(|key| {
                Some(Listed { name: below(key)?, stat: Some(folder_stat(&name, &format!("{key}/"))) })
            });
            listed.extend(folders);
            listed.extend(page.unnamable.iter().filter_map(|key| Some(Listed { name: below(key)?, stat: None })));
            for (key, facts, is_sure) in page.objects {
                let Some(name) = below(&key) else { continue };
                let object = AnyObject::InBucket(bucket.clone(), key);
                listed.push(Listed { stat: Some(stat(&object, &facts)), name: name.clone() });
                // The others are refused when they are opened.
                if is_sure {
                    let known = Known { object, facts: Some(facts), due, folder: Some(folder.to_owned()) };
                    objects.insert(folder.join(name.to_path_lossy()), known);
                }
            }
            if listed.len() > MOST_LISTED {
                return Err(RemoteFailure::answer(
                    bucket.host(),
                    format!("has more than {MOST_LISTED} entries in this folder"),
                ));
            }
            empty = if listed.len() > before { 0 } else { empty + 1 };
            if empty > MOST_EMPTY {
                return Err(RemoteFailure::answer(
                    bucket.host(),
                    format!("sent {empty} pages of a list without an entry"),
                ));
            }
            next = page.next;
            if next.is_none() {
                break;
            }
        }
        listed.sort_by(|a, b| a.name.cmp(&b.name));
        let mut known = self.known.lock();
        for (_, gone) in known.iter_mut().filter(|(_, known)| known.folder.as_deref() == Some(folder)) {
            (gone.facts, gone.due) = (None, due);
        }
        known.extend(objects);
        drop(known);
        let mut lists = self.lists.lock();
        let before = lists.get(folder).map(|known| known.listed.clone()).filter(|before| **before == listed);
        let listed = before.unwrap_or_else(|| Arc::new(listed));
        lists.insert(folder.to_owned(), KnownList { listed: listed.clone(), due });
        Ok(listed)
    }

    /// Whether it is time to look again; then the caller does. Until it has, the others have the answer of before.
    fn is_due(&self, due: &mut Instant) -> bool {
        let now = Instant::now();
        let is_due = *due <= now;
        if is_due {
            let is_late = self.is_late.load(Ordering::Relaxed);
            *due = now + if is_late { AFTER_FAILURE } else { AFTER_FAILURE.min(self.options.revalidate) };
        }
        is_due
    }

    /// Looks again at an address, if it is time to and the request may wait. Waits only for a short time: then the
    /// answer of before serves on.
    fn look_if_due(&self, address: &Path) -> io::Result<()> {
        let mut known = self.known.lock();
        let Some(entry) = known.get_mut(address).filter(|entry| entry.due <= Instant::now()) else { return Ok(()) };
        let Some(interrupt) = StatMemo::patience() else { return Ok(()) };
        if !self.is_due(&mut entry.due) {
            return Ok(());
        }
        let (object, folder) = (entry.object.clone(), entry.folder.clone());
        drop(known);
        let Some(inner) = self.me.upgrade() else { return Ok(()) };
        let (runtime, address) = (runtime::handle()?, address.to_owned());
        let looking = inner.clone();
        let look = async move {
            // One list tells the versions of all objects of a folder.
            match folder {
                Some(folder) => looking.look_into(&folder).await.map(drop),
                None => looking.look(&address, &object).await.map(drop),
            }
        };
        inner.soon(&runtime, look, &interrupt);
        Ok(())
    }

    /// Begins a look, and waits a short time for it; not at all if the last one brought no answer in time, since at a
    /// silent store each request of the kernel would wait.
    fn soon<T: Send + 'static>(
        self: &Arc<Self>,
        runtime: &Handle,
        look: impl Future<Output = Result<T, RemoteFailure>> + Send + 'static,
        interrupt: &Interrupt,
    ) -> Option<T> {
        let inner = self.clone();
        let look = runtime.spawn(async move {
            let found = look.await;
            let is_late = found.as_ref().is_err_and(RemoteFailure::may_pass);
            inner.is_late.store(is_late, Ordering::Relaxed);
            found.ok()
        });
        if self.is_late.load(Ordering::Relaxed) {
            return None;
        }
        // Its timer is made within the runtime.
        let found = runtime::wait(runtime, async { timeout(LONGEST_LOOK, look).await }, interrupt).ok()?;
        self.is_late.fetch_or(found.is_err(), Ordering::Relaxed);
        found.ok()?.ok()?
    }
}

impl Known {
    fn found(&self) -> Option<(AnyObject, ObjectFacts)> {
        Some((self.object.clone(), self.facts.clone()?))
    }
}

impl Forget for Inner {
    fn forget(&self, version: &ObjectClient) {
        let mut known = self.known.lock();
        if known.get(&version.address).is_some_and(|known| known.facts.as_ref() == Some(&version.facts))
            && let Some(folder) = known.remove(&version.address).and_then(|known| known.folder)
        {
            self.lists.lock().remove(&folder);
        }
    }
}

/// The runtime; an error names the address.
fn threads(address: &Path) -> Result<Handle, source::Error> {
    runtime::handle().map_err(|error| source::Error::Io { path: address.to_owned(), error })
}

/// Identity and times of a version of an object.
fn stat(object: &AnyObject, facts: &ObjectFacts) -> SourceStat {
    let stamp = Stamp { times: [facts.time(); 3], mode: 0o444 };
    SourceStat { kind: SourceKind::File, identity: object.identity(facts), stamp }
}

/// Identity and times of a folder, which is only the common beginning of keys.
fn folder_stat(bucket: &BucketName, key: &str) -> SourceStat {
    let version = ObjectVersion::Version(String::new());
    let identity = Identity::of_object(&format!("{:?}", bucket.provider), &bucket.bucket, key, &version, 0);
    let stamp = Stamp { times: [SystemTime::UNIX_EPOCH; 3], mode: 0o555 };
    SourceStat { kind: SourceKind::Folder, identity, stamp }
}

/// An opened version of an object.
#[derive(Debug)]
struct OpenObject {
    fetcher: Fetcher,
    stat: SourceStat,
}

impl RemoteObject for OpenObject {
    fn stat(&self) -> SourceStat {
        self.stat
    }

    fn read_at(&self, offset: u64, out: &mut [u8], interrupt: &Interrupt) -> Result<(), source::Error> {
        self.fetcher.read_at(offset, out, interrupt)
    }

    fn comes_whole(&self) -> bool {
        self.fetcher.comes_whole()
    }

    fn plan(&self, ranges: &[Range<u64>]) {
        self.fetcher.plan(ranges);
    }
}
