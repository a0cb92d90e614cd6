//! One session at one peer: where it is, what is held there, and how it moves.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use speculation::session::Peer;
use wire::status::BadField;
use wire::v1;

use super::error::PeerError;
use super::pool::{Endpoint, Requirements, ServedModel, Target, Wanted, described};
use super::protocol::Protocol;
use super::stream::{Allowance, PeerStream, Traffic};
use crate::admitted::{AdmittedRequest, open};

/// Most replicas tried for one stream before the failure is the round's.
const REPLICAS_TRIED: usize = 3;

/// How long a session that need not move yet waits for the replica it would move to; and how long it
/// stays where it is if that did not work.
const MOVE_PATIENCE: Duration = Duration::from_secs(1);

/// What opens the streams of one request.
pub(crate) struct Opener {
    pub(crate) request: Arc<AdmittedRequest>,
    pub(crate) model: Arc<ServedModel>,
    pub(super) target: Target,
    pub(super) session_id: [u8; 16],
    /// Streams opened so far; the epoch of the latest.
    pub(super) epoch: u32,
}

/// One session at one peer.
#[derive(Default)]
pub(crate) struct PeerSession<P: Protocol> {
    /// The stream, while there is one.
    stream: Option<PeerStream<P>>,
    /// A stream that was silent. While it stands, the peer keeps the session and goes on with its work; the next
    /// stream to the same peer finds it.
    silent: Option<PeerStream<P>>,
    /// Where the stream leads, or would have led.
    endpoint: Option<Arc<Endpoint>>,
    /// Where the stream before led, what its numbers depend on, and how many tokens were emitted by the time of
    /// its last answer.
    before: Option<Visit>,
    /// A replica that made no progress on a round of the session, though it is there: others are tried first.
    stalled: Option<Arc<Endpoint>>,
    /// When to look for another place again, if the peer is about to stop.
    stays_until: Option<Instant>,
    pub(crate) moves: Moves,
    /// Bytes of streams that are gone.
    traffic: Traffic,
}

/// A peer that the session was at.
#[derive(Debug)]
struct Visit {
    address: String,
    numerics: v1::Numerics,
    emitted: usize,
}

/// How a peer was lost for a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
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

/// How often a session moved.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Moves {
    /// Times it went to another replica.
    pub(crate) migrations: u32,
    /// Whether its numerics changed, and the session was not told yet.
    pub(crate) numerics_changed: bool,
}

impl Opener {
    fn wanted(&self, peer: Peer) -> Wanted {
        let requirements = match peer {
            Peer::Drafter => Requirements::Drafter(self.request.drafter_requirements),
            Peer::Verifier => Requirements::Verifier(self.request.verifier_requirements),
        };
        Wanted {
            peer,
            session: self.session_id,
            requirements: Some(requirements),
        }
    }

    /// The replica to open a stream at; another than the one where the session stalled, if there is one.
    async fn pick(
        &self,
        peer: Peer,
        stalled: Option<&Arc<Endpoint>>,
    ) -> Result<Arc<Endpoint>, PeerError> {
        let wanted = self.wanted(peer);
        if let Some(stalled) = stalled
            && let Some(endpoint) = self.model.another(&wanted, stalled).await
        {
            return Ok(endpoint);
        }
        self.model.pick(&wanted).await
    }

    async fn open<P: Protocol>(
        &mut self,
        endpoint: &Arc<Endpoint>,
        emitted: usize,
        allowance: Allowance,
    ) -> Result<PeerStream<P>, PeerError> {
        match self.open_as_described(endpoint, emitted, allowance).await {
            Err(error) if error.is_outdated() => {
                // Restarted with another model; what it is now decides.
                endpoint.forget();
                self.open_as_described(endpoint, emitted, allowance).await
            }
            opened => opened,
        }
    }

