//! Deciding a block at the coordinator, from laws that drafter and verifier sent.
//!
//! It is the verifier's own decision on the same numbers, so a seed gives the same tokens wherever
//! acceptance is decided.

use speculation::TokenId;
use speculation::noise::Noise;
use speculation::proposal::{BadProposal, Proposal};
use speculation::round::{self, Decided, RoundInputs, Scratch, TargetRows};
use speculation::target::TargetLaw;
use speculation::verification::Block;
use speculation::verification::layers::Layer;
use wire::slice::{self, Scored};
use wire::status::BadField;
use wire::{proposal, v1};

use crate::request::CheckedRequest;

/// A block, and what came over the wire of it.
pub(crate) struct WireBlock {
    pub(crate) base_len: u32,
    pub(crate) drafts: Vec<TokenId>,
    /// What was told of the draft model, at each draft token.
    pub(crate) proposals: Vec<v1::Proposal>,
    /// The same at the position after them.
    pub(crate) bonus: Option<v1::Proposal>,
    pub(crate) horizon: u32,
    pub(crate) layers: Vec<Layer>,
    /// The target model's laws, at each draft token and after them.
    pub(crate) slices: Vec<v1::Slice>,
}

/// The same, read.
pub(crate) struct ScoredBlock {
    base_len: u32,
    pub(crate) drafts: Vec<TokenId>,
    proposals: Vec<Proposal>,
    pub(crate) bonus: Option<Proposal>,
    horizon: u32,
    layers: Vec<Layer>,
    scored: Vec<Scored>,
}

/// Who sent what cannot be read.
pub(crate) enum Unreadable {
    /// The verifier.
    Slices(BadField),
    /// The drafter.
    Proposals(BadField),
}

impl WireBlock {
    /// Reads everything that came.
    pub(crate) fn read(self, request: &CheckedRequest) -> Result<ScoredBlock, Unreadable> {
        let unscaled = request.needs_target_unscaled();
        let read = |(at, slice)| slice::from_wire(slice, at, request.vocab_size, unscaled);
        let scored: Result<Vec<_>, _> = self.slices.into_iter().enumerate().map(read).collect();
        let (form, telling) = (request.method.proposal, request.telling());
        let bonus = self.bonus;
        let bonus = bonus.map(|bonus| proposal::one_from_wire(bonus, form, telling));
        let proposals = proposal::from_wire(self.proposals, self.drafts.len(), form, telling);
        Ok(ScoredBlock {
            base_len: self.base_len,
            scored: scored.map_err(Unreadable::Slices)?,
            proposals: proposals.map_err(Unreadable::Proposals)?,
            bonus: bonus.transpose().map_err(Unreadable::Proposals)?,
            horizon: self.horizon,
            layers: self.layers,
            drafts: self.drafts,
        })
    }
}

/// Decides `block` as `request` says. Its laws are used up, unless the law after the block may yet
/// be asked for.
///
/// # Errors
/// If what was told of the draft model is malformed, or of the position after the block nothing was
/// told and it is needed.
pub(crate) fn decide(
    request: &CheckedRequest,
    block: &mut ScoredBlock,
) -> Result<Decided, BadProposal> {
    let may_need_bonus = request.method.bonus_q() || !block.layers.is_empty();
    let rows = if block.bonus.is_none() && may_need_bonus {
        block.scored.clone()
    } else {
        std::mem::take(&mut block.scored)
    };
    let choice = &request.method;
    let inputs = RoundInputs {
        target: &choice.target,
        verification: choice.verification,
        greedy: request.sampling.temperature == 0.0,
        drafts: &block.drafts,
        proposals: &block.proposals,
        bonus: block.bonus.as_ref(),
        vocab_size: request.vocab_size as usize,
    };
    let asked = Block {
        drafts: &block.drafts,
        base_len: block.base_len,
        ends: &request.sampling.end_tokens,
        horizon: block.horizon,
        layers: &block.layers,
    };
    let noise = Noise::new(request.seed, request.choice);
    let mut scratch = Scratch::default();
    round::decide(inputs, &asked, noise, ScoredRows(rows), &mut scratch)
}

/// Laws that came over the wire.
struct ScoredRows(Vec<Scored>);

impl TargetRows<f32> for ScoredRows {
    type Error = BadProposal;

    fn laws(&mut self, offset: usize) -> Result<TargetLaw<'_, f32>, BadProposal> {
        let scored = &mut self.0[offset];
        Ok(TargetLaw {
            law: &mut scored.law,
            unscaled: scored.unscaled.as_deref(),
            confidence: scored.confidence,
        })
    }

    fn row(&self, offset: usize) -> &[f32] {
        &self.0[offset].law
    }
}
