//! Who may read: keys, signatures (AWS Signature Version 4), the names of this server, pages of other origins.

use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use hyper::header::{AUTHORIZATION, HOST, HeaderMap};
use hyper::http::request::Parts;
use sha2::{Digest, Sha256};

use super::target::{RequestTarget, decoded};
use super::walk::hex;
use crate::calendar;
use crate::query::hexadecimal;
use crate::views::page::percent_encoded;

/// The public half of a key: the access key id of S3, and the usual user name.
pub const KEY_ID: &str = "hepfs";

/// How far the clock of a client may be off.
const SKEW: Duration = Duration::from_secs(15 * 60);

/// Longest time that a signed address may hold, in seconds: seven days, as with S3.
const LONGEST: u64 = 7 * 24 * 3600;

/// The one algorithm.
const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// The hash of no content.
const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// The right to read.
#[derive(Clone)]
pub struct AccessKey {
    /// The public half.
    pub id: String,
    /// The secret half, which by itself is enough outside of S3.
    pub secret: String,
}

/// Who may read.
pub struct Access {
    /// `None`: each client that reaches the port.
    pub key: Option<AccessKey>,
    /// Names of this server. `None`: a client may call it anything, since no browser reaches it.
    pub hosts: Option<Vec<String>>,
    /// The origin whose pages may read.
    pub cors: Option<String>,
}

/// Why a request may not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// It has no key.
    #[error("a key is needed: the server printed it at its start")]
    NoKey,
    /// It names a key that does not exist.
    #[error("no such key")]
    UnknownKey,
    /// Its key or signature is wrong.
    #[error("the key or the signature is wrong")]
    WrongKey,
    /// It was signed at another time, or no longer holds.
    #[error("signed too long ago, or by a clock that is off by more than 15 minutes")]
    NotNow,
    /// Its signature cannot be read.
    #[error("a signature that cannot be read: {0}")]
    Malformed(&'static str),
}

impl Access {
    /// Takes a key off the front of a path, `~KEY/…`.
    pub fn strip(&self, path: &mut Vec<Vec<u8>>) -> bool {
        let Some(key) = &self.key else { return false };
        let given = path.first().and_then(|first| first.strip_prefix(b"~"));
        let is_key = given.is_some_and(|given| key.is(given));
        if is_key {
            path.remove(0);
        }
        is_key
    }

    /// Whether a request may read, apart from a key in its path.
    ///
    /// # Errors
    /// See [`Denied`].
    pub fn admit(&self, request: &Parts, target: &RequestTarget, now: SystemTime) -> Result<(), Denied> {
        let Some(key) = &self.key else { return Ok(()) };
        if is_signed(&request.headers, target) {
            return Signature::of(&request.headers, target)?.verify(request, target, key, now);
        }
        let header = request.headers.get(AUTHORIZATION).ok_or(Denied::NoKey)?;
        let (scheme, given) = header.to_str().ok().and_then(|text| text.split_once(' ')).ok_or(Denied::WrongKey)?;
        let is_key = match scheme.to_ascii_lowercase().as_str() {
            "bearer" => key.is(given.trim().as_bytes()),
            "basic" => STANDARD.decode(given.trim()).is_ok_and(|pair| {
                let colon = pair.iter().position(|byte| *byte == b':');
                colon.and_then(|colon| pair.get(colon + 1..)).is_some_and(|given| key.is(given))
            }),
            _ => false,
        };
        if is_key { Ok(()) } else { Err(Denied::WrongKey) }
    }

    /// Whether the client calls this server by one of its names. A page whose own name leads here (DNS rebinding)
    /// calls it by that name.
    pub fn knows_host(&self, request: &Parts) -> bool {
        let Some(hosts) = &self.hosts else { return true };
        let given = request.headers.get(HOST).and_then(|host| host.to_str().ok());
        let given = given.or_else(|| Some(request.uri.authority()?.as_str())).unwrap_or_default();
        hosts.iter().any(|host| host.eq_ignore_ascii_case(without_port(given)))
    }
}

/// The name in `NAME:PORT`; an IPv6 address keeps its brackets.
pub fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if !name.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

