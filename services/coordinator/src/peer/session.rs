//! One session at one peer: where it is, what is held there, and how it moves.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fleet::{CallError, PeerEndpoint, PeerFault};
use speculation::session::Peer;
use wire::v1;

use super::opener::Opener;
use super::position::Deadline;
use super::stream::PeerStream;

/// Most replicas tried for one stream before the failure is the round's.
const REPLICAS_TRIED: usize = 3;

/// How long a session that need not move yet waits for the replica it would move to; and how long it
/// stays where it is if that did not work.
const MOVE_TIMEOUT: Duration = Duration::from_secs(1);

/// One session at one peer.
pub(crate) struct PeerSession {
    pub(super) peer: Peer,
    /// The stream, while there is one.
    stream: Option<PeerStream>,
    /// A stream that was silent. While it stands, the peer keeps the session and goes on with its work; the next
    /// stream to the same peer finds it.
    silent: Option<PeerStream>,
    /// Where the stream leads, or would have led.
    pub(super) endpoint: Option<Arc<PeerEndpoint>>,
    /// Where the stream before led, what its numbers depend on, and how many tokens were emitted by the time of
    /// its last answer.
    before: Option<PreviousPeer>,
    /// A replica that made no progress on a round of the session, though it is there: others are tried first.
    stalled: Option<Arc<PeerEndpoint>>,
    /// When to look for another place again, if the peer is about to stop.
    migrate_after: Option<Instant>,
    /// Times it went to another replica.
    pub(super) migrations: u32,
    /// Whether its numerics changed, and the session was not told yet.
    pub(super) numerics_changed: bool,
}

/// A peer that the session was at.
#[derive(Debug)]
struct PreviousPeer {
    address: String,
    numerics: v1::Numerics,
    emitted: usize,
}

/// How a peer was lost for a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailureKind {
    /// It did not answer in time, be it to a round or to the opening of the stream. What it still works on is not
    /// given up: its stream is kept until there is another.
    Silent,
    /// It did not get on with the round in its time, as it says itself or its stream shows.
    Stalled,
    /// Its stream broke, or it does not do what is asked.
    Broken,
    /// It said what cannot be: others are tried before it for a while.
    Malformed,
    /// Its description is outdated: it is asked to describe itself again.
    Outdated,
}

impl FailureKind {
    /// Returns how a peer was lost that failed with `error`.
    pub(crate) fn of(error: &CallError) -> Self {
        match error.fault() {
            _ if error.is_outdated() => Self::Outdated,
            PeerFault::Timeout => Self::Stalled,
            _ => Self::Broken,
        }
    }
}

impl PeerSession {
    /// Returns the session at `peer` before its first stream.
    pub(super) fn new(peer: Peer) -> Self {
        Self {
            peer,
            stream: None,
            silent: None,
            endpoint: None,
            before: None,
            stalled: None,
            migrate_after: None,
            migrations: 0,
            numerics_changed: false,
        }
    }

    /// Returns the open stream, connecting if needed and moving off a draining peer.
    ///
    /// # Errors
    /// The failure of the last replica tried.
    pub(super) async fn ready(
        &mut self,
        opener: &mut Opener,
        deadline: Deadline,
    ) -> Result<&mut PeerStream, CallError> {
        if self.stream.is_some() {
            self.leave_draining(opener, deadline).await;
        } else {
            let stream = self.open(opener, deadline).await?;
            self.arrived(stream);
        }
        self.stream()
    }

    /// Returns the name of the peer's processors, empty if the peer reports none. None while no stream is open.
    pub(super) fn processors(&self) -> Option<&[u8]> {
        let stream = self.stream.as_ref();
        stream.map(|stream| &stream.description.processors[..])
    }

    /// Returns the stream, if it is open.
    pub(super) fn stream(&mut self) -> Result<&mut PeerStream, CallError> {
        self.stream
            .as_mut()
            .ok_or(CallError::NoneAlive(self.peer, None))
    }

    /// Moves to another replica, if the peer said that it is about to stop and there is one; whether
    /// it moved. Nothing is lost if that does not work: the old stream is given up only for a new one
    /// that computes the same bits.
    pub(super) async fn leave_draining(&mut self, opener: &mut Opener, deadline: Deadline) -> bool {
        let leaving = self.stream.as_ref().and_then(PeerStream::draining_at);
        let Some(leaving) = leaving.cloned() else {
            return false;
        };
        let now = Instant::now();
        if self.migrate_after.is_some_and(|until| now < until) {
            return false;
        }
        self.migrate_after = Some(now + MOVE_TIMEOUT);
        let query = opener.query(self.peer);
        let Some(endpoint) = opener.model.another(&query, &leaving).await else {
            return false;
        };
        let moving = Deadline::at_most(deadline.left() / 2, MOVE_TIMEOUT);
        let opening = opener.open(self.peer, &endpoint, 0, moving);
        let stream = match tokio::time::timeout(moving.left(), opening).await {
            Ok(Ok(opened)) => opened,
            Ok(Err(error)) => {
                let error = error.details();
                tracing::debug!(error, "a session stays at a peer that is about to stop");
                return false;
            }
            Err(_) => {
                if !moving.is_short {
                    endpoint.silent();
                }
                return false;
            }
        };
        let numerics = stream.description.numerics.clone().unwrap_or_default();
        let before = self.before.as_ref();
        if before.is_some_and(|before| before.numerics != numerics) {
            stream.close();
            return false;
        }
        self.endpoint = Some(endpoint);
        self.migrate_after = None;
        if let Some(left) = self.stream.take() {
            left.close();
        }
        self.arrived(stream);
        true
    }

