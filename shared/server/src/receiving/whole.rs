//! The body of a request over HTTP: held until it has ended, then handed on in one piece.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame};
use tokio::runtime::Handle;

use super::held::Held;
use super::refused::Refused;

/// Most bytes of a body that are read and thrown away once its request was refused, and how long that may take. A
/// client of HTTP/1 that writes its whole request before it reads would never see why it was refused.
pub const MAX_DISCARDED_BYTES: usize = 64 << 20;
/// Most bytes that are read and thrown away of a refused body without a `content-length`, which may never end.
pub const MAX_DISCARDED_CHUNKS: usize = 4 << 20;
/// Longest time in which a refused body is read and thrown away.
pub const DISCARD_TIMEOUT: Duration = Duration::from_secs(10);

/// A body that comes whole or not at all.
#[derive(Debug)]
pub(super) struct WholeBody<B>
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
{
    /// Until it has ended.
    inner: Option<B>,
    /// Until it is handed on.
    held: Option<Held>,
    most: usize,
    is_discarded: bool,
}

impl<B> WholeBody<B>
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
{
    /// `inner`, of at most `most` bytes, which are kept in `held`. If it `is_discarded`, its client gets to read why
    /// it was refused.
    pub(super) fn new(inner: B, held: Held, most: usize, is_discarded: bool) -> Self {
        Self {
            inner: Some(inner),
            held: Some(held),
            most,
            is_discarded,
        }
    }

    /// Reads on to the end.
    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Refused>> {
        let most = self.most;
        while let (Some(inner), Some(held)) = (&mut self.inner, &mut self.held) {
            if inner.size_hint().lower() > most as u64 {
                return Poll::Ready(Err(Refused::TooLarge { most }));
            }
            held.check_time(cx)?;
            // A body in chunks may become as long as any.
            let announced = inner.size_hint().exact().map_or(most, |len| len as usize);
            match ready!(Pin::new(inner).poll_frame(cx)) {
                None => self.inner = None,
                Some(Err(_)) => {
                    self.inner = None;
                    return Poll::Ready(Err(Refused::CutShort));
                }
                Some(Ok(frame)) => {
                    // Nobody asks for trailers.
                    let Ok(data) = frame.into_data() else {
                        continue;
                    };
                    if data.len() > most - held.bytes.len() {
                        return Poll::Ready(Err(Refused::TooLarge { most }));
                    }
                    if held.bytes.is_empty() {
                        // At once, or what is held would be copied and twice as large again and again; it takes memory
                        // as it comes.
                        held.bytes.reserve(announced.min(most));
                    }
                    held.add(&data)?;
                }
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<B> Body for WholeBody<B>
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
{
    type Data = Bytes;
    type Error = Refused;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Refused>>> {
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

impl<B> Drop for WholeBody<B>
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
{
    /// Has what is left of a refused body read and thrown away, beside the answer.
    fn drop(&mut self) {
        if let (Some(inner), true) = (self.inner.take(), self.is_discarded)
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(tokio::time::timeout(DISCARD_TIMEOUT, discard(inner)));
        }
    }
}

async fn discard(mut body: impl Body<Data = Bytes> + Unpin) {
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
