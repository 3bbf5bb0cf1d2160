//! Plain HTTP: files with ranges and conditions, directories as pages.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bstr::{BString, ByteSlice};
use hyper::header::{
    ACCEPT, ACCEPT_RANGES, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, HeaderMap, HeaderName,
    HeaderValue, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, LAST_MODIFIED, LOCATION,
    RANGE, VARY, WWW_AUTHENTICATE,
};
use hyper::http::request::Parts;
use hyper::{Method, Response, StatusCode};

use super::ServedTree;
use super::body::{PiecedBody, blocking};
use super::failure::RequestError;
use super::target::{RequestTarget, escaped};
use super::walk::{FoundPath, Names, ServedFile};
use crate::fs::{EntryKind, NodeRef};
use crate::source::Interrupt;
use crate::views::page::percent_encoded;

/// Most names on the page of a directory.
const MOST_NAMES: usize = 100_000;

/// Largest page of a directory that is shown with the names below it.
const PAGE_LIMIT: u64 = 16 << 20;

/// The page that a directory may have.
const INDEX: &str = "index.html";

/// Types of content by the end of names.
const TYPES: [(&str, &str); 11] = [
    (".arrow", "application/vnd.apache.arrow.file"),
    (".csv", "text/csv; charset=utf-8"),
    (".html", "text/html; charset=utf-8"),
    (".json", "application/json"),
    (".ndjson", "application/x-ndjson"),
    (".parquet", "application/vnd.apache.parquet"),
    (".pgm", "image/x-portable-graymap"),
    (".png", "image/png"),
    (".ppm", "image/x-portable-pixmap"),
    (".tsv", "text/tab-separated-values; charset=utf-8"),
    (".txt", "text/plain; charset=utf-8"),
];

/// Answers a request.
pub async fn answer(
    site: &Arc<ServedTree>,
    request: &Parts,
    target: &RequestTarget,
) -> Result<Response<PiecedBody>, RequestError> {
    let found = site.find(&target.path).await?;
    match found {
        FoundPath::File(file) => of_file(site, request, file).await,
        FoundPath::Unmeasured(file) => of_file(site, request, site.measured(file).await?).await,
        FoundPath::Directory(node, path) => {
            let has_slash = target.path.last().is_some_and(Vec::is_empty);
            let asked = RequestTarget::joined(target.path.split_last().map(|(_, above)| above).unwrap_or_default());
            if !has_slash || asked != path {
                return Ok(elsewhere(target, &path));
            }
            let accepted = request.headers.get(ACCEPT).map(HeaderValue::as_bytes).unwrap_or_default();
            let (names, is_browser) = (site.names.clone(), accepted.contains_str("text/html"));
            let page = blocking(&site.room.looking, move |interrupt| page(&names, &node, &path, is_browser, interrupt));
            let mut response = Response::new(PiecedBody::from(page.await??.into_bytes()));
            let headers = response.headers_mut();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
            headers.insert(VARY, HeaderValue::from_static("Accept"));
            Ok(response)
        }
    }
}

/// Leads to a directory under its own path, with a slash: links on its page are below that.
fn elsewhere(target: &RequestTarget, path: &BString) -> Response<PiecedBody> {
    let names = target.path.iter().filter(|name| !name.is_empty()).count();
    let raw: Vec<&str> = target.raw_path.split('/').filter(|name| !name.is_empty()).collect();
    // What stands before the path, such as a key, stays.
    let before = raw.get(..raw.len().saturating_sub(names)).unwrap_or_default();
    let below = percent_encoded(path, b"/");
    let place: Vec<&str> = before.iter().copied().chain([below.as_str()]).filter(|part| !part.is_empty()).collect();
    let mut response = Response::new(PiecedBody::default());
    *response.status_mut() = StatusCode::FOUND;
    insert_text(response.headers_mut(), LOCATION, &format!("/{}/", place.join("/")));
    response
}

/// The page of a directory: a browser gets the one that describes it, with all names; others get the names alone, since
/// programs take each link on a page for a name.
fn page(
    names: &Names,
    node: &NodeRef,
    path: &BString,
    is_browser: bool,
    interrupt: &Interrupt,
) -> Result<String, RequestError> {
    let children = node.children(interrupt)?;
    let mut list = String::from("<ul>\n");
    for (at, entry) in children.iter().enumerate() {
        if at == MOST_NAMES {
            list.push_str(&format!("<li>Only the first {MOST_NAMES} names are here.\n"));
            break;
        }
        let slash = if entry.kind == EntryKind::Directory { "/" } else { "" };
        // A colon before the first slash would be the end of a scheme.
        let (link, text) = (percent_encoded(&entry.name, b""), escaped(&entry.name.to_str_lossy()));
        list.push_str(&format!("<li><a href=\"{link}{slash}\">{text}{slash}</a>\n"));
    }
    list.push_str("</ul>\n");
    if is_browser && node.lookup(INDEX.as_bytes(), interrupt).is_ok() {
        let at = BString::from(bstr::join("/", [path.as_slice(), INDEX.as_bytes()]));
        let file = match names.find(at.as_bstr(), interrupt)? {
            FoundPath::File(file) => Some(file),
            FoundPath::Unmeasured(file) => Some(names.measure(file, interrupt)?),
            FoundPath::Directory(..) => None,
        };
        if let Some(file) = file.filter(|file| file.size <= PAGE_LIMIT) {
            let page = file.read(0, file.size as usize, interrupt)?;
            let page = String::from_utf8_lossy(&page);
            let (above, end) = page.rsplit_once("</main>").unwrap_or((&page, ""));
            return Ok(format!("{above}<details><summary>All names here</summary>\n{list}</details>\n</main>{end}"));
        }
    }
    let title = escaped(&path.to_str_lossy());
    Ok(format!(
        "<!doctype html>\n<html lang=en><head><meta charset=utf-8><title>/{title}</title></head><body>\n\
         <h1>/{title}</h1>\n{list}</body></html>\n"
    ))
}

