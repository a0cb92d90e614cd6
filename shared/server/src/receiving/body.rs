//! The body of a request of one message: held until it has ended.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use http_body::Frame;
use tokio::time::Sleep;
use tonic::Status;
use tonic::body::Body;

use super::budget::Share;

/// What goes before a message, and says how long it is.
const MESSAGE_HEADER_BYTES: usize = 5;

/// Most room that is made for a message because its header says so, before it has come.
const MOST_RESERVED: usize = 4 << 20;

/// A body whose bytes are handed on when all of them have come, but for the header of the message: whoever reads
/// it refuses a message that is too long before it comes.
#[derive(Debug)]
pub(super) struct ReceivedBody {
    inner: Body,
    share: Share,
    limit: Duration,
    end: Pin<Box<Sleep>>,
    /// What came, and was not handed on yet.
    held: BytesMut,
    is_header_told: bool,
    has_ended: bool,
    /// What came at the very end.
    trailers: Option<Frame<Bytes>>,
}

impl ReceivedBody {
    /// `inner`, which must end within `limit` and have room in `share`.
    pub(super) fn new(inner: Body, share: Share, limit: Duration) -> Self {
        Self {
            inner,
            share,
            limit,
            end: Box::pin(tokio::time::sleep(limit)),
            held: BytesMut::new(),
            is_header_told: false,
            has_ended: false,
            trailers: None,
        }
    }

    /// Copies what came: a slice of what a connection reads would keep all of that.
    fn hold(&mut self, data: &[u8]) -> Result<Option<Bytes>, Status> {
        self.share.take(data.len())?;
        self.held.extend_from_slice(data);
        if self.is_header_told || self.held.len() < MESSAGE_HEADER_BYTES {
            return Ok(None);
        }
        self.is_header_told = true;
        let header = self.held.split_to(MESSAGE_HEADER_BYTES).freeze();
        // At once, or what is held would be copied and twice as large again and again; it takes memory as it comes.
        let len = header.slice(1..).get_u32() as usize;
        self.held
            .reserve(len.min(MOST_RESERVED).saturating_sub(self.held.len()));
        Ok(Some(header))
    }

    fn late(&self) -> Status {
        let limit_ms = self.limit.as_millis();
        Status::deadline_exceeded(format!(
            "the request did not come whole within {limit_ms} ms, see server.receive_timeout_ms"
        ))
    }
}

impl http_body::Body for ReceivedBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = self.get_mut();
        while !this.has_ended {
            // First, since one that always has a byte more never waits.
            if this.end.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Some(Err(this.late())));
            }
            match std::task::ready!(Pin::new(&mut this.inner).poll_frame(cx)) {
                None => this.has_ended = true,
                Some(Err(status)) => return Poll::Ready(Some(Err(status))),
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => {
                        if let Some(header) = this.hold(&data)? {
                            return Poll::Ready(Some(Ok(Frame::data(header))));
                        }
                    }
                    Err(trailers) => {
                        this.trailers = Some(trailers);
                        this.has_ended = true;
                    }
                },
            }
        }
        if !this.held.is_empty() {
            let held = std::mem::take(&mut this.held).freeze();
            return Poll::Ready(Some(Ok(Frame::data(held))));
        }
        Poll::Ready(this.trailers.take().map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        self.held.is_empty()
            && self.trailers.is_none()
            && (self.has_ended || http_body::Body::is_end_stream(&self.inner))
    }
}
