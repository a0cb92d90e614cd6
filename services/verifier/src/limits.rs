//! The limits of a verifier, as `docs/reference/limits.md` lists them.

use server::limits::{Limit, PeerBounds, peer_limits};
use wire::open::{MAX_LEASE_MS, MAX_TENANT_BYTES};
use wire::round::MAX_TIMEOUT;

use crate::config::VerifierConfig;

/// Every limit of a verifier but those of all services.
pub fn limits() -> Vec<Limit> {
    let config = VerifierConfig::default();
    peer_limits(&PeerBounds {
        max_sessions: config.max_sessions.get(),
        max_queue: config.max_queue.get(),
        max_cached_sequences: config.max_cached_sequences.get(),
        max_batch: config.max_batch.get(),
        max_batch_tokens: config.max_batch_tokens.get(),
        max_draft_tokens: config.max_draft_tokens.get(),
        max_lease_ms: MAX_LEASE_MS,
        max_round: MAX_TIMEOUT,
        max_tenant_bytes: MAX_TENANT_BYTES,
    })
}
