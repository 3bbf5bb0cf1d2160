//! Objects of web servers.

use std::ops::Range;
use std::sync::Arc;

use futures_util::StreamExt;
use object_store::client::{HttpRequest, HttpRequestBody, HttpResponse};
use parking_lot::Mutex;
use reqwest::header::{AUTHORIZATION, CONTENT_RANGE, HeaderValue, IF_MATCH, IF_UNMODIFIED_SINCE, LOCATION, RANGE};
use reqwest::{Method, StatusCode, Url};

use super::address::{check_line, host};
use super::failure::RemoteFailure;
use super::line::{
    AnswerBody, HttpLine, ObjectFacts, Validator, beginning, cause, check_encoding, check_part, refusal, text, whole,
};

/// Most redirects that one request follows.
const MOST_REDIRECTS: usize = 5;

/// Parameters of signatures: they differ between signed addresses of one object.
const OF_SIGNATURES: [&str; 16] = [
    "x-amz-",
    "x-goog-",
    "awsaccesskeyid",
    "googleaccessid",
    "signature",
    "expires",
    "key-pair-id",
    "policy",
    "sig",
    "se",
    "st",
    "sp",
    "sv",
    "sr",
    "spr",
    "ske",
];

/// An object of a web server.
#[derive(Clone)]
pub(super) struct WebObject(Arc<Inner>);

struct Inner {
    /// Without a user.
    first: Url,
    authorization: Option<HeaderValue>,
    plain_http: bool,
    /// Where redirects led. It may have a signature that expires.
    target: Mutex<Option<Url>>,
}

impl WebObject {
    pub fn new(line: &HttpLine, url: &Url, plain_http: bool) -> Result<Self, RemoteFailure> {
        let (first, authorization) = line.without_user(url)?;
        Ok(Self(Arc::new(Inner { first, authorization, plain_http, target: Mutex::default() })))
    }

    /// The server, for messages.
    pub fn host(&self) -> String {
        host(&self.0.first)
    }

    /// Server and key for the identity. Parameters of a query may choose the object, but for those of signatures.
    pub fn place(&self) -> (String, String) {
        let url = &self.0.first;
        let mut key = url.path().to_owned();
        for (name, value) in url.query_pairs() {
            let name = name.to_ascii_lowercase();
            if !OF_SIGNATURES.iter().any(|known| name == *known || known.ends_with('-') && name.starts_with(known)) {
                key = format!("{key}?{name}={value}");
            }
        }
        (url.origin().ascii_serialization(), key)
    }

    /// Asks for the first byte, so that the answer says, besides size and tag, whether the server answers ranges. A
    /// signature for reading would not serve for HEAD.
    pub async fn head(&self, line: &HttpLine, trust_mtime: bool) -> Result<ObjectFacts, RemoteFailure> {
        let (host, response) = self.ask(line, self.0.first.clone(), &(0..1), None).await?;
        let headers = response.headers();
        check_encoding(&host, headers)?;
        let told = text(headers, CONTENT_RANGE);
        let size = match response.status() {
            StatusCode::PARTIAL_CONTENT => told.as_deref().and_then(|told| told.strip_prefix("bytes 0-0/")),
            StatusCode::RANGE_NOT_SATISFIABLE => told.as_deref().filter(|told| *told == "bytes */0").map(|_| "0"),
            StatusCode::OK => return Err(whole(&host)),
            _ => return Err(refusal(&host, response, false).await),
        };
        let size = size.and_then(|size| size.parse().ok());
        let size = size.ok_or_else(|| RemoteFailure::answer(&host, "does not tell the size of the object"))?;
        let facts = ObjectFacts::told(&host, size, headers, trust_mtime)?;
        // A connection whose answer was read to its end serves for the next request.
        beginning(response).await;
        Ok(facts)
    }

    /// Asks for a range of a version.
    pub async fn get(
        &self,
        line: &HttpLine,
        range: &Range<u64>,
        facts: &ObjectFacts,
    ) -> Result<AnswerBody, RemoteFailure> {
        let target = self.0.target.lock().clone();
        if let Some(target) = target {
            match self.get_at(line, target, range, facts).await {
                // A signature has expired, or it was gone before: the first address leads to a new one.
                Err(RemoteFailure::Status { status: 400 | 401 | 403 | 404 | 410, .. } | RemoteFailure::Setting(_)) => {
                    *self.0.target.lock() = None;
                }
                answer => return answer,
            }
        }
        self.get_at(line, self.0.first.clone(), range, facts).await
    }

