//! What a drafter's streams share.

use server::health::Health;
use server::lease::Leases;
use server::metrics::PeerMetrics;
use server::trace::Traces;
use wire::v1;

use crate::proposers::Proposers;
use crate::session::Session;

/// What the streams share.
pub(crate) struct Shared {
    pub(crate) proposers: Proposers,
    pub(crate) sessions: Leases<Session>,
    pub(crate) description: v1::PeerDescription,
    pub(crate) traces: Traces,
    pub(crate) metrics: PeerMetrics,
    pub(crate) health: Health,
}
