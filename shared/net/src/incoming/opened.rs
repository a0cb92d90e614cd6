//! A connection that was handed on, and can be cut from outside.

use std::io::{Error, ErrorKind, IoSlice, Result};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;
use tokio_util::sync::WaitForCancellationFutureOwned;
use tonic::transport::server::Connected;

use crate::receiving::ConnectionContext;
use crate::slots::ConnectionSlot;

/// In clear, or inside of TLS.
pub(super) type ServerTransport = Either<TcpStream, Box<TlsStream<TcpStream>>>;

/// A connection whose client has sent the first bytes of its protocol. It fails with `ConnectionAborted` once its slot
/// is cut.
///
/// The cut is polled for on reads only: an HTTP/2 connection always has a read pending, so it wakes
/// there, sees the failure and ends with all its streams.
pub struct OpenedConnection {
    transport: ServerTransport,
    pub(crate) context: ConnectionContext,
    /// What was read of it already, and is still to be handed on.
    unread: Bytes,
    /// Given back when it is closed.
    slot: ConnectionSlot,
    severed: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl OpenedConnection {
    /// Creates the connection of `transport`, of which `unread` was read already. It holds `slot` as long as it is open.
    pub(super) fn new(
        transport: ServerTransport,
        context: ConnectionContext,
        unread: Bytes,
        slot: ConnectionSlot,
    ) -> Self {
        Self {
            transport,
            context,
            unread,
            severed: Box::pin(slot.cut.clone().cancelled_owned()),
            slot,
        }
    }

    /// Waits until it is cut.
    pub(crate) fn cut(&self) -> WaitForCancellationFutureOwned {
        self.slot.cut.clone().cancelled_owned()
    }

    fn check(&self) -> Result<()> {
        if self.slot.cut.is_cancelled() {
            return Err(Error::from(ErrorKind::ConnectionAborted));
        }
        Ok(())
    }
}

impl AsyncRead for OpenedConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        self.check()?;
        if self.severed.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(Error::from(ErrorKind::ConnectionAborted)));
        }
        if !self.unread.is_empty() {
            let next = self.unread.len().min(buffer.remaining());
            buffer.put_slice(&self.unread[..next]);
            self.unread.advance(next);
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.transport).poll_read(cx, buffer)
    }
}

impl AsyncWrite for OpenedConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize>> {
        self.check()?;
        Pin::new(&mut self.transport).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        self.check()?;
        Pin::new(&mut self.transport).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.transport.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        self.check()?;
        Pin::new(&mut self.transport).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.transport).poll_shutdown(cx)
    }
}

impl Connected for OpenedConnection {
    type ConnectInfo = ConnectionContext;

    fn connect_info(&self) -> ConnectionContext {
        self.context.clone()
    }
}