impl AccessKey {
    /// Compares a secret in a time that does not depend on it.
    fn is(&self, given: &[u8]) -> bool {
        // Codes of both under one key, of which the comparison tells nothing.
        let own = new_mac(b"hepfs").chain_update(&self.secret).finalize().into_bytes();
        new_mac(b"hepfs").chain_update(given).verify_slice(&own).is_ok()
    }
}

fn new_mac(key: &[u8]) -> Hmac<Sha256> {
    // HMAC takes keys of any length, so this never fails.
    Hmac::new_from_slice(key).unwrap_or_else(|_| Hmac::new(&Default::default()))
}

fn mac(key: &[u8], text: &str) -> [u8; 32] {
    new_mac(key).chain_update(text.as_bytes()).finalize().into_bytes().into()
}

/// Whether a request is signed as those to S3 are.
pub fn is_signed(headers: &HeaderMap, target: &RequestTarget) -> bool {
    let header = headers.get(AUTHORIZATION).is_some_and(|header| header.as_bytes().starts_with(ALGORITHM.as_bytes()));
    header || target.parameter("X-Amz-Signature").is_some()
}

/// A signature and what it was made of.
struct Signature {
    key_id: String,
    /// `DATE/REGION/s3/aws4_request`
    scope: String,
    signed_headers: String,
    signature: Vec<u8>,
    /// When it was made, as written and in seconds since the epoch.
    written: String,
    made: u64,
    /// Seconds for which a signed address holds; `None`: a header.
    holds: Option<u64>,
}

impl Signature {
    fn of(headers: &HeaderMap, target: &RequestTarget) -> Result<Self, Denied> {
        let is_address = target.parameter("X-Amz-Signature").is_some();
        let fields: Vec<(String, String)> = if is_address {
            let names = ["Algorithm", "Credential", "SignedHeaders", "Signature", "Date", "Expires"];
            let values = names.map(|name| Some((name.to_owned(), target.parameter(&format!("X-Amz-{name}"))?)));
            values.into_iter().flatten().collect()
        } else {
            let header = headers.get(AUTHORIZATION).and_then(|header| header.to_str().ok());
            let fields = header.and_then(|header| header.strip_prefix(ALGORITHM)).unwrap_or_default().split(',');
            let fields = fields.filter_map(|field| field.trim().split_once('='));
            let date = headers.get("x-amz-date").and_then(|date| Some(("Date", date.to_str().ok()?)));
            fields.chain(date).map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
        };
        if is_address && field(&fields, "Algorithm")? != ALGORITHM {
            return Err(Denied::Malformed("Algorithm"));
        }
        let (credential, written) = (field(&fields, "Credential")?, field(&fields, "Date")?);
        let (key_id, scope) = credential.split_once('/').ok_or(Denied::Malformed("Credential"))?;
        let made = seconds(&written).ok_or(Denied::Malformed("Date"))?;
        let parts: Vec<&str> = scope.split('/').collect();
        if !matches!(parts[..], [date, _, "s3", "aws4_request"] if written.starts_with(date) && date.len() == 8) {
            return Err(Denied::Malformed("Credential"));
        }
        let holds = match is_address {
            true => Some(field(&fields, "Expires")?.parse().ok().filter(|holds| *holds <= LONGEST)),
            false => None,
        };
        Ok(Self {
            key_id: key_id.to_owned(),
            scope: scope.to_owned(),
            signed_headers: field(&fields, "SignedHeaders")?,
            signature: hexadecimal(field(&fields, "Signature")?.as_bytes()).ok_or(Denied::Malformed("Signature"))?,
            written,
            made,
            holds: holds.map(|holds| holds.ok_or(Denied::Malformed("Expires"))).transpose()?,
        })
    }

