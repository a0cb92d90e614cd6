//! A request's hold on one peer: the stream, where it leads, and how often it moved.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use wire::status::PeerFailure;
use wire::v1;

use crate::error::PeerError;
use crate::link::{Link, Protocol, WireBytes};
use crate::peers::{Endpoint, Kind, SILENT};
use crate::request::CheckedRequest;

/// Most replicas tried for one stream before the failure is the round's.
const REPLICAS_TRIED: usize = 3;

/// How long a session that need not move yet waits for the replica it would move to; and how long it
/// stays where it is if that did not work.
const MOVE_PATIENCE: Duration = Duration::from_secs(1);

/// Opens the streams of one request.
pub(crate) struct Opener {
    pub(crate) request: Arc<CheckedRequest>,
    session_id: [u8; 16],
    /// Streams opened so far; the epoch of the latest.
    epoch: u32,
    pub(crate) wire_bytes: Arc<WireBytes>,
}

/// A request's hold on one peer.
pub(crate) struct Attachment<P: Protocol> {
    /// The stream, while there is one.
    pub(crate) link: Option<Link<P>>,
    /// Where the stream leads, or would have led.
    endpoint: Option<Arc<Endpoint>>,
    /// Where the first stream led, and what its numbers depend on.
    before: Option<(String, v1::Numerics)>,
    /// When to look for another place again, if the peer is about to stop.
    stays_until: Option<Instant>,
    pub(crate) moves: Moves,
}

/// How often a session moved.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Moves {
    /// Times it went to another replica.
    pub(crate) migrations: u32,
    /// Whether one of them computes other bits.
    pub(crate) numerics_changed: bool,
}

impl<P: Protocol> Default for Attachment<P> {
    fn default() -> Self {
        Self {
            link: None,
            endpoint: None,
            before: None,
            stays_until: None,
            moves: Moves::default(),
        }
    }
}

impl Opener {
    pub(crate) fn new(request: Arc<CheckedRequest>, session_id: [u8; 16]) -> Self {
        Self {
            request,
            session_id,
            epoch: 0,
            wire_bytes: Arc::default(),
        }
    }

    async fn open<P: Protocol>(
        &mut self,
        endpoint: &Arc<Endpoint>,
        timeout: Duration,
    ) -> Result<(Link<P>, v1::Numerics), PeerError> {
        match self.open_as_described(endpoint, timeout).await {
            Err(error) if error.is_outdated() => {
                // Restarted with another model; what it is now decides.
                endpoint.forget();
                self.open_as_described(endpoint, timeout).await
            }
            opened => opened,
        }
    }

    async fn open_as_described<P: Protocol>(
        &mut self,
        endpoint: &Arc<Endpoint>,
        timeout: Duration,
    ) -> Result<(Link<P>, v1::Numerics), PeerError> {
        let request = &self.request;
        let description = request
            .group
            .described(endpoint, P::KIND, &request.text)
            .await?;
        if P::KIND == Kind::Drafter {
            request.demand.check(&description).map_err(|lacking| {
                let address = endpoint.address().to_owned();
                let lacking = Box::new(lacking);
                PeerError::Unable { address, lacking }
            })?;
        }
        self.epoch += 1;
        let open = request.open(self.session_id, self.epoch, P::KIND, &description.model);
        let wire_bytes = Arc::clone(&self.wire_bytes);
        let mut link = Link::open(endpoint, open, timeout, wire_bytes).await?;
        let limits = description.limits.unwrap_or_default();
        link.max_draft_tokens = limits.max_draft_tokens.max(1);
        link.context_len = description.context_len;
        Ok((link, description.numerics.clone().unwrap_or_default()))
    }
}

/// Whether another replica may do better.
fn is_worth_another(error: &PeerError) -> bool {
    matches!(error, PeerError::Unable { .. }) || error.failure() == PeerFailure::Transient
}

impl<P: Protocol> Attachment<P> {
    /// The stream; opened, at the next replica if the first cannot be reached, if there is none. One to
    /// a peer that is about to stop is left for another first, if there is another.
    ///
    /// # Errors
    /// The failure of the last replica tried.
    pub(crate) async fn link(
        &mut self,
        opener: &mut Opener,
        timeout: Duration,
    ) -> Result<&mut Link<P>, PeerError> {
        if self.link.is_some() {
            self.leave_draining(opener, timeout).await;
        } else {
            let (link, numerics) = self.open(opener, timeout).await?;
            self.note_moves(numerics);
            self.link = Some(link);
        }
        // Just filled, if it was empty.
        self.link
            .as_mut()
            .ok_or(PeerError::NoneAlive { who: "peer" })
    }

