//! The peers of a request, as the crate `fleet` picks them: its session at each (`session`, on a `stream`), and what they are
//! asked in a round (`rounds`).

mod ahead;
mod exchange;
mod opener;
mod position;
mod proposals;
mod rounds;
mod session;
mod stream;
#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use fleet::{CallError, PeerEndpoint, ServedModel, Target};
use speculation::TokenId;
use speculation::proposal::Proposal;
use speculation::round::BlockInput;
use speculation::session::{Input, Peer, Plan, Request};
use wire::v1::{self, Timing};

use crate::admitted::AdmittedRequest;
use crate::events::{AnswerTiming, Proposed};
use opener::Opener;
use proposals::DecodeProposals;
use rounds::{ScoredBlock, StartedRound, Taken};
use session::PeerSession;

pub(crate) use position::{Deadline, RoundPosition};
pub(crate) use rounds::{CallFailure, OutputLogprobs, PeerAnswer, RoundProposals};
pub(crate) use session::FailureKind;
pub use stream::MAX_AHEAD_BYTES;
pub(crate) use stream::Traffic;

/// The sessions of one request at its peers.
pub(crate) struct Peers {
    opener: Opener,
    drafter: PeerSession,
    verifier: PeerSession,
    /// What is proposed while the target decodes; none in rounds.
    beside: Option<DecodeProposals>,
}

/// A request of the session that was not answered yet.
pub(crate) struct PendingRequest {
    pub(crate) round: u64,
    pub(crate) request: Request,
    /// What its peer was asked, once it was.
    started: Option<StartedRound>,
}