    fn verify(&self, request: &Parts, target: &RequestTarget, key: &AccessKey, now: SystemTime) -> Result<(), Denied> {
        if self.key_id != key.id {
            return Err(Denied::UnknownKey);
        }
        let mut names = self.signed_headers.split(';');
        if !names.any(|name| name == "host") {
            return Err(Denied::Malformed("SignedHeaders"));
        }
        let parts: Vec<&str> = self.scope.split('/').collect();
        let seed = format!("AWS4{}", key.secret).into_bytes();
        let signing = parts.iter().fold(seed, |key, part| mac(&key, part).to_vec());
        // S3 encodes each byte of a path once. Some clients sign a path as they send it.
        let canonical = percent_encoded(&decoded(&target.raw_path).unwrap_or_default(), b"/");
        let is_right = [canonical, target.raw_path.clone()].iter().any(|path| {
            let hash = hex(&Sha256::digest(self.canonical(request, target, path)));
            let text = format!("{ALGORITHM}\n{}\n{}\n{hash}", self.written, self.scope);
            new_mac(&signing).chain_update(text.as_bytes()).verify_slice(&self.signature).is_ok()
        });
        if !is_right {
            return Err(Denied::WrongKey);
        }
        let now = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        let is_early = self.made > now.saturating_add(SKEW.as_secs());
        let is_late = now > self.made.saturating_add(self.holds.unwrap_or(SKEW.as_secs()));
        if is_early || is_late { Err(Denied::NotNow) } else { Ok(()) }
    }

    /// The canonical form of a request, whose hash is signed.
    fn canonical(&self, request: &Parts, target: &RequestTarget, path: &str) -> String {
        let parameters = target.parameters.iter().filter(|(name, _)| name != b"X-Amz-Signature");
        let mut parameters: Vec<(String, String)> =
            parameters.map(|(name, value)| (percent_encoded(name, b""), percent_encoded(value, b""))).collect();
        parameters.sort_unstable();
        let query: Vec<String> = parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let mut text = format!("{}\n{path}\n{}\n", request.method, query.join("&"));
        for name in self.signed_headers.split(';') {
            let values = request.headers.get_all(name).iter();
            let values = values.map(|value| {
                let words = value.as_bytes().split(|byte| *byte == b' ').filter(|word| !word.is_empty());
                String::from_utf8_lossy(&words.collect::<Vec<_>>().join(&b' ')).into_owned()
            });
            text.push_str(&format!("{name}:{}\n", values.collect::<Vec<_>>().join(",")));
        }
        let payload = request.headers.get("x-amz-content-sha256").and_then(|hash| hash.to_str().ok());
        let payload = payload.unwrap_or(if self.holds.is_some() { "UNSIGNED-PAYLOAD" } else { EMPTY });
        text + "\n" + &self.signed_headers + "\n" + payload
    }
}

/// The value of a field of a signature.
fn field(fields: &[(String, String)], name: &'static str) -> Result<String, Denied> {
    let found = fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    found.ok_or(Denied::Malformed(name))
}

/// The seconds since the epoch of `20130524T000000Z`.
fn seconds(text: &str) -> Option<u64> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    if date.len() != 8 || time.len() != 6 || !date.bytes().chain(time.bytes()).all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (date, time): (u32, u64) = (date.parse().ok()?, time.parse().ok()?);
    let day = calendar::day((date / 10_000).into(), date / 100 % 100, date % 100)?;
    let in_day = time / 10_000 * 3600 + time / 100 % 100 * 60 + time % 100;
    u64::try_from(day).ok()?.checked_mul(86_400)?.checked_add(in_day)
}

#[cfg(test)]
mod tests {
    use hyper::Request;

    use super::*;

    /// The key of the examples in Amazon's documentation of S3.
    fn access() -> Access {
        let key = AccessKey {
            id: "AKIAIOSFODNN7EXAMPLE".to_owned(),
            secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".to_owned(),
        };
        Access { key: Some(key), hosts: Some(vec!["localhost".to_owned()]), cors: None }
    }

