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

    pub(crate) fn succeeded(&self) {
        self.with(|state| state.breaker.succeeded());
    }

    /// One round failed.
    pub(crate) fn failed(&self) {
        self.with(|state| {
            state.description = None;
            state.breaker.failed(Instant::now());
        });
    }

    /// It could not be reached at all.
    pub(crate) fn unreachable(&self) {
        self.with(|state| {
            state.description = None;
            state.breaker.unreachable(Instant::now());
        });
    }

    fn with<T>(&self, action: impl FnOnce(&mut State) -> T) -> T {
        // Nothing here panics half-way, so the state behind a poisoned lock is whole.
        action(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
