//! Serves the tree of names over HTTP, S3 and WebHDFS, read-only, to clients that mount nothing.
//!
//! | module | contents |
//! | --- | --- |
//! | `connections` | sockets, TLS, timeouts, the end of the server |
//! | `access` | who may read |
//! | `target` | path and query of a request |
//! | `walk` | paths to files; keys in order |
//! | `body` | bytes of answers, threads and memory for them |
//! | `files`, `s3`, `webhdfs` | the three protocols |
//! | `failure` | why there is no answer |
//!
//! A client is as little trusted as a file: all that it sends is bounded, in length and in time.

mod access;
mod body;
mod connections;
mod failure;
mod files;
mod s3;
mod target;
mod walk;
mod webhdfs;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bstr::{BString, ByteSlice};
use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ALLOW, CONNECTION, HeaderName, HeaderValue, ORIGIN,
    REFERRER_POLICY, RETRY_AFTER, VARY, X_CONTENT_TYPE_OPTIONS,
};
use hyper::http::request::Parts;
use hyper::{Method, Response, StatusCode};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use self::access::is_signed;
pub use self::access::{Access, AccessKey, KEY_ID, without_port};
use self::body::{PiecedBody, Resources, blocking};
pub use self::connections::{HttpServer, ServeError, ServedAt};
use self::failure::RequestError;
use self::target::RequestTarget;
use self::walk::{FoundPath, Names, ServedFile, Unmeasured};
use crate::session::{OpenError, Session, root};
use crate::source::Interrupt;

/// Longest wait for a pass, after which a client has to ask again.
const PATIENCE: Duration = Duration::from_secs(20);

/// The name at the root that WebHDFS takes.
pub const WEBHDFS: &str = "webhdfs";

/// Headers that pages of another origin may send and see.
const SENT: &str = "authorization, if-match, if-modified-since, if-none-match, if-range, range, x-amz-content-sha256, \
    x-amz-date, x-amz-security-token";
const SEEN: &str = "Content-Range, Content-Length, Accept-Ranges, ETag, Last-Modified";

/// A pass over values that clients wait for.
type Pass = watch::Receiver<Option<Result<Arc<ServedFile>, RequestError>>>;

/// The tree, and what all requests share.
pub struct ServedTree {
    names: Arc<Names>,
    access: Access,
    /// The one bucket of S3, which has the whole tree.
    bucket: String,
    is_tls: bool,
    room: Arc<Resources>,
    passes: Arc<Mutex<HashMap<BString, Pass>>>,
    /// Ends passes, which outlive the requests that began them.
    ending: Interrupt,
}

/// The protocol that a request speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Files,
    S3,
    WebHdfs,
}

impl ServedTree {
    /// The tree of these sources. `options` are those that bytes of files depend on.
    ///
    /// # Errors
    /// If no source can be opened.
    pub fn new(
        session: &Arc<Session>,
        sources: &[PathBuf],
        options: String,
        access: Access,
        bucket: String,
        is_tls: bool,
    ) -> Result<Self, OpenError> {
        let root = root(session, sources, &Interrupt::new())?;
        let names = Arc::new(Names::new(root, options));
        let (room, ending) = (Arc::default(), Interrupt::new());
        Ok(Self { names, access, bucket, is_tls, room, passes: Arc::default(), ending })
    }

    /// Whether the root of the tree has this name.
    pub fn has(&self, name: &str) -> bool {
        self.names.find(name.into(), &Interrupt::new()).is_ok()
    }

    /// A path for the log, without a key.
    fn without_key(&self, path: &str) -> String {
        let secret = self.access.key.as_ref().map(|key| key.secret.as_str()).unwrap_or_default();
        if secret.is_empty() { path.to_owned() } else { path.replace(secret, "KEY") }
    }

