//! One request and its answer, which is held against what was asked.

use std::error::Error;
use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
};
use parking_lot::Mutex;
use reqwest::header::{
    ACCEPT_ENCODING, AUTHORIZATION, AsHeaderName, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, ETAG, HeaderMap,
    HeaderValue, LAST_MODIFIED, RETRY_AFTER,
};
use reqwest::{Client, ClientBuilder, StatusCode, Url, redirect};

use super::RemoteOptions;
use super::failure::RemoteFailure;
use super::unnamable;
use crate::source::{Identity, ObjectVersion};
use crate::store::Counter;

/// Most bytes of an answer's text that are looked at.
const LONGEST_TEXT: usize = 16 << 10;

/// Most bytes of a page of a list: a thousand keys of 1 KiB, each byte of which may be escaped.
const LONGEST_LIST: usize = 16 << 20;

/// Headers with the number of a version: of Amazon, Google and Azure.
const VERSIONS: [&str; 3] = ["x-amz-version-id", "x-goog-generation", "x-ms-version-id"];

/// The version that requests are held to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Validator {
    /// A strong entity tag, with its quotes.
    Tag(String),
    /// The number of a version.
    Number(String),
    /// Seconds since the epoch of the last change, where the user trusts in it.
    Modified(i64),
}

/// An object as an answer tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ObjectFacts {
    pub size: u64,
    pub version: Validator,
    /// Seconds since the epoch of the last change; 0 where the server does not say it.
    pub modified: i64,
}

impl ObjectFacts {
    /// The version is a strong tag, or a number; else the time, if it is trusted.
    pub fn new(
        host: &str,
        size: u64,
        tag: Option<String>,
        number: Option<String>,
        modified: Option<i64>,
        trust_mtime: bool,
    ) -> Result<Self, RemoteFailure> {
        // As in files. Beyond it, sums of places would not be numbers.
        if i64::try_from(size).is_err() {
            return Err(RemoteFailure::answer(host, format!("tells a size that no file has, {size} bytes")));
        }
        let is_weak = tag.is_some();
        let strong = tag.filter(|tag| tag.len() > 2 && tag.starts_with('"') && tag.ends_with('"'));
        let version = match (strong, number.filter(|number| number != "null"), modified) {
            (Some(tag), ..) => Validator::Tag(tag),
            (None, Some(number), _) => Validator::Number(number),
            (None, None, Some(modified)) if trust_mtime => Validator::Modified(modified),
            _ => {
                let reason = match (is_weak, trust_mtime) {
                    (_, true) => "tells neither a version nor a time of its last change",
                    (true, false) => {
                        "tells a weak entity tag: other bytes may have the same. --trust-mtime takes the time instead"
                    }
                    (false, false) => {
                        "tells no entity tag, so a change would not be seen. --trust-mtime takes the time instead"
                    }
                };
                return Err(RemoteFailure::answer(host, reason));
            }
        };
        Ok(Self { size, version, modified: modified.unwrap_or(0) })
    }

    /// The object as the headers of an answer tell of it.
    pub fn told(host: &str, size: u64, headers: &HeaderMap, trust_mtime: bool) -> Result<Self, RemoteFailure> {
        let number = VERSIONS.iter().find_map(|name| text(headers, *name));
        Self::new(host, size, text(headers, ETAG), number, modified(headers), trust_mtime)
    }

    /// The identity of this version of an object.
    pub fn identity(&self, endpoint: &str, bucket: &str, key: &str) -> Identity {
        let version = match &self.version {
            Validator::Tag(tag) => ObjectVersion::Tag(tag.clone()),
            Validator::Number(number) => ObjectVersion::Version(number.clone()),
            // Tags have quotes, so none is equal.
            Validator::Modified(seconds) => ObjectVersion::Tag(format!("modified {seconds}")),
        };
        Identity::of_object(endpoint, bucket, key, &version, self.size)
    }

    /// The time of the last change.
    pub fn time(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(self.modified.max(0).cast_unsigned())
    }
}

