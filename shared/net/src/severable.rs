//! A connection that can be cut from outside.

use std::io::{Error, ErrorKind, IoSlice, Result};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::transport::server::Connected;

use crate::places::ConnectionSlot;

/// A byte stream that fails with `ConnectionAborted` once its token is cancelled; `I` is what is known of it.
///
/// The token is polled on reads only: an HTTP/2 connection always has a read pending, so it wakes
/// there, sees the failure and ends with all its streams.
pub(crate) struct Severable<C, I> {
    connection: C,
    info: I,
    /// What was read of it already, and is still to be handed on.
    unread: Bytes,
    /// Given back when it is closed.
    _place: Option<ConnectionSlot>,
    token: CancellationToken,
    severed: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl<C, I> Severable<C, I> {
    pub(crate) fn new(connection: C, info: I, token: CancellationToken) -> Self {
        Self {
            connection,
            info,
            unread: Bytes::new(),
            _place: None,
            severed: Box::pin(token.clone().cancelled_owned()),
            token,
        }
    }

    /// The same where `unread` was read of it already. It holds `place` as long as it is open.
    pub(crate) fn opened(self, unread: Bytes, place: ConnectionSlot) -> Self {
        Self {
            unread,
            _place: Some(place),
            ..self
        }
    }

    /// Returns what is known of it.
    pub(crate) fn info(&self) -> &I {
        &self.info
    }

    /// Waits until it is cut.
    pub(crate) fn cut(&self) -> WaitForCancellationFutureOwned {
        self.token.clone().cancelled_owned()
    }

    fn check(&self) -> Result<()> {
        if self.token.is_cancelled() {
            return Err(Error::from(ErrorKind::ConnectionAborted));
        }
        Ok(())
    }
}

impl<C: AsyncRead + Unpin, I: Unpin> AsyncRead for Severable<C, I> {
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
        Pin::new(&mut self.connection).poll_read(cx, buffer)
    }
}

impl<C: AsyncWrite + Unpin, I: Unpin> AsyncWrite for Severable<C, I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize>> {
        self.check()?;
        Pin::new(&mut self.connection).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        self.check()?;
        Pin::new(&mut self.connection).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.connection.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        self.check()?;
        Pin::new(&mut self.connection).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.connection).poll_shutdown(cx)
    }
}

impl<C, I: Clone + Send + Sync + 'static> Connected for Severable<C, I> {
    type ConnectInfo = I;

    fn connect_info(&self) -> I {
        self.info.clone()
    }
}
