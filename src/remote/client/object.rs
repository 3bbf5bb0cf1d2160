//! An object, wherever it is kept.

use std::ops::Range;
use std::sync::Arc;

use super::bucket::Bucket;
use super::failure::Failure;
use super::line::{Body, Facts, Line};
use super::web::WebObject;
use crate::source::Identity;

/// An object of a bucket or of a web server.
#[derive(Clone)]
pub(super) enum Object {
    InBucket(Arc<Bucket>, String),
    OnWeb(Line, WebObject),
}

impl Object {
    /// The server, for messages.
    pub fn host(&self) -> String {
        match self {
            Self::InBucket(bucket, _) => bucket.host().to_owned(),
            Self::OnWeb(_, object) => object.host(),
        }
    }

    /// Asks for size and version of the object.
    pub async fn head(&self, trust_mtime: bool) -> Result<Facts, Failure> {
        match self {
            Self::InBucket(bucket, key) => bucket.head(key).await,
            Self::OnWeb(line, object) => object.head(line, trust_mtime).await,
        }
    }

    /// Asks for a range of a version.
    pub async fn get(&self, range: &Range<u64>, facts: &Facts) -> Result<Body, Failure> {
        match self {
            Self::InBucket(bucket, key) => bucket.get(key, range, facts).await,
            Self::OnWeb(line, object) => object.get(line, range, facts).await,
        }
    }

    /// The identity of a version. The bucket was asked before.
    pub fn identity(&self, facts: &Facts) -> Identity {
        match self {
            Self::InBucket(bucket, key) => facts.identity(bucket.endpoint(), bucket.name(), key),
            Self::OnWeb(_, object) => {
                let (server, key) = object.place();
                facts.identity(&server, "", &key)
            }
        }
    }
}