    /// Some seconds after the beginning of 24 May 2013.
    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_369_353_600 + seconds)
    }

    fn asked(uri: &str, headers: &[(&str, &str)], now: SystemTime) -> Result<(), Denied> {
        let mut request = Request::builder().uri(uri).header("host", "examplebucket.s3.amazonaws.com");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let target = RequestTarget::parse(&parts.uri).unwrap();
        access().admit(&parts, &target, now)
    }

    fn signed(uri: &str, range: Option<&str>, signature: &str, now: SystemTime) -> Result<(), Denied> {
        let names = if range.is_some() { "host;range;" } else { "host;" };
        let authorization = format!(
            "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,\
             SignedHeaders={names}x-amz-content-sha256;x-amz-date,Signature={signature}"
        );
        let mut headers = vec![
            ("authorization", authorization.as_str()),
            ("x-amz-content-sha256", EMPTY),
            ("x-amz-date", "20130524T000000Z"),
        ];
        headers.extend(range.map(|range| ("range", range)));
        asked(uri, &headers, now)
    }

    /// The examples of "Signature Calculations for the Authorization Header" in Amazon's documentation.
    #[test]
    fn signatures_of_the_documentation_are_taken() {
        let object = "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41";
        let lifecycle = "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543";
        let list = "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7";
        assert_eq!(signed("/test.txt", Some("bytes=0-9"), object, at(0)), Ok(()));
        assert_eq!(signed("/?lifecycle", None, lifecycle, at(900)), Ok(()));
        assert_eq!(signed("/?max-keys=2&prefix=J", None, list, at(0)), Ok(()));

        assert_eq!(signed("/test.txt", Some("bytes=0-8"), object, at(0)), Err(Denied::WrongKey));
        assert_eq!(signed("/test.tx", Some("bytes=0-9"), object, at(0)), Err(Denied::WrongKey));
        assert_eq!(signed("/test.txt", Some("bytes=0-9"), object, at(901)), Err(Denied::NotNow));
        let early = SystemTime::UNIX_EPOCH + Duration::from_secs(1_369_353_600 - 901);
        assert_eq!(signed("/test.txt", Some("bytes=0-9"), object, early), Err(Denied::NotNow));
        for malformed in ["", "f", "xy", &"0".repeat(10_000)] {
            assert!(signed("/test.txt", Some("bytes=0-9"), malformed, at(0)).is_err());
        }
    }

    /// The example of "Authenticating Requests: Using Query Parameters" there.
    #[test]
    fn a_signed_address_of_the_documentation_is_taken() {
        let address = |holds: &str, signature: &str| {
            format!(
                "/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2F\
                 us-east-1%2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires={holds}\
                 &X-Amz-SignedHeaders=host&X-Amz-Signature={signature}"
            )
        };
        let signature = "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404";
        let address_of_day = address("86400", signature);
        assert_eq!(asked(&address_of_day, &[], at(86_400)), Ok(()));
        assert_eq!(asked(&address_of_day, &[], at(86_401)), Err(Denied::NotNow));
        assert_eq!(asked(&address("86401", signature), &[], at(0)), Err(Denied::WrongKey));
        assert_eq!(asked(&address("604801", signature), &[], at(0)), Err(Denied::Malformed("Expires")));
        assert_eq!(asked(&address("-1", signature), &[], at(0)), Err(Denied::Malformed("Expires")));
    }

    #[test]
    fn a_secret_alone_is_taken_as_bearer_and_password() {
        let secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
        let basic = |text: &str| format!("Basic {}", STANDARD.encode(text));
        for (authorization, answer) in [
            (format!("Bearer {secret}"), Ok(())),
            (format!("bearer {secret}"), Ok(())),
            (format!("Bearer {secret}x"), Err(Denied::WrongKey)),
            (basic(&format!("anyone:{secret}")), Ok(())),
            (basic(secret), Err(Denied::WrongKey)),
            ("Basic !".to_owned(), Err(Denied::WrongKey)),
            ("Digest x".to_owned(), Err(Denied::WrongKey)),
        ] {
            assert_eq!(asked("/a", &[("authorization", &authorization)], at(0)), answer, "{authorization}");
        }
        assert_eq!(asked("/a", &[], at(0)), Err(Denied::NoKey));
    }

    #[test]
    fn a_server_knows_its_names() {
        let called = |host: &str| {
            let (parts, ()) = Request::builder().uri("/").header("host", host).body(()).unwrap().into_parts();
            access().knows_host(&parts)
        };
        assert!(called("localhost") && called("LOCALHOST:1"));
        assert!(!called("evil.example") && !called("") && !called("localhost.evil.example:9000"));
        assert_eq!(without_port("[::1]:9000"), "[::1]");
        assert_eq!(without_port("[::1]"), "[::1]");
    }
}
