//! A connection that can be cut from outside.

use std::io::{Error, ErrorKind, IoSlice, Result};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::transport::server::Connected;

/// A byte stream that fails with `ConnectionAborted` once its token is cancelled.
///
/// The token is polled on reads only: an HTTP/2 connection always has a read pending, so it wakes
/// there, sees the failure and ends with all its streams.
pub(crate) struct Severable<C> {
    connection: C,
    token: CancellationToken,
    severed: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl<C> Severable<C> {
    pub(crate) fn new(connection: C, token: CancellationToken) -> Self {
        let severed = Box::pin(token.clone().cancelled_owned());
        Self {
            connection,
            token,
            severed,
        }
    }

    fn check(&self) -> Result<()> {
        if self.token.is_cancelled() {
            return Err(Error::from(ErrorKind::ConnectionAborted));
        }
        Ok(())
    }
}

impl<C: AsyncRead + Unpin> AsyncRead for Severable<C> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        self.check()?;
        if self.severed.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(Error::from(ErrorKind::ConnectionAborted)));
        }
        Pin::new(&mut self.connection).poll_read(cx, buffer)
    }
}

impl<C: AsyncWrite + Unpin> AsyncWrite for Severable<C> {
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

impl<C: Connected> Connected for Severable<C> {
    type ConnectInfo = C::ConnectInfo;

    fn connect_info(&self) -> Self::ConnectInfo {
        self.connection.connect_info()
    }
}
