//! One address of a peer.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::watch;
use tonic::transport::Uri;

use super::breaker::{Breaker, RetryBudget};
use crate::Credentials;
use crate::channel::{self, ChannelConfig, ConnectionCounter, PeerChannel};

/// How long a replica that said it is about to stop is believed to be stopping. Then it is asked
/// again, and if it still is, or is not there any more, it says so or is found out.
const DRAINING_FOR: Duration = Duration::from_secs(5);

/// Longest pause that is kept, whatever is asked for.
const FAR: Duration = Duration::from_secs(3_600);

/// How often one request is let through to an overloaded peer to see whether it still is.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// How much longer than it asks for an overloaded peer is left in peace once its budget of repetitions is spent.
const OVER_BUDGET: u32 = 4;

/// A session that is counted at its replica.
#[derive(Debug)]
pub struct EnteredSession(Arc<AtomicUsize>);

impl Drop for EnteredSession {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// One address of a peer, with its connection and what is known of it.
#[derive(Debug)]
pub struct Replica<D> {
    address: String,
    /// Where its URL leads.
    pub socket: SocketAddr,
    channel: PeerChannel,
    connections: ConnectionCounter,
    /// Sessions that this process has there.
    sessions: Arc<AtomicUsize>,
    state: Mutex<ReplicaState<D>>,
    /// Whether it is being asked how it is, because it was silent or could not be reached.
    pub(super) suspected: watch::Sender<bool>,
}

#[derive(Debug)]
struct ReplicaState<D> {
    breaker: Breaker,
    budget: RetryBudget,
    /// What it said of itself, on which of its connections.
    description: Option<(u64, Arc<D>)>,
    draining_until: Option<Instant>,
    overload: Option<Overload>,
    /// Whether it could not be reached when it was last asked for anything.
    is_lost: bool,
    /// Why it could not do what it was asked, in words that clients may read; none once it has answered a round.
    last_failure: Option<String>,
}

/// What an overloaded peer asked for.
#[derive(Clone, Copy, Debug)]
struct Overload {
    until: Instant,
    /// When the next request is let through all the same.
    look_at: Instant,
}

impl Overload {
    fn left(&mut self, now: Instant) -> Option<Duration> {
        let left = self.until.saturating_duration_since(now);
        if left.is_zero() {
            return None;
        }
        if self.look_at <= now {
            self.look_at = now + LOOK_INTERVAL;
            return None;
        }
        Some(left)
    }
}

impl<D: Send + Sync + 'static> Replica<D> {
    /// Returns the replica at `address`, which is one of those behind the host of `url`.
    pub(super) fn new(
        url: &Uri,
        address: SocketAddr,
        config: &ChannelConfig,
        credentials: &Credentials,
    ) -> Self {
        let (channel, connections) =
            channel::connect_to(url.clone(), Some(address), config, credentials);
        Self {
            address: Self::url_of(url, address),
            socket: address,
            channel,
            connections,
            sessions: Arc::default(),
            state: Mutex::new(ReplicaState {
                breaker: Breaker::default(),
                budget: RetryBudget::default(),
                description: None,
                draining_until: None,
                overload: None,
                is_lost: false,
                last_failure: None,
            }),
            suspected: watch::Sender::new(false),
        }
    }

    /// Returns the URL of the replica at `address`.
    pub(super) fn url_of(url: &Uri, address: SocketAddr) -> String {
        format!("{}://{address}", url.scheme_str().unwrap_or("http"))
    }

    /// Its URL.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Its connection; cheap to clone.
    pub fn channel(&self) -> PeerChannel {
        self.channel.clone()
    }

    /// Returns how many sessions this process has there.
    pub fn sessions(&self) -> usize {
        self.sessions.load(Ordering::Relaxed)
    }

    /// Counts a session there for as long as what is returned lives.
    pub fn enter(&self) -> EnteredSession {
        self.sessions.fetch_add(1, Ordering::Relaxed);
        EnteredSession(Arc::clone(&self.sessions))
    }

    /// Returns what it says of itself, if it was asked on the connection that stands: after a restart it may serve
    /// another model, or the same with other limits.
    pub fn description(&self) -> Option<Arc<D>> {
        let current = self.connections.count();
        self.with(|state| {
            let (of, description) = state.description.as_ref()?;
            (*of == current).then(|| Arc::clone(description))
        })
    }

    /// Keeps what it says of itself, asked on the connection that stands.
    pub fn described(&self, description: Arc<D>) {
        let current = self.connections.count();
        self.with(|state| state.description = Some((current, description)));
    }

    /// Returns whether it may be tried.
    pub fn is_alive(&self) -> bool {
        self.with(|state| state.breaker.is_closed(Instant::now()))
    }