    async fn open(
        &mut self,
        opener: &mut Opener,
        deadline: Deadline,
    ) -> Result<PeerStream, CallError> {
        let mut tried: Vec<Arc<PeerEndpoint>> = Vec::new();
        let mut failure = None;
        while tried.len() < REPLICAS_TRIED {
            let endpoint = match opener.pick(self.peer, self.stalled.as_ref()).await {
                Ok(endpoint) => endpoint,
                Err(none) => return Err(failure.unwrap_or(none)),
            };
            if tried.iter().any(|it| it.address() == endpoint.address()) {
                break;
            }
            tried.push(Arc::clone(&endpoint));
            // Known before anything is awaited of it: if it stays silent, it is to blame.
            self.endpoint = Some(Arc::clone(&endpoint));
            match opener
                .open(self.peer, &endpoint, self.emitted_at(&endpoint), deadline)
                .await
            {
                Ok(opened) => return Ok(opened),
                Err(error) if error.is_worth_another() => failure = Some(error),
                Err(error) => return Err(error),
            }
        }
        Err(failure.unwrap_or(CallError::NoneAlive(self.peer, None)))
    }

    /// Returns the number of tokens that were emitted by the time of the last answer of `endpoint`: what it holds of
    /// them stands.
    fn emitted_at(&self, endpoint: &PeerEndpoint) -> usize {
        let before = self.before.as_ref();
        let here = before.filter(|before| before.address == endpoint.address());
        here.map_or(0, |before| before.emitted)
    }

    /// Takes note of where the session is now.
    fn arrived(&mut self, stream: PeerStream) {
        let address = stream.endpoint.address().to_owned();
        let numerics = stream.description.numerics.clone().unwrap_or_default();
        let emitted = self.emitted_at(&stream.endpoint);
        if let Some(before) = &self.before {
            self.migrations += u32::from(before.address != address);
            self.numerics_changed |= before.numerics != numerics;
        }
        self.before = Some(PreviousPeer {
            address,
            numerics,
            emitted,
        });
        self.silent = None;
        self.stream = Some(stream);
    }

    /// Records that the peer's latest answer was right, and `emitted` tokens of the output stand.
    pub(super) fn succeeded(&mut self, emitted: usize) {
        if let Some(before) = &mut self.before {
            before.emitted = emitted;
        }
        if let Some(stream) = &mut self.stream {
            stream.succeeded(emitted);
        }
    }

    /// Gives up waiting for the peer.
    pub(crate) fn give_up(&mut self, kind: FailureKind) {
        if let Some(endpoint) = &self.endpoint {
            match kind {
                FailureKind::Silent => endpoint.silent(),
                FailureKind::Malformed => endpoint.failed("the verifier refused what it proposed"),
                FailureKind::Outdated => endpoint.forget(),
                FailureKind::Stalled | FailureKind::Broken => {}
            }
        }
        if matches!(kind, FailureKind::Silent | FailureKind::Stalled) {
            self.stalled.clone_from(&self.endpoint);
        }
        let stream = self.stream.take();
        if kind == FailureKind::Silent && stream.is_some() {
            self.silent = stream;
        }
    }

    /// Goes on reading what the peer sends while nobody takes it, see [`PeerStream::read_ahead`].
    pub(super) async fn read_ahead(&mut self) -> Infallible {
        match &mut self.stream {
            Some(stream) => stream.read_ahead().await,
            None => std::future::pending().await,
        }
    }

    /// Frees the session at the peer.
    pub(crate) fn close(&mut self) {
        let streams = [self.stream.take(), self.silent.take()];
        streams.into_iter().flatten().for_each(PeerStream::close);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl PeerSession {
        /// A session on an open stream.
        pub(in crate::peer) fn at(peer: Peer, stream: PeerStream) -> Self {
            let mut session = Self {
                endpoint: Some(Arc::clone(&stream.endpoint)),
                ..Self::new(peer)
            };
            session.arrived(stream);
            session
        }

        /// Where the next stream would lead.
        pub(in crate::peer) async fn next_place(&self, opener: &Opener) -> Arc<PeerEndpoint> {
            let picked = opener.pick(self.peer, self.stalled.as_ref()).await;
            picked.expect("a replica")
        }

        /// Goes on at another stream.
        pub(in crate::peer) fn moves_to(&mut self, stream: PeerStream) {
            self.arrived(stream);
        }
    }
}
