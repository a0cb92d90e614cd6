//! The peers of a request: which there are (`pool`), its session at each (`session`, on a `stream`), and what
//! they are asked in a round (`rounds`).

pub(crate) mod error;
pub(crate) mod pool;
mod protocol;
mod rounds;
mod session;
mod stream;
#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use speculation::TokenId;
use speculation::proposal::Proposal;
use speculation::round::BlockInput;
use speculation::session::{Input, Peer, Plan, Request};
use wire::messages::{Drafting, Verifying};
use wire::v1::{self, Timing};

use crate::admitted::AdmittedRequest;
use error::PeerError;
use pool::{ServedModel, Target};
use rounds::{PendingDecode, PendingDraft, PendingScore, PendingVerify, ScoredBlock};
use session::{Opener, PeerSession};

pub use rounds::PARTS_AHEAD;
pub(crate) use rounds::{Answer, Failure, OutputLogprobs, RoundProposals};
pub(crate) use session::Loss;
pub use stream::MAX_AHEAD_BYTES;
pub(crate) use stream::{Allowance, Position, Traffic};

/// The sessions of one request at its peers.
pub(crate) struct Peers {
    opener: Opener,
    drafter: PeerSession<Drafting>,
    verifier: PeerSession<Verifying>,
}

/// A request of the session that was not answered yet.
pub(crate) struct PendingRequest {
    pub(crate) round: u64,
    pub(crate) request: Request,
    /// What its peer was asked, once it was.
    requested: Option<StartedRound>,
}

/// What a peer was asked.
enum StartedRound {
    Draft(PendingDraft),
    Verify(PendingVerify),
    Decode(PendingDecode),
    Score(PendingScore),
}

impl PendingRequest {
    pub(crate) fn new(round: u64, request: Request) -> Self {
        Self {
            round,
            request,
            requested: None,
        }
    }
}

impl Peers {
    pub(crate) fn new(
        request: Arc<AdmittedRequest>,
        model: Arc<ServedModel>,
        target: Target,
        session_id: [u8; 16],
    ) -> Self {
        Self {
            opener: Opener {
                request,
                model,
                target,
                session_id,
                epoch: 0,
            },
            drafter: PeerSession::default(),
            verifier: PeerSession::default(),
        }
    }

    /// Asks the peer of a request, if it was not asked yet, and awaits its answer. After progress, and after tokens
    /// that were decoded, the same request is awaited again. `proposals` are what the drafter sent in this round.
    ///
    /// # Errors
    /// If a peer fails that the answer hangs on.
    pub(crate) async fn answer(
        &mut self,
        pending: &mut PendingRequest,
        position: Position<'_>,
        proposals: &RoundProposals,
    ) -> Result<Answer, Failure> {
        let (round, peer) = (pending.round, pending.request.peer());
        let failed = |error| Failure { peer, error };
        if pending.requested.is_none() {
            let requested = self.ask(&pending.request, position, proposals).await;
            let requested = match requested {
                Err(PeerError::TooLong { max_draft_tokens }) => {
                    let input = Input::Limited {
                        round,
                        max_draft_tokens,
                    };
                    return Ok(Answer::new(input, Timing::default()));
                }
                requested => requested.map_err(failed)?,
            };
            pending.requested = Some(requested);
        }
        let request = Arc::clone(&self.opener.request);
        let (drafter, verifier) = (&mut self.drafter, &mut self.verifier);
        let block = match &mut pending.requested {
            Some(StartedRound::Draft(draft)) => {
                let answer = draft.next(drafter, &request, position).await;
                return answer.map_err(failed);
            }
            Some(StartedRound::Decode(decode)) => {
                let answer = decode.next(verifier, &mut self.opener, position).await;
                return answer.map_err(failed);
            }
            Some(StartedRound::Score(score)) => {
                let answer = score.next(verifier, &self.opener, position).await;
                return answer.map_err(failed);
            }
            Some(StartedRound::Verify(verify)) => {
                let answer = verify.next(verifier, &request, position).await;
                match answer.map_err(failed)? {
                    Some(answer) => return Ok(answer),
                    None => verify.scored(&pending.request, proposals),
                }
            }
            None => Err(PeerError::Decision),
        };
        let block = block.map_err(failed)?;
        self.decide(block, proposals, position).await
    }

    async fn ask(
        &mut self,
        request: &Request,
        position: Position<'_>,
        proposals: &RoundProposals,
    ) -> Result<StartedRound, PeerError> {
        let (opener, drafter, verifier) = (&mut self.opener, &mut self.drafter, &mut self.verifier);
        match request {
            Request::Draft {
                max_tokens,
                bonus_q,
            } => {
                let levels = (*max_tokens, *bonus_q);
                let started = PendingDraft::start(drafter, opener, position, levels).await;
                started.map(StartedRound::Draft)
            }
            Request::Verify {
                drafts,
                horizon,
                layers,
            } => {
                let block = (drafts, *horizon, &layers[..]);
                let started = PendingVerify::start(verifier, opener, position, block, proposals);
                started.await.map(StartedRound::Verify)
            }
            Request::Decode { max_tokens } => {
                let started = PendingDecode::start(verifier, opener, position, *max_tokens);
                started.await.map(StartedRound::Decode)
            }
            Request::Score { from } => {
                let started = PendingScore::start(verifier, opener, position, *from);
                started.await.map(StartedRound::Score)
            }
        }
    }

