//! Prompt, output and drafts at a peer, and what its model makes of them.

use std::convert::Infallible;

use outrider_tests::toy::ToyModel;
use speculation::TokenId;
use speculation::chance::RoundChance;
use speculation::confidence::Confidence;
use speculation::coupled::choice;
use speculation::draft_tree::DraftTree;
use speculation::drafting::{ProposalOptions, TreeBuilder, TreeShape, draw, propose, siblings};
use speculation::history::History;
use speculation::noise::{InnerCall, Noise};
use speculation::pipeline::Pipeline;
use speculation::proposal::{BadProposal, Proposal};
use speculation::round::{self, BlockInput, RoundInputs, RoundScratch, TargetRows};
use speculation::session::DraftStop;
use speculation::target::TargetProbs;
use speculation::verification::Verdict;
use speculation::verification::layers::{Horizon, ResidualLayer};
use speculation::verification::tree::{self, NodeDistributions};

use crate::case::{Case, END_TOKEN, PROMPT, VOCAB_SIZE};
use crate::message::Answer;

/// The tokens a peer's model has before it.
pub(crate) struct Sequence<'a> {
    case: &'a Case,
    model: &'a ToyModel,
    noise: Noise,
    pipeline: Pipeline,
    history: History,
    context: Vec<TokenId>,
    base_len: u32,
}

impl<'a> Sequence<'a> {
    /// The sequence after the prompt and `output`.
    pub(crate) fn new(
        case: &'a Case,
        model: &'a ToyModel,
        noise: Noise,
        output: &[TokenId],
    ) -> Self {
        let sampling = case.sampling();
        Self {
            history: History::new(&sampling, &PROMPT, output),
            pipeline: Pipeline::new(sampling),
            context: [&PROMPT, output].concat(),
            base_len: output.len() as u32,
            case,
            model,
            noise,
        }
    }

    /// The distribution of the next token.
    pub(crate) fn probs(&mut self) -> Vec<f32> {
        let mut row = vec![0.0; VOCAB_SIZE as usize];
        self.model.logits(&self.context, &mut row);
        let position = (self.context.len() - PROMPT.len()) as u32;
        let probs = self.pipeline.probs(&mut row, &self.history, position);
        probs.expect("a toy's logits are finite");
        row
    }

    pub(crate) fn push(&mut self, token: TokenId) {
        self.context.push(token);
        self.history.push(token);
    }

    fn chance(&self) -> RoundChance {
        RoundChance::new(self.noise, self.base_len, InnerCall::default())
    }

    /// A draft block of at most `max_tokens` tokens, with the distribution after it if `bonus_q`.
    pub(crate) fn draft(mut self, max_tokens: u32, bonus_q: bool) -> Answer {
        let mut chance = self.chance();
        let (mut growth, mut proposals) = (TreeBuilder::default(), Vec::new());
        let mut stop = DraftStop::Length;
        for offset in 0..max_tokens {
            let mut probs = self.probs();
            if self.case.drafter_stops() && self.case.defers(&probs) {
                stop = DraftStop::Policy;
                break;
            }
            let verification = self.case.verification();
            let at = (self.base_len, offset);
            let mut proposal = self.propose(&mut probs);
            let token = draw(&probs, verification, &self.noise, at, &mut chance);
            proposal.logprob = Some(probs[token as usize].ln());
            growth.push(token, &self.siblings(&probs, token));
            self.push(token);
            proposals.push(proposal);
            if token == END_TOKEN {
                stop = DraftStop::EndToken;
                break;
            }
        }
        if bonus_q && stop != DraftStop::EndToken {
            let mut probs = self.probs();
            proposals.push(self.propose(&mut probs));
        }
        let drafts = growth.finish();
        Answer::Drafted {
            tokens: drafts.tokens().to_vec(),
            parents: drafts.parents().to_vec(),
            stop,
            proposals,
        }
    }

    /// What stands beside `lead`, which was drawn from `probs`.
    fn siblings(&self, probs: &[f32], lead: TokenId) -> Vec<TokenId> {
        if self.case.tree == TreeShape::Chain {
            return Vec::new();
        }
        let mut unscaled = vec![0.0; VOCAB_SIZE as usize];
        self.model.logits(&self.context, &mut unscaled);
        for logit in &mut unscaled {
            *logit = logit.exp();
        }
        let position = (self.context.len() - PROMPT.len()) as u32;
        siblings(
            self.case.tree,
            probs,
            &unscaled,
            lead,
            &self.noise,
            position,
        )
    }

