//! The protocol of S3, as far as reading goes: one bucket, addressed by path, with the whole tree.

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use bstr::{BStr, ByteSlice};
use hyper::header::{CONTENT_RANGE, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Response};

use super::body::{PiecedBody, blocking};
use super::failure::RequestError;
use super::target::{RequestTarget, escaped};
use super::walk::{FoundPath, Key, KeyRange, KeyWalk, Names, hex};
use super::{ServedTree, files};
use crate::calendar;
use crate::query::hexadecimal;
use crate::source::Interrupt;
use crate::views::page::percent_encoded;

/// Most keys in an answer.
const MOST_KEYS: usize = 1000;

/// The region that clients are told.
const REGION: &str = "us-east-1";

const HEAD: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
const NAMESPACE: &str = "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"";

/// Parameters that ask for something else than an object or a list, and that are not here.
const OTHERS: [&str; 14] = [
    "accelerate",
    "acl",
    "attributes",
    "cors",
    "encryption",
    "legal-hold",
    "lifecycle",
    "policy",
    "retention",
    "tagging",
    "torrent",
    "uploadId",
    "uploads",
    "versions",
];

/// Answers a request.
pub async fn answer(
    site: &Arc<ServedTree>,
    request: &Parts,
    target: &RequestTarget,
) -> Result<Response<PiecedBody>, RequestError> {
    let (bucket, key) = target.path.split_first().ok_or(RequestError::NotFound)?;
    if OTHERS.iter().any(|name| target.bytes(name).is_some()) {
        return Err(RequestError::NotImplemented);
    }
    if bucket.is_empty() && key.is_empty() {
        return Ok(xml(buckets(&site.bucket)));
    }
    if bucket != site.bucket.as_bytes() {
        return Err(RequestError::NoBucket);
    }
    if matches!(key, [] | [_]) && key.iter().all(Vec::is_empty) {
        return of_bucket(site, request, target).await;
    }
    // A directory is no object.
    if key.last().is_some_and(Vec::is_empty) {
        return Err(RequestError::NotFound);
    }
    match site.find(key).await? {
        FoundPath::Directory(..) => Err(RequestError::NotFound),
        FoundPath::File(file) => files::of_file(site, request, file).await,
        FoundPath::Unmeasured(file) => files::of_file(site, request, site.measured(file).await?).await,
    }
}

async fn of_bucket(
    site: &Arc<ServedTree>,
    request: &Parts,
    target: &RequestTarget,
) -> Result<Response<PiecedBody>, RequestError> {
    if request.method == Method::HEAD {
        let mut response = Response::new(PiecedBody::default());
        let region = HeaderName::from_static("x-amz-bucket-region");
        response.headers_mut().insert(region, HeaderValue::from_static(REGION));
        return Ok(response);
    }
    if target.bytes("location").is_some() {
        return Ok(xml(format!("<LocationConstraint {NAMESPACE}>{REGION}</LocationConstraint>")));
    }
    if target.bytes("versioning").is_some() {
        return Ok(xml(format!("<VersioningConfiguration {NAMESPACE}/>")));
    }
    let list = List::of(target, &site.bucket)?;
    let names = site.names.clone();
    Ok(xml(blocking(&site.room.listing, move |interrupt| list.render(&names, interrupt)).await?))
}

/// The answer to a request that fails.
pub fn failed(failure: &RequestError) -> Response<PiecedBody> {
    let (code, message) = (failure.s3_code(), escaped(&failure.to_string()));
    let mut response = xml(format!("<Error><Code>{code}</Code><Message>{message}</Message></Error>"));
    *response.status_mut() = failure.status();
    if let RequestError::Range(size) = failure {
        let range = HeaderValue::try_from(format!("bytes */{size}")).ok();
        response.headers_mut().extend(range.map(|range| (CONTENT_RANGE, range)));
    }
    response
}

fn xml(content: String) -> Response<PiecedBody> {
    let mut response = Response::new(PiecedBody::from(format!("{HEAD}{content}").into_bytes()));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/xml"));
    response
}

fn buckets(bucket: &str) -> String {
    let (name, made) = (escaped(bucket), instant(SystemTime::UNIX_EPOCH));
    format!(
        "<ListAllMyBucketsResult {NAMESPACE}><Owner><ID>hepfs</ID><DisplayName>hepfs</DisplayName></Owner><Buckets>\
         <Bucket><Name>{name}</Name><CreationDate>{made}</CreationDate></Bucket></Buckets></ListAllMyBucketsResult>"
    )
}

