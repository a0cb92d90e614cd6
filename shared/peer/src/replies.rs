//! Where a stream's replies go.

use std::time::Duration;

use tokio::sync::mpsc;
use tonic::Status;
use wire::failure::Failure;

/// Replies buffered for one slow client before its stream is no longer read.
pub const REPLY_BUFFER: usize = 16;

/// How long a round waits for a client that is there and does not read, with the buffer full. No client
/// of ours does that: it reads until it gives the stream up.
pub const READ_TIMEOUT: Duration = Duration::from_mins(1);

/// Where a stream's replies go.
#[derive(Debug)]
pub struct Replies<R>(pub(crate) mpsc::Sender<Result<R, Status>>);

impl<R> Replies<R> {
    /// Sends a reply; waits for a while if the client does not read.
    ///
    /// # Errors
    /// If the client is gone, or reads nothing for a minute.
    pub async fn send(&self, reply: R) -> Result<(), Status> {
        match tokio::time::timeout(READ_TIMEOUT, self.0.send(Ok(reply))).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(Failure::Cancelled.status("the client is gone")),
            Err(_) => Err(Failure::Late.status("the client read none of its replies for a minute")),
        }
    }

    /// Sends a reply that may be lost: it is dropped if the client does not read, or is gone.
    pub fn offer(&self, reply: R) {
        let _dropped = self.0.try_send(Ok(reply));
    }
}
