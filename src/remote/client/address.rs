//! Addresses of objects.

use std::fmt::{self, Debug, Formatter};
use std::net::IpAddr;

use reqwest::Url;

use super::RemoteOptions;
use super::failure::RemoteFailure;
use super::unnamable::is_unnamable;

/// The address of an object, or of a folder of objects where it ends with `/`.
#[derive(Clone)]
pub struct Address {
    /// Without user and query, which may be secrets.
    shown: String,
    pub(super) place: AddressPlace,
}

/// Where an address leads.
#[derive(Clone)]
pub(super) enum AddressPlace {
    /// An object of a bucket.
    Bucket(BucketName, String),
    /// An object of a web server, with user and query.
    Web(Box<Url>),
}

/// The name of a bucket, which Azure calls a container.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct BucketName {
    pub provider: Provider,
    /// The account at Azure, where the address says it.
    pub account: Option<String>,
    pub bucket: String,
}

/// Who keeps buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Provider {
    Amazon,
    Google,
    Azure,
}

impl Address {
    /// Parses an address in its whole form: keys of buckets are taken as they are, paths of web servers as URLs.
    ///
    /// # Errors
    /// Where it leads nowhere, or over an open line to another computer without [`RemoteOptions::plain_http`].
    pub fn parse(text: &str, options: &RemoteOptions) -> Result<Self, RemoteFailure> {
        let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
        let provider = match scheme {
            "s3" => Provider::Amazon,
            "gs" => Provider::Google,
            "az" => Provider::Azure,
            "http" | "https" => {
                let url = Url::parse(text).map_err(|error| RemoteFailure::Setting(format!("no address: {error}")))?;
                check_line(&url, options.plain_http)?;
                return Ok(Self { shown: shown(&url), place: AddressPlace::Web(Box::new(url)) });
            }
            _ => return Err(RemoteFailure::Setting("no address of an object".to_owned())),
        };
        let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
        let (bucket, account) = match bucket.split_once('@') {
            Some((bucket, account)) if provider == Provider::Azure => (bucket, Some(account)),
            _ => (bucket, None),
        };
        // `ACCOUNT.blob.core.windows.net`, as Azure's own tools write it.
        let account = account.map(|account| account.split('.').next().unwrap_or(account).to_owned());
        if bucket.is_empty() || bucket.contains(['@', ':', '?', '#', '\\']) || account.as_deref() == Some("") {
            return Err(RemoteFailure::Setting("no name of a bucket".to_owned()));
        }
        if is_unnamable(key) {
            let reason = "keys with empty parts, `.`, `..` or control characters cannot be asked for";
            return Err(RemoteFailure::Setting(reason.to_owned()));
        }
        let name = BucketName { provider, account, bucket: bucket.to_owned() };
        Ok(Self { shown: text.to_owned(), place: AddressPlace::Bucket(name, key.to_owned()) })
    }

    /// Whether it names a folder.
    pub(super) fn is_folder(&self) -> bool {
        match &self.place {
            AddressPlace::Bucket(_, key) => key.is_empty() || key.ends_with('/'),
            AddressPlace::Web(url) => url.path().ends_with('/'),
        }
    }
}

/// Without secrets.
impl Debug for Address {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

/// The address without user, query and fragment.
fn shown(url: &Url) -> String {
    format!("{}{}", url.origin().ascii_serialization(), url.path())
}

/// The host and port of an address, for messages.
pub(super) fn host(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// Checks that others on the line cannot read along: `https`, or `http` within this computer.
pub(super) fn check_line(url: &Url, plain_http: bool) -> Result<(), RemoteFailure> {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    let is_near = host == "localhost" || address.is_ok_and(|address| address.is_loopback());
    match url.scheme() {
        "https" => Ok(()),
        "http" if plain_http || is_near => Ok(()),
        "http" => Err(RemoteFailure::Setting(format!(
            "http://{host} can be read and changed on its way; --plain-http permits it all the same"
        ))),
        scheme => Err(RemoteFailure::Setting(format!("{scheme}:// is no web server"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Address, RemoteFailure> {
        Address::parse(text, &RemoteOptions::default())
    }

    #[test]
    fn buckets_and_keys_are_taken_as_they_are() {
        for (text, provider, account, bucket, key) in [
            ("s3://b/run.h5", Provider::Amazon, None, "b", "run.h5"),
            ("s3://b/a b/100%?x=1#2/é.h5", Provider::Amazon, None, "b", "a b/100%?x=1#2/é.h5"),
            ("gs://b.c/runs/", Provider::Google, None, "b.c", "runs/"),
            ("s3://b", Provider::Amazon, None, "b", ""),
            ("az://c/x", Provider::Azure, None, "c", "x"),
            ("az://c@acc/x", Provider::Azure, Some("acc"), "c", "x"),
            ("az://c@acc.blob.core.windows.net/x", Provider::Azure, Some("acc"), "c", "x"),
        ] {
            let address = parse(text).unwrap();
            let AddressPlace::Bucket(name, found) = &address.place else { panic!("{text}") };
            let expected = BucketName { provider, account: account.map(str::to_owned), bucket: bucket.to_owned() };
            assert_eq!((name, found.as_str()), (&expected, key), "{text}");
            assert_eq!(format!("{address:?}"), text);
            assert_eq!(address.is_folder(), key.is_empty() || key.ends_with('/'));
        }
        for text in
            ["s3://", "s3:///x", "s3://user:secret@b/x", "s3://b/a//c", "s3://b/../x", "s3://b/a\nb", "az://c@/x"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_may_be_secret_is_not_shown() {
        let address = parse("https://user:hidden@h.example:8443/a%20b.h5?X-Amz-Signature=hidden#hidden").unwrap();
        assert_eq!(format!("{address:?}"), "https://h.example:8443/a%20b.h5");
    }

    #[test]
    fn open_lines_lead_to_this_computer_alone() {
        for text in ["http://127.0.0.1:80/x", "http://[::1]/x", "http://localhost:9000/x", "https://h.example/x"] {
            assert!(parse(text).is_ok(), "{text}");
        }
        for text in
            ["http://h.example/x", "http://10.0.0.1/x", "http://localhost.h.example/x", "http:///x", "ftp://h/x"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
        let plain = RemoteOptions { plain_http: true, ..Default::default() };
        assert!(Address::parse("http://h.example/x", &plain).is_ok());
    }
}
