//! One address of a peer.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use server::channel::{self, ChannelConfig, PeerChannel};
use server::process::Process;
use tonic::transport::Uri;
use wire::v1::PeerDescription;

use super::breaker::Breaker;

/// How long an endpoint that said it is about to stop is believed to be stopping. Then it is asked
/// again, and if it still is, or is not there any more, it says so or is found out.
const DRAINING_FOR: Duration = Duration::from_secs(5);

/// One address of a peer, with its connection and what is known of it.
#[derive(Debug)]
pub(crate) struct Endpoint {
    address: String,
    socket: SocketAddr,
    channel: PeerChannel,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    breaker: Breaker,
    description: Option<Arc<PeerDescription>>,
    draining_until: Option<Instant>,
}

impl Endpoint {
    /// The endpoint at `address`, which is one of those behind the host of `url`.
    pub(super) fn new(
        url: Uri,
        address: SocketAddr,
        config: &ChannelConfig,
        process: &Process,
    ) -> Self {
        Self {
            address: Self::url_of(&url, address),
            socket: address,
            channel: channel::connect_to(url, address, config, process),
            state: Mutex::default(),
        }
    }

    /// What the endpoint at `address` is called.
    pub(super) fn url_of(url: &Uri, address: SocketAddr) -> String {
        format!("{}://{address}", url.scheme_str().unwrap_or("http"))
    }

    /// Its URL.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Where that leads.
    pub(crate) fn socket(&self) -> SocketAddr {
        self.socket
    }

    /// Its connection; cheap to clone.
    pub(crate) fn channel(&self) -> PeerChannel {
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

    /// Whether it said lately that it is about to stop.
    pub(crate) fn is_draining(&self) -> bool {
        let until = self.with(|state| state.draining_until);
        until.is_some_and(|until| Instant::now() < until)
    }

    /// It says that it is about to stop: sessions that have another place go there.
    pub(crate) fn draining(&self) {
        let until = Instant::now() + DRAINING_FOR;
        let before = self.with(|state| {
            // After a restart it may serve another model.
            state.description = None;
            state.draining_until.replace(until)
        });
        if before.is_none() {
            tracing::info!(peer = self.address, "peer is about to stop");
        }
    }

    /// What it said of itself does not hold any more.
    pub(crate) fn forget(&self) {
        self.with(|state| state.description = None);
    }

    /// It answered a round.
    pub(crate) fn succeeded(&self) {
        let recovered = self.with(|state| {
            state.draining_until = None;
            state.breaker.succeeded()
        });
        if recovered {
            tracing::info!(peer = self.address, "peer is back");
        }
    }

    /// One round failed.
    pub(crate) fn failed(&self) {
        self.note_failure(
            "peer keeps failing, left alone for a while",
            "",
            Breaker::failed,
        );
    }

    /// It could not be reached at all.
    pub(crate) fn unreachable(&self, why: &str) {
        self.note_failure(
            "peer does not answer, left alone for a while",
            why,
            Breaker::unreachable,
        );
    }

    fn note_failure(
        &self,
        what: &str,
        why: &str,
        failed: impl FnOnce(&mut Breaker, Instant) -> bool,
    ) {
        let opened = self.with(|state| {
            state.description = None;
            failed(&mut state.breaker, Instant::now())
        });
        if opened {
            tracing::warn!(peer = self.address, why, "{what}");
        }
    }

    fn with<T>(&self, action: impl FnOnce(&mut State) -> T) -> T {
        // Nothing here panics half-way, so the state behind a poisoned lock is whole.
        action(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