    async fn open_as_described<P: Protocol>(
        &mut self,
        endpoint: &Arc<Endpoint>,
        emitted: usize,
        allowance: Allowance,
    ) -> Result<PeerStream<P>, PeerError> {
        let request = Arc::clone(&self.request);
        let description = described(endpoint, P::PEER, &self.target.description).await?;
        if P::PEER == Peer::Verifier {
            self.model.check_weights(endpoint, &description)?;
        }
        let able = match P::PEER {
            Peer::Drafter => request.drafter_requirements.check(&description),
            Peer::Verifier => (request.verifier_requirements.check(&description))
                .and_then(|()| check_room(&request, &description)),
        };
        able.map_err(|lacking| PeerError::Unable(Box::new(lacking)))?;
        let room = request.draft_room(&description, request.decoder_prefix_len());
        if P::PEER == Peer::Drafter && room.is_none() {
            // It may have been started anew with a longer one.
            endpoint.forget();
            return Err(PeerError::ContextFull(description.context_len));
        }
        self.epoch += 1;
        let open = open(&request, self.session_id, self.epoch, P::PEER, &description);
        PeerStream::open(endpoint, description, open, emitted, allowance).await
    }
}

/// Whether the whole request fits at a verifier: better that another is tried now than that it fails half-way.
fn check_room(request: &AdmittedRequest, verifier: &v1::PeerDescription) -> Result<(), BadField> {
    let most = u64::from(verifier.context_len);
    let needed = request.decoder_prefix_len() as u64 + u64::from(request.max_tokens);
    if needed <= most {
        return Ok(());
    }
    let problem =
        format!("prompt and output are {needed} tokens, the verifier's context is {most}");
    Err(BadField::new("max_tokens", problem))
}

impl<P: Protocol> PeerSession<P> {
    /// Returns the open stream, connecting if needed and moving off a draining peer.
    ///
    /// # Errors
    /// The failure of the last replica tried.
    pub(super) async fn ready(
        &mut self,
        opener: &mut Opener,
        allowance: Allowance,
    ) -> Result<&mut PeerStream<P>, PeerError> {
        if self.stream.is_some() {
            self.leave_draining(opener, allowance).await;
        } else {
            let stream = self.open(opener, allowance).await?;
            self.arrived(stream);
        }
        self.stream()
    }

    /// The name of the peer's processors, empty if the peer reports none. None while no stream is open.
    pub(super) fn processors(&self) -> Option<&[u8]> {
        let stream = self.stream.as_ref();
        stream.map(|stream| &stream.description.processors[..])
    }

    /// The stream, if it is open.
    pub(super) fn stream(&mut self) -> Result<&mut PeerStream<P>, PeerError> {
        self.stream
            .as_mut()
            .ok_or(PeerError::NoneAlive(P::PEER, None))
    }

