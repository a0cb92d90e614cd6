//! Prompt, output and drafts at a peer, and what its model makes of them.

use speculation::TokenId;
use speculation::chance::RoundChance;
use speculation::coupled::choice;
use speculation::drafting::{DraftToken, draft_token};
use speculation::history::History;
use speculation::noise::InnerCall;
use speculation::pipeline::Pipeline;
use speculation::proposal::{BadProposal, Proposal};
use speculation::toy::ToyModel;
use speculation::verification::{Verdict, Verification, coupled, token};

use crate::case::{Case, END_TOKEN, PROMPT, VOCAB_SIZE};

/// The tokens a peer's model has before it.
pub(crate) struct Sequence<'a> {
    case: &'a Case,
    model: &'a ToyModel,
    pipeline: Pipeline,
    history: History,
    context: Vec<TokenId>,
    base_len: u32,
}

impl<'a> Sequence<'a> {
    /// The sequence after the prompt and `output`.
    pub(crate) fn new(case: &'a Case, model: &'a ToyModel, output: &[TokenId]) -> Self {
        let sampling = case.sampling();
        Self {
            history: History::new(&sampling, &PROMPT, output),
            pipeline: Pipeline::new(sampling),
            context: [&PROMPT, output].concat(),
            base_len: output.len() as u32,
            case,
            model,
        }
    }

    /// The law of the next token.
    pub(crate) fn law(&mut self) -> Vec<f32> {
        let mut row = vec![0.0; VOCAB_SIZE as usize];
        self.model.logits(&self.context, &mut row);
        let position = (self.context.len() - PROMPT.len()) as u32;
        let law = self.pipeline.law(&mut row, &self.history, position);
        law.expect("a toy's logits are finite");
        row
    }

    pub(crate) fn push(&mut self, token: TokenId) {
        self.context.push(token);
        self.history.push(token);
    }

    fn chance(&self) -> RoundChance {
        RoundChance::new(self.case.noise(), self.base_len, InnerCall::default())
    }

    /// A draft block of at most `max_tokens` tokens.
    pub(crate) fn draft(mut self, max_tokens: u32) -> Vec<DraftToken> {
        let method = self.case.method;
        let form = method.proposal_form(self.case.temperature);
        let mut chance = self.chance();
        let mut block: Vec<DraftToken> = Vec::new();
        for offset in 0..max_tokens {
            let mut law = self.law();
            let at = (self.base_len, offset);
            let noise = self.case.noise();
            let drafted = draft_token(&mut law, method.verification, form, &noise, at, &mut chance);
            let id = drafted.id;
            self.push(id);
            block.push(drafted);
            if id == END_TOKEN {
                break;
            }
        }
        block
    }

    /// Decides `drafts`, whose laws are `proposals`.
    pub(crate) fn verify(
        mut self,
        drafts: &[TokenId],
        proposals: &[Proposal],
    ) -> Result<Verdict, BadProposal> {
        let (base_len, noise, mut chance) = (self.base_len, self.case.noise(), self.chance());
        let verification = self.case.method.verification;
        let laws = self.laws(drafts);
        let target = |offset: usize| Ok(laws[offset].as_slice());
        match verification {
            Verification::Coupled => {
                coupled::verify(drafts, base_len, &noise, &[END_TOKEN], target)
            }
            Verification::Token => {
                let draft_law = |offset: usize, law: &mut Vec<f32>| {
                    law.resize(VOCAB_SIZE as usize, 0.0);
                    let proposal = proposals.get(offset).ok_or(BadProposal::Missing)?;
                    proposal.write_law(drafts[offset], law)
                };
                token::verify(drafts, &[END_TOKEN], &mut chance, draft_law, target)
            }
        }
    }

    /// The laws after each prefix of `drafts`.
    fn laws(&mut self, drafts: &[TokenId]) -> Vec<Vec<f32>> {
        let mut laws = vec![self.law()];
        for &draft in drafts {
            self.push(draft);
            laws.push(self.law());
        }
        laws
    }

    /// At most `max_tokens` tokens of this model alone.
    pub(crate) fn decode(mut self, max_tokens: u32) -> Vec<TokenId> {
        let mut decoded = Vec::new();
        for offset in 0..max_tokens {
            let token = choice(&self.law(), &self.case.noise(), self.base_len + offset);
            self.push(token);
            decoded.push(token);
            if token == END_TOKEN {
                break;
            }
        }
        decoded
    }
}
