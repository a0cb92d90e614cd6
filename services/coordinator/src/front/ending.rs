//! How a call ends whose answer failed: with the failure's status, after the answer's own end.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_util::Stream;
use tonic::Status;
use wire::report;
use wire::v1::GenerateResponse;
use wire::v1::generate_response::Part;

use crate::driver::AnswerStream;

/// An answer whose call ends as the answer does, so that gateways, interceptors and meters that read nothing but
/// statuses count a failure as one.
pub(crate) struct CallStream {
    parts: AnswerStream,
    failure: Option<Status>,
}

impl CallStream {
    pub(super) fn new(parts: AnswerStream) -> Self {
        Self {
            parts,
            failure: None,
        }
    }
}

impl Stream for CallStream {
    type Item = Result<GenerateResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(failure) = self.failure.take() {
            return Poll::Ready(Some(Err(failure)));
        }
        let next = ready!(Pin::new(&mut self.parts).poll_next(cx));
        if let Some(Ok(GenerateResponse {
            part: Some(Part::Finished(finished)),
        })) = &next
        {
            self.failure = report::failure(finished);
        }
        Poll::Ready(next)
    }
}