/// A list that is asked for, in either version of the request.
struct List {
    bucket: String,
    prefix: Vec<u8>,
    delimiter: Vec<u8>,
    after: Vec<u8>,
    most: usize,
    is_encoded: bool,
    is_second: bool,
    /// Parameters that the answer repeats.
    repeated: Vec<(&'static str, String)>,
}

impl List {
    fn of(target: &RequestTarget, bucket: &str) -> Result<Self, RequestError> {
        let is_second = target.bytes("list-type") == Some(b"2");
        let is_encoded = match target.bytes("encoding-type") {
            None | Some(b"") => false,
            Some(b"url") => true,
            Some(_) => return Err(RequestError::BadRequest("the one encoding-type is url")),
        };
        let most = match target.parameter("max-keys").filter(|text| !text.is_empty()) {
            Some(text) => text.parse().map_err(|_| RequestError::BadRequest("max-keys is not a number"))?,
            None => MOST_KEYS,
        };
        let mut list = Self {
            bucket: bucket.to_owned(),
            prefix: bytes(target, "prefix"),
            delimiter: bytes(target, "delimiter"),
            after: bytes(target, if is_second { "start-after" } else { "marker" }),
            most: most.min(MOST_KEYS),
            is_encoded,
            is_second,
            repeated: Vec::new(),
        };
        let repeated = if is_second { ("StartAfter", "start-after") } else { ("Marker", "marker") };
        let repeated = target.bytes(repeated.1).map(|bytes| (repeated.0, list.shown(bytes)));
        list.repeated.extend(repeated);
        if let Some(token) = target.parameter("continuation-token").filter(|token| is_second && !token.is_empty()) {
            list.after = hexadecimal(token.as_bytes())
                .ok_or(RequestError::BadRequest("no continuation-token of this server"))?;
            list.repeated.push(("ContinuationToken", escaped(&token)));
        }
        Ok(list)
    }

    /// A key as the answer has it.
    fn shown(&self, key: &[u8]) -> String {
        if self.is_encoded { percent_encoded(key, b"/") } else { escaped(&key.to_str_lossy()) }
    }

    /// Walks, and writes the list.
    fn render(&self, names: &Names, interrupt: &Interrupt) -> String {
        let (prefix, after, delimiter) = (&*self.prefix, &*self.after, &*self.delimiter);
        let deadline = Some(Instant::now() + KeyWalk::PATIENCE);
        let mut keys = names.keys(KeyRange { prefix, after, delimiter, deadline }, interrupt);
        let found: Vec<Key> = keys.by_ref().take(self.most).collect();
        let has_more = found.len() == self.most && self.most > 0 && keys.next().is_some();
        let next = if has_more { found.last().map(Key::text) } else { keys.stopped().filter(|_| self.most > 0) };
        let mut out = format!("<ListBucketResult {NAMESPACE}>{}", tag("Name", &escaped(&self.bucket)));
        out.push_str(&tag("Prefix", &self.shown(prefix)));
        self.repeated.iter().for_each(|(name, text)| out.push_str(&tag(name, text)));
        if let Some(next) = next {
            out.push_str(&match self.is_second {
                true => tag("NextContinuationToken", &hex(next)),
                false => tag("NextMarker", &self.shown(next)),
            });
        }
        if self.is_second {
            out.push_str(&tag("KeyCount", &found.len().to_string()));
        }
        out.push_str(&tag("MaxKeys", &self.most.to_string()));
        if !delimiter.is_empty() {
            out.push_str(&tag("Delimiter", &self.shown(delimiter)));
        }
        if self.is_encoded {
            out.push_str("<EncodingType>url</EncodingType>");
        }
        out.push_str(&tag("IsTruncated", if next.is_some() { "true" } else { "false" }));
        for key in found.iter().filter(|key| self.can_be_shown(key.text())) {
            let text = self.shown(key.text());
            match key {
                Key::Common(_) => out.push_str(&tag("CommonPrefixes", &tag("Prefix", &text))),
                Key::File { size, tag: etag, modified, .. } => {
                    let etag = etag.as_ref().map(|etag| tag("ETag", &escaped(etag))).unwrap_or_default();
                    let (key, modified) = (tag("Key", &text), tag("LastModified", &instant(*modified)));
                    let size = tag("Size", &size.to_string());
                    out.push_str(&tag(
                        "Contents",
                        &format!("{key}{modified}{etag}{size}<StorageClass>STANDARD</StorageClass>"),
                    ));
                }
            }
        }
        out + "</ListBucketResult>"
    }

    /// Whether XML has a way to write a key.
    fn can_be_shown(&self, key: &BStr) -> bool {
        self.is_encoded || key.to_str().is_ok_and(|text| !text.contains(char::is_control))
    }
}

fn bytes(target: &RequestTarget, name: &str) -> Vec<u8> {
    target.bytes(name).unwrap_or_default().to_vec()
}

fn tag(name: &str, text: &str) -> String {
    format!("<{name}>{text}</{name}>")
}

/// An instant as S3 writes it.
fn instant(time: SystemTime) -> String {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let (days, rest) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (year, month, day) = calendar::date(i64::try_from(days).unwrap_or_default());
    let (hours, minutes, seconds, thousandths) = (rest / 3600, rest / 60 % 60, rest % 60, since.subsec_millis());
    format!("{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}.{thousandths:03}Z")
}
