//! How a channel connects: to where its URL says or to one of the addresses behind it, with TLS for
//! `https`, and in words that say what to do where that fails.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_util::either::Either;
use tonic::codegen::Service;
use tonic::transport::Uri;

use crate::tls::{Side, Tls, TlsError, explain, is_hung_up, is_tls_spoken};

/// The first byte of a TLS alert. An HTTP/2 frame that begins with it would be longer than any may be.
const TLS_ALERT: u8 = 0x15;

/// What it means that a server says nothing at all.
const UNHEARD: &str = "the server closed the connection before it said anything: it takes no more connections, or \
                       is no gRPC service; its log says which";

/// What the answer of a server begins with that speaks HTTP/1 alone.
const HTTP1: &[u8] = b"HTTP/1.";

const ANSWERS_HTTP1: &str = "the server answered in HTTP/1, and gRPC is HTTP/2: this is no gRPC port; name that of \
                             coordinator.listen (for --coordinator, by default 127.0.0.1:7001), drafter.listen or \
                             verifier.listen";

/// Connects to a peer.
#[derive(Clone, Debug)]
pub struct Connector {
    /// Where, if it is not for the resolver to say.
    pub(crate) address: Option<SocketAddr>,
    /// How long it may take.
    pub(crate) timeout: Duration,
    pub(crate) tls: Tls,
    pub(crate) connections: ConnectionCounter,
    /// Whether gRPC is spoken, so that an answer in HTTP/1 is a fault.
    pub(crate) speaks_grpc: bool,
}

/// Counts how often a channel's connection came about or broke: what was learned of a server holds for as long
/// as the count stays what it was.
#[derive(Clone, Debug, Default)]
pub struct ConnectionCounter(Arc<AtomicU64>);

impl ConnectionCounter {
    /// Returns how often a connection came about or broke so far.
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    fn changed(&self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }
}

/// Why no connection came about.
#[derive(Debug, thiserror::Error)]
pub enum ConnectFault {
    /// No connection of TCP.
    #[error("no connection to {to}: {source}")]
    Tcp {
        /// Where to.
        to: String,
        /// What the operating system says.
        #[source]
        source: io::Error,
    },
    /// No TLS within it.
    #[error("no TLS with {to}: {why}")]
    Tls {
        /// With whom.
        to: String,
        /// What it means, and what to do.
        why: String,
        /// Whether the server speaks TLS all the same.
        is_spoken: bool,
    },
}

/// A connection within TLS that the server ended, because of this side's certificate or for another reason of TLS.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct TlsRefusal(String);

impl Service<Uri> for Connector {
    type Response = TokioIo<Outgoing>;
    type Error = ConnectFault;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, ConnectFault>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectFault>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connector = self.clone();
        // Not left to tonic, which has the status `UNKNOWN` for it, as if the server had answered.
        Box::pin(async move {
            let limited = tokio::time::timeout(connector.timeout, connector.connect(&uri));
            let connected = limited.await.unwrap_or_else(|_| Err(connector.late(&uri)));
            connected.map(TokioIo::new)
        })
    }
}

impl Connector {
    /// Returns what connects to a server at `uri` that is no peer, such as a collector: it is asked for no token and
    /// shown no certificate. At an `https` URL it is trusted by the CAs in a file, which stands behind the setting that
    /// names it, or by the public ones.
    ///
    /// # Errors
    /// If the file cannot be used.
    pub fn to_server(
        uri: &Uri,
        authorities: Option<(&str, &Path)>,
        protocol: &'static [u8],
        timeout: Duration,
    ) -> Result<Self, TlsError> {
        let tls = if uri.scheme_str() == Some("https") {
            Tls::of_client(authorities, protocol)?
        } else {
            Tls::default()
        };
        Ok(Self {
            address: None,
            timeout,
            tls,
            connections: ConnectionCounter::default(),
            speaks_grpc: protocol == b"h2",
        })
    }

    /// Returns the fault of a server that has not taken the connection in time.
    fn late(&self, uri: &Uri) -> ConnectFault {
        let why = format!("not within {} ms", self.timeout.as_millis());
        ConnectFault::Tcp {
            to: uri.authority().map(ToString::to_string).unwrap_or_default(),
            source: io::Error::new(io::ErrorKind::TimedOut, why),
        }
    }

