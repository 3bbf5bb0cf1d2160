//! `hepfs serve SOURCE…`.

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;

use super::mount::{absolute, check_sources, source_name};
use crate::activity;
use crate::cli::limits::allow_open_files;
use crate::cli::options::{FileOptions, ParquetOptions, ReadingOptions, Showing};
use crate::cli::{Error, place};
use crate::serve::{Access, AccessKey, HttpServer, KEY_ID, ServedAt, ServedTree, WEBHDFS};
use crate::session::Settings;
use crate::views::printable;

/// Bytes of a new secret.
const SECRET: usize = 20;

/// Longest secret that a file may give, and the shortest that is no accident.
const LONGEST_SECRET: u64 = 1024;
const SHORTEST_SECRET: usize = 16;

/// Serve HDF5 files over HTTP, S3 and WebHDFS, without a mount
///
/// The same names and bytes as in a mount, read-only, for notebooks, containers without privileges, and other systems.
#[derive(Debug, Args)]
#[command(
    after_help = "A key is made at the start and printed, as lines for a shell, DuckDB, and clients that know no \
    keys. Each client needs it.\n\n\
    Examples:\n  \
    hepfs serve run.h5\n  \
    hepfs serve runs/ --listen 0.0.0.0:9000 --host data.example.org --tls-cert cert.pem --tls-key key.pem"
)]
pub(in crate::cli) struct Arguments {
    /// HDF5 files, or folders of them
    #[arg(value_name = "SOURCE", required = true)]
    sources: Vec<PathBuf>,

    /// Address and port to listen at; port 0 takes a free one. Any but that of this computer needs --tls-cert or
    /// --plain-http
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9000", help_heading = "Serving")]
    listen: SocketAddr,

    /// Listen at a socket with this path instead, for this user alone and without a key
    #[arg(long, value_name = "PATH", conflicts_with_all = ["listen", "tls_cert", "open"], help_heading = "Serving")]
    unix: Option<PathBuf>,

    /// Names by which clients call this server, beside its address; others are refused
    #[arg(long, value_name = "NAME", help_heading = "Serving")]
    host: Vec<String>,

    /// Certificate, with those above it, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_key", help_heading = "Serving")]
    tls_cert: Option<PathBuf>,

    /// Private key of the certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert", help_heading = "Serving")]
    tls_key: Option<PathBuf>,

    /// File with the key, made if it is not there; the key is not printed [default: a new key, in a file of the
    /// runtime folder that goes with this process]
    #[arg(long, value_name = "FILE", help_heading = "Serving")]
    key_file: Option<PathBuf>,

    /// Answer without a key, only at an address of this computer: each of its users can then read
    #[arg(long, conflicts_with = "key_file", help_heading = "Serving")]
    open: bool,

    /// Origin whose pages may read, such as `https://shell.duckdb.org`
    #[arg(long, value_name = "ORIGIN", help_heading = "Serving")]
    cors: Option<String>,

    /// Name of the bucket of S3, which has the whole tree
    #[arg(long, value_name = "NAME", default_value = "hepfs", help_heading = "Serving")]
    bucket: String,

    #[command(flatten)]
    reading: ReadingOptions,

    #[command(flatten)]
    showing: Showing,

    #[command(flatten)]
    files: FileOptions,

    #[command(flatten)]
    parquet: ParquetOptions,
}

pub(in crate::cli) fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    check_sources(&arguments.sources)?;
    let is_here = arguments.unix.is_some() || arguments.listen.ip().is_loopback();
    if !is_here && arguments.open {
        return Err(Error::Usage("--open: only at an address of this computer, such as 127.0.0.1".to_owned()));
    }
    if !is_here && arguments.tls_cert.is_none() && !arguments.reading.objects.plain_http {
        let why = "others on the way could read keys and values: --tls-cert encrypts them, --plain-http allows it";
        return Err(Error::Usage(format!("--listen {}: {why}", arguments.listen)));
    }
    let settings = Settings {
        parquet_statistics: arguments.parquet.are_shown(),
        formats: arguments.files.formats(),
        is_shared: true,
        ..arguments.showing.settings()?
    };
    let session = arguments.reading.session(settings)?;
    session.store.kept().try_out();
    allow_open_files();
    let sources = absolute(&arguments.sources)?;
    let served_at = match &arguments.unix {
        Some(path) => ServedAt::Socket(path.clone()),
        None => ServedAt::Address(arguments.listen),
    };
    let tls = arguments.tls_cert.as_deref().zip(arguments.tls_key.as_deref());
    let server = HttpServer::listen(&served_at, tls).map_err(|error| Error::Usage(error.to_string()))?;
    let url = server.address().map(|address| arguments.url(address));
    let needs_key = arguments.unix.is_none() && !arguments.open;
    if let Some(url) = &url {
        session.mounted_at(Path::new(&format!("{url}{}", if needs_key { "/~KEY" } else { "" })));
    }
    let key = needs_key.then(|| arguments.key(server.address())).transpose()?;
    let access = Access {
        key: key.as_ref().map(|(key, _)| key.clone()),
        hosts: arguments.unix.is_none().then(|| arguments.hosts()),
        cors: arguments.cors.clone(),
    };
    let site =
        ServedTree::new(&session, &sources, arguments.of_bytes(), access, arguments.bucket.clone(), tls.is_some());
    let site = site.map_err(place::missing)?;
    if let Some(name) = [&arguments.bucket, WEBHDFS].iter().find(|name| site.has(name)) {
        let why = "it has another meaning here: choose a name with --bucket, or serve the folder above";
        return Err(Error::Usage(format!("{name} is a name in the tree, but {why}")));
    }
    let names = printable(&source_name(&arguments.sources).to_string());
    match (&url, &arguments.unix) {
        (Some(url), _) => say!("hepfs: serving {names} at {url}/; Ctrl-C ends it"),
        (None, path) => {
            let path = path.as_deref().unwrap_or(Path::new("")).display().to_string();
            say!("hepfs: serving {names} at {}; Ctrl-C ends it", printable(&path));
        }
    }
    if let (Some((key, file)), Some(url)) = (&key, &url) {
        arguments.print(key, file, url).map_err(Error::io("standard output"))?;
    }
    tracing::info!("serving {names}");
    server.run(Arc::new(site));
    session.verifier.stop();
    session.save();
    tracing::info!("no longer serving {names}");
    Ok(ExitCode::SUCCESS)
}