    /// Decides a block here, and asks the drafter for its distribution after the block if that turns out to be
    /// needed.
    async fn decide(
        &mut self,
        (block, distributions): (BlockInput, v1::RoundDistributions),
        proposals: &RoundProposals,
        position: Position<'_>,
    ) -> Result<Answer, Failure> {
        let began = Instant::now();
        let request = Arc::clone(&self.opener.request);
        let last = distributions.target.last();
        let timing = last.and_then(|slice| slice.timing).unwrap_or_default();
        let reported = (request.report_distributions).then(|| distributions.clone());
        let base_len = position.output.len() as u32;
        let scored = ScoredBlock::read(&request, base_len, block, distributions, proposals);
        let mut block = scored.await?;
        let mut fetched = 0;
        loop {
            let decided = rounds::decide(&request, block).await?;
            block = match decided {
                (Some(verdict), _) => {
                    let input = Input::Verified {
                        round: position.round,
                        verdict,
                    };
                    return Ok(Answer {
                        decided: began.elapsed(),
                        distributions: reported,
                        distributions_fetched: fetched,
                        ..Answer::new(input, timing)
                    });
                }
                (None, block) => block,
            };
            let bonus = self.bonus(position, block.input.drafts.tokens()).await;
            let peer = Peer::Drafter;
            block.input.bonus = Some(bonus.map_err(|error| Failure { peer, error })?);
            fetched += 1;
        }
    }

    /// The drafter's distribution after `drafts`, all of which were accepted. It is asked for while the
    /// verifier's answer is awaited, so a silent drafter is noticed here.
    ///
    /// # Errors
    /// If the drafter does not answer in time, or its answer cannot be right.
    async fn bonus(
        &mut self,
        position: Position<'_>,
        drafts: &[TokenId],
    ) -> Result<Proposal, PeerError> {
        // Less than what is left of the whole round, or the verifier would be blamed for the drafter.
        let whole = self.opener.request.draft_timeout;
        let allowance = Allowance::at_most(position.allowance.left() * 9 / 10, whole);
        let given = allowance.left();
        let position = Position {
            allowance,
            ..position
        };
        let asking = rounds::bonus(&mut self.drafter, &mut self.opener, position, drafts);
        if let Ok(answered) = tokio::time::timeout(given, asking).await {
            return answered;
        }
        if !allowance.is_short {
            self.drafter.give_up(Loss::Silent);
        }
        Err(allowance.exceeded(given))
    }

    /// Goes on reading what the peers send, for as long as this is awaited: while the client does not take what came
    /// before.
    pub(crate) async fn read_ahead(&mut self) -> Infallible {
        tokio::select! {
            never = self.drafter.read_ahead() => never,
            never = self.verifier.read_ahead() => never,
        }
    }

    /// Whether drafter and verifier report the same processors. None until both streams are open.
    pub(crate) fn shares_processors(&self) -> Option<bool> {
        let (drafter, verifier) = (self.drafter.processors()?, self.verifier.processors()?);
        Some(!drafter.is_empty() && drafter == verifier)
    }

    /// `peer` is asked something for the first time.
    pub(crate) fn requested(&self, peer: Peer) {
        if let Some(endpoint) = self.endpoint(peer) {
            endpoint.requested();
        }
    }

    /// Gives up waiting for `peer`.
    pub(crate) fn give_up(&mut self, peer: Peer, loss: Loss) {
        match peer {
            Peer::Drafter => self.drafter.give_up(loss),
            Peer::Verifier => self.verifier.give_up(loss),
        }
    }

    /// `peer` is overloaded; how long to wait before it is asked again. `jitter` is from 0 to 1.
    pub(crate) fn overloaded(&self, peer: Peer, retry_after: Duration, jitter: f64) -> Duration {
        let endpoint = self.endpoint(peer);
        endpoint.map_or(retry_after, |it| it.overloaded(retry_after, jitter))
    }

    /// Frees the session at `peer`.
    pub(crate) fn close(&mut self, peer: Peer) {
        match peer {
            Peer::Drafter => self.drafter.close(),
            Peer::Verifier => self.verifier.close(),
        }
    }

    fn endpoint(&self, peer: Peer) -> Option<&Arc<pool::Endpoint>> {
        match peer {
            Peer::Drafter => self.drafter.endpoint(),
            Peer::Verifier => self.verifier.endpoint(),
        }
    }

    /// How often the session moved, as far as it concerns the output: to other drafters only where
    /// the draft model has a say in it.
    pub(crate) fn moves(&self) -> u32 {
        let method = &self.opener.request.method;
        let [drafter, verifier] = [self.drafter.moves, self.verifier.moves].map(|it| it.migrations);
        if method.plan == Plan::DraftOnly {
            drafter
        } else if method.depends_on_draft() || method.verification.carries_layers {
            drafter + verifier
        } else {
            verifier
        }
    }

    /// Returns the peers whose numerics changed since the last call.
    pub(crate) fn take_changed(&mut self) -> impl Iterator<Item = Peer> + use<> {
        let drafter = std::mem::take(&mut self.drafter.moves.numerics_changed);
        let verifier = std::mem::take(&mut self.verifier.moves.numerics_changed);
        let changed = [(Peer::Drafter, drafter), (Peer::Verifier, verifier)];
        changed
            .into_iter()
            .filter_map(|(peer, has_changed)| has_changed.then_some(peer))
    }

    /// How often the session moved, whatever it means for the output.
    pub(crate) fn migrations(&self) -> u32 {
        self.drafter.moves.migrations + self.verifier.moves.migrations
    }

    /// Where `peer` was asked last.
    pub(crate) fn address(&self, peer: Peer) -> Option<SocketAddr> {
        self.endpoint(peer).map(|endpoint| endpoint.socket())
    }

    /// Bytes exchanged with the peers so far.
    pub(crate) fn traffic(&self) -> Traffic {
        let mut traffic = self.drafter.traffic();
        traffic += self.verifier.traffic();
        traffic
    }
}