    async fn get_at(
        &self,
        line: &HttpLine,
        url: Url,
        range: &Range<u64>,
        facts: &ObjectFacts,
    ) -> Result<AnswerBody, RemoteFailure> {
        let is_first = url == self.0.first;
        let (host, response) = self.ask(line, url, range, Some(&facts.version)).await?;
        if !response.status().is_success() {
            // At the end of a redirect, only the first address knows whether the object is gone.
            return Err(refusal(&host, response, is_first).await);
        }
        check_part(&host, response.status(), response.headers(), (range, facts.size, &facts.version))?;
        let body = response.into_body().bytes_stream();
        Ok(body
            .map(move |bytes| {
                bytes.map_err(|error| RemoteFailure::Network { host: host.clone(), reason: cause(&error) })
            })
            .boxed())
    }

    /// Sends a request, and follows redirects. Gives the host that answered, too.
    async fn ask(
        &self,
        line: &HttpLine,
        from: Url,
        range: &Range<u64>,
        version: Option<&Validator>,
    ) -> Result<(String, HttpResponse), RemoteFailure> {
        let mut url = from;
        for _ in 0..=MOST_REDIRECTS {
            let host = host(&url);
            let mut request = HttpRequest::new(HttpRequestBody::empty());
            *request.method_mut() = Method::GET;
            *request.uri_mut() = url.as_str().parse().map_err(|_| RemoteFailure::answer(&host, "no address to ask"))?;
            let headers = request.headers_mut();
            let value = |text: &str| {
                HeaderValue::from_str(text)
                    .map_err(|_| RemoteFailure::answer(&host, "its entity tag cannot be sent back"))
            };
            headers.insert(RANGE, value(&format!("bytes={}-{}", range.start, range.end - 1))?);
            match version {
                Some(Validator::Tag(tag)) => _ = headers.insert(IF_MATCH, value(tag)?),
                Some(Validator::Modified(seconds)) => {
                    let time = chrono::DateTime::from_timestamp(*seconds, 0).unwrap_or_default();
                    let time = time.format("%a, %d %b %Y %H:%M:%S GMT").to_string();
                    headers.insert(IF_UNMODIFIED_SINCE, value(&time)?);
                }
                Some(Validator::Number(_)) | None => {}
            }
            // For the server to which it was given, and no other.
            if url.origin() == self.0.first.origin()
                && let Some(authorization) = &self.0.authorization
            {
                headers.insert(AUTHORIZATION, authorization.clone());
            }
            let response = line.send(&host, request).await?;
            let location = text(response.headers(), LOCATION).filter(|_| response.status().is_redirection());
            let Some(location) = location else {
                if response.status().is_success() && url != self.0.first {
                    *self.0.target.lock() = Some(url);
                }
                return Ok((host, response));
            };
            url = target(&host, &url, &location, self.0.plain_http)?;
        }
        Err(RemoteFailure::answer(&host(&url), format!("redirects more than {MOST_REDIRECTS} times")))
    }
}

/// The target of a redirect. It may not lead from an encrypted line to an open one.
fn target(host: &str, from: &Url, location: &str, plain_http: bool) -> Result<Url, RemoteFailure> {
    let url = from.join(location).map_err(|_| RemoteFailure::answer(host, "redirects to no address"))?;
    if from.scheme() == "https" && url.scheme() != "https" {
        return Err(RemoteFailure::answer(host, "redirects from https to an open line"));
    }
    check_line(&url, plain_http)?;
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::RemoteOptions;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn redirects_stay_on_encrypted_lines() {
        let from = url("https://h.example/a/b.h5?x=1");
        for (location, leads_to) in [
            ("https://other.example/c?s=2", Some("https://other.example/c?s=2")),
            ("//other.example/c", Some("https://other.example/c")),
            ("c.h5", Some("https://h.example/a/c.h5")),
            ("http://h.example/a/b.h5", None),
            ("http://127.0.0.1/a/b.h5", None),
            ("ftp://h.example/a/b.h5", None),
            ("http://[", None),
        ] {
            for plain_http in [false, true] {
                let found = target("h.example", &from, location, plain_http).ok();
                assert_eq!(found.as_ref().map(Url::as_str), leads_to, "{location}");
            }
        }
        let near = url("http://localhost:9000/a");
        assert!(target("", &near, "http://h.example/a", false).is_err());
        assert!(target("", &near, "http://h.example/a", true).is_ok());
    }

    #[test]
    fn a_new_signature_is_no_other_object() {
        let line = HttpLine::new(&RemoteOptions::default(), Arc::default());
        let place = |text: &str| WebObject::new(&line, &url(text), false).unwrap().place();
        let plain = ("https://h.example".to_owned(), "/a.h5?id=1".to_owned());
        for text in [
            "https://h.example/a.h5?id=1",
            "https://user:hidden@h.example:443/a.h5?X-Amz-Signature=1&id=1&X-Amz-Date=2#part",
            "https://h.example/a.h5?se=2026&sig=abc&id=1&sv=2",
        ] {
            assert_eq!(place(text), plain, "{text}");
        }
        assert_ne!(place("https://h.example/a.h5?id=2"), plain);
    }
}
