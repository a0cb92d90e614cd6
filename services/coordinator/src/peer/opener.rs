//! What opens a request's streams: which replica, whether it does what the request needs, and the opening itself.

use std::sync::Arc;

use fleet::{CallError, PeerEndpoint, PeerQuery, ServedModel, Target, described};
use speculation::session::Peer;
use wire::status::BadField;
use wire::v1;

use super::position::Deadline;
use super::stream::{PeerStream, TrafficCounter};
use crate::admitted::{AdmittedRequest, open};

/// What opens the streams of one request.
#[derive(Clone)]
pub(crate) struct Opener {
    pub(crate) request: Arc<AdmittedRequest>,
    pub(crate) model: Arc<ServedModel>,
    pub(super) target: Target,
    pub(super) session_id: [u8; 16],
    /// Streams opened so far; the epoch of the latest.
    pub(super) epoch: u32,
    /// Bytes of all of them.
    pub(super) traffic: TrafficCounter,
}

impl Opener {
    pub(super) fn query(&self, peer: Peer) -> PeerQuery {
        PeerQuery {
            peer,
            session: self.session_id,
            requirements: Some(self.request.requirements),
            beginning: self.request.beginning.clone(),
            draft_model: self
                .request
                .draft_model
                .clone()
                .filter(|_| peer == Peer::Drafter),
        }
    }

    /// Returns the replica to open a stream at; another than the one where the session stalled, if there is one.
    pub(super) async fn pick(
        &self,
        peer: Peer,
        stalled: Option<&Arc<PeerEndpoint>>,
    ) -> Result<Arc<PeerEndpoint>, CallError> {
        let query = self.query(peer);
        if let Some(stalled) = stalled
            && let Some(endpoint) = self.model.another(&query, stalled).await
        {
            return Ok(endpoint);
        }
        self.model.pick(&query).await
    }

    /// Opens a stream to the `peer` at `endpoint`, of whose output the first `emitted` tokens stand if it holds them.
    ///
    /// # Errors
    /// If it cannot do what the request needs, or does not open the session in time.
    pub(super) async fn open(
        &mut self,
        peer: Peer,
        endpoint: &Arc<PeerEndpoint>,
        emitted: usize,
        deadline: Deadline,
    ) -> Result<PeerStream, CallError> {
        match self
            .open_as_described(peer, endpoint, emitted, deadline)
            .await
        {
            Err(error) if error.is_outdated() => {
                // Restarted with another model; what it is now decides.
                endpoint.forget();
                self.open_as_described(peer, endpoint, emitted, deadline)
                    .await
            }
            opened => opened,
        }
    }

    async fn open_as_described(
        &mut self,
        peer: Peer,
        endpoint: &Arc<PeerEndpoint>,
        emitted: usize,
        deadline: Deadline,
    ) -> Result<PeerStream, CallError> {
        let request = Arc::clone(&self.request);
        let description = described(endpoint, peer, &self.target).await?;
        if peer == Peer::Verifier {
            self.model.check_weights(endpoint, &description)?;
        }
        let able = request.requirements.check(peer, &description);
        let able = able.and_then(|()| match peer {
            Peer::Drafter => Ok(()),
            Peer::Verifier => check_room(&request, &description),
        });
        able.map_err(|lacking| CallError::Unable(Box::new(lacking)))?;
        let room = request.draft_room(&description, request.decoder_prefix_len());
        if peer == Peer::Drafter && room.is_none() {
            // It may have been started anew with a longer one.
            endpoint.forget();
            return Err(CallError::ContextFull(description.context_len));
        }
        self.epoch += 1;
        let open = open(&request, self.session_id, self.epoch, peer, &description);
        let traffic = Arc::clone(&self.traffic);
        PeerStream::open(
            peer,
            endpoint,
            description,
            open,
            emitted,
            deadline,
            traffic,
        )
        .await
    }
}

/// Checks that the whole request fits at a verifier: better that another is tried now than that it fails half-way.
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