/// Answers with a file, or part of it.
///
/// # Errors
/// See [`RequestError`].
pub async fn of_file(
    site: &Arc<ServedTree>,
    request: &Parts,
    file: Arc<ServedFile>,
) -> Result<Response<PiecedBody>, RequestError> {
    let mut response = Response::new(PiecedBody::default());
    let headers = response.headers_mut();
    let tag = file.tag.as_deref();
    match tag.and_then(|tag| HeaderValue::from_str(tag).ok()) {
        Some(tag) => {
            headers.insert(ETAG, tag);
            headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
            insert_text(headers, LAST_MODIFIED, &httpdate::fmt_http_date(file.modified));
        }
        None => drop(headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"))),
    }
    let known = TYPES.iter().find(|(end, _)| file.path.ends_with(end.as_bytes()));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(known.map_or("application/octet-stream", |known| known.1)));
    let mut range = 0..file.size;
    if let Some(tag) = tag {
        match condition(&request.headers, tag, file.modified) {
            Condition::Holds => {}
            Condition::Fails => return Err(RequestError::Precondition),
            Condition::Same => {
                headers.remove(CONTENT_TYPE);
                *response.status_mut() = StatusCode::NOT_MODIFIED;
                return Ok(response);
            }
        }
        let asked = text(&request.headers, RANGE).filter(|_| is_same_range(&request.headers, tag, file.modified));
        if let Some(asked) = asked.and_then(|asked| parse_range(asked, file.size)) {
            range = asked.ok_or(RequestError::Range(file.size))?;
            insert_text(headers, CONTENT_RANGE, &format!("bytes {}-{}/{}", range.start, range.end - 1, file.size));
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
        }
    }
    response.headers_mut().insert(CONTENT_LENGTH, (range.end - range.start).into());
    if request.method != Method::HEAD {
        *response.body_mut() = PiecedBody::of_file(&site.room, &file, range).await?;
    }
    Ok(response)
}

/// The answer to a request that fails.
pub fn failed(failure: &RequestError) -> Response<PiecedBody> {
    let mut response = Response::new(PiecedBody::from(format!("{failure}\n").into_bytes()));
    *response.status_mut() = failure.status();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    if let RequestError::Denied(_) = failure {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Basic realm=\"hepfs\", charset=\"UTF-8\""));
        *response.status_mut() = StatusCode::UNAUTHORIZED;
    }
    if let RequestError::Range(size) = failure {
        insert_text(response.headers_mut(), CONTENT_RANGE, &format!("bytes */{size}"));
    }
    response
}

/// States the length of the body, unless the answer has none by itself.
pub fn set_length(response: &mut Response<PiecedBody>) {
    let length = hyper::body::Body::size_hint(response.body()).lower();
    if !response.headers().contains_key(CONTENT_LENGTH) && response.status() != StatusCode::NOT_MODIFIED {
        response.headers_mut().insert(CONTENT_LENGTH, length.into());
    }
}

fn insert_text(headers: &mut HeaderMap, name: HeaderName, text: &str) {
    headers.extend(HeaderValue::from_str(text).ok().map(|value| (name, value)));
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

fn date(headers: &HeaderMap, name: HeaderName) -> Option<SystemTime> {
    httpdate::parse_http_date(text(headers, name)?).ok()
}

/// How the conditions of a request turn out.
#[derive(Debug, PartialEq, Eq)]
enum Condition {
    Holds,
    Fails,
    /// The client has it already.
    Same,
}

/// Judges conditions in the order of RFC 9110 §13.2.2.
fn condition(headers: &HeaderMap, tag: &str, modified: SystemTime) -> Condition {
    let seconds = whole_seconds(modified);
    if let Some(tags) = text(headers, IF_MATCH) {
        if !has_tag(tags, tag, false) {
            return Condition::Fails;
        }
    } else if date(headers, IF_UNMODIFIED_SINCE).is_some_and(|date| seconds > date) {
        return Condition::Fails;
    }
    let is_same = match text(headers, IF_NONE_MATCH) {
        Some(tags) => has_tag(tags, tag, true),
        None => date(headers, IF_MODIFIED_SINCE).is_some_and(|date| seconds <= date),
    };
    if is_same { Condition::Same } else { Condition::Holds }
}

/// Whether a list has this tag. S3's clients leave quotes out.
fn has_tag(tags: &str, tag: &str, weakly: bool) -> bool {
    tags.split(',').map(str::trim).any(|one| {
        let one = if weakly { one.strip_prefix("W/").unwrap_or(one) } else { one };
        one == "*" || one == tag || one == tag.trim_matches('"')
    })
}

/// Whether a range is of the present file (`If-Range`).
fn is_same_range(headers: &HeaderMap, tag: &str, modified: SystemTime) -> bool {
    let Some(wanted) = text(headers, IF_RANGE) else { return true };
    wanted == tag || httpdate::parse_http_date(wanted).is_ok_and(|date| date == whole_seconds(modified))
}

/// A time as HTTP writes it.
fn whole_seconds(time: SystemTime) -> SystemTime {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    SystemTime::UNIX_EPOCH + Duration::from_secs(since.as_secs())
}

/// A position in a file. One that does not fit lies behind each end.
fn position(digits: &str) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().unwrap_or(u64::MAX))
}

