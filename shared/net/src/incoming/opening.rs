//! What a connection does before it is handed on.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_util::either::Either;
use tokio_util::sync::CancellationToken;
use tonic::transport::server::Connected;

use super::opened::{OpenedConnection, ServerTransport};
use crate::grpc_only;
use crate::log_throttle::LogThrottle;
use crate::receiving::{ConnectionContext, Gate};
use crate::slots::ConnectionSlot;
use crate::tls::{Side, explain};

/// How long a connection may take to say what it speaks, a TLS handshake included: HTTP/2's preface, or the first
/// bytes of a request of HTTP/1.
pub const OPENING_TIMEOUT: Duration = Duration::from_secs(10);

/// Ends once a connection on which nobody has `asked` anything has had [`OPENING_TIMEOUT`] to do so; never on another.
pub async fn silence(asked: CancellationToken) {
    let asked = asked.cancelled();
    if tokio::time::timeout(OPENING_TIMEOUT, asked).await.is_ok() {
        std::future::pending::<()>().await;
    }
}

/// How long a client that is refused may take to hang up, and what it may still say.
const GOODBYE_TIMEOUT: Duration = Duration::from_secs(1);
const GOODBYE_BYTES: u64 = 64 << 10;

/// What every HTTP/2 connection begins with.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The first byte of a TLS handshake.
const TLS_HANDSHAKE: u8 = 0x16;

/// The answer in clear to a client that begins a TLS handshake: from it the client sees that no TLS is spoken here.
const IN_CLEAR: &[u8] =
    b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// The protocol of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortProtocol {
    /// gRPC, which is HTTP/2.
    Grpc,
    /// HTTP/1 or HTTP/2.
    Http,
}

/// Why a connection is not handed on.
enum OpeningFault {
    /// It closed without a word: something looked whether the port is open.
    Silent,
    /// What is wrong with it.
    Wrong(String),
}

/// Opens `connection`, to which `slot` belongs; if it fails the log says why, one in a while.
pub(super) async fn open(
    connection: TcpStream,
    protocol: PortProtocol,
    acceptor: Option<TlsAcceptor>,
    mut slot: ConnectionSlot,
    gate: Gate,
    failed: Arc<LogThrottle>,
) -> Option<OpenedConnection> {
    let info = connection.connect_info();
    let client = info.remote_addr;
    let opening = tokio::time::timeout(OPENING_TIMEOUT, transport(connection, protocol, acceptor));
    // If it is cut, another connection has its slot.
    let fault = match slot.cut.run_until_cancelled(opening).await? {
        Ok(Ok((transport, began))) => {
            if protocol == PortProtocol::Grpc {
                // Coordinators keep theirs for the requests to come.
                slot.keep();
            }
            let connection = ConnectionContext {
                info,
                received: gate.of_connection(),
                activity: Arc::clone(&slot.activity),
                speaks_http2: *began == *PREFACE,
            };
            return Some(OpenedConnection::new(transport, connection, began, slot));
        }
        Ok(Err(OpeningFault::Silent)) => return None,
        Ok(Err(OpeningFault::Wrong(fault))) => fault,
        Err(_) => match protocol {
            PortProtocol::Grpc => {
                format!("it did not begin to speak HTTP/2 within {OPENING_TIMEOUT:?}")
            }
            PortProtocol::Http => format!("it did not begin a request within {OPENING_TIMEOUT:?}"),
        },
    };
    if let Some(others) = failed.passes() {
        tracing::warn!(
            ?client,
            fault,
            others,
            "connection refused; `others` were refused since the last such line"
        );
    }
    None
}

/// Completes the TLS handshake, if there is one, and reads as far as is needed to tell the client's protocol. Returns the
/// bytes that were read, too.
async fn transport(
    connection: TcpStream,
    protocol: PortProtocol,
    acceptor: Option<TlsAcceptor>,
) -> Result<(ServerTransport, Bytes), OpeningFault> {
    let of_system = |error: io::Error| OpeningFault::Wrong(error.to_string());
    connection.set_nodelay(true).map_err(of_system)?;
    let mut transport = match acceptor {
        None => Either::Left(connection),
        Some(acceptor) => {
            // A port scanner's connection is no failed handshake.
            if connection.peek(&mut [0]).await.map_err(of_system)? == 0 {
                return Err(OpeningFault::Silent);
            }
            match acceptor.accept(connection).into_fallible().await {
                Ok(accepted) => Either::Right(Box::new(accepted)),
                Err((error, mut connection)) => {
                    let why = explain(&error, Side::Server);
                    say_goodbye(&mut connection).await;
                    return Err(OpeningFault::Wrong(format!("TLS handshake: {why}")));
                }
            }
        }
    };
    let mut began = BytesMut::with_capacity(PREFACE.len());
    // Reads at most HTTP/2's preface, and stops at the first byte that differs from it.
    while began.len() < PREFACE.len() && PREFACE.starts_with(&began) {
        let rest = (PREFACE.len() - began.len()) as u64;
        match (&mut transport).take(rest).read_buf(&mut began).await {
            Ok(0) | Err(_) if began.is_empty() => return Err(OpeningFault::Silent),
            Ok(0) => break,
            Ok(_) => {}
            Err(error) => return Err(OpeningFault::Wrong(error.to_string())),
        }
        if let (Either::Left(connection), TLS_HANDSHAKE) = (&mut transport, began[0]) {
            let _ = connection.write_all(IN_CLEAR).await;
            say_goodbye(connection).await;
            let fault = "the client speaks TLS and this service does not; set tls.mode here, or write \
                         http:// there";
            return Err(OpeningFault::Wrong(fault.to_owned()));
        }
    }
    if protocol == PortProtocol::Grpc && *began != *PREFACE {
        if is_request(&began) {
            let _ = transport.write_all(&grpc_only::answer()).await;
            say_goodbye(&mut transport).await;
        }
        return Err(OpeningFault::Wrong(
            "the client does not speak HTTP/2, as gRPC does".to_owned(),
        ));
    }
    Ok((transport, began.freeze()))
}

/// Returns whether a connection that began so begins a request of HTTP/1, with the name of a method.
fn is_request(began: &[u8]) -> bool {
    let method = began.split(|&byte| byte == b' ').next().unwrap_or_default();
    !method.is_empty() && method.iter().all(u8::is_ascii_uppercase)
}

/// Closes a connection whose client was told why. Were it closed with bytes of the client still unread, that would be
/// lost on the way.
async fn say_goodbye<C: AsyncRead + AsyncWrite + Unpin>(connection: &mut C) {
    let closing = async {
        connection.shutdown().await?;
        tokio::io::copy(&mut connection.take(GOODBYE_BYTES), &mut tokio::io::sink()).await
    };
    let _ = tokio::time::timeout(GOODBYE_TIMEOUT, closing).await;
}
