//! One session at one peer: where it is, what is held there, and how it moves.

use std::sync::Arc;
use std::time::{Duration, Instant};

use wire::status::BadField;
use wire::v1;

use super::error::PeerError;
use super::pool::{Endpoint, ServedModel, Target, described};
use super::protocol::Protocol;
use super::stream::{Allowance, PeerStream, Traffic};
use crate::admitted::{AdmittedRequest, DrafterRequirements, PeerKind, open};

/// Most replicas tried for one stream before the failure is the round's.
const REPLICAS_TRIED: usize = 3;

/// How long a session that need not move yet waits for the replica it would move to; and how long it
/// stays where it is if that did not work.
const MOVE_PATIENCE: Duration = Duration::from_secs(1);

/// What opens the streams of one request.
pub(crate) struct Opener {
    pub(crate) request: Arc<AdmittedRequest>,
    pub(crate) model: Arc<ServedModel>,
    target: Target,
    session_id: [u8; 16],
    /// Streams opened so far; the epoch of the latest.
    epoch: u32,
}

/// One session at one peer.
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

/// How often a session moved.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Moves {
    /// Times it went to another replica.
    pub(crate) migrations: u32,
    /// Whether one of them computes other bits.
    pub(crate) numerics_changed: bool,
}

impl Opener {
    pub(crate) fn new(
        request: Arc<AdmittedRequest>,
        model: Arc<ServedModel>,
        target: Target,
        session_id: [u8; 16],
    ) -> Self {
        Self {
            request,
            model,
            target,
            session_id,
            epoch: 0,
        }
    }

    fn requirements<P: Protocol>(&self) -> Option<DrafterRequirements> {
        (P::KIND == PeerKind::Drafter).then_some(self.request.requirements)
    }

    /// The replica to open a stream at; another than the one where the session stalled, if there is one.
    async fn pick<P: Protocol>(
        &self,
        stalled: Option<Arc<Endpoint>>,
    ) -> Result<Arc<Endpoint>, PeerError> {
        let (session, requirements) = (&self.session_id, self.requirements::<P>());
        if let Some(stalled) = stalled {
            let another = self.model.another(P::KIND, session, requirements, &stalled);
            if let Some(endpoint) = another.await {
                return Ok(endpoint);
            }
        }
        self.model.pick(P::KIND, session, requirements).await
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
        let description = described(endpoint, P::KIND, &self.target.description).await?;
        let able = match P::KIND {
            PeerKind::Drafter => request.requirements.check(&description),
            PeerKind::Verifier => check_room(&request, &description),
        };
        able.map_err(|lacking| PeerError::Unable(Box::new(lacking)))?;
        self.epoch += 1;
        let open = open(
            &request,
            self.session_id,
            self.epoch,
            P::KIND,
            &description.model,
        );
        PeerStream::open(endpoint, description, open, emitted, allowance).await
    }
}

/// Whether the whole request fits at a verifier: better that another is tried now than that it fails half-way.
fn check_room(request: &AdmittedRequest, verifier: &v1::PeerDescription) -> Result<(), BadField> {
    let most = u64::from(verifier.context_len);
    let needed = request.lead_len() as u64 + u64::from(request.max_tokens);
    if needed <= most {
        return Ok(());
    }
    let problem =
        format!("prompt and output are {needed} tokens, the verifier's context is {most}");
    Err(BadField::new("max_tokens", problem))
}

