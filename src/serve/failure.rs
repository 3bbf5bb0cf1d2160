//! Why a request has no answer, and the status that says so.

use hyper::StatusCode;

use super::access::Denied;
use crate::{fs, session, store};

/// Why a request has no answer.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RequestError {
    /// Nothing has this name.
    #[error("there is nothing of this name")]
    NotFound,
    /// S3 has one bucket, of another name.
    #[error("there is no such bucket")]
    NoBucket,
    /// The address makes no sense.
    #[error("{0}")]
    BadRequest(&'static str),
    /// The server has no such operation.
    #[error("this server has no such operation")]
    NotImplemented,
    /// The request has no right to read.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// The request is for another server.
    #[error("this server has another name: `--host NAME` gives it one")]
    OtherHost,
    /// The method would write, or is unknown.
    #[error("read-only: GET and HEAD are all there is")]
    Method,
    /// The condition of the request does not hold.
    #[error("the file is another one by now")]
    Precondition,
    /// The range lies behind the end of a file of this size.
    #[error("the range begins behind the end of the file")]
    Range(u64),
    /// A pass over values goes on.
    #[error("the size of this file takes a pass over its values, which goes on: ask again later")]
    Later,
    /// Too many passes go on.
    #[error("too much is being done at once: ask again later")]
    Busy,
    /// The source keeps changing.
    #[error("the source is changing: ask again later")]
    Changing,
    /// The file cannot be read.
    #[error("it cannot be read: {0}; .hepfs/errors may say more")]
    Unreadable(String),
    /// The server is at fault, or ends.
    #[error("the server failed")]
    Broken,
}

impl From<fs::Error> for RequestError {
    fn from(error: fs::Error) -> Self {
        match error {
            fs::Error::Session(session::Error::NotFound | session::Error::NotADirectory) => Self::NotFound,
            fs::Error::Session(session::Error::Stale) => Self::Changing,
            fs::Error::Session(session::Error::Interrupted) => Self::Later,
            fs::Error::Session(session::Error::Store(store::Error::NoMemory { .. })) => Self::Busy,
            error => Self::Unreadable(error.to_string()),
        }
    }
}

impl RequestError {
    /// The status of the answer.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::NotFound | Self::NoBucket => StatusCode::NOT_FOUND,
            Self::BadRequest(_) => StatusCode::BAD_REQUEST,
            Self::NotImplemented => StatusCode::NOT_IMPLEMENTED,
            Self::Denied(_) => StatusCode::FORBIDDEN,
            Self::OtherHost => StatusCode::MISDIRECTED_REQUEST,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::Precondition => StatusCode::PRECONDITION_FAILED,
            Self::Range(_) => StatusCode::RANGE_NOT_SATISFIABLE,
            Self::Later | Self::Busy | Self::Changing => StatusCode::SERVICE_UNAVAILABLE,
            Self::Unreadable(_) | Self::Broken => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// Seconds after which to ask again.
    pub fn retry_after(&self) -> Option<u64> {
        match self {
            Self::Later => Some(10),
            Self::Busy | Self::Changing => Some(2),
            _ => None,
        }
    }

    /// The code that S3 has for it.
    pub fn s3_code(&self) -> &'static str {
        match self {
            Self::NotFound => "NoSuchKey",
            Self::NoBucket => "NoSuchBucket",
            Self::BadRequest(_) | Self::OtherHost => "InvalidRequest",
            Self::NotImplemented => "NotImplemented",
            Self::Denied(Denied::UnknownKey) => "InvalidAccessKeyId",
            Self::Denied(Denied::WrongKey) => "SignatureDoesNotMatch",
            Self::Denied(Denied::NotNow) => "RequestTimeTooSkewed",
            Self::Denied(Denied::Malformed(_)) => "AuthorizationHeaderMalformed",
            Self::Denied(Denied::NoKey) => "AccessDenied",
            Self::Method => "MethodNotAllowed",
            Self::Precondition => "PreconditionFailed",
            Self::Range(_) => "InvalidRange",
            Self::Later | Self::Busy | Self::Changing => "SlowDown",
            Self::Unreadable(_) | Self::Broken => "InternalError",
        }
    }

    /// The exception that WebHDFS has for it.
    pub fn exception(&self) -> &'static str {
        match self {
            Self::NotFound | Self::NoBucket => "java.io.FileNotFoundException",
            Self::BadRequest(_) | Self::OtherHost | Self::Range(_) => "java.lang.IllegalArgumentException",
            Self::NotImplemented | Self::Method => "java.lang.UnsupportedOperationException",
            Self::Denied(_) => "org.apache.hadoop.security.AccessControlException",
            Self::Later | Self::Busy | Self::Changing => "org.apache.hadoop.ipc.RetriableException",
            Self::Precondition | Self::Unreadable(_) | Self::Broken => "java.io.IOException",
        }
    }

    /// Logs what is at fault in a file or the server.
    pub fn log(&self) {
        match self {
            Self::Unreadable(_) | Self::Broken => tracing::warn!("{self}"),
            _ => tracing::debug!("{self}"),
        }
    }
}
