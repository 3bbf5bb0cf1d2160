//! Buckets of stores, by `object_store`.

use std::borrow::Cow;
use std::env;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::StreamExt;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::list::{PaginatedListOptions, PaginatedListStore};
use object_store::path::Path;
use object_store::{CredentialProvider, GetOptions, GetRange, ObjectStore, RetryConfig, StaticCredentialProvider};
use reqwest::Url;
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::RemoteOptions;
use super::address::{BucketName, Provider, check_line};
use super::failure::RemoteFailure;
use super::line::{AnswerBody, ExpectedAnswer, HttpLine, ObjectFacts, Validator, cause, failure_in};
use super::profile::{AwsProfile, KeySource};

/// Longest wait for credentials of the instance: most computers have no such service, and public buckets ask for no
/// credentials.
const OF_INSTANCE: Duration = Duration::from_secs(2);

/// Most entries of a page of a listing: no store gives more.
const PAGE: usize = 1000;

/// A bucket.
#[derive(Debug)]
pub(super) struct Bucket {
    name: BucketName,
    options: RemoteOptions,
    line: HttpLine,
    state: Mutex<State>,
    /// Those of the client, without waiting for it.
    endpoint: OnceLock<String>,
    host: OnceLock<String>,
}

#[derive(Debug, Default)]
struct State {
    client: Option<Arc<Client>>,
    /// The region that the store has named.
    region: Option<String>,
}

/// How a bucket is asked.
#[derive(Debug)]
struct Client {
    store: Arc<dyn Both>,
    /// The store, for the identity of objects.
    endpoint: String,
    /// The server, for messages.
    host: String,
    /// The region that is asked, at Amazon.
    region: Option<String>,
    /// Why no credentials were found. `None`: there are some, or none are wanted.
    without: Option<String>,
}

trait Both: ObjectStore + PaginatedListStore {}

impl<T: ObjectStore + PaginatedListStore> Both for T {}

/// A page of a listing.
#[derive(Debug, Default)]
pub(super) struct ListPage {
    /// Keys of folders, without the slash at their ends.
    pub folders: Vec<String>,
    /// Keys of objects, what the list says of them, and whether that tells their versions.
    pub objects: Vec<(String, ObjectFacts, bool)>,
    /// Keys, and prefixes with the slash at their ends, that no path can name.
    pub unnamable: Vec<String>,
    /// The token to ask with for the next page.
    pub next: Option<String>,
}

impl Bucket {
    pub fn new(name: BucketName, options: RemoteOptions, line: HttpLine) -> Self {
        Self { name, options, line, state: Mutex::default(), endpoint: OnceLock::new(), host: OnceLock::new() }
    }

    /// The store, as the identity of its objects names it. It is known once the bucket was asked.
    pub fn endpoint(&self) -> &str {
        self.endpoint.get().map_or("", String::as_str)
    }

    /// The server, for messages.
    pub fn host(&self) -> &str {
        self.host.get().map_or(&self.name.bucket, String::as_str)
    }

    /// The name of the bucket.
    pub fn name(&self) -> &str {
        &self.name.bucket
    }

    /// Asks for size and version of an object.
    pub async fn head(&self, key: &str) -> Result<ObjectFacts, RemoteFailure> {
        loop {
            let client = self.client().await?;
            match self.ask(&client, key, None, ExpectedAnswer::Success).await {
                Ok(answer) => {
                    let meta = answer.meta;
                    let modified = Some(meta.last_modified.timestamp()).filter(|seconds| *seconds != 0);
                    let trust = self.options.trust_mtime;
                    return ObjectFacts::new(&client.host, meta.size, meta.e_tag, meta.version, modified, trust);
                }
                Err(failure) => self.mend(&client, failure).await?,
            }
        }
    }

