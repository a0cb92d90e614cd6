//! Deciding a block at the coordinator, from distributions that drafter and verifier sent.
//!
//! It is the verifier's own decision on the same numbers, so a seed gives the same tokens wherever
//! acceptance is decided.

use std::fmt::Display;
use std::sync::Arc;

use fleet::CallError;
use speculation::noise::Noise;
use speculation::proposal::BadProposal;
use speculation::round::{self, BlockInput, RoundInputs, RoundScratch, TargetRows};
use speculation::session::Peer;
use speculation::target::TargetProbs;
use speculation::verification::Verdict;
use wire::slice::{self, Scored};
use wire::{proposal, v1};

use super::{CallFailure, RoundProposals};
use crate::admitted::AdmittedRequest;

/// A block to be decided here, read from the wire.
pub(crate) struct ScoredBlock {
    base_len: u32,
    pub(crate) input: BlockInput,
    /// The target model's distributions, at each draft token and after them.
    scored: Vec<Scored>,
}

impl ScoredBlock {
    /// Reads everything that came of the block `input`, where it may take its time: the distributions of a large
    /// vocabulary would hold up every stream of an async thread. `distributions` are those that drafter and verifier sent,
    /// `proposals` what the drafter sent in this round.
    ///
    /// # Errors
    /// Whose distributions cannot be read.
    pub(crate) async fn read(
        request: &Arc<AdmittedRequest>,
        base_len: u32,
        mut input: BlockInput,
        distributions: v1::RoundDistributions,
        proposals: &RoundProposals,
    ) -> Result<Self, CallFailure> {
        let (request, bonus) = (Arc::clone(request), proposals.bonus.clone());
        let reading = move || -> Result<Self, CallFailure> {
            let unscaled = request.needs_target_unscaled();
            let read = |(at, slice)| slice::from_wire(slice, at, request.vocab_size, unscaled);
            let slices = distributions.target.into_iter().enumerate();
            let scored: Result<Vec<_>, _> = slices.map(read).collect();
            let scored = scored.map_err(|bad| failure(CallError::Malformed(bad.to_string())))?;
            let (form, fields) = (request.method.proposal, request.proposal_fields());
            let drafts = input.drafts.len();
            let proposals = proposal::from_wire(distributions.draft, drafts, form, fields);
            input.proposals = proposals.map_err(|bad| rejected(&bad))?;
            let bonus = bonus.map(|bonus| proposal::one_from_wire(bonus, form, fields));
            input.bonus = bonus.transpose().map_err(|bad| rejected(&bad))?;
            Ok(Self {
                base_len,
                input,
                scored,
            })
        };
        blocking(reading).await?
    }
}

/// Decides `block` as `request` says; none if the distribution after the block is needed and was not sent. The
/// block's distributions are used up, unless that one may yet be asked for.
///
/// # Errors
/// If what was sent of the draft model cannot be.
pub(crate) async fn decide(
    request: &Arc<AdmittedRequest>,
    mut block: ScoredBlock,
) -> Result<(Option<Verdict>, ScoredBlock), CallFailure> {
    let request = Arc::clone(request);
    let deciding = move || (decide_now(&request, &mut block), block);
    let (decided, block) = blocking(deciding).await?;
    match decided {
        Ok(verdict) => Ok((Some(verdict), block)),
        Err(BadProposal::MissingBonus) if block.input.bonus.is_none() => Ok((None, block)),
        Err(bad) => Err(rejected(&bad)),
    }
}

fn failure(error: CallError) -> CallFailure {
    let peer = Peer::Verifier;
    CallFailure { peer, error }
}

fn rejected(bad: &dyn Display) -> CallFailure {
    let (peer, error) = (Peer::Drafter, CallError::Proposals(bad.to_string()));
    CallFailure { peer, error }
}

/// Runs `work` where it may take its time.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, CallFailure> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| failure(CallError::Decision))
}

fn decide_now(request: &AdmittedRequest, block: &mut ScoredBlock) -> Result<Verdict, BadProposal> {
    let input = &block.input;
    let may_need_bonus = request.method.bonus_q() || !input.layers.is_empty();
    let rows = if input.bonus.is_none() && may_need_bonus {
        block.scored.clone()
    } else {
        std::mem::take(&mut block.scored)
    };
    let choice = &request.method;
    let inputs = RoundInputs {
        target: &choice.target,
        verification: choice.verification,
        greedy: request.sampling.temperature == 0.0,
        block: input,
        base_len: block.base_len,
        ends: &request.sampling.end_tokens,
        vocab_size: request.vocab_size as usize,
    };
    let noise = Noise::new(request.seed, request.choice);
    let mut scratch = RoundScratch::default();
    round::decide(inputs, noise, ScoredRows(rows), &mut scratch)
}

/// Distributions that came over the wire.
struct ScoredRows(Vec<Scored>);

impl TargetRows<f32> for ScoredRows {
    type Error = BadProposal;

    fn distributions(&mut self, offset: usize) -> Result<TargetProbs<'_, f32>, BadProposal> {
        let scored = &mut self.0[offset];
        Ok(TargetProbs {
            probs: &mut scored.probs,
            unscaled: scored.unscaled.as_deref(),
            confidence: scored.confidence,
        })
    }

    fn row(&self, offset: usize) -> &[f32] {
        &self.0[offset].probs
    }
}
