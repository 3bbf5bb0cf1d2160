//! Sockets: accepting, TLS, limits in time, and the end of the server.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::fs::Mode;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, UnixListener};
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{Semaphore, watch};
use tokio::time::{Sleep, sleep, timeout};
use tokio_rustls::TlsAcceptor;

use super::{ServedTree, body};

/// Most connections at a time.
const MOST: usize = 2048;

/// Longest time for a TLS handshake, for the headers of a request, and for a connection to stay idle before them.
const HANDSHAKE: Duration = Duration::from_secs(10);
const HEADERS: Duration = Duration::from_secs(60);

/// Longest time for a client to take what is ready to be sent, one piece of a body at most.
const TAKING: Duration = Duration::from_secs(30);

/// Most bytes of the headers of a request, and most headers.
const HEADER_BYTES: usize = 64 << 10;
const HEADER_COUNT: usize = 64;

/// Longest time for answers to end when the server does.
const GRACE: Duration = Duration::from_secs(5);

/// Pause after a failed `accept`, as with no descriptor left.
const PAUSE: Duration = Duration::from_millis(100);

/// Threads that never block.
const THREADS: usize = 4;

/// Why nothing is served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The place cannot be listened at.
    #[error("listening at {0}: {1}")]
    Listen(String, io::Error),
    /// A certificate or its key cannot be used.
    #[error("{0}: {1}")]
    Certificate(PathBuf, String),
    /// The system refuses something else.
    #[error("serving: {0}")]
    System(#[from] io::Error),
}

impl ServeError {
    fn certificate(path: &Path, error: &dyn std::error::Error) -> Self {
        Self::Certificate(path.to_owned(), error.to_string())
    }
}

/// Where a server listens.
#[derive(Clone, Debug)]
pub enum ServedAt {
    /// At an address and port; 0: any free one.
    Address(SocketAddr),
    /// At a socket with a path, for this user alone.
    Socket(PathBuf),
}

enum Listener {
    Address(TcpListener),
    Socket(UnixListener),
}

/// The name of a socket, which goes when this is dropped.
struct SocketName(PathBuf);

impl Drop for SocketName {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A server that listens. Connections wait until it runs.
pub struct HttpServer {
    runtime: Runtime,
    listener: Listener,
    tls: Option<TlsAcceptor>,
    stop: [Signal; 3],
    _name: Option<SocketName>,
}

impl HttpServer {
    /// Listens, with a certificate and its key if there are any. From here on, signals end it.
    ///
    /// # Errors
    /// See [`ServeError`].
    pub fn listen(place: &ServedAt, tls: Option<(&Path, &Path)>) -> Result<Self, ServeError> {
        let tls = tls.map(|(certificate, key)| acceptor(certificate, key)).transpose()?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .max_blocking_threads(body::THREADS)
            .thread_name("hepfs-serve")
            .enable_all()
            .build()?;
        let inside = runtime.enter();
        let listener = match place {
            ServedAt::Address(address) => {
                let listener = runtime.block_on(TcpListener::bind(address));
                Listener::Address(listener.map_err(|error| ServeError::Listen(address.to_string(), error))?)
            }
            ServedAt::Socket(path) => {
                let listener = socket(path).map_err(|error| ServeError::Listen(path.display().to_string(), error))?;
                Listener::Socket(listener)
            }
        };
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        let [first, second, third] = kinds.map(signal);
        let stop = [first?, second?, third?];
        let _name = match place {
            ServedAt::Address(_) => None,
            ServedAt::Socket(path) => Some(SocketName(path.clone())),
        };
        drop(inside);
        Ok(Self { runtime, listener, tls, stop, _name })
    }

    /// The address; `None`: a socket with a path.
    pub fn address(&self) -> Option<SocketAddr> {
        match &self.listener {
            Listener::Address(listener) => listener.local_addr().ok(),
            Listener::Socket(_) => None,
        }
    }

