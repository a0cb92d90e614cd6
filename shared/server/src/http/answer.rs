//! The body of an answer, whose connection knows what it waits for.

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
    /// `body`, with which `working` ends.
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
        // Nobody asks for the next piece before the client has taken enough of those before it.
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
