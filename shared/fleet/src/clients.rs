//! Calls to a peer outside of sessions.

use std::sync::Arc;
use std::time::Duration;

use net::MAX_MESSAGE_BYTES;
use net::channel::PeerChannel;
use net::deadline::within;
use net::fault::{self, connection_fault};
use net::replicas::SILENT;
use speculation::session::Peer;
use tonic::{Code, Status};
use wire::describe::check_protocol;
use wire::status::{PeerFailure, classify};
use wire::v1::drafter_client::DrafterClient;
use wire::v1::verifier_client::VerifierClient;
use wire::v1::{DescribeRequest, PeerDescription};

use crate::PeerEndpoint;
use crate::error::CallError;

/// How long a peer may take to describe itself.
const DESCRIBE_TIMEOUT: Duration = Duration::from_secs(10);

/// Returns a client for a drafter at `endpoint`.
pub fn drafter_client(endpoint: &PeerEndpoint) -> DrafterClient<PeerChannel> {
    DrafterClient::new(endpoint.channel())
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES)
}

/// Returns a client for a verifier at `endpoint`.
pub fn verifier_client(endpoint: &PeerEndpoint) -> VerifierClient<PeerChannel> {
    VerifierClient::new(endpoint.channel())
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES)
}

/// Asks a peer for its description.
pub(crate) async fn describe(
    endpoint: &PeerEndpoint,
    kind: Peer,
) -> Result<Arc<PeerDescription>, CallError> {
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
    check_protocol(&description).map_err(|mismatch| CallError::Mismatch(Box::new(mismatch)))?;
    Ok(Arc::new(description))
}

/// Returns a peer's description, which is asked for if it is not known. It is known once it was checked.
///
/// # Errors
/// If it does not answer.
pub(crate) async fn known_or_asked(
    endpoint: &PeerEndpoint,
    kind: Peer,
) -> Result<Arc<PeerDescription>, CallError> {
    match endpoint.description() {
        Some(description) => Ok(description),
        None => describe(endpoint, kind).await,
    }
}

/// Awaits `requested`, a call to `endpoint` that no model has a part in. An endpoint that takes longer than `timeout`
/// is left alone for a while.
pub(crate) async fn answer_within<T>(
    timeout: Duration,
    what: &'static str,
    endpoint: &PeerEndpoint,
    requested: impl Future<Output = T>,
) -> Result<T, CallError> {
    within(timeout, what, requested).await.map_err(|_| {
        endpoint.unreachable(SILENT);
        CallError::Late(timeout)
    })
}

/// Notes a call that failed before any stream was open; an endpoint that cannot even be reached is
/// left alone for a while, and what the request itself is to blame for does not count.
pub fn failed(endpoint: &PeerEndpoint, kind: Peer, status: Status) -> CallError {
    let why = fault::describe(&status);
    // A token that is refused is refused to every request. Where a connection breaks, a drafter may be back at once, and
    // the target goes on meanwhile; a verifier's work waits for it, and another may take it.
    let is_unreachable = matches!(status.code(), Code::Unavailable | Code::Unauthenticated)
        || kind == Peer::Verifier && connection_fault(&status).is_some();
    let is_transient = classify(&status) == PeerFailure::Transient;
    if is_unreachable {
        endpoint.unreachable(&why);
    } else if is_transient {
        endpoint.failed(&why);
    }
    let error = CallError::Status(Box::new(status));
    if is_unreachable || is_transient {
        endpoint.remember(error.to_string());
    }
    error
}