    /// Asks for a range of a version.
    pub async fn get(&self, key: &str, range: &Range<u64>, facts: &ObjectFacts) -> Result<AnswerBody, RemoteFailure> {
        loop {
            let client = self.client().await?;
            let (size, version) = (facts.size, facts.version.clone());
            let expected = ExpectedAnswer::Part { range: range.clone(), size, version };
            match self.ask(&client, key, Some(range), expected).await {
                Ok(answer) => {
                    let host = client.host.clone();
                    return Ok(answer
                        .into_stream()
                        .map(move |bytes| bytes.map_err(|error| broken(&host, &error)))
                        .boxed());
                }
                Err(failure) => self.mend(&client, failure).await?,
            }
        }
    }

    async fn ask(
        &self,
        client: &Client,
        key: &str,
        range: Option<&Range<u64>>,
        expected: ExpectedAnswer,
    ) -> Result<object_store::GetResult, RemoteFailure> {
        let mut options = GetOptions { head: range.is_none(), ..Default::default() };
        options.range = range.map(|range| GetRange::Bounded(range.clone()));
        match &expected {
            ExpectedAnswer::Part { version: Validator::Tag(tag), .. } => options.if_match = Some(tag.clone()),
            ExpectedAnswer::Part { version: Validator::Number(number), .. } => options.version = Some(number.clone()),
            ExpectedAnswer::Part { version: Validator::Modified(_), .. }
            | ExpectedAnswer::Success
            | ExpectedAnswer::List(_) => {}
        }
        options.extensions.insert(expected);
        let path = Path::parse(key).map_err(|error| RemoteFailure::Setting(error.to_string()))?;
        client.store.get_opts(&path, options).await.map_err(|error| failure_in(&client.host, &error))
    }

    /// Asks for a page of the keys and folders below a prefix.
    pub async fn list(&self, prefix: &str, page_token: Option<String>) -> Result<ListPage, RemoteFailure> {
        loop {
            let client = self.client().await?;
            let mut options = PaginatedListOptions {
                delimiter: Some(Cow::Borrowed("/")),
                max_keys: Some(PAGE),
                page_token: page_token.clone(),
                ..Default::default()
            };
            let unnamable = Arc::default();
            options.extensions.insert(ExpectedAnswer::List(Arc::clone(&unnamable)));
            let prefix = Some(prefix).filter(|prefix| !prefix.is_empty());
            let answer = client.store.list_paginated(prefix, options).await;
            let found = match answer.map_err(|error| failure_in(&client.host, &error)) {
                Ok(found) => found,
                Err(failure) => {
                    self.mend(&client, failure).await?;
                    continue;
                }
            };
            let objects = found.result.objects.into_iter().map(|meta| {
                // Azure writes tags without quotes here.
                let tag = meta.e_tag.map(|tag| if tag.contains('"') { tag } else { format!("\"{tag}\"") });
                let modified = Some(meta.last_modified.timestamp());
                let trust = self.options.trust_mtime;
                let facts = ObjectFacts::new(&client.host, meta.size, tag, meta.version, modified, trust);
                let is_sure = facts.is_ok();
                let seconds = meta.last_modified.timestamp();
                let facts = facts.unwrap_or_else(|_| {
                    let version = Validator::Modified(seconds);
                    ObjectFacts { size: meta.size, version, modified: seconds }
                });
                (meta.location.to_string(), facts, is_sure)
            });
            let folders = found.result.common_prefixes.into_iter().map(|folder| folder.to_string());
            return Ok(ListPage {
                folders: folders.collect(),
                objects: objects.collect(),
                unnamable: std::mem::take(&mut unnamable.lock()),
                next: found.page_token,
            });
        }
    }

    async fn client(&self) -> Result<Arc<Client>, RemoteFailure> {
        let mut state = self.state.lock().await;
        if let Some(client) = &state.client {
            return Ok(client.clone());
        }
        let new = Arc::new(self.connect(state.region.as_deref()).await?);
        let _ = (self.endpoint.set(new.endpoint.clone()), self.host.set(new.host.clone()));
        state.client = Some(new.clone());
        Ok(new)
    }