    /// Serves until a signal comes. Answers that have begun get some seconds to end.
    pub fn run(self, site: Arc<ServedTree>) {
        let Self { runtime, listener, tls, mut stop, _name } = self;
        let room = Arc::new(Semaphore::new(MOST));
        let (over, ending) = watch::channel(false);
        runtime.block_on(async {
            let accepting = accept(&listener, &site, tls, &room, &ending);
            let [interrupt, terminate, hangup] = &mut stop;
            tokio::select! {
                () = accepting => {}
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
                _ = hangup.recv() => {}
            }
            drop(listener);
            over.send(true).ok();
            site.ending.raise();
            let all = room.acquire_many(MOST as u32);
            tokio::select! {
                _ = timeout(GRACE, all) => {}
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        });
        runtime.shutdown_timeout(Duration::from_secs(1));
    }
}

/// Listens at a path, for this user alone. A socket that is left over makes room.
fn socket(path: &Path) -> io::Result<UnixListener> {
    let is_socket = path.symlink_metadata().is_ok_and(|metadata| metadata.file_type().is_socket());
    if is_socket && std::os::unix::net::UnixStream::connect(path).is_err() {
        std::fs::remove_file(path)?;
    }
    // Between `bind` and `chmod`, others could connect.
    let before = rustix::process::umask(Mode::from_raw_mode(0o177));
    let listener = UnixListener::bind(path);
    rustix::process::umask(before);
    listener
}

fn acceptor(certificate: &Path, key: &Path) -> Result<TlsAcceptor, ServeError> {
    let chain: Result<Vec<_>, pem::Error> = CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect);
    let chain = chain.map_err(|error| ServeError::certificate(certificate, &error))?;
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| ServeError::certificate(key, &error))?;
    let versions = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = versions.with_safe_default_protocol_versions();
    let config = config.and_then(|config| config.with_no_client_auth().with_single_cert(chain, secret));
    let mut config = config.map_err(|error| ServeError::certificate(certificate, &error))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// A stream of bytes in both directions.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

async fn accept(
    listener: &Listener,
    site: &Arc<ServedTree>,
    tls: Option<TlsAcceptor>,
    room: &Arc<Semaphore>,
    ending: &watch::Receiver<bool>,
) {
    loop {
        let Ok(place) = room.clone().acquire_owned().await else { return };
        let accepted: io::Result<Box<dyn Stream>> = match listener {
            Listener::Address(listener) => listener.accept().await.map(|(stream, _)| {
                let _ = stream.set_nodelay(true);
                Box::new(stream) as Box<dyn Stream>
            }),
            Listener::Socket(listener) => listener.accept().await.map(|(stream, _)| Box::new(stream) as _),
        };
        let stream = match accepted {
            Ok(stream) => stream,
            Err(error) => {
                tracing::debug!("accepting: {error}");
                sleep(PAUSE).await;
                continue;
            }
        };
        let (site, tls, ending) = (site.clone(), tls.clone(), ending.clone());
        tokio::spawn(async move {
            let _place = place;
            let ended = match tls {
                None => serve(Taken::new(stream), site, ending).await,
                Some(tls) => match timeout(HANDSHAKE, tls.accept(stream)).await {
                    Ok(Ok(stream)) => serve(Taken::new(stream), site, ending).await,
                    Ok(Err(error)) => return tracing::debug!("a handshake: {error}"),
                    Err(_) => return,
                },
            };
            if let Err(error) = ended {
                tracing::debug!("a connection: {error}");
            }
        });
    }
}

/// Serves one connection.
async fn serve<S: Stream>(
    stream: Taken<S>,
    site: Arc<ServedTree>,
    mut ending: watch::Receiver<bool>,
) -> Result<(), hyper::Error> {
    let answer = service_fn(move |request: hyper::Request<Incoming>| {
        let site = site.clone();
        async move {
            let (parts, _) = request.into_parts();
            let begun = Instant::now();
            let response = site.answer(&parts).await;
            tracing::debug!(
                "{} {} {} in {:?}",
                parts.method,
                site.without_key(parts.uri.path()),
                response.status(),
                begun.elapsed()
            );
            Ok::<_, Infallible>(response)
        }
    });
    let mut connection = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADERS)
            .max_buf_size(HEADER_BYTES)
            .max_headers(HEADER_COUNT)
            .serve_connection(TokioIo::new(stream), answer)
    );
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        _ = ending.changed() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    ended
}

/// A stream whose client must take what is sent, within [`TAKING`] from one flush to the next.
struct Taken<S> {
    stream: S,
    late: Option<Pin<Box<Sleep>>>,
}

impl<S> Taken<S> {
    fn new(stream: S) -> Self {
        Self { stream, late: None }
    }

    fn judge<T>(&mut self, cx: &mut Context<'_>, done: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if done.is_ready() {
            return done;
        }
        let late = self.late.get_or_insert_with(|| Box::pin(sleep(TAKING)));
        match late.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: Stream> AsyncRead for Taken<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: Stream> AsyncWrite for Taken<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.judge(cx, done)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write_vectored(cx, parts);
        self.judge(cx, done)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.stream).poll_flush(cx);
        if done.is_ready() {
            self.late = None;
        }
        self.judge(cx, done)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.judge(cx, done)
    }
}