/// The answer that a request is to have. It goes with the request through `object_store`.
#[derive(Clone, Debug)]
pub(super) enum ExpectedAnswer {
    /// Any answer of success.
    Success,
    /// A page of a list, and where to put the keys that no path can name.
    List(Arc<Mutex<Vec<String>>>),
    /// A range of one version of an object, whose size is known.
    Part { range: Range<u64>, size: u64, version: Validator },
}

/// The value of a header, if it is text.
pub(super) fn text(headers: &HeaderMap, name: impl AsHeaderName) -> Option<String> {
    Some(headers.get(name)?.to_str().ok()?.to_owned())
}

fn modified(headers: &HeaderMap) -> Option<i64> {
    Some(chrono::DateTime::parse_from_rfc2822(headers.get(LAST_MODIFIED)?.to_str().ok()?).ok()?.timestamp())
}

/// Refuses bytes in another form than the stored one.
pub(super) fn check_encoding(host: &str, headers: &HeaderMap) -> Result<(), RemoteFailure> {
    match headers.get(CONTENT_ENCODING).map(HeaderValue::as_bytes) {
        None | Some(b"" | b"identity") => Ok(()),
        Some(encoding) => {
            let reason = format!("sends it encoded ({}), not as stored", String::from_utf8_lossy(encoding));
            Err(RemoteFailure::answer(host, reason))
        }
    }
}

/// Holds status and headers of an answer of success against what was asked for.
pub(super) fn check_part(
    host: &str,
    status: StatusCode,
    headers: &HeaderMap,
    (range, size, version): (&Range<u64>, u64, &Validator),
) -> Result<(), RemoteFailure> {
    if status == StatusCode::OK {
        return Err(whole(host));
    }
    if status != StatusCode::PARTIAL_CONTENT {
        return Err(RemoteFailure::answer(host, format!("answers a request for a range with {status}")));
    }
    check_encoding(host, headers)?;
    let told = match version {
        Validator::Tag(_) => text(headers, ETAG).map(Validator::Tag),
        Validator::Number(_) => VERSIONS.iter().find_map(|name| text(headers, *name)).map(Validator::Number),
        Validator::Modified(_) => modified(headers).map(Validator::Modified),
    };
    match told {
        Some(told) if told == *version => {}
        // A weak tag says nothing, not even that the version is another one.
        Some(Validator::Tag(tag)) if tag.starts_with("W/") => {
            return Err(RemoteFailure::answer(host, "tells a weak entity tag by now, so a change would not be seen"));
        }
        Some(_) => return Err(RemoteFailure::Changed { host: host.to_owned() }),
        None => return Err(RemoteFailure::answer(host, "does not tell the version of the bytes that it sends")),
    }
    let asked = format!("bytes {}-{}/{size}", range.start, range.end - 1);
    let told = text(headers, CONTENT_RANGE).unwrap_or_else(|| "no range".to_owned());
    if told != asked {
        return Err(RemoteFailure::answer(host, format!("sends {told} where {asked} was asked for")));
    }
    let length = (range.end - range.start).to_string();
    match text(headers, CONTENT_LENGTH) {
        Some(told) if told != length => {
            Err(RemoteFailure::answer(host, format!("sends {told} bytes where {length} were asked for")))
        }
        _ => Ok(()),
    }
}

/// The failure of a server that does not answer ranges.
pub(super) fn whole(host: &str) -> RemoteFailure {
    RemoteFailure::answer(
        host,
        "answers a request for a range with the whole object (200 in place of 206), so parts cannot be read",
    )
}

/// The line to all servers. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct HttpLine(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// For objects: these follow no redirect.
    objects: Clients,
    /// For services of credentials, which are near.
    credentials: Clients,
    connections: usize,
    deadline: Duration,
    counters: Arc<RequestCounts>,
}

/// Clients, made when they are needed: one loads the certificates of the system, which need not be there.
#[derive(Debug, Default)]
struct Clients {
    plain: OnceLock<Client>,
    secure: OnceLock<Client>,
}

