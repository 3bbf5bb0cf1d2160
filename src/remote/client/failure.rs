//! Why a store did not give an object.

use std::io;
use std::path::Path;
use std::time::Duration;

use reqwest::StatusCode;

use crate::source;

/// Why a store did not give what it was asked for. Its words name the host, never a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RemoteFailure {
    /// The address, an option or a profile says something that cannot be done.
    #[error("{0}")]
    Setting(String),
    /// A web server has no lists of objects.
    #[error("web servers have no lists: name the objects themselves")]
    NoLists,
    /// No credentials came from where the environment or a profile says that they are.
    #[error("no credentials: {0}")]
    Credentials(String),
    /// The server refused.
    #[error("{host}: {}{}{}", words(*.status), in_brackets(.code), hint.as_deref().unwrap_or_default())]
    Status {
        /// The server.
        host: String,
        /// Its answer (RFC 9110 §15).
        status: u16,
        /// The word of the store for it, such as `AccessDenied`.
        code: Option<String>,
        /// More, for the end of the message.
        hint: Option<String>,
        /// When to ask again.
        retry_after: Option<Duration>,
        /// The region in which the bucket lies instead.
        region: Option<String>,
    },
    /// No connection, or one that broke.
    #[error("{host}: {reason}")]
    Network {
        /// The server.
        host: String,
        /// In the words of the network.
        reason: String,
    },
    /// No byte came for this time.
    #[error("{host}: no answer for {:.1} s", .time.as_secs_f64())]
    Silent {
        /// The server.
        host: String,
        /// How long nothing came.
        time: Duration,
    },
    /// The answer does not fit the request.
    #[error("{host}: {reason}")]
    Answer {
        /// The server.
        host: String,
        /// How it differs.
        reason: String,
    },
    /// The store has another version.
    #[error("{host}: has another version of it by now")]
    Changed {
        /// The server.
        host: String,
    },
}

fn words(status: u16) -> String {
    let reason = StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
    reason.map_or_else(|| status.to_string(), |reason| format!("{status} {reason}"))
}

fn in_brackets(code: &Option<String>) -> String {
    code.as_ref().map_or_else(String::new, |code| format!(" ({code})"))
}

impl RemoteFailure {
    /// An answer that does not fit the request.
    pub(super) fn answer(host: &str, reason: impl Into<String>) -> Self {
        Self::Answer { host: host.to_owned(), reason: reason.into() }
    }

    /// Whether the same request may succeed later.
    pub(super) fn may_pass(&self) -> bool {
        match self {
            Self::Status { status, .. } => matches!(status, 408 | 429 | 500 | 502 | 503 | 504),
            Self::Network { .. } | Self::Silent { .. } => true,
            _ => false,
        }
    }

    /// The failure as an error of the system.
    pub fn io(self) -> io::Error {
        let kind = match &self {
            Self::Status { status: 404 | 410, .. } => io::ErrorKind::NotFound,
            Self::Status { status: 401 | 403, .. } | Self::Credentials(_) => io::ErrorKind::PermissionDenied,
            Self::Setting(_) => io::ErrorKind::InvalidInput,
            Self::NoLists => io::ErrorKind::Unsupported,
            Self::Silent { .. } => io::ErrorKind::TimedOut,
            Self::Answer { .. } => io::ErrorKind::InvalidData,
            Self::Status { .. } | Self::Network { .. } | Self::Changed { .. } => io::ErrorKind::Other,
        };
        io::Error::new(kind, self)
    }

    /// The failure as an error of the source at an address.
    pub fn at(self, address: &Path) -> source::Error {
        match self {
            Self::Changed { .. } => source::Error::Changed(address.to_owned()),
            failure => source::Error::Io { path: address.to_owned(), error: failure.io() },
        }
    }
}
