//! A server of objects over HTTP that answers ranges, as a store would, behind a line of some delay and bandwidth. Each
//! request can be given a fault.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::header::{
    ACCEPT_RANGES, AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, ETAG, HeaderValue, IF_MATCH,
    LAST_MODIFIED, LOCATION, RANGE, RETRY_AFTER,
};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::time::{Sleep, sleep, sleep_until};

/// Most bytes of a body in one piece.
const PIECE: usize = 64 << 10;

/// A fault in the answer to one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Another status, without content.
    Status(u16),
    /// 503 with `Retry-After` in seconds.
    Busy(u64),
    /// The body ends after this number of bytes, and the connection with it.
    Cut(usize),
    /// The body pauses after this number of bytes.
    Pause(usize, Duration),
    /// 200 and the whole object, also if a range was asked for.
    Whole,
    /// `Content-Range` and bytes of a range that begins later by one.
    OtherRange,
    /// A body shorter by one byte, whole by its own length.
    Short,
    /// A body longer by one byte, whole by its own length.
    Long,
    /// A header that says that the bytes are compressed.
    Gzip,
    /// The tag of another version.
    OtherTag,
    /// A weak tag.
    WeakTag,
    /// No tag.
    NoTag,
    /// The number of a version in place of a tag.
    Version(&'static str),
    /// A redirect.
    Redirect(String),
    /// 403 with the word of a store for a signature that has expired.
    Expired,
    /// The bucket lies in another region.
    Elsewhere(&'static str),
    /// A page of a list without entries, behind which more follow.
    EmptyPage,
}

/// A request, and the status and length of its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    pub method: String,
    /// Key of the object, without the slash before it.
    pub key: String,
    /// The bytes that were asked for.
    pub range: Option<Range<u64>>,
    /// The header `Authorization`.
    pub authorization: Option<String>,
    pub status: u16,
    pub bytes: u64,
}

/// A running server, which ends when dropped.
pub struct RangeServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    /// Objects by key: content and tag.
    objects: Mutex<BTreeMap<String, (Content, String)>>,
    line: Mutex<Line>,
    faults: Mutex<VecDeque<Option<Fault>>>,
    /// The query without which nothing is answered.
    demanded: Mutex<Option<String>>,
    log: Mutex<Vec<Answered>>,
    in_flight: AtomicUsize,
    most_in_flight: AtomicUsize,
}

/// The bytes of an object: zeros but for pieces at these places.
#[derive(Clone)]
struct Content {
    size: u64,
    pieces: Vec<(u64, Bytes)>,
}

impl Content {
    fn part(&self, range: Range<u64>) -> Bytes {
        if let [(0, all)] = &self.pieces[..] {
            return all.slice(range.start as usize..range.end as usize);
        }
        let mut part = vec![0; (range.end - range.start) as usize];
        for (at, piece) in &self.pieces {
            let common = range.start.max(*at)..range.end.min(at + piece.len() as u64);
            if !common.is_empty() {
                let within = |at: u64| (common.start - at) as usize..(common.end - at) as usize;
                part[within(range.start)].copy_from_slice(&piece[within(*at)]);
            }
        }
        part.into()
    }
}

/// The line between the server and all its clients.
#[derive(Default)]
struct Line {
    delay: Duration,
    bytes_per_second: Option<u64>,
    /// When all bytes that were sent so far have passed.
    free: Option<Instant>,
}

impl Line {
    /// When this number of bytes has passed, if they are sent now.
    fn pass(&mut self, bytes: usize) -> Option<Instant> {
        let now = Instant::now();
        let takes = Duration::from_secs_f64(bytes as f64 / self.bytes_per_second? as f64);
        let done = self.free.map_or(now, |free| free.max(now)) + takes;
        self.free = Some(done);
        Some(done)
    }
}

