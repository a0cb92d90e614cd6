//! Calls to a peer outside of sessions.

use std::sync::Arc;
use std::time::Duration;

use net::MAX_MESSAGE_BYTES;
use net::channel::PeerChannel;
use net::deadline::within;
use net::fault::connection_fault;
use net::replicas::SILENT;
use speculation::session::Peer;
use tonic::{Code, Status};
use wire::describe::check_protocol;
use wire::status::{self, PeerFailure, classify};
use wire::v1::drafter_client::DrafterClient;
use wire::v1::verifier_client::VerifierClient;
use wire::v1::{DescribeRequest, PeerDescription};

use super::Endpoint;
use crate::peer::error::PeerError;

/// How long a peer may take to describe itself.
const DESCRIBE_TIMEOUT: Duration = Duration::from_secs(10);

/// A client for a drafter at `endpoint`.
pub(crate) fn drafter_client(endpoint: &Endpoint) -> DrafterClient<PeerChannel> {
    DrafterClient::new(endpoint.channel())
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES)
}

/// A client for a verifier at `endpoint`.
pub(crate) fn verifier_client(endpoint: &Endpoint) -> VerifierClient<PeerChannel> {
    VerifierClient::new(endpoint.channel())
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES)
}

/// Asks a peer for its description.
pub(super) async fn describe(
    endpoint: &Endpoint,
    kind: Peer,
) -> Result<Arc<PeerDescription>, PeerError> {
    let requested = async {
        match kind {
            Peer::Drafter => drafter_client(endpoint).describe(DescribeRequest {}).await,
            Peer::Verifier => verifier_client(endpoint).describe(DescribeRequest {}).await,
        }
    };
    let answered = answer_within(DESCRIBE_TIMEOUT, "describe", endpoint, requested).await?;
    let description = answered
        .map_err(|status| failed(endpoint, kind, status))?
        .into_inner();
    check_protocol(&description).map_err(|mismatch| PeerError::Mismatch(Box::new(mismatch)))?;
    Ok(Arc::new(description))
}

/// Awaits `requested`, a call to `endpoint` that no model has a part in. An endpoint that takes longer than `patience`
/// is left alone for a while.
pub(super) async fn answer_within<T>(
    patience: Duration,
    what: &'static str,
    endpoint: &Endpoint,
    requested: impl Future<Output = T>,
) -> Result<T, PeerError> {
    within(patience, what, requested).await.map_err(|_| {
        endpoint.unreachable(SILENT);
        PeerError::Late(patience)
    })
}

/// Notes a call that failed before any stream was open; an endpoint that cannot even be reached is
/// left alone for a while, and what the request itself is to blame for does not count.
pub(crate) fn failed(endpoint: &Endpoint, kind: Peer, status: Status) -> PeerError {
    let why = status::describe(&status);
    let is_its_fault = match (status.code(), classify(&status)) {
        // A token that is refused is refused to every request.
        (Code::Unavailable | Code::Unauthenticated, _) => {
            endpoint.unreachable(&why);
            true
        }
        // A drafter may be back at once, and the target goes on meanwhile; a verifier's work waits for it, and
        // another may take it.
        _ if connection_fault(&status).is_some() && kind == Peer::Verifier => {
            endpoint.unreachable(&why);
            true
        }
        (_, PeerFailure::Transient) => {
            endpoint.failed(&why);
            true
        }
        _ => false,
    };
    let error = PeerError::Status {
        status: Box::new(status),
    };
    if is_its_fault {
        endpoint.remember(error.to_string());
    }
    error
}
