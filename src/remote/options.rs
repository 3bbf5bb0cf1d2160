//! How objects are asked for, as the user says it.

use std::collections::BTreeMap;
use std::fmt::{self, Debug, Formatter};
use std::path::PathBuf;
use std::time::Duration;

use crate::store::KeptFolder;

/// How objects are asked for.
#[derive(Clone)]
pub struct RemoteOptions {
    /// The address of the server of `s3://`, `gs://` and `az://`, in place of the provider's own.
    pub endpoint: Option<String>,
    /// The region of the buckets of `s3://`. `None`: that of the environment or the profile; else a store says it.
    pub region: Option<String>,
    /// The profile in the files of the AWS command line. `None`: that of `AWS_PROFILE`, or `default`.
    pub profile: Option<String>,
    /// Whether to ask without credentials.
    pub anonymous: bool,
    /// Whether `http://` may lead to other computers.
    pub plain_http: bool,
    /// Whether size and time stand for the version of an object that has no strong entity tag.
    pub trust_mtime: bool,
    /// Most requests in flight.
    pub connections: usize,
    /// Longest time in which no byte arrives.
    pub network_deadline: Duration,
    /// Longest time for which an answer about the version at an address serves.
    pub revalidate: Duration,
    /// Most bytes of a source that are fetched before they are asked for. `None`: as many as pay.
    pub ahead: Option<u64>,
    /// The disk cache.
    pub kept: KeptFolder,
    /// Whole addresses by those shown, where they differ: with a user or a signature, which are secrets.
    pub signed: BTreeMap<PathBuf, String>,
}

impl Default for RemoteOptions {
    fn default() -> Self {
        Self {
            endpoint: None,
            region: None,
            profile: None,
            anonymous: false,
            plain_http: false,
            trust_mtime: false,
            connections: 64,
            network_deadline: Duration::from_secs(60),
            revalidate: Duration::from_secs(60),
            ahead: Some(256 << 20),
            kept: KeptFolder::none(),
            signed: BTreeMap::new(),
        }
    }
}

/// Without secrets.
impl Debug for RemoteOptions {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteOptions")
            .field("endpoint", &self.endpoint)
            .field("region", &self.region)
            .finish_non_exhaustive()
    }
}
