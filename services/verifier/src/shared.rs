//! What a verifier's streams share.

use model::engine::EngineHandle;
use model::source::SpecialTokens;
use server::health::Health;
use server::lease::Leases;
use server::metrics::PeerMetrics;
use server::trace::Traces;
use wire::v1;

use crate::session::Session;

/// What the streams share.
pub(crate) struct Shared {
    pub(crate) engine: EngineHandle,
    pub(crate) sessions: Leases<Session>,
    pub(crate) description: v1::PeerDescription,
    pub(crate) traces: Traces,
    pub(crate) metrics: PeerMetrics,
    pub(crate) health: Health,
    pub(crate) tokenizer_json: Vec<u8>,
    pub(crate) chat_template: String,
    pub(crate) special_tokens: SpecialTokens,
}