/// The file of a key.
struct KeyFile {
    path: PathBuf,
    /// Whether it goes with this process.
    is_own: bool,
}

impl Drop for KeyFile {
    fn drop(&mut self) {
        if self.is_own {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl Arguments {
    /// The address as clients write it.
    fn url(&self, address: SocketAddr) -> String {
        let scheme = if self.tls_cert.is_some() { "https" } else { "http" };
        match self.host.first() {
            Some(host) => format!("{scheme}://{host}:{}", address.port()),
            None => format!("{scheme}://{address}"),
        }
    }

    /// Names of this server.
    fn hosts(&self) -> Vec<String> {
        let ip = self.listen.ip();
        let mut hosts = self.host.clone();
        hosts.push(match ip {
            IpAddr::V4(ip) => ip.to_string(),
            IpAddr::V6(ip) => format!("[{ip}]"),
        });
        if ip.is_loopback() || ip.is_unspecified() {
            hosts.extend(["localhost", "127.0.0.1", "[::1]"].map(String::from));
        }
        hosts
    }

    /// The options that bytes of files depend on.
    fn of_bytes(&self) -> String {
        let (tables, grids) = (self.reading.tables, self.reading.grids);
        let statistics = self.parquet.are_shown();
        format!("{:?} {tables:?} {grids} {statistics}", self.showing.arguments())
    }

    /// The key, and the file that has it.
    fn key(&self, address: Option<SocketAddr>) -> Result<(AccessKey, KeyFile), Error> {
        let (path, is_own) = match &self.key_file {
            Some(path) => (path.clone(), false),
            None => {
                let folder = activity::own_folder().map_err(Error::io("a folder for the key"))?;
                let port = address.map_or(0, |address| address.port());
                let path = folder.join(format!("serve-{port}.key"));
                // One that is left over belongs to a process that has ended: the port is ours.
                let _ = std::fs::remove_file(&path);
                (path, true)
            }
        };
        let failed = Error::io(path.display().to_string());
        let secret = if is_own || !path.exists() {
            new_secret(&path).map_err(failed)?
        } else {
            let mut text = String::new();
            let file = std::fs::File::open(&path);
            file.and_then(|file| file.take(LONGEST_SECRET).read_to_string(&mut text)).map_err(failed)?;
            text.trim().to_owned()
        };
        if secret.len() < SHORTEST_SECRET || !secret.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            let why = format!("a key has at least {SHORTEST_SECRET} letters and digits, and nothing else");
            return Err(Error::Usage(format!("--key-file {}: {why}", path.display())));
        }
        Ok((AccessKey { id: KEY_ID.to_owned(), secret }, KeyFile { path, is_own }))
    }

    /// Prints the key for a shell, for DuckDB, and for clients that know no keys.
    fn print(&self, key: &AccessKey, file: &KeyFile, url: &str) -> std::io::Result<()> {
        let path = file.path.display().to_string();
        if !file.is_own {
            say!("hepfs: the key is in {}", printable(&path));
            return Ok(());
        }
        let AccessKey { id, secret } = key;
        let (scheme, endpoint) = url.split_once("://").unwrap_or_default();
        let is_tls = scheme == "https";
        let mut out = std::io::stdout();
        writeln!(
            out,
            "export AWS_ENDPOINT_URL={url} AWS_ACCESS_KEY_ID={id} AWS_SECRET_ACCESS_KEY={secret} AWS_REGION=us-east-1"
        )?;
        writeln!(
            out,
            "CREATE SECRET (TYPE s3, KEY_ID '{id}', SECRET '{secret}', ENDPOINT '{endpoint}', URL_STYLE 'path', \
             USE_SSL {is_tls}, REGION 'us-east-1');"
        )?;
        writeln!(out, "{url}/~{secret}/")?;
        out.flush()?;
        say!("hepfs: the key is also in {}, until this ends", printable(&path));
        Ok(())
    }
}

/// Makes a secret, in a new file that its owner alone can read.
fn new_secret(path: &Path) -> std::io::Result<String> {
    let mut bytes = [0; SECRET];
    let mut filled = 0;
    while filled < SECRET {
        filled += rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty())?;
    }
    let secret: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    writeln!(file, "{secret}")?;
    Ok(secret)
}