impl PendingRequest {
    pub(crate) fn new(round: u64, request: Request) -> Self {
        Self {
            round,
            request,
            started: None,
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
        let opener = Opener {
            request,
            model,
            target,
            session_id,
            epoch: 0,
            traffic: stream::TrafficCounter::default(),
        };
        Self {
            beside: DecodeProposals::of(&opener),
            opener,
            drafter: PeerSession::new(Peer::Drafter),
            verifier: PeerSession::new(Peer::Verifier),
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
        position: RoundPosition<'_>,
        proposals: &RoundProposals,
    ) -> Result<PeerAnswer, CallFailure> {
        let (round, peer) = (pending.round, pending.request.peer());
        let failed = |error| CallFailure { peer, error };
        let opener = &mut self.opener;
        let session = match peer {
            Peer::Drafter => &mut self.drafter,
            Peer::Verifier => &mut self.verifier,
        };
        let started = if let Some(ref mut started) = pending.started {
            started
        } else {
            let request = &pending.request;
            let starting = StartedRound::start(session, opener, request, position, proposals);
            match starting.await {
                Ok(started) => {
                    if let Some(beside) = &mut self.beside {
                        beside.begins(opener);
                    }
                    pending.started.insert(started)
                }
                Err(CallError::TooLong { max_draft_tokens }) => {
                    let input = Input::Limited {
                        round,
                        max_draft_tokens,
                    };
                    return Ok(PeerAnswer::new(input, Timing::default()));
                }
                Err(error) => return Err(failed(error)),
            }
        };
        let taken = started
            .next(session, opener, self.beside.as_mut(), position)
            .await;
        match taken.map_err(failed)? {
            Taken::Answer(answer) => Ok(answer),
            Taken::Scored(block, slices) => self.decide(block, slices, proposals, position).await,
        }
    }

    /// Decides a block here, and asks the drafter for its distribution after the block if that turns out to be
    /// needed.
    async fn decide(
        &mut self,
        block: BlockInput,
        slices: Vec<v1::Slice>,
        proposals: &RoundProposals,
        position: RoundPosition<'_>,
    ) -> Result<PeerAnswer, CallFailure> {
        let began = Instant::now();
        let request = Arc::clone(&self.opener.request);
        let distributions = v1::RoundDistributions {
            draft_token_ids: block.drafts.tokens().to_vec(),
            draft: proposals.of(&block.drafts),
            target: slices,
        };
        let last = distributions.target.last();
        let timing = last.and_then(|slice| slice.timing).unwrap_or_default();
        let reported = (request.report_distributions).then(|| distributions.clone());
        let base_len = position.output.len() as u32;
        let scored = ScoredBlock::read(&request, base_len, block, distributions, proposals);
        let mut block = scored.await?;
        let mut fetched = 0;
        loop {
            let verdict;
            (verdict, block) = rounds::decide(&request, block).await?;
            if let Some(verdict) = verdict {
                let input = Input::Verified {
                    round: position.round,
                    verdict,
                };
                let answer = PeerAnswer::new(input, timing);
                return Ok(PeerAnswer {
                    timing: AnswerTiming {
                        decided: began.elapsed(),
                        ..answer.timing
                    },
                    distributions: reported,
                    distributions_fetched: fetched,
                    ..answer
                });
            }
            let bonus = self.bonus(position, block.input.drafts.tokens()).await;
            let peer = Peer::Drafter;
            block.input.bonus = Some(bonus.map_err(|error| CallFailure { peer, error })?);
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
        position: RoundPosition<'_>,
        drafts: &[TokenId],
    ) -> Result<Proposal, CallError> {
        // Less than what is left of the whole round, or the verifier would be blamed for the drafter.
        let whole = self.opener.request.draft_timeout;
        let deadline = Deadline::at_most(position.deadline.left() * 9 / 10, whole);
        let given = deadline.left();
        let position = RoundPosition {
            deadline,
            ..position
        };
        let asking = rounds::bonus(&mut self.drafter, &mut self.opener, position, drafts);
        if let Ok(answered) = tokio::time::timeout(given, asking).await {
            return answered;
        }
        if !deadline.is_short {
            self.drafter.give_up(FailureKind::Silent);
        }
        Err(deadline.exceeded(given))
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

    /// Returns the session at `peer`.
    pub(crate) fn session(&mut self, peer: Peer) -> &mut PeerSession {
        match peer {
            Peer::Drafter => &mut self.drafter,
            Peer::Verifier => &mut self.verifier,
        }
    }

    /// Returns where `peer` was asked last.
    pub(crate) fn endpoint(&self, peer: Peer) -> Option<&Arc<PeerEndpoint>> {
        match peer {
            Peer::Drafter => self.drafter.endpoint.as_ref(),
            Peer::Verifier => self.verifier.endpoint.as_ref(),
        }
    }

    /// How often the session moved, as far as it concerns the output: to other drafters only where
    /// the draft model has a say in it.
    pub(crate) fn moves(&self) -> u32 {
        let method = &self.opener.request.method;
        let [drafter, verifier] = [&self.drafter, &self.verifier].map(|it| it.migrations);
        if method.plan == Plan::DraftOnly {
            drafter
        } else if method.depends_on_draft() || method.verification.carries_layers {
            drafter + verifier
        } else {
            verifier
        }
    }

    /// Returns what each source proposed while the target decoded, and what became of all of it; none in rounds.
    pub(crate) fn streamed(&self) -> Option<(Vec<Proposed>, v1::ForwardDrafts)> {
        self.beside.as_ref().map(|beside| beside.lane.figures())
    }

    /// Returns the peers whose numerics changed since the last call.
    pub(crate) fn take_changed(&mut self) -> impl Iterator<Item = Peer> {
        let peers = Peer::ALL.into_iter();
        peers.filter(|&peer| std::mem::take(&mut self.session(peer).numerics_changed))
    }

    /// How often the session moved, whatever it means for the output.
    pub(crate) fn migrations(&self) -> u32 {
        self.drafter.migrations + self.verifier.migrations
    }

    /// Returns the address of the same.
    pub(crate) fn address(&self, peer: Peer) -> Option<SocketAddr> {
        self.endpoint(peer).map(|endpoint| endpoint.socket)
    }

    /// Bytes exchanged with the peers so far.
    pub(crate) fn traffic(&self) -> Traffic {
        *self.opener.traffic.lock()
    }
}