/// The one range of a request. `None`: the header is to be ignored, since it is no range or several.
/// `Some(None)`: the range lies outside of a file of this size.
fn parse_range(text: &str, size: u64) -> Option<Option<Range<u64>>> {
    let (first, last) = text.strip_prefix("bytes=")?.split_once('-')?;
    if first.is_empty() {
        let length = position(last.trim_end())?.min(size);
        return Some((length > 0).then(|| size - length..size));
    }
    let first = position(first.trim_start())?;
    let last = if last.trim_end().is_empty() { u64::MAX } else { position(last.trim_end())? };
    if last < first {
        return None;
    }
    Some((first < size).then(|| first..last.saturating_add(1).min(size)))
}

/// Reads the conditions and the range of a request.
#[cfg(feature = "fuzzing")]
pub fn judged(headers: &HeaderMap) {
    let (size, modified) = (1000, SystemTime::UNIX_EPOCH);
    let _ = (condition(headers, "\"a\"", modified), is_same_range(headers, "\"a\"", modified));
    if let Some(Some(range)) = text(headers, RANGE).and_then(|range| parse_range(range, size)) {
        assert!(range.start < range.end && range.end <= size);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_those_of_rfc_9110() {
        for (text, range) in [
            ("bytes=0-9", Some(Some(0..10))),
            ("bytes=10-", Some(Some(10..100))),
            ("bytes=-5", Some(Some(95..100))),
            ("bytes=-1000", Some(Some(0..100))),
            ("bytes=0-99", Some(Some(0..100))),
            ("bytes=50-1000", Some(Some(50..100))),
            ("bytes=0-99999999999999999999999", Some(Some(0..100))),
            ("bytes=100-", Some(None)),
            ("bytes=99999999999999999999999-", Some(None)),
            ("bytes=-0", Some(None)),
            ("bytes=9-0", None),
            ("bytes=0-1,5-6", None),
            ("bytes=a-b", None),
            ("bytes=-", None),
            ("bytes=+1-2", None),
            ("items=0-1", None),
            ("", None),
        ] {
            assert_eq!(parse_range(text, 100), range, "{text}");
        }
        assert_eq!(parse_range("bytes=-1", 0), Some(None));
    }

    #[test]
    fn conditions_are_judged_in_order() {
        let modified = SystemTime::UNIX_EPOCH + Duration::from_millis(1_000_500);
        let judged = |list: &[(HeaderName, &'static str)]| {
            let headers = list.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value)));
            condition(&headers.collect(), "\"a\"", modified)
        };
        assert_eq!(judged(&[]), Condition::Holds);
        assert_eq!(judged(&[(IF_MATCH, "\"b\", \"a\"")]), Condition::Holds);
        assert_eq!(judged(&[(IF_MATCH, "W/\"a\"")]), Condition::Fails);
        assert_eq!(judged(&[(IF_MATCH, "*")]), Condition::Holds);
        assert_eq!(judged(&[(IF_NONE_MATCH, "W/\"a\"")]), Condition::Same);
        assert_eq!(judged(&[(IF_MATCH, "\"b\""), (IF_NONE_MATCH, "\"a\"")]), Condition::Fails);
        // Times are of whole seconds: 1,000 s after the epoch.
        assert_eq!(judged(&[(IF_MODIFIED_SINCE, "Thu, 01 Jan 1970 00:16:40 GMT")]), Condition::Same);
        assert_eq!(judged(&[(IF_MODIFIED_SINCE, "Thu, 01 Jan 1970 00:16:39 GMT")]), Condition::Holds);
        assert_eq!(judged(&[(IF_UNMODIFIED_SINCE, "Thu, 01 Jan 1970 00:16:39 GMT")]), Condition::Fails);
        let both = [(IF_NONE_MATCH, "\"b\""), (IF_MODIFIED_SINCE, "Thu, 01 Jan 1970 00:16:40 GMT")];
        assert_eq!(judged(&both), Condition::Holds);
    }
}
