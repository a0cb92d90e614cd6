//! The body of a request over HTTP: buffered until it has ended, then yielded as one frame.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http_body::{Body as _, Frame};
use tokio::runtime::Handle;

use super::budget::{ReceiveError, RequestBuffer};

/// Most bytes of a refused body with a `content-length` that are read and discarded. An HTTP/1 client that writes its
/// whole request before it reads would otherwise never see why it was refused.
pub const MAX_DISCARDED_BYTES: usize = 64 << 20;
/// Most bytes of a refused body without a `content-length` that are read and discarded; such a body may never end.
pub const MAX_DISCARDED_CHUNKS: usize = 4 << 20;
/// Longest time for which a refused body is read and discarded.
pub const DISCARD_TIMEOUT: Duration = Duration::from_secs(10);

/// A body that yields all of its bytes as one frame, or an error.
#[derive(Debug)]
pub(super) struct WholeBody {
    /// The inner body; none once it has ended.
    inner: Option<Body>,
    /// The buffer; none once it was yielded.
    held: Option<RequestBuffer>,
    most: usize,
    is_discarded: bool,
}

impl WholeBody {
    /// Wraps `inner`, of at most `most` bytes, which are buffered in `held`. If `is_discarded`, the rest of a refused
    /// body is read and discarded, so that the client gets to read the refusal.
    pub(super) fn new(inner: Body, held: RequestBuffer, most: usize, is_discarded: bool) -> Self {
        Self {
            inner: Some(inner),
            held: Some(held),
            most,
            is_discarded,
        }
    }

    /// Buffers frames until `inner` has ended.
    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ReceiveError>> {
        let most = self.most;
        while let (Some(inner), Some(held)) = (&mut self.inner, &mut self.held) {
            if inner.size_hint().lower() > most as u64 {
                return Poll::Ready(Err(ReceiveError::TooLarge { most }));
            }
            held.check_time(cx)?;
            // A chunked body may become as long as the limit.
            let announced = inner.size_hint().exact().map_or(most, |len| len as usize);
            match ready!(Pin::new(inner).poll_frame(cx)) {
                None => self.inner = None,
                Some(Err(_)) => {
                    self.inner = None;
                    return Poll::Ready(Err(ReceiveError::CutShort));
                }
                Some(Ok(frame)) => {
                    // Trailers are ignored.
                    let Ok(data) = frame.into_data() else {
                        continue;
                    };
                    if data.len() > most - held.bytes.len() {
                        return Poll::Ready(Err(ReceiveError::TooLarge { most }));
                    }
                    if held.bytes.is_empty() {
                        // Reserved at once, so that growing neither copies the buffer nor doubles it. Pages that are
                        // not written to yet take no memory.
                        held.bytes.reserve(announced.min(most));
                    }
                    held.add(&data)?;
                }
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl http_body::Body for WholeBody {
    type Data = Bytes;
    type Error = ReceiveError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ReceiveError>>> {
        let this = self.get_mut();
        let ended = ready!(this.poll_end(cx));
        let held = this.held.take();
        if let Err(refused) = ended {
            return Poll::Ready(Some(Err(refused)));
        }
        let whole = held.filter(|held| !held.bytes.is_empty());
        Poll::Ready(whole.map(|held| Ok(Frame::data(held.counted()))))
    }

    fn is_end_stream(&self) -> bool {
        self.held.is_none()
    }
}

impl Drop for WholeBody {
    /// Spawns a task that discards the rest of a refused body while the answer is sent.
    fn drop(&mut self) {
        if let (Some(inner), true) = (self.inner.take(), self.is_discarded)
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(tokio::time::timeout(DISCARD_TIMEOUT, discard(inner)));
        }
    }
}

async fn discard(mut body: Body) {
    let mut left = match body.size_hint().exact() {
        Some(_) => MAX_DISCARDED_BYTES,
        None => MAX_DISCARDED_CHUNKS,
    };
    while let Some(Ok(frame)) = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await
    {
        let len = frame.data_ref().map_or(0, Bytes::len);
        if len > left {
            return;
        }
        left -= len;
    }
}