impl RangeServer {
    pub fn start() -> Self {
        let shared = Arc::new(Shared::default());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let server = shared.clone();
        let thread = thread::spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = accept(listener, server) => {}
                    _ = stopped => {}
                }
            });
            // Connections end with it.
            runtime.shutdown_background();
        });
        Self { address, shared, stop: Some(stop), thread: Some(thread) }
    }

    /// The address of the server.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The address of an object.
    pub fn url(&self, key: &str) -> String {
        format!("http://{}/{key}", self.address)
    }

    /// Puts an object, or another version of it, which gets a new tag.
    pub fn put(&self, key: &str, content: impl Into<Bytes>) {
        let content = content.into();
        self.put_sparse(key, content.len() as u64, vec![(0, content)]);
    }

    /// The same for an object of `size` bytes, zeros but for pieces at these places.
    pub fn put_sparse(&self, key: &str, size: u64, pieces: Vec<(u64, Bytes)>) {
        let mut objects = self.shared.objects.lock();
        let version = objects.get(key).map_or(1, |(_, tag)| tag.trim_matches('"').parse::<u64>().unwrap() + 1);
        objects.insert(key.to_owned(), (Content { size, pieces }, format!("\"{version}\"")));
    }

    /// Sets how long each request travels, and how many bytes pass in a second over all connections.
    pub fn line(&self, delay: Duration, bytes_per_second: Option<u64>) {
        *self.shared.line.lock() = Line { delay, bytes_per_second, free: None };
    }

    /// Gives the next requests these faults, one each; `None`: a sound answer.
    pub fn faults(&self, faults: impl IntoIterator<Item = Option<Fault>>) {
        self.shared.faults.lock().extend(faults);
    }

    /// Answers 403 from now on, unless a request has this query.
    pub fn demand(&self, query: &str) {
        *self.shared.demanded.lock() = Some(query.to_owned());
    }

    /// Takes back the faults that no request has had.
    pub fn no_faults(&self) {
        self.shared.faults.lock().clear();
    }

    /// Takes what was answered since the last call.
    pub fn log(&self) -> Vec<Answered> {
        std::mem::take(&mut self.shared.log.lock())
    }

    /// Most requests that were under way at once.
    pub fn most_in_flight(&self) -> usize {
        self.shared.most_in_flight.load(Ordering::SeqCst)
    }
}