    /// Decides a tree.
    pub(crate) fn walk(self, drafts: &DraftTree) -> Verdict {
        let (base_len, noise) = (self.base_len, self.noise);
        let mut distributions = Walk {
            sequence: self,
            drafts,
            probs: Vec::new(),
        };
        let verdict = tree::verify(drafts, base_len, &[END_TOKEN], &noise, &mut distributions);
        verdict.unwrap_or_else(|never| match never {})
    }

    /// Cuts a draft distribution to the part that is sent to the verifier.
    fn propose(&self, probs: &mut [f32]) -> Proposal {
        let confidence = Confidence::of(probs, true);
        let proposal_options = ProposalOptions {
            form: self.case.form(),
            confidence: true,
            unscaled: false,
        };
        propose(probs, None, confidence, proposal_options)
    }

    /// Decides a block. `proposals` has the proposal of each draft token, and last the one after the block.
    pub(crate) fn verify(
        mut self,
        request: &BlockRequest<'_>,
        proposals: &[Proposal],
    ) -> Result<Verdict, BadProposal> {
        let (verification, target) = (self.case.verification(), self.case.target());
        let (reported, after) = proposals.split_at(request.drafts.len().min(proposals.len()));
        let block = BlockInput {
            drafts: request.drafts.into(),
            proposals: reported.to_vec(),
            bonus: after.first().cloned(),
            horizon: request.horizon,
            layers: request.layers.to_vec(),
        };
        let inputs = RoundInputs {
            target: &target,
            verification,
            greedy: self.case.temperature == 0.0,
            block: &block,
            base_len: self.base_len,
            ends: &[END_TOKEN],
            vocab_size: VOCAB_SIZE as usize,
        };
        let rows = DistributionRows(self.distributions(request.drafts));
        let mut scratch = RoundScratch::default();
        round::decide(inputs, self.noise, rows, &mut scratch)
    }

    /// The distributions after each prefix of `drafts`.
    fn distributions(&mut self, drafts: &[TokenId]) -> Vec<Vec<f32>> {
        let mut distributions = vec![self.probs()];
        for &draft in drafts {
            self.push(draft);
            distributions.push(self.probs());
        }
        distributions
    }

    /// At most `max_tokens` tokens of this model alone.
    pub(crate) fn decode(mut self, max_tokens: u32) -> Vec<TokenId> {
        let mut decoded = Vec::new();
        for offset in 0..max_tokens {
            let token = choice(&self.probs(), &self.noise, self.base_len + offset);
            self.push(token);
            decoded.push(token);
            if token == END_TOKEN {
                break;
            }
        }
        decoded
    }
}

/// What is asked about a block.
pub(crate) struct BlockRequest<'a> {
    pub(crate) drafts: &'a [TokenId],
    pub(crate) horizon: Horizon,
    pub(crate) layers: &'a [ResidualLayer],
}

/// Distributions along a path through a tree.
struct Walk<'a> {
    sequence: Sequence<'a>,
    drafts: &'a DraftTree,
    probs: Vec<f32>,
}

impl NodeDistributions<f32> for Walk<'_> {
    type Error = Infallible;

    fn after(&mut self, node: Option<usize>) -> Result<&[f32], Infallible> {
        if let Some(node) = node {
            self.sequence.push(self.drafts.tokens()[node]);
        }
        self.probs = self.sequence.probs();
        Ok(&self.probs)
    }
}

/// Distributions along a block.
struct DistributionRows(Vec<Vec<f32>>);

impl TargetRows<f32> for DistributionRows {
    type Error = BadProposal;

    fn distributions(&mut self, offset: usize) -> Result<TargetProbs<'_, f32>, BadProposal> {
        let probs = &mut self.0[offset];
        Ok(TargetProbs {
            confidence: Confidence::of(probs, true),
            probs,
            unscaled: None,
        })
    }

    fn row(&self, offset: usize) -> &[f32] {
        &self.0[offset]
    }
}