    /// Learns from a failure. An error: nothing to learn; else the question can be asked again.
    async fn mend(&self, client: &Client, mut failure: RemoteFailure) -> Result<(), RemoteFailure> {
        let RemoteFailure::Status { status, region, hint, .. } = &mut failure else { return Err(failure) };
        let mut state = self.state.lock().await;
        let elsewhere = region.take().filter(|region| client.region.as_ref().is_some_and(|asked| asked != region));
        if let Some(region) = elsewhere {
            if self.options.region.is_none() && state.region.is_none() {
                *state = State { client: None, region: Some(region) };
                return Ok(());
            }
            *hint = Some(format!("; the bucket lies in the region {region}"));
        }
        if matches!(*status, 401 | 403) {
            if self.options.anonymous {
                *hint = Some("; it was asked without credentials".to_owned());
            }
            if let Some(reason) = &client.without {
                *hint = Some(format!("; it was asked without credentials, for none were found ({reason})"));
                // There may be some the next time.
                state.client = None;
            }
        }
        Err(failure)
    }

    async fn connect(&self, region: Option<&str>) -> Result<Client, RemoteFailure> {
        match self.name.provider {
            Provider::Amazon => self.amazon(region).await,
            Provider::Google => self.google().await,
            Provider::Azure => self.azure().await,
        }
    }

