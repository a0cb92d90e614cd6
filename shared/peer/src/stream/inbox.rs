//! The messages of a session's stream, which are read on while a round is answered.

use tonic::{Status, Streaming};
use v1::session_request::Request;
use wire::status::BadField;
use wire::{open, pending, v1};

use crate::commits::Committing;
use crate::granted::Granting;
use crate::proposals::Proposing;

/// A message; none if it is of a later version.
pub(super) type Message = Option<Request>;

/// The messages of a stream.
///
/// Each kind of message that may come beside a round has one bounded place: of grants only the furthest counts and is
/// kept ([`Granted`]), a proposal that finds its few places taken is lost ([`Proposals`]), commits are joined
/// ([`Commits`](crate::Commits)), a close is acted on at once, and another round is an error. So nothing waits in an unbounded queue, and nothing that comes is left unread.
pub(super) struct Inbox<'a> {
    requests: &'a mut Streaming<v1::SessionRequest>,
    /// How the messages ended while a round was answered, which is answered even so.
    end: Option<Result<Option<Message>, Status>>,
}

impl<'a> Inbox<'a> {
    pub(super) fn new(requests: &'a mut Streaming<v1::SessionRequest>) -> Self {
        Self {
            requests,
            end: None,
        }
    }

    /// Returns the next message; none at the end of the stream.
    ///
    /// # Errors
    /// If the connection broke.
    pub(super) async fn message(&mut self) -> Result<Option<Message>, Status> {
        match self.end.take() {
            Some(end) => end,
            None => Ok((self.requests.message().await?).map(|message| message.request)),
        }
    }

    /// Reads what comes beside a round, for as long as it is polled, and passes it on. Returns once the
    /// session is to be closed. It is cancel safe. After the client's last message it drops `granting`.
    ///
    /// # Errors
    /// If what comes must not come beside a round, or cannot be read.
    pub(super) async fn beside(
        &mut self,
        granting: Granting,
        proposing: &Proposing<'_>,
        committing: &Committing,
    ) -> Result<(), BadField> {
        while self.end.is_none() {
            match self.message().await {
                Ok(Some(Some(Request::Grant(grant)))) => granting.extend(grant.until),
                Ok(Some(Some(Request::Append(proposed)))) => {
                    proposing.offer(pending::from_wire(proposed)?);
                }
                Ok(Some(Some(Request::Commit(commit)))) => committing.join(&commit)?,
                Ok(Some(Some(Request::Close(_)))) => return Ok(()),
                Ok(Some(Some(Request::Round(_)))) => {
                    let problem = "the round before it is still being answered";
                    return Err(BadField::new("round", problem));
                }
                Ok(Some(Some(Request::Open(_)))) => return Err(open::repeated()),
                Ok(Some(None)) => return Err(unknown("request")),
                end @ (Ok(None) | Err(_)) => self.end = Some(end),
            }
        }
        drop(granting);
        std::future::pending().await
    }
}

/// Returns the error of a message without a `field` that this version knows.
pub(super) fn unknown(field: &'static str) -> BadField {
    BadField::new(field, "missing, or of a later version")
}
