//! Asking services who they are, each once and for two seconds at most.

use std::error::Error;
use std::io;
use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822;
use net::fault::{connection_fault, describe, in_one_line, is_refused_in_tls, is_tls_fault};
use ops::process::Process;
use speculation::session::Peer;
use tonic::{Code, Request, Response, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use wire::v1::coordinator_client::CoordinatorClient;
use wire::v1::drafter_client::DrafterClient;
use wire::v1::verifier_client::VerifierClient;
use wire::v1::{DescribeRequest, ListModelsRequest, ListModelsResponse, PeerDescription};

use super::dial::{Dialled, PATIENCE};

/// How long a coordinator may wait for its peers before it says which of them answered.
const LISTING: Duration = Duration::from_millis(1_500);

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Silence {
    /// Nothing listens there.
    NobodyThere,
    /// Nothing came in time: what listens there hangs or waits for something else, or something on the way drops packets.
    Mute,
    /// Whoever does speaks TLS, and one of the two sides refused the other.
    Unbelieved(String),
    /// Whoever does speaks gRPC, and demands a token that was not shown.
    Denied(String),
    /// It cannot be asked with these settings of TLS and tokens.
    Tls(String),
    /// Any other reason.
    Other(String),
}

impl Silence {
    pub(super) fn why(&self) -> &str {
        match self {
            Self::NobodyThere => "nothing runs there",
            Self::Mute => "no answer within 2 s; it hangs, or something on the way drops packets",
            Self::Unbelieved(why) | Self::Denied(why) | Self::Tls(why) | Self::Other(why) => why,
        }
    }
}

/// Asks the peer for its description.
pub(super) async fn peer(
    dialled: &Dialled,
    kind: Peer,
    process: &Process,
) -> Result<Response<PeerDescription>, Silence> {
    let channel = dialled.channel(process);
    let channel = channel.map_err(|error| Silence::Tls(in_one_line(&error)))?;
    let request = DescribeRequest {};
    match kind {
        Peer::Drafter => answer(DrafterClient::new(channel).describe(request)).await,
        Peer::Verifier => answer(VerifierClient::new(channel).describe(request)).await,
    }
}

/// Asks the coordinator which models it serves.
pub(super) async fn coordinator(
    dialled: &Dialled,
    process: &Process,
) -> Result<Response<ListModelsResponse>, Silence> {
    let mut request = Request::new(ListModelsRequest {});
    request.set_timeout(LISTING);
    let channel = dialled.channel(process);
    let channel = channel.map_err(|error| Silence::Tls(in_one_line(&error)))?;
    answer(CoordinatorClient::new(channel).list_models(request)).await
}

/// Returns whether all services on the port are ready; none if it does not tell.
pub(super) async fn is_ready(dialled: &Dialled, process: &Process) -> Option<bool> {
    let mut client = HealthClient::new(dialled.channel(process).ok()?);
    let reply = answer(client.check(HealthCheckRequest::default())).await;
    Some(reply.ok()?.get_ref().status() == ServingStatus::Serving)
}

async fn answer<T>(
    asked: impl Future<Output = Result<Response<T>, Status>>,
) -> Result<Response<T>, Silence> {
    let answered = tokio::time::timeout(PATIENCE, asked).await;
    let answered = answered.map_err(|_| Silence::Mute)?;
    answered.map_err(|status| silence(&status))
}

/// Returns by how many seconds the clock of whoever answered is ahead of this machine's, if it told.
pub(super) fn ahead<T>(reply: &Response<T>) -> Option<i64> {
    let date = reply.metadata().get("date")?.to_str().ok()?;
    seconds_after(date, Timestamp::now())
}

fn silence(status: &Status) -> Silence {
    let why = || connection_fault(status).unwrap_or_else(|| describe(status));
    if is_refused_in_tls(status) {
        return Silence::Unbelieved(why());
    }
    if is_tls_fault(status) {
        return Silence::Tls(why());
    }
    if matches!(
        status.code(),
        Code::Unauthenticated | Code::PermissionDenied
    ) {
        return Silence::Denied(status.message().to_owned());
    }
    let mut causes = std::iter::successors(status.source(), |&cause| cause.source());
    let refused = causes.any(|cause| {
        let io = cause.downcast_ref::<io::Error>();
        io.is_some_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
    });
    if refused {
        return Silence::NobodyThere;
    }
    // What this side says once a request's own time is over. A connection that broke may have the same code, and says
    // what lies beneath.
    if matches!(status.code(), Code::Cancelled | Code::DeadlineExceeded)
        && status.source().is_none()
    {
        return Silence::Mute;
    }
    Silence::Other(describe(status))
}

/// Returns by how many seconds the `date` of an answer's headers is after `now`.
fn seconds_after(date: &str, now: Timestamp) -> Option<i64> {
    let zoned = rfc2822::DateTimeParser::new().parse_zoned(date).ok()?;
    Some(zoned.timestamp().as_second() - now.as_second())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_date_of_an_answer_tells_its_clock() {
        let now = Timestamp::from_second(784_111_777).expect("a time");
        assert_eq!(seconds_after("Sun, 06 Nov 1994 08:49:37 GMT", now), Some(0));
        assert_eq!(
            seconds_after("Sun, 06 Nov 1994 08:50:37 GMT", now),
            Some(60)
        );
        assert_eq!(seconds_after("yesterday", now), None);
    }
}