    async fn connect(&self, uri: &Uri) -> Result<Outgoing, ConnectFault> {
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
        let is_encrypted = uri.scheme_str() == Some("https");
        let port = (uri.port_u16()).unwrap_or(if is_encrypted { 443 } else { 80 });
        let named = uri.authority().map(ToString::to_string);
        let (to, connected) = match self.address {
            Some(address) => (
                format!("{address} ({host})"),
                TcpStream::connect(address).await,
            ),
            None => (
                named.unwrap_or_default(),
                TcpStream::connect((host, port)).await,
            ),
        };
        let refused = |source| ConnectFault::Tcp {
            to: to.clone(),
            source,
        };
        let connection = connected.map_err(refused)?;
        connection.set_nodelay(true).map_err(refused)?;
        if !is_encrypted {
            return Ok(Outgoing::new(Either::Left(connection), self));
        }
        let fault = |why: String, is_spoken| ConnectFault::Tls {
            to: to.clone(),
            why,
            is_spoken,
        };
        let Some(connector) = self.tls.connector() else {
            return Err(fault("tls.ca_file is not set".to_owned(), false));
        };
        let name = ServerName::try_from(host.to_owned());
        let name = name.map_err(|_| fault(format!("no certificate can be for {host:?}"), false))?;
        let connected = connector.connect(name, connection).await;
        let stream = connected
            .map_err(|error| fault(explain(&error, Side::Client), is_tls_spoken(&error)))?;
        let transport = Either::Right(Box::new(stream));
        Ok(Outgoing::new(transport, self))
    }
}

/// In clear, or inside of TLS.
type ClientTransport = Either<TcpStream, Box<TlsStream<TcpStream>>>;

/// A connection to a peer.
pub struct Outgoing {
    transport: ClientTransport,
    /// Whether nothing was read yet.
    is_new: bool,
    speaks_grpc: bool,
    connections: ConnectionCounter,
}

impl Outgoing {
    fn new(transport: ClientTransport, connector: &Connector) -> Self {
        connector.connections.changed();
        Self {
            transport,
            is_new: true,
            speaks_grpc: connector.speaks_grpc,
            connections: connector.connections.clone(),
        }
    }

    /// A server that refuses a connection may have closed it before the client wrote all it has to say. Then
    /// what the client reads next tells why; that it could not write does not.
    fn forgive<T>(&self, written: Poll<io::Result<T>>, all: T) -> Poll<io::Result<T>> {
        match written {
            Poll::Ready(Err(error)) if self.is_new && is_hung_up(error.kind()) => {
                Poll::Ready(Ok(all))
            }
            written => written,
        }
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        self.connections.changed();
    }
}

impl Connection for Outgoing {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl AsyncRead for Outgoing {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = std::task::ready!(Pin::new(&mut self.transport).poll_read(cx, buffer));
        let is_first = std::mem::take(&mut self.is_new);
        let is_first_in_clear = is_first && matches!(self.transport, Either::Left(_));
        let is_first_of_grpc = is_first && self.speaks_grpc;
        let (kind, why) = match (read, buffer.filled().get(before)) {
            (Ok(()), Some(&TLS_ALERT)) if is_first_in_clear => {
                let why = "the server answered with a TLS alert: it speaks TLS (write https://)";
                (io::ErrorKind::InvalidData, why.to_owned())
            }
            (Ok(()), Some(_))
                if is_first_of_grpc && buffer.filled()[before..].starts_with(HTTP1) =>
            {
                (io::ErrorKind::InvalidData, ANSWERS_HTTP1.to_owned())
            }
            (Ok(()), None) if is_first_in_clear => {
                (io::ErrorKind::ConnectionReset, UNHEARD.to_owned())
            }
            (Ok(()), _) => return Poll::Ready(Ok(())),
            (Err(error), _) if is_first_in_clear && is_hung_up(error.kind()) => {
                (error.kind(), UNHEARD.to_owned())
            }
            (Err(error), _) if !is_first && is_hung_up(error.kind()) => (
                error.kind(),
                format!("the server closed the connection: {error}"),
            ),
            // A server may refuse a client's certificate after the client has finished its handshake.
            (Err(error), _) if is_tls_spoken(&error) => {
                let refused = TlsRefusal(explain(&error, Side::Client));
                return Poll::Ready(Err(io::Error::new(error.kind(), refused)));
            }
            (Err(error), _) => (error.kind(), explain(&error, Side::Client)),
        };
        Poll::Ready(Err(io::Error::new(kind, why)))
    }
}

impl AsyncWrite for Outgoing {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.transport).poll_write(cx, bytes);
        self.forgive(written, bytes.len())
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.transport).poll_write_vectored(cx, slices);
        self.forgive(written, slices.iter().map(|slice| slice.len()).sum())
    }

    fn is_write_vectored(&self) -> bool {
        self.transport.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.transport).poll_flush(cx);
        self.forgive(flushed, ())
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.transport).poll_shutdown(cx)
    }
}
