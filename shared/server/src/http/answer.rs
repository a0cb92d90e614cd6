//! The body of an answer, which records whether its connection waits for the service or for the client.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use http_body::{Frame, SizeHint};

use crate::places::Working;

/// A body on its way to a client.
pub(super) struct Answer {
    body: Body,
    working: Working,
}

impl Answer {
    /// Wraps `body`; the request of `working` ends when it is dropped.
    pub(super) fn new(body: Body, mut working: Working) -> Self {
        working.awaits(false);
        Self { body, working }
    }
}

impl http_body::Body for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        // hyper polls for the next frame once the client has read enough of those before it.
        self.working.awaits(polled.is_pending());
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