    /// Returns whether it was silent lately, and is being asked how it is.
    pub(super) fn is_suspected(&self) -> bool {
        *self.suspected.borrow()
    }

    /// Waits until it is known whether a silent replica is there at all.
    pub(super) async fn known(&self) {
        let mut suspected = self.suspected.subscribe();
        // The sender lives as long as the replica.
        let _ = suspected.wait_for(|suspected| !suspected).await;
    }

    /// Returns whether it could not be reached, and nothing was heard of it since.
    pub(super) fn is_lost(&self) -> bool {
        self.with(|state| state.is_lost)
    }

    /// Returns in a word how it is, for operators.
    pub fn state(&self) -> &'static str {
        if !self.is_alive() {
            "resting"
        } else if self.is_draining() {
            "draining"
        } else if self.is_well() {
            "alive"
        } else {
            "silent"
        }
    }

    /// Returns whether nothing speaks against it: it answers, was not silent lately, and stays.
    pub fn is_well(&self) -> bool {
        !self.is_suspected() && !self.is_draining() && !self.is_lost()
    }

    /// It answers, whatever comes of the next round.
    pub(super) fn found(&self) {
        self.with(|state| state.is_lost = false);
    }

    /// Returns whether it said lately that it is about to stop.
    pub fn is_draining(&self) -> bool {
        let until = self.with(|state| state.draining_until);
        until.is_some_and(|until| Instant::now() < until)
    }

    /// It says that it is about to stop: sessions that have another place go there.
    pub fn draining(&self) {
        let until = Instant::now() + DRAINING_FOR;
        let before = self.with(|state| {
            state.description = None;
            state.draining_until.replace(until)
        });
        if before.is_none() {
            tracing::info!(peer = self.address, "peer is about to stop");
        }
    }

    /// Forgets what it said of itself, which does not hold any more.
    pub fn forget(&self) {
        self.with(|state| state.description = None);
    }

    /// A request is made of it for the first time.
    pub fn requested(&self) {
        self.with(|state| state.budget.requested());
    }

    /// It is overloaded, and asks for a pause. How long to wait before it is asked again: as long as it says,
    /// spread so that those who wait do not all come back at once, and longer if repetitions are too large a
    /// part of what it is asked. `jitter` is from 0 to 1.
    pub fn overloaded(&self, retry_after: Duration, jitter: f64) -> Duration {
        let is_within_budget = self.with(|state| {
            let now = Instant::now();
            let look_at = state.overload.map(|overload| overload.look_at);
            state.overload = Some(Overload {
                until: now.checked_add(retry_after).unwrap_or(now + FAR),
                look_at: look_at.unwrap_or(now + LOOK_INTERVAL),
            });
            state.budget.take()
        });
        let times = if is_within_budget { 1 } else { OVER_BUDGET };
        retry_after
            .saturating_mul(times)
            .min(FAR)
            .mul_f64(1.0 + 0.5 * jitter)
    }

    /// Returns how long it is still overloaded, by its own words; none if it is not, and none once a second, so that
    /// somebody finds out whether it still is.
    pub(super) fn overloaded_for(&self) -> Option<Duration> {
        self.with(|state| state.overload.as_mut()?.left(Instant::now()))
    }

    /// It answered a round.
    pub fn succeeded(&self) {
        let recovered = self.with(|state| {
            state.draining_until = None;
            state.overload = None;
            state.is_lost = false;
            state.last_failure = None;
            state.breaker.succeeded()
        });
        if recovered {
            tracing::info!(peer = self.address, "peer is back");
        }
    }

    /// Returns why it could not do what it was last asked, as [`Replica::remember`] was told.
    pub fn last_failure(&self) -> Option<String> {
        self.with(|state| state.last_failure.clone())
    }

    /// Keeps why it could not do what it was asked, for those whom it cannot serve meanwhile. Clients may read it, so
    /// no address stands in it.
    pub fn remember(&self, failure: String) {
        self.with(|state| state.last_failure = Some(failure));
    }

    /// Notes that one round failed, and why.
    pub fn failed(&self, why: &str) {
        self.note_failure("peer keeps failing", why, Breaker::failed);
    }

    /// It could not be reached at all.
    pub fn unreachable(&self, why: &str) {
        self.with(|state| state.is_lost = true);
        self.note_failure("peer does not answer", why, Breaker::unreachable);
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
            tracing::warn!(peer = self.address, why, "{what}, left alone for a while");
        }
    }

    fn with<T>(&self, action: impl FnOnce(&mut ReplicaState<D>) -> T) -> T {
        // Nothing here panics half-way, so that the state is always whole.
        action(&mut self.state.lock())
    }
}

#[cfg(test)]
mod tests;