impl Clients {
    fn get(&self, is_secure: bool, new: impl FnOnce(ClientBuilder) -> ClientBuilder) -> Result<&Client, RemoteFailure> {
        let place = if is_secure { &self.secure } else { &self.plain };
        if let Some(client) = place.get() {
            return Ok(client);
        }
        // An error says that there is a provider.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = Client::builder().user_agent(concat!("hepfs/", env!("CARGO_PKG_VERSION"))).http1_only();
        let builder = if is_secure { builder } else { builder.tls_certs_only([]) };
        let client = new(builder).build().map_err(|error| RemoteFailure::Setting(cause(&error)))?;
        Ok(place.get_or_init(|| client))
    }
}

/// Requests so far.
#[derive(Debug, Default)]
pub(super) struct RequestCounts {
    /// Requests for objects and listings.
    pub sent: Counter,
    /// Those of them that were asked again after a failure.
    pub again: Counter,
}

impl HttpLine {
    /// A line on which nothing was sent yet.
    pub fn new(options: &RemoteOptions, counters: Arc<RequestCounts>) -> Self {
        Self(Arc::new(Shared {
            objects: Clients::default(),
            credentials: Clients::default(),
            connections: options.connections,
            deadline: options.network_deadline,
            counters,
        }))
    }

    fn objects(&self, is_secure: bool) -> Result<&Client, RemoteFailure> {
        let line = &self.0;
        line.objects.get(is_secure, |builder| {
            builder
                .redirect(redirect::Policy::none())
                .connect_timeout(line.deadline.min(Duration::from_secs(10)))
                .pool_max_idle_per_host(line.connections)
                .pool_idle_timeout(Duration::from_secs(20))
                .default_headers(HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static("identity"))]))
        })
    }

    fn credentials(&self, is_secure: bool) -> Result<&Client, RemoteFailure> {
        self.0
            .credentials
            .get(is_secure, |builder| builder.connect_timeout(Duration::from_secs(1)).timeout(Duration::from_secs(5)))
    }

    /// Sends a request once, and gives the answer, of any status; a redirect is not followed.
    pub async fn send(&self, host: &str, request: HttpRequest) -> Result<HttpResponse, RemoteFailure> {
        self.0.counters.sent.add(1);
        self.objects(is_secure(&request))?
            .call(request)
            .await
            .map_err(|error| RemoteFailure::Network { host: host.to_owned(), reason: cause(&error) })
    }

    /// Makes a header of user and password in an address.
    pub fn without_user(&self, url: &Url) -> Result<(Url, Option<HeaderValue>), RemoteFailure> {
        let request =
            self.objects(false)?.get(url.clone()).build().map_err(|error| RemoteFailure::Setting(cause(&error)))?;
        Ok((request.url().clone(), request.headers().get(AUTHORIZATION).cloned()))
    }

    async fn send_and_check(
        &self,
        request: HttpRequest,
        expected: &ExpectedAnswer,
    ) -> Result<HttpResponse, RemoteFailure> {
        let uri = request.uri();
        let host = uri.authority().map_or("", |authority| authority.as_str()).to_owned();
        let response = self.send(&host, request).await?;
        if !response.status().is_success() {
            return Err(refusal(&host, response, matches!(expected, ExpectedAnswer::Part { .. })).await);
        }
        match expected {
            ExpectedAnswer::Success => gathered(&host, response, |text| text).await,
            ExpectedAnswer::List(unnamable) => {
                gathered(&host, response, |page| {
                    let (named, keys) = unnamable::take_out(&page);
                    *unnamable.lock() = keys;
                    named
                })
                .await
            }
            ExpectedAnswer::Part { range, size, version } => {
                check_part(&host, response.status(), response.headers(), (range, *size, version))?;
                Ok(response)
            }
        }
    }
}

