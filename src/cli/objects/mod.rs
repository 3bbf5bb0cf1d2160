//! Options for objects in stores, and the secrets in their addresses.

pub(super) mod signed;

use std::ffi::OsString;
#[cfg(feature = "remote")]
use std::sync::Arc;
use std::time::Duration;

use clap::Args;

use super::Error;
use super::sizes::size;
#[cfg(feature = "remote")]
use crate::remote::{RemoteOptions, RemoteStores};
use crate::source::Opener;
use crate::store::Store;

/// How objects in stores are asked for.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Objects in stores")]
pub(super) struct ObjectOptions {
    /// Server of s3://, gs:// and az:// addresses, such as http://localhost:9000 [default: that of the provider]
    #[arg(long, value_name = "URL")]
    endpoint: Option<String>,

    /// Region of the buckets of s3:// [default: that of the environment or profile, or the one that the store names]
    #[arg(long, value_name = "REGION")]
    region: Option<String>,

    /// Profile in ~/.aws/config and ~/.aws/credentials [default: $AWS_PROFILE, or `default`]
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,

    /// Ask without credentials, as for public buckets
    #[arg(long)]
    anonymous: bool,

    /// Allow http:// to other computers: others on the way can read and change what is sent
    #[arg(long)]
    pub plain_http: bool,

    /// Take objects without a strong entity tag, whose versions are told apart by size and time alone
    #[arg(long)]
    trust_mtime: bool,

    /// Verify search indexes of objects in the background, as those of files: that fetches whole columns
    #[arg(long)]
    pub verify: bool,

    /// Most requests in flight
    #[arg(long, value_name = "NUMBER", default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=1024))]
    connections: u64,

    /// Seconds after which a read gives up on a store that sends nothing
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    network_deadline: u64,

    /// Seconds after which a store is asked anew whether an object has changed
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(0..=86_400))]
    revalidate: u64,

    /// Bytes of an object that may be fetched before they are asked for; 0: none
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "256M")]
    ahead: u64,

    /// Most bytes of objects to keep in the cache folder, without values; `none`: nothing
    #[arg(long, value_name = "SIZE|none", value_parser = |text: &str| if text == "none" { Ok(0) } else { size(text) }, default_value = "4G")]
    remote_cache_size: u64,
}

impl ObjectOptions {
    /// Opens files, and objects whose bytes take their memory from the budget of `store`, and are kept in its cache
    /// folder.
    ///
    /// # Errors
    /// [`Error::Options`] if a value cannot be used.
    #[cfg(feature = "remote")]
    pub fn opener(&self, store: &Store) -> Result<Opener, Error> {
        let options = RemoteOptions {
            endpoint: self.endpoint.clone(),
            region: self.region.clone(),
            profile: self.profile.clone(),
            anonymous: self.anonymous,
            plain_http: self.plain_http,
            trust_mtime: self.trust_mtime,
            connections: self.connections as usize,
            network_deadline: Duration::from_secs(self.network_deadline),
            revalidate: self.revalidate(),
            ahead: Some(self.ahead),
            kept: store.kept().below("objects", self.remote_cache_size),
            signed: signed::whole(),
        };
        let stores = RemoteStores::new(options, store.budget()).map_err(|error| Error::Options(error.to_string()))?;
        Ok(Opener::new(Arc::new(stores)))
    }

    /// Opens files.
    #[cfg(not(feature = "remote"))]
    pub fn opener(&self, _: &Store) -> Result<Opener, Error> {
        Ok(Opener::default())
    }

    /// How long an answer about an object serves.
    pub fn revalidate(&self) -> Duration {
        Duration::from_secs(self.revalidate)
    }

    /// These options as arguments for the background process.
    pub fn arguments(&self) -> impl Iterator<Item = OsString> {
        let texts = [("endpoint", &self.endpoint), ("region", &self.region), ("profile", &self.profile)];
        let texts = texts.into_iter().filter_map(|(name, text)| Some(format!("--{name}={}", text.as_ref()?)));
        let switches = [
            ("--anonymous", self.anonymous),
            ("--plain-http", self.plain_http),
            ("--trust-mtime", self.trust_mtime),
            ("--verify", self.verify),
        ];
        let switches = switches.into_iter().filter(|(_, is_on)| *is_on).map(|(name, _)| name.to_owned());
        let numbers = [
            ("connections", self.connections),
            ("network-deadline", self.network_deadline),
            ("revalidate", self.revalidate),
            ("ahead", self.ahead),
            ("remote-cache-size", self.remote_cache_size),
        ];
        let numbers = numbers.into_iter().map(|(name, number)| format!("--{name}={number}"));
        texts.chain(switches).chain(numbers).map(OsString::from).collect::<Vec<_>>().into_iter()
    }
}
