//! One address of a peer.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use server::channel::{self, ChannelConfig, ChannelError};
use tonic::transport::Channel;
use wire::v1::PeerDescription;

use super::breaker::Breaker;

/// One address of a peer, with its connection and what is known of it.
#[derive(Debug)]
pub(crate) struct Endpoint {
    address: String,
    channel: Channel,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    breaker: Breaker,
    description: Option<Arc<PeerDescription>>,
}

impl Endpoint {
    pub(super) fn new(address: String, config: &ChannelConfig) -> Result<Self, ChannelError> {
        let channel = channel::connect(&address, config)?;
        Ok(Self {
            address,
            channel,
            state: Mutex::default(),
        })
    }

    /// Its URL.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Its connection; cheap to clone.
    pub(crate) fn channel(&self) -> Channel {
        self.channel.clone()
    }

    /// What it says of itself, if it was asked since it last failed: after a restart it may serve
    /// another model.
    pub(crate) fn description(&self) -> Option<Arc<PeerDescription>> {
        self.with(|state| state.description.clone())
    }

    pub(crate) fn described(&self, description: Arc<PeerDescription>) {
        self.with(|state| state.description = Some(description));
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.with(|state| state.breaker.is_closed(Instant::now()))
    }

    /// What it said of itself does not hold any more.
    pub(crate) fn forget(&self) {
        self.with(|state| state.description = None);
    }

    /// It answered a round.
    pub(crate) fn succeeded(&self) {
        let recovered = self.with(|state| state.breaker.succeeded());
        if recovered {
            tracing::info!(peer = self.address, "peer is back");
        }
    }

    /// One round failed.
    pub(crate) fn failed(&self) {
        self.note_failure(
            "peer keeps failing, left alone for a while",
            Breaker::failed,
        );
    }

    /// It could not be reached at all.
    pub(crate) fn unreachable(&self) {
        self.note_failure(
            "peer does not answer, left alone for a while",
            Breaker::unreachable,
        );
    }

    fn note_failure(&self, what: &str, failed: impl FnOnce(&mut Breaker, Instant) -> bool) {
        let opened = self.with(|state| {
            state.description = None;
            failed(&mut state.breaker, Instant::now())
        });
        if opened {
            tracing::warn!(peer = self.address, "{what}");
        }
    }

    fn with<T>(&self, action: impl FnOnce(&mut State) -> T) -> T {
        // Nothing here panics half-way, so the state behind a poisoned lock is whole.
        action(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