impl Drop for RangeServer {
    fn drop(&mut self) {
        self.stop.take().map(|stop| stop.send(()));
        self.thread.take().map(JoinHandle::join);
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((socket, _)) = listener.accept().await {
        socket.set_nodelay(true).ok();
        let shared = shared.clone();
        tokio::spawn(async move {
            let service = service_fn(|request| answer(shared.clone(), request));
            // A client may go at any time.
            http1::Builder::new().serve_connection(TokioIo::new(socket), service).await.ok();
        });
    }
}

async fn answer(shared: Arc<Shared>, request: Request<Incoming>) -> Result<Response<Sent>, Infallible> {
    let under_way = shared.in_flight.fetch_add(1, Ordering::SeqCst) + 1;
    shared.most_in_flight.fetch_max(under_way, Ordering::SeqCst);
    let delay = shared.line.lock().delay;
    sleep(delay).await;
    let fault = shared.faults.lock().pop_front().flatten();
    let key = decode(request.uri().path().trim_start_matches('/'));
    let object = shared.objects.lock().get(&key).cloned();
    let header = |name| request.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let (range, authorization) = (header(RANGE), header(AUTHORIZATION));
    let query: BTreeMap<String, String> = pairs(request.uri().query().unwrap_or_default()).collect();
    let asked = object.as_ref().zip(range).and_then(|((content, _), range)| parse(&range, content.size));
    let is_demanded = shared.demanded.lock().as_deref().is_none_or(|query| request.uri().query() == Some(query));
    let mut response = match (&object, &fault) {
        _ if !is_demanded => plain(403),
        (_, Some(Fault::Status(status))) => plain(*status),
        (_, Some(Fault::Busy(seconds))) => {
            let mut busy = plain(503);
            busy.headers_mut().insert(RETRY_AFTER, HeaderValue::from(*seconds));
            busy
        }
        (_, Some(Fault::Redirect(target))) => {
            let mut redirect = plain(307);
            redirect.headers_mut().insert(LOCATION, HeaderValue::from_str(target).unwrap());
            redirect
        }
        (_, Some(Fault::Expired)) => {
            let error = "<Error><Code>ExpiredToken</Code><Message>secret</Message></Error>";
            let mut expired = plain(403);
            *expired.body_mut() = Sent::new(error.into(), None);
            expired
        }
        (_, Some(Fault::Elsewhere(region))) => {
            let mut elsewhere = plain(301);
            elsewhere.headers_mut().insert("x-amz-bucket-region", HeaderValue::from_static(region));
            elsewhere
        }
        (_, Some(Fault::EmptyPage)) => {
            let page = "<ListBucketResult><NextContinuationToken>a</NextContinuationToken></ListBucketResult>";
            Response::new(Sent::new(page.into(), None))
        }
        _ if query.contains_key("list-type") => {
            let listed = list(&shared.objects.lock(), &key, &query);
            Response::new(Sent::new(listed.into(), None))
        }
        (None, _) => plain(404),
        (Some((_, tag)), _) if request.headers().get(IF_MATCH).is_some_and(|wanted| wanted != tag.as_str()) => {
            plain(412)
        }
        (Some(_), _) if request.headers().contains_key(RANGE) && asked.is_none() => plain(416),
        (Some((content, tag)), _) => sound(content, tag, asked.clone(), fault.as_ref()),
    };
    let status = response.status().as_u16();
    if request.method() == Method::HEAD {
        response.body_mut().left.clear();
    }
    let bytes = response.body().left.len() as u64;
    let method = request.method().to_string();
    let answered = Answered { method, key, range: asked, authorization, status, bytes };
    shared.log.lock().push(answered);
    response.body_mut().shared = Some(shared);
    Ok(response)
}

/// An answer without content.
fn plain(status: u16) -> Response<Sent> {
    let mut response = Response::new(Sent::new(Bytes::new(), None));
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    response
}

/// The answer to a request for an object, or a range of it.
fn sound(content: &Content, tag: &str, asked: Option<Range<u64>>, fault: Option<&Fault>) -> Response<Sent> {
    let size = content.size;
    let asked = asked.filter(|_| fault != Some(&Fault::Whole));
    let mut told = asked.clone().unwrap_or(0..size);
    let mut sent = told.clone();
    match fault {
        Some(Fault::OtherRange) => {
            told = (told.start + 1).min(size)..(told.end + 1).min(size);
            sent = told.clone();
        }
        Some(Fault::Short) => sent.end = sent.end.saturating_sub(1).max(sent.start),
        Some(Fault::Long) => sent.end = (sent.end + 1).min(size),
        _ => {}
    }
    let mut response = Response::new(Sent::new(content.part(sent.clone()), fault));
    if asked.is_some() {
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
    }
    let headers = response.headers_mut();
    headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(LAST_MODIFIED, HeaderValue::from_static("Sat, 28 Nov 2026 10:00:00 GMT"));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(sent.end - sent.start));
    if asked.is_some() {
        let range = format!("bytes {}-{}/{size}", told.start, told.end.saturating_sub(1));
        headers.insert(CONTENT_RANGE, HeaderValue::from_str(&range).unwrap());
    }
    let tag = match fault {
        Some(Fault::OtherTag) => Some("\"another\"".to_owned()),
        Some(Fault::WeakTag) => Some(format!("W/{tag}")),
        Some(Fault::NoTag | Fault::Version(_)) => None,
        _ => Some(tag.to_owned()),
    };
    if let Some(tag) = tag {
        headers.insert(ETAG, HeaderValue::from_str(&tag).unwrap());
    }
    if let Some(Fault::Version(number)) = fault {
        headers.insert("x-amz-version-id", HeaderValue::from_static(number));
    }
    if fault == Some(&Fault::Gzip) {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

/// The parameters of a query.
fn pairs(query: &str) -> impl Iterator<Item = (String, String)> {
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (decode(name), decode(&value.replace('+', " "))))
}

fn decode(text: &str) -> String {
    let mut parts = text.split('%');
    let mut found = parts.next().unwrap().as_bytes().to_vec();
    for part in parts {
        found.push(u8::from_str_radix(&part[..2], 16).unwrap());
        found.extend(part[2..].bytes());
    }
    String::from_utf8(found).unwrap()
}

/// A page of `ListObjectsV2`
/// (<https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html>).
fn list(objects: &BTreeMap<String, (Content, String)>, bucket: &str, query: &BTreeMap<String, String>) -> String {
    let said = |name: &str| query.get(name).map(String::as_str);
    let (prefix, after) = (said("prefix").unwrap_or_default(), said("continuation-token").unwrap_or_default());
    let most = said("max-keys").map_or(1000, |most| most.parse().unwrap()).min(1000);
    let (mut entries, mut last, mut is_whole) = (BTreeMap::new(), String::new(), true);
    for (key, (content, tag)) in objects {
        let Some(key) = key.strip_prefix(bucket).and_then(|key| key.strip_prefix('/')) else { continue };
        let Some(rest) = key.strip_prefix(prefix) else { continue };
        let folder = rest.split_once('/').filter(|_| said("delimiter") == Some("/"));
        let name = folder.map_or(key.to_owned(), |(folder, _)| format!("{prefix}{folder}/"));
        if name.as_str() <= after || entries.contains_key(&name) {
            continue;
        }
        if entries.len() == most {
            is_whole = false;
            break;
        }
        let told = name.replace('&', "&amp;").replace('\0', "&#x0;");
        let entry = match folder {
            Some(_) => format!("<CommonPrefixes><Prefix>{told}</Prefix></CommonPrefixes>"),
            None => format!(
                "<Contents><Key>{told}</Key><LastModified>2026-11-28T10:00:00.000Z</LastModified><ETag>{}</ETag>\
                 <Size>{}</Size></Contents>",
                tag.replace('"', "&quot;"),
                content.size
            ),
        };
        last.clone_from(&name);
        entries.insert(name, entry);
    }
    let next = if is_whole { String::new() } else { format!("<NextContinuationToken>{last}</NextContinuationToken>") };
    let entries: String = entries.into_values().collect();
    format!("<ListBucketResult><IsTruncated>{}</IsTruncated>{next}{entries}</ListBucketResult>", !is_whole)
}

/// The bytes of `bytes=FIRST-LAST`, `bytes=FIRST-` or `bytes=-COUNT` that there are (RFC 9110 §14.1.2). `None`: no byte
/// of it is there, or it is another form.
fn parse(range: &str, size: u64) -> Option<Range<u64>> {
    let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
    let range = match (first, last) {
        ("", count) => size.saturating_sub(count.parse().ok()?)..size,
        (first, "") => first.parse().ok()?..size,
        (first, last) => first.parse().ok()?..size.min(last.parse::<u64>().ok()?.checked_add(1)?),
    };
    (!range.is_empty()).then_some(range)
}

/// A body on its way over the line.
struct Sent {
    left: Bytes,
    /// Bytes to go until the body breaks off.
    cut: Option<usize>,
    has_flushed: bool,
    /// Bytes to go until it pauses, and for how long.
    pause: Option<(usize, Duration)>,
    /// The pause, or the time until the line has passed a piece.
    wait: Option<Pin<Box<Sleep>>>,
    /// The piece that is on the line.
    piece: Option<Bytes>,
    shared: Option<Arc<Shared>>,
}

impl Sent {
    fn new(left: Bytes, fault: Option<&Fault>) -> Self {
        let (cut, pause) = match fault {
            Some(Fault::Cut(after)) => (Some(*after), None),
            Some(Fault::Pause(after, time)) => (None, Some((*after, *time))),
            _ => (None, None),
        };
        Self { left, cut, has_flushed: false, pause, wait: None, piece: None, shared: None }
    }
}

impl Drop for Sent {
    fn drop(&mut self) {
        if let Some(shared) = &self.shared {
            shared.in_flight.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

impl Body for Sent {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let sent = self.get_mut();
        loop {
            if let Some(wait) = &mut sent.wait {
                ready!(wait.as_mut().poll(context));
                sent.wait = None;
            }
            if let Some(piece) = sent.piece.take() {
                return Poll::Ready(Some(Ok(Frame::data(piece))));
            }
            if let Some((0, time)) = sent.pause {
                sent.pause = None;
                sent.wait = Some(Box::pin(sleep(time)));
                continue;
            }
            if sent.left.is_empty() {
                return Poll::Ready(None);
            }
            // What was sent before leaves first.
            if sent.cut == Some(0) && !std::mem::replace(&mut sent.has_flushed, true) {
                sent.wait = Some(Box::pin(sleep(Duration::from_millis(5))));
                continue;
            }
            if sent.cut == Some(0) {
                return Poll::Ready(Some(Err(io::ErrorKind::ConnectionReset.into())));
            }
            let most = sent.cut.into_iter().chain(sent.pause.map(|(after, _)| after)).chain([PIECE]).min();
            let piece = sent.left.split_to(most.unwrap_or(PIECE).min(sent.left.len()));
            sent.cut = sent.cut.map(|after| after - piece.len());
            sent.pause = sent.pause.map(|(after, time)| (after - piece.len(), time));
            let passed = sent.shared.as_ref().and_then(|shared| shared.line.lock().pass(piece.len()));
            sent.wait = passed.map(|at| Box::pin(sleep_until(at.into())));
            sent.piece = Some(piece);
        }
    }

    fn is_end_stream(&self) -> bool {
        self.left.is_empty() && self.piece.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}
