//! The coordinator's messages on a session's stream: requests in order, and grants for the current round.

use std::convert::Infallible;

use tonic::{Status, Streaming};

use crate::granted::Granting;
use crate::role::{Role, StreamRequest};

/// A message; none if it is of a later version.
type Message<R> = Option<StreamRequest<<R as Role>::Round>>;

/// The messages of a stream.
pub(super) struct Inbox<'a, R: Role> {
    requests: &'a mut Streaming<R::Request>,
    /// The first message after the current round's grants. Nothing is read beyond it.
    next: Option<Result<Option<Message<R>>, Status>>,
}

impl<'a, R: Role> Inbox<'a, R> {
    pub(super) fn new(requests: &'a mut Streaming<R::Request>) -> Self {
        let next = None;
        Self { requests, next }
    }

    /// Returns the next message; none at the end of the stream.
    ///
    /// # Errors
    /// If the connection broke.
    pub(super) async fn message(&mut self) -> Result<Option<Message<R>>, Status> {
        match self.next.take() {
            Some(next) => next,
            None => Ok(self.requests.message().await?.map(R::read)),
        }
    }

    /// Forwards grants to the current round for as long as it is polled. It is cancel safe.
    pub(super) async fn pass_grants(&mut self, granting: &Granting) -> Infallible {
        while self.next.is_none() {
            let message = self.requests.message().await;
            match message.map(|message| message.map(R::read)) {
                Ok(Some(Some(StreamRequest::Grant(until)))) => granting.extend(until),
                other => self.next = Some(other),
            }
        }
        std::future::pending().await
    }
}