    async fn amazon(&self, learnt: Option<&str>) -> Result<Client, RemoteFailure> {
        let options = &self.options;
        let profile = AwsProfile::load(options.profile.as_deref())?;
        let mut builder = AmazonS3Builder::from_env()
            .with_bucket_name(&self.name.bucket)
            .with_retry(once())
            .with_http_connector(self.line.clone());
        let endpoint = options
            .endpoint
            .as_deref()
            .or_else(|| profile.get("endpoint_url").filter(|_| configured_endpoint().is_none()));
        if let Some(endpoint) = endpoint {
            builder = builder.with_config(AmazonS3ConfigKey::S3Endpoint, endpoint);
        }
        let said = |key: &AmazonS3ConfigKey| builder.get_config_value(key);
        let server = said(&AmazonS3ConfigKey::S3Endpoint).or_else(|| said(&AmazonS3ConfigKey::Endpoint));
        let endpoint = format!("s3:{}", server.as_deref().unwrap_or_default());
        let region = learnt.or(options.region.as_deref()).map(str::to_owned);
        let region = region.or_else(|| said(&AmazonS3ConfigKey::Region));
        let region =
            region.or_else(|| profile.get("region").map(str::to_owned)).unwrap_or_else(|| "us-east-1".to_owned());
        builder = builder.with_region(&region);
        let host = host_of(server.as_deref(), options, || format!("s3.{region}.amazonaws.com"))?;
        let is_set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
        let in_environment = is_set("AWS_ACCESS_KEY_ID")
            || is_set("AWS_WEB_IDENTITY_TOKEN_FILE") && is_set("AWS_ROLE_ARN")
            || is_set("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")
            || is_set("AWS_CONTAINER_CREDENTIALS_FULL_URI") && is_set("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
        let mut without = None;
        let mut of_instance = false;
        if options.anonymous {
            builder = builder.with_skip_signature(true);
        } else if options.profile.is_some() || !in_environment {
            match profile.credentials() {
                KeySource::Keys(keys) => {
                    builder = builder.with_credentials(Arc::new(StaticCredentialProvider::new(keys)))
                }
                KeySource::Process(process) => builder = builder.with_credentials(Arc::new(process)),
                KeySource::Unknown(reason) if options.profile.is_some() || is_set("AWS_PROFILE") => {
                    return Err(RemoteFailure::Credentials(reason));
                }
                KeySource::Unknown(reason) => without = Some(reason),
                KeySource::None if env::var("AWS_EC2_METADATA_DISABLED").is_ok_and(|value| value == "true") => {
                    without = Some("neither in the environment nor in a profile".to_owned());
                }
                KeySource::None => of_instance = true,
            }
        }
        let store = builder.clone().build().map_err(setting)?;
        if of_instance && let Some(reason) = lack(store.credentials().as_ref()).await {
            without = Some(format!("neither in the environment nor in a profile, and of the instance: {reason}"));
        }
        let store = if without.is_some() { builder.with_skip_signature(true).build().map_err(setting)? } else { store };
        Ok(Client { store: Arc::new(store), endpoint, host, region: Some(region), without })
    }

    async fn google(&self) -> Result<Client, RemoteFailure> {
        let options = &self.options;
        let host = host_of(options.endpoint.as_deref(), options, || "storage.googleapis.com".to_owned())?;
        let endpoint = format!("gs:{}", options.endpoint.as_deref().unwrap_or_default());
        let mut builder = GoogleCloudStorageBuilder::from_env()
            .with_bucket_name(&self.name.bucket)
            .with_skip_signature(options.anonymous)
            .with_retry(once())
            .with_http_connector(self.line.clone());
        if let Some(endpoint) = &options.endpoint {
            builder = builder.with_base_url(endpoint);
        }
        let store = builder.clone().build().map_err(setting)?;
        let without = if options.anonymous { None } else { lack(store.credentials().as_ref()).await };
        let store = if without.is_some() { builder.with_skip_signature(true).build().map_err(setting)? } else { store };
        Ok(Client { store: Arc::new(store), endpoint, host, region: None, without })
    }

    async fn azure(&self) -> Result<Client, RemoteFailure> {
        let options = &self.options;
        let mut builder = MicrosoftAzureBuilder::from_env()
            .with_container_name(&self.name.bucket)
            .with_skip_signature(options.anonymous)
            .with_retry(once())
            .with_http_connector(self.line.clone());
        if let Some(account) = &self.name.account {
            builder = builder.with_account(account);
        }
        if let Some(endpoint) = &options.endpoint {
            builder = builder.with_endpoint(endpoint.clone());
        }
        let account = builder.get_config_value(&object_store::azure::AzureConfigKey::AccountName).ok_or_else(|| {
            let said = "no account: az://CONTAINER@ACCOUNT/… or AZURE_STORAGE_ACCOUNT_NAME says it";
            RemoteFailure::Setting(said.to_owned())
        })?;
        let host = host_of(options.endpoint.as_deref(), options, || format!("{account}.blob.core.windows.net"))?;
        let endpoint = format!("az:{account}:{}", options.endpoint.as_deref().unwrap_or_default());
        let store = builder.clone().build().map_err(setting)?;
        let without = if options.anonymous { None } else { lack(store.credentials().as_ref()).await };
        let store = if without.is_some() { builder.with_skip_signature(true).build().map_err(setting)? } else { store };
        Ok(Client { store: Arc::new(store), endpoint, host, region: None, without })
    }
}

/// The failure to make a client.
fn setting(error: object_store::Error) -> RemoteFailure {
    RemoteFailure::Setting(cause(&error))
}

/// `object_store` asks once; `reading` asks again.
fn once() -> RetryConfig {
    RetryConfig { max_retries: 0, ..Default::default() }
}

/// Why a source of credentials has none; `None`: it has some.
async fn lack<C>(credentials: &dyn CredentialProvider<Credential = C>) -> Option<String> {
    match timeout(OF_INSTANCE, credentials.get_credential()).await {
        Ok(Ok(_)) => None,
        // Behind it may be the text of an answer.
        Ok(Err(error)) => Some(cause(&error).chars().take(80).collect()),
        Err(_) => Some("no answer".to_owned()),
    }
}

/// The endpoint of S3 that the environment names.
fn configured_endpoint() -> Option<String> {
    let names = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"];
    names.into_iter().find_map(|name| env::var(name).ok().filter(|value| !value.is_empty()))
}

/// The host of an endpoint, for messages. The line to it must be encrypted, or stay in this computer.
fn host_of(
    endpoint: Option<&str>,
    options: &RemoteOptions,
    usual: impl FnOnce() -> String,
) -> Result<String, RemoteFailure> {
    let Some(endpoint) = endpoint else { return Ok(usual()) };
    let url = Url::parse(endpoint).map_err(|error| RemoteFailure::Setting(format!("the endpoint: {error}")))?;
    check_line(&url, options.plain_http)?;
    Ok(super::address::host(&url))
}

/// A body that broke.
fn broken(host: &str, error: &object_store::Error) -> RemoteFailure {
    RemoteFailure::Network { host: host.to_owned(), reason: cause(error) }
}
