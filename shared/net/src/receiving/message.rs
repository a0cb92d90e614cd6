//! The body of a gRPC request of one message: held until it has ended.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use http_body::Frame;
use tonic::Status;
use tonic::body::Body;

use super::budget::RequestBuffer;

/// What goes before a message, and says how long it is.
const MESSAGE_HEADER_BYTES: usize = 5;

/// Most room that is made for a message because its header says so, before it has come.
const MOST_RESERVED: usize = 4 << 20;

/// A body whose bytes are handed on when all of them have come, but for the header of the message: whoever reads
/// it refuses a message that is too long before it comes.
#[derive(Debug)]
pub(super) struct MessageBody {
    inner: Body,
    /// The bytes that have arrived and were not yielded yet.
    held: RequestBuffer,
    is_header_told: bool,
    has_ended: bool,
    /// The trailers, if there are any.
    trailers: Option<Frame<Bytes>>,
}

impl MessageBody {
    /// Wraps `inner`, whose bytes are buffered in `held`.
    pub(super) fn new(inner: Body, held: RequestBuffer) -> Self {
        Self {
            inner,
            held,
            is_header_told: false,
            has_ended: false,
            trailers: None,
        }
    }

    /// Buffers `data`; returns the header of the message once all of it has arrived.
    fn hold(&mut self, data: &[u8]) -> Result<Option<Bytes>, Status> {
        self.held.add(data)?;
        let held = &mut self.held.bytes;
        if self.is_header_told || held.len() < MESSAGE_HEADER_BYTES {
            return Ok(None);
        }
        self.is_header_told = true;
        let header = held.split_to(MESSAGE_HEADER_BYTES).freeze();
        // At once, or what is held would be copied and twice as large again and again; it takes memory as it comes.
        let len = header.slice(1..).get_u32() as usize;
        held.reserve(len.min(MOST_RESERVED).saturating_sub(held.len()));
        Ok(Some(header))
    }
}

impl http_body::Body for MessageBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = self.get_mut();
        while !this.has_ended {
            this.held.check_time(cx)?;
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
        if !this.held.bytes.is_empty() {
            let held = std::mem::take(&mut this.held.bytes).freeze();
            return Poll::Ready(Some(Ok(Frame::data(held))));
        }
        Poll::Ready(this.trailers.take().map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        self.held.bytes.is_empty()
            && self.trailers.is_none()
            && (self.has_ended || http_body::Body::is_end_stream(&self.inner))
    }
}
