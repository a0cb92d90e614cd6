//! What a session's stream brings next.

use tonic::{Status, Streaming};

use crate::lease::Attached;

/// What a session's stream brought.
#[derive(Debug)]
pub enum Arrival<T> {
    /// A message.
    Message(T),
    /// The stream merely broke: the client may come back within the lease.
    Broken,
    /// The client ended or reset the stream: it does not want the session any more.
    Reset,
}

/// Awaits the next message of a session's stream.
///
/// A draining service goes on with the streams it has, within its grace: their requests are under
/// way, and no other replica may be there to take them.
///
/// # Errors
/// `ABORTED` when a newer stream has taken the session.
pub async fn next<T, S: Send + 'static>(
    requests: &mut Streaming<T>,
    hold: &Attached<S>,
) -> Result<Arrival<T>, Status> {
    tokio::select! {
        biased;
        () = hold.superseded() => Err(Status::aborted("a newer stream took the session")),
        message = requests.message() => Ok(match message {
            Ok(Some(message)) => Arrival::Message(message),
            // tonic and hyper report a reset by the client as the end of its messages.
            Ok(None) => Arrival::Reset,
            Err(_) => Arrival::Broken,
        }),
    }
}