    /// Moves to another replica, if the peer said that it is about to stop and there is one; whether
    /// it moved. Nothing is lost if that does not work: the old stream is given up only for a new one
    /// that computes the same bits.
    pub(super) async fn leave_draining(
        &mut self,
        opener: &mut Opener,
        allowance: Allowance,
    ) -> bool {
        let leaving = self.stream.as_ref().and_then(PeerStream::draining_at);
        let Some(leaving) = leaving.cloned() else {
            return false;
        };
        let now = Instant::now();
        if self.stays_until.is_some_and(|until| now < until) {
            return false;
        }
        self.stays_until = Some(now + MOVE_PATIENCE);
        let wanted = opener.wanted(P::PEER);
        let Some(endpoint) = opener.model.another(&wanted, &leaving).await else {
            return false;
        };
        let moving = Allowance::at_most(allowance.left() / 2, MOVE_PATIENCE);
        let opening = opener.open(&endpoint, 0, moving);
        let stream: PeerStream<P> = match tokio::time::timeout(moving.left(), opening).await {
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
        self.stays_until = None;
        if let Some(left) = self.stream.take() {
            self.traffic += left.traffic;
            left.close();
        }
        self.arrived(stream);
        true
    }

    async fn open(
        &mut self,
        opener: &mut Opener,
        allowance: Allowance,
    ) -> Result<PeerStream<P>, PeerError> {
        let mut tried: Vec<Arc<Endpoint>> = Vec::new();
        let mut failure = None;
        while tried.len() < REPLICAS_TRIED {
            let endpoint = match opener.pick(P::PEER, self.stalled.as_ref()).await {
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
                .open(&endpoint, self.emitted_at(&endpoint), allowance)
                .await
            {
                Ok(opened) => return Ok(opened),
                Err(error) if error.is_worth_another() => failure = Some(error),
                Err(error) => return Err(error),
            }
        }
        Err(failure.unwrap_or(PeerError::NoneAlive(P::PEER, None)))
    }

    /// Tokens that were emitted by the time of the last answer of `endpoint`: what it holds of them stands.
    fn emitted_at(&self, endpoint: &Endpoint) -> usize {
        let before = self.before.as_ref();
        let here = before.filter(|before| before.address == endpoint.address());
        here.map_or(0, |before| before.emitted)
    }

    /// Takes note of where the session is now.
    fn arrived(&mut self, stream: PeerStream<P>) {
        let address = stream.endpoint.address().to_owned();
        let numerics = stream.description.numerics.clone().unwrap_or_default();
        let emitted = self.emitted_at(&stream.endpoint);
        if let Some(before) = &self.before {
            self.moves.migrations += u32::from(before.address != address);
            self.moves.numerics_changed |= before.numerics != numerics;
        }
        self.before = Some(Visit {
            address,
            numerics,
            emitted,
        });
        if let Some(silent) = self.silent.take() {
            self.traffic += silent.traffic;
        }
        self.stream = Some(stream);
    }

    /// The peer's latest answer was right, and `emitted` tokens of the output stand.
    pub(super) fn succeeded(&mut self, emitted: usize) {
        if let Some(before) = &mut self.before {
            before.emitted = emitted;
        }
        if let Some(stream) = &mut self.stream {
            stream.succeeded(emitted);
        }
    }

    /// Where the stream leads, or would have led.
    pub(super) fn endpoint(&self) -> Option<&Arc<Endpoint>> {
        self.endpoint.as_ref()
    }

    /// Gives up waiting for the peer.
    pub(super) fn give_up(&mut self, loss: Loss) {
        if let Some(endpoint) = &self.endpoint {
            match loss {
                Loss::Silent => endpoint.silent(),
                Loss::Malformed => endpoint.failed("the verifier refused what it proposed"),
                Loss::Outdated => endpoint.forget(),
                Loss::Stalled | Loss::Broken => {}
            }
        }
        if matches!(loss, Loss::Silent | Loss::Stalled) {
            self.stalled.clone_from(&self.endpoint);
        }
        let stream = self.stream.take();
        let dropped = match loss {
            Loss::Silent => stream.and_then(|stream| self.silent.replace(stream)),
            _ => stream,
        };
        self.traffic += dropped.map(|stream| stream.traffic).unwrap_or_default();
    }

    /// Goes on reading what the peer sends while nobody takes it, see [`PeerStream::read_ahead`].
    pub(super) async fn read_ahead(&mut self) -> Infallible {
        match &mut self.stream {
            Some(stream) => stream.read_ahead().await,
            None => std::future::pending().await,
        }
    }

    /// Frees the session at the peer.
    pub(super) fn close(&mut self) {
        for stream in [self.stream.take(), self.silent.take()]
            .into_iter()
            .flatten()
        {
            self.traffic += stream.traffic;
            stream.close();
        }
    }

    /// Bytes exchanged so far.
    pub(crate) fn traffic(&self) -> Traffic {
        let mut traffic = self.traffic;
        for stream in [&self.stream, &self.silent].into_iter().flatten() {
            traffic += stream.traffic;
        }
        traffic
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl<P: Protocol + Default> PeerSession<P> {
        /// A session on an open stream.
        pub(in crate::peer) fn at(stream: PeerStream<P>) -> Self {
            let mut session = Self {
                endpoint: Some(Arc::clone(&stream.endpoint)),
                ..Self::default()
            };
            session.arrived(stream);
            session
        }

        /// Where the next stream would lead.
        pub(in crate::peer) async fn next_place(&self, opener: &Opener) -> Arc<Endpoint> {
            let picked = opener.pick(P::PEER, self.stalled.as_ref()).await;
            picked.expect("a replica")
        }

        /// Goes on at another stream.
        pub(in crate::peer) fn moves_to(&mut self, stream: PeerStream<P>) {
            self.arrived(stream);
        }
    }
}