impl<P: Protocol> Default for PeerSession<P> {
    fn default() -> Self {
        Self {
            stream: None,
            silent: None,
            endpoint: None,
            before: None,
            stalled: None,
            stays_until: None,
            moves: Moves::default(),
            traffic: Traffic::default(),
        }
    }
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
        // Just filled, if it was empty.
        let who = P::KIND.name();
        self.stream.as_mut().ok_or(PeerError::NoneAlive { who })
    }

    /// The stream, if it is open.
    pub(super) fn stream(&mut self) -> Result<&mut PeerStream<P>, PeerError> {
        let who = P::KIND.name();
        self.stream.as_mut().ok_or(PeerError::NoneAlive { who })
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
        let (kind, requirements) = (P::KIND, opener.requirements::<P>());
        let another = opener
            .model
            .another(kind, &opener.session_id, requirements, &leaving);
        let Some(endpoint) = another.await else {
            return false;
        };
        let patience = MOVE_PATIENCE.min(allowance.left() / 2);
        // Half of what is left of the request's time may be too short for anybody.
        let moving = Allowance {
            until: Instant::now() + patience,
            is_short: patience < MOVE_PATIENCE,
        };
        let opening = opener.open(&endpoint, 0, moving);
        let stream: PeerStream<P> = match tokio::time::timeout(patience, opening).await {
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
        if self
            .before
            .as_ref()
            .is_some_and(|before| before.numerics != numerics)
        {
            stream.close();
            return false;
        }
        self.endpoint = Some(endpoint);
        self.stays_until = None;
        if let Some(left) = self.stream.take() {
            self.count(&left);
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
            let picked = opener.pick::<P>(self.stalled.clone()).await;
            let endpoint = match (picked, failure.take()) {
                (Ok(endpoint), None) => endpoint,
                (Ok(endpoint), Some(before)) => {
                    let is_same = |it: &Arc<Endpoint>| it.address() == endpoint.address();
                    if tried.iter().any(is_same) {
                        return Err(before);
                    }
                    endpoint
                }
                (Err(_), Some(before)) => return Err(before),
                (Err(none), None) => return Err(none),
            };
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
        let who = P::KIND.name();
        Err(failure.unwrap_or(PeerError::NoneAlive { who }))
    }

    /// Tokens that were emitted by the time of the last answer of `endpoint`: what it holds of them stands.
    fn emitted_at(&self, endpoint: &Endpoint) -> usize {
        let before = self.before.as_ref();
        let here = before.filter(|before| before.address == endpoint.address());
        here.map_or(0, |before| before.emitted)
    }

    /// Takes note of where the session is now.
    fn arrived(&mut self, stream: PeerStream<P>) {
        let endpoint = self.endpoint.as_ref();
        let address = endpoint
            .map_or("", |endpoint| endpoint.address())
            .to_owned();
        let numerics = stream.description.numerics.clone().unwrap_or_default();
        let mut emitted = 0;
        if let Some(before) = &self.before {
            let is_same = before.address == address;
            self.moves.migrations += u32::from(!is_same);
            self.moves.numerics_changed |= before.numerics != numerics;
            emitted = if is_same { before.emitted } else { 0 };
        }
        self.before = Some(Visit {
            address,
            numerics,
            emitted,
        });
        if let Some(silent) = self.silent.take() {
            self.count(&silent);
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

    /// The peer did not answer in time, be it to a round or to the opening of the stream. What it still works
    /// on is not given up: its stream is kept until there is another.
    pub(super) fn silent(&mut self) {
        if let Some(endpoint) = &self.endpoint {
            endpoint.silent();
        }
        self.stalled.clone_from(&self.endpoint);
        if let Some(stream) = self.stream.take()
            && let Some(older) = self.silent.replace(stream)
        {
            self.count(&older);
        }
    }

    /// The peer says itself that it did not get on with a round in its time.
    pub(super) fn stalled(&mut self) {
        self.stalled.clone_from(&self.endpoint);
    }

    /// Drops the stream.
    pub(super) fn abandon(&mut self) {
        if let Some(stream) = self.stream.take() {
            self.count(&stream);
        }
    }

    /// Frees the session at the peer.
    pub(super) fn close(&mut self) {
        for stream in [self.stream.take(), self.silent.take()]
            .into_iter()
            .flatten()
        {
            self.count(&stream);
            stream.close();
        }
    }

    fn count(&mut self, stream: &PeerStream<P>) {
        self.traffic.opening += stream.traffic.opening;
        self.traffic.rounds += stream.traffic.rounds;
    }

    /// Bytes exchanged so far.
    pub(crate) fn traffic(&self) -> Traffic {
        let streams = [&self.stream, &self.silent].into_iter().flatten();
        streams.fold(self.traffic, |sum, stream| Traffic {
            opening: sum.opening + stream.traffic.opening,
            rounds: sum.rounds + stream.traffic.rounds,
        })
    }
}
