//! An object, wherever it is kept.

use std::ops::Range;
use std::sync::Arc;

use super::bucket::Bucket;
use super::failure::RemoteFailure;
use super::line::{AnswerBody, HttpLine, ObjectFacts};
use super::web::WebObject;
use crate::source::Identity;

/// An object of a bucket or of a web server.
#[derive(Clone)]
pub(super) enum AnyObject {
    InBucket(Arc<Bucket>, String),
    OnWeb(HttpLine, WebObject),
}

impl AnyObject {
    /// The server, for messages.
    pub fn host(&self) -> String {
        match self {
            Self::InBucket(bucket, _) => bucket.host().to_owned(),
            Self::OnWeb(_, object) => object.host(),
        }
    }

    /// Asks for size and version of the object.
    pub async fn head(&self, trust_mtime: bool) -> Result<ObjectFacts, RemoteFailure> {
        match self {
            Self::InBucket(bucket, key) => bucket.head(key).await,
            Self::OnWeb(line, object) => object.head(line, trust_mtime).await,
        }
    }

    /// Asks for a range of a version.
    pub async fn get(&self, range: &Range<u64>, facts: &ObjectFacts) -> Result<AnswerBody, RemoteFailure> {
        match self {
            Self::InBucket(bucket, key) => bucket.get(key, range, facts).await,
            Self::OnWeb(line, object) => object.get(line, range, facts).await,
        }
    }

    /// The identity of a version. The bucket was asked before.
    pub fn identity(&self, facts: &ObjectFacts) -> Identity {
        match self {
            Self::InBucket(bucket, key) => facts.identity(bucket.endpoint(), bucket.name(), key),
            Self::OnWeb(_, object) => {
                let (server, key) = object.place();
                facts.identity(&server, "", &key)
            }
        }
    }
}