    /// Moves to another replica, if the peer said that it is about to stop and there is one; whether
    /// it moved. Nothing is lost if that does not work: the old stream is given up only for a new one
    /// that computes the same bits.
    pub(crate) async fn leave_draining(&mut self, opener: &mut Opener, timeout: Duration) -> bool {
        let leaving = self.link.as_ref().and_then(Link::draining_at);
        let Some(leaving) = leaving.cloned() else {
            return false;
        };
        let now = Instant::now();
        if self.stays_until.is_some_and(|until| now < until) {
            return false;
        }
        self.stays_until = Some(now + MOVE_PATIENCE);
        let request = Arc::clone(&opener.request);
        let demand = (P::KIND == Kind::Drafter).then_some(request.demand);
        let another = request
            .group
            .another(P::KIND, &opener.session_id, demand, &leaving);
        let Some(endpoint) = another.await else {
            return false;
        };
        let patience = MOVE_PATIENCE.min(timeout / 2);
        let opening = opener.open(&endpoint, patience);
        let (link, numerics) = match tokio::time::timeout(patience, opening).await {
            Ok(Ok(opened)) => opened,
            Ok(Err(error)) => {
                tracing::debug!(%error, "a session stays at a peer that is about to stop");
                return false;
            }
            Err(_) => {
                endpoint.unreachable(SILENT);
                return false;
            }
        };
        if self
            .before
            .as_ref()
            .is_some_and(|(_, before)| *before != numerics)
        {
            link.close();
            return false;
        }
        self.endpoint = Some(endpoint);
        self.stays_until = None;
        self.note_moves(numerics);
        if let Some(left) = self.link.replace(link) {
            left.close();
        }
        true
    }

    async fn open(
        &mut self,
        opener: &mut Opener,
        timeout: Duration,
    ) -> Result<(Link<P>, v1::Numerics), PeerError> {
        let mut tried: Vec<Arc<Endpoint>> = Vec::new();
        let mut failure = None;
        while tried.len() < REPLICAS_TRIED {
            let request = &opener.request;
            let demand = (P::KIND == Kind::Drafter).then_some(request.demand);
            let picked = request
                .group
                .pick(P::KIND, &opener.session_id, demand)
                .await;
            let endpoint = match (picked, failure.take()) {
                (Ok(endpoint), None) => endpoint,
                (Ok(endpoint), Some(before)) => {
                    if tried
                        .iter()
                        .any(|tried| tried.address() == endpoint.address())
                    {
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
            match opener.open(&endpoint, timeout).await {
                Ok(opened) => return Ok(opened),
                Err(error) if is_worth_another(&error) => failure = Some(error),
                Err(error) => return Err(error),
            }
        }
        Err(failure.unwrap_or(PeerError::NoneAlive { who: "peer" }))
    }

    fn note_moves(&mut self, numerics: v1::Numerics) {
        let address = self
            .endpoint
            .as_ref()
            .map_or("", |endpoint| endpoint.address());
        if let Some((before, numerics_before)) = &self.before {
            self.moves.migrations += u32::from(before != address);
            self.moves.numerics_changed |= *numerics_before != numerics;
        }
        self.before = Some((address.to_owned(), numerics));
    }

    /// Where the stream leads, or would have led.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.endpoint.as_ref().map(|endpoint| endpoint.socket())
    }

    /// The peer told what cannot be: others are tried before it for a while.
    pub(crate) fn malformed(&self) {
        if let Some(endpoint) = &self.endpoint {
            endpoint.failed();
        }
    }

    /// What a peer that did not answer within `after` is reported as.
    pub(crate) fn late(&self, after: Duration) -> PeerError {
        PeerError::Late {
            address: self
                .endpoint
                .as_ref()
                .map_or_else(String::new, |endpoint| endpoint.address().to_owned()),
            after,
        }
    }

    /// The peer did not answer in time, be it to a round or to the opening of the stream.
    pub(crate) fn silent(&self) {
        if let Some(endpoint) = &self.endpoint {
            endpoint.unreachable(SILENT);
        }
    }
}