    /// Answers a request; one that fails, in the words of its protocol.
    async fn answer(self: &Arc<Self>, request: &Parts) -> Response<PiecedBody> {
        let (protocol, answer) = self.answer_or_fail(request).await;
        let mut response = answer.unwrap_or_else(|failure| {
            failure.log();
            let mut response = match protocol {
                Protocol::Files => files::failed(&failure),
                Protocol::S3 => s3::failed(&failure),
                Protocol::WebHdfs => webhdfs::failed(&failure),
            };
            let headers = response.headers_mut();
            if let Some(seconds) = failure.retry_after() {
                headers.insert(RETRY_AFTER, seconds.into());
            }
            if let RequestError::Method = failure {
                headers.insert(ALLOW, HeaderValue::from_static("GET, HEAD, OPTIONS"));
                // Its content is not read.
                headers.insert(CONNECTION, HeaderValue::from_static("close"));
            }
            response
        });
        if request.method == Method::HEAD {
            // hyper says the length of the body that it does not send.
            files::set_length(&mut response);
            *response.body_mut() = PiecedBody::default();
        }
        let headers = response.headers_mut();
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        // Addresses may have the key.
        headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
        if let Some(origin) = self.other_origin(request) {
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(SEEN));
        }
        if self.access.cors.is_some() {
            headers.append(VARY, HeaderValue::from_static("Origin"));
        }
        response
    }

    /// The origin of a page that may read.
    fn other_origin(&self, request: &Parts) -> Option<HeaderValue> {
        let (allowed, origin) = (self.access.cors.as_ref()?, request.headers.get(ORIGIN)?);
        (origin.as_bytes() == allowed.as_bytes()).then(|| origin.clone())
    }

    async fn answer_or_fail(
        self: &Arc<Self>,
        request: &Parts,
    ) -> (Protocol, Result<Response<PiecedBody>, RequestError>) {
        let mut target = match RequestTarget::parse(&request.uri) {
            Ok(target) => target,
            Err(reason) => return (Protocol::Files, Err(RequestError::BadRequest(reason))),
        };
        let mut has_key = self.access.strip(&mut target.path);
        let first = target.path.first().map(Vec::as_slice).unwrap_or_default();
        let protocol = if is_signed(&request.headers, &target) || first == self.bucket.as_bytes() {
            Protocol::S3
        } else if target.path.starts_with(&[WEBHDFS.into(), b"v1".to_vec()]) {
            target.path.drain(..2);
            has_key |= self.access.strip(&mut target.path);
            Protocol::WebHdfs
        } else {
            Protocol::Files
        };
        (protocol, self.answer_as(protocol, request, &target, has_key).await)
    }

    async fn answer_as(
        self: &Arc<Self>,
        protocol: Protocol,
        request: &Parts,
        target: &RequestTarget,
        has_key: bool,
    ) -> Result<Response<PiecedBody>, RequestError> {
        if !self.access.knows_host(request) {
            return Err(RequestError::OtherHost);
        }
        if request.method == Method::OPTIONS {
            return self.preflight(request);
        }
        if !has_key {
            self.access.admit(request, target, SystemTime::now())?;
        }
        if request.method != Method::GET && request.method != Method::HEAD {
            return Err(RequestError::Method);
        }
        match self.answer_once(protocol, request, target).await {
            // The source has another state by now, which is looked up anew.
            Err(RequestError::Changing) => self.answer_once(protocol, request, target).await,
            answer => answer,
        }
    }

    async fn answer_once(
        self: &Arc<Self>,
        protocol: Protocol,
        request: &Parts,
        target: &RequestTarget,
    ) -> Result<Response<PiecedBody>, RequestError> {
        match protocol {
            Protocol::Files => files::answer(self, request, target).await,
            Protocol::S3 => s3::answer(self, request, target).await,
            Protocol::WebHdfs => webhdfs::answer(self, request, target).await,
        }
    }

    /// Answers the question of a browser whether a page may ask; it has no key.
    fn preflight(&self, request: &Parts) -> Result<Response<PiecedBody>, RequestError> {
        self.other_origin(request).ok_or(RequestError::Method)?;
        let mut response = Response::new(PiecedBody::default());
        *response.status_mut() = StatusCode::NO_CONTENT;
        let headers = response.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, HEAD"));
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(SENT));
        headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
        if request.headers.contains_key("access-control-request-private-network") {
            let name = HeaderName::from_static("access-control-allow-private-network");
            headers.insert(name, HeaderValue::from_static("true"));
        }
        Ok(response)
    }

    /// Finds what names lead to. An empty last name stands for a slash, which files do not have.
    async fn find(&self, path: &[Vec<u8>]) -> Result<FoundPath, RequestError> {
        let (path, has_slash) = match path {
            [above @ .., last] if last.is_empty() => (above, true),
            path => (path, false),
        };
        if path.iter().any(Vec::is_empty) {
            return Err(RequestError::NotFound);
        }
        let (names, path) = (self.names.clone(), RequestTarget::joined(path));
        let found = blocking(&self.room.looking, move |interrupt| names.find(path.as_bstr(), interrupt)).await??;
        match found {
            FoundPath::File(_) | FoundPath::Unmeasured(_) if has_slash => Err(RequestError::NotFound),
            found => Ok(found),
        }
    }

    /// The file, with its size. A pass over values that takes too long goes on without this request.
    async fn measured(&self, file: Unmeasured) -> Result<Arc<ServedFile>, RequestError> {
        let mut pass = self.pass(file)?;
        match timeout(PATIENCE, pass.wait_for(Option::is_some)).await {
            Ok(Ok(done)) => done.clone().unwrap_or(Err(RequestError::Broken)),
            Ok(Err(_)) => Err(RequestError::Broken),
            Err(_) => Err(RequestError::Later),
        }
    }

    /// Begins a pass for a file, or joins the one that goes on.
    fn pass(&self, file: Unmeasured) -> Result<Pass, RequestError> {
        let mut passes = self.passes.lock();
        // One without a sender has panicked.
        if let Some(pass) = passes.get(&file.path).filter(|pass| pass.has_changed().is_ok()) {
            return Ok(pass.clone());
        }
        let place = self.room.measuring.clone().try_acquire_owned().map_err(|_| RequestError::Busy)?;
        let (sender, pass) = watch::channel(None);
        passes.insert(file.path.clone(), pass.clone());
        let (names, ending, all) = (self.names.clone(), self.ending.clone(), self.passes.clone());
        spawn_blocking(move || {
            let _place = place;
            let path = file.path.clone();
            let measured = names.measure(file, &ending).map_err(RequestError::from);
            all.lock().remove(&path);
            sender.send(Some(measured)).ok();
        });
        Ok(pass)
    }
}

/// Reads a request line and headers, and judges them as a server with a key does. Returns whether they may read.
#[cfg(feature = "fuzzing")]
pub fn judged(input: &[u8]) -> Option<bool> {
    let mut lines = input.split(|byte| *byte == b'\n');
    let mut words = lines.next()?.split(|byte| *byte == b' ');
    let mut request = hyper::Request::builder().method(words.next()?).uri(words.next()?);
    for line in lines {
        let colon = line.iter().position(|byte| *byte == b':')?;
        request = request.header(line.get(..colon)?, line.get(colon + 1..)?);
    }
    let (parts, ()) = request.body(()).ok()?.into_parts();
    let mut target = RequestTarget::parse(&parts.uri).ok()?;
    let secret = "0123456789abcdef0123456789abcdef01234567".to_owned();
    let key = Some(AccessKey { id: KEY_ID.to_owned(), secret });
    let access = Access { key, hosts: Some(vec!["localhost".to_owned()]), cors: None };
    files::judged(&parts.headers);
    let has_key = access.strip(&mut target.path);
    let is_called = access.knows_host(&parts);
    Some((has_key || access.admit(&parts, &target, SystemTime::now()).is_ok()) && is_called)
}