/// The failure that an answer without success is.
pub(super) async fn refusal(host: &str, response: HttpResponse, is_part: bool) -> RemoteFailure {
    let status = response.status();
    // A range of a version lies within it, and was there.
    if status == StatusCode::PRECONDITION_FAILED || is_part && matches!(status.as_u16(), 404 | 410 | 416) {
        return RemoteFailure::Changed { host: host.to_owned() };
    }
    let headers = response.headers();
    let retry_after = text(headers, RETRY_AFTER).and_then(|seconds| seconds.parse().ok()).map(Duration::from_secs);
    let region = text(headers, "x-amz-bucket-region");
    let code = text(headers, "x-ms-error-code");
    let code = match code {
        Some(code) => Some(code),
        None => code_in(&beginning(response).await),
    };
    let code = code.filter(|code| code.len() <= 64 && code.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    RemoteFailure::Status { host: host.to_owned(), status: status.as_u16(), code, hint: None, retry_after, region }
}

/// The first bytes of an answer, as far as they come soon.
pub(super) async fn beginning(response: HttpResponse) -> BytesMut {
    let mut found = BytesMut::new();
    let mut body = response.into_body().bytes_stream();
    let gather = async {
        while let Some(Ok(bytes)) = body.next().await {
            found.extend_from_slice(&bytes[..bytes.len().min(LONGEST_TEXT - found.len())]);
            if found.len() == LONGEST_TEXT {
                break;
            }
        }
    };
    // Its status is known without it.
    let _ = tokio::time::timeout(Duration::from_secs(1), gather).await;
    found
}

/// An answer with all its text, which `object_store` would gather without a limit, as `edit` leaves it.
async fn gathered(
    host: &str,
    response: HttpResponse,
    edit: impl FnOnce(Vec<u8>) -> Vec<u8>,
) -> Result<HttpResponse, RemoteFailure> {
    check_encoding(host, response.headers())?;
    let (head, body) = response.into_parts();
    let (mut body, mut found) = (body.bytes_stream(), Vec::new());
    while let Some(bytes) = body.next().await {
        let bytes = bytes.map_err(|error| RemoteFailure::Network { host: host.to_owned(), reason: cause(&error) })?;
        if found.len() + bytes.len() > LONGEST_LIST {
            return Err(RemoteFailure::answer(host, "sends a list that is too long"));
        }
        found.extend_from_slice(&bytes);
    }
    Ok(HttpResponse::from_parts(head, edit(found).into()))
}

/// The code in an error of S3 or Google: `<Code>AccessDenied</Code>`.
fn code_in(text: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(text).ok()?;
    Some(text.split_once("<Code>")?.1.split_once("</Code>")?.0.to_owned())
}

/// The words of the first cause of an error: those before it say less.
pub(super) fn cause(error: &dyn Error) -> String {
    let mut first = error;
    while let Some(error) = first.source() {
        first = error;
    }
    without_queries(&first.to_string())
}

/// Cuts queries off the addresses in a text, for they may be signatures.
fn without_queries(text: &str) -> String {
    let words = text.split(' ').map(|word| match word.split_once('?') {
        Some((before, _)) if before.contains('/') => format!("{before}?…"),
        _ => word.to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}

impl HttpConnector for HttpLine {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

/// Requests of `object_store`. Those for credentials expect nothing.
impl HttpService for HttpLine {
    fn call<'me, 'out>(
        &'me self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'out>>
    where
        'me: 'out,
        Self: 'out,
    {
        Box::pin(async move {
            match request.extensions().get::<ExpectedAnswer>().cloned() {
                None => self.credentials(is_secure(&request)).map_err(final_error)?.call(request).await,
                Some(expected) => self.send_and_check(request, &expected).await.map_err(final_error),
            }
        })
    }
}

fn is_secure(request: &HttpRequest) -> bool {
    request.uri().scheme_str() == Some("https")
}

/// A failure after which `object_store` does not ask again by itself.
fn final_error(failure: RemoteFailure) -> HttpError {
    HttpError::new(HttpErrorKind::Unknown, failure)
}

/// The failure behind an error of `object_store`.
pub(super) fn failure_in(host: &str, error: &object_store::Error) -> RemoteFailure {
    let mut next: Option<&dyn Error> = Some(error);
    let mut is_of_network = false;
    while let Some(error) = next {
        if let Some(failure) = error.downcast_ref::<RemoteFailure>() {
            return failure.clone();
        }
        is_of_network |= error.is::<HttpError>();
        next = error.source();
    }
    // Requests for objects fail in our own words, so this one was for credentials.
    if is_of_network {
        return RemoteFailure::Network { host: host.to_owned(), reason: format!("no credentials: {}", cause(error)) };
    }
    RemoteFailure::answer(host, cause(error))
}

/// The bytes of an answer.
pub(super) type AnswerBody = BoxStream<'static, Result<Bytes, RemoteFailure>>;
