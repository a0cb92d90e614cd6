//! A request that was checked: plain data, which travels down through driver and peers.

mod drafter_requirements;
mod session;
mod verifier_requirements;

use std::time::Duration;

use speculation::TokenId;
use speculation::drafting::Drafting;
use speculation::methods::Choice;
use speculation::proposal::ProposalForm;
use speculation::sampling::SamplingParams;
use speculation::verification::AcceptanceLabel;
use wire::draft_block::ProposalBounds;
use wire::open::ProposalFields;
use wire::v1;

pub(crate) use drafter_requirements::{DrafterRequirements, has_head};
pub(crate) use session::{open, session_config};
pub(crate) use verifier_requirements::VerifierRequirements;

/// A request in range.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "what a request asks for, one by one"
)]
pub(crate) struct AdmittedRequest {
    /// Name of the model that serves it.
    pub(crate) model: String,
    /// Whether the model has drafters at all.
    pub(crate) has_drafters: bool,
    pub(crate) method: Choice,
    /// Whether the seed gives the same tokens again: the method does, and the rows of no peer that it depends on vary.
    pub(crate) is_reproducible: bool,
    pub(crate) drafter_requirements: DrafterRequirements,
    pub(crate) verifier_requirements: VerifierRequirements,
    pub(crate) prompt: Vec<TokenId>,
    pub(crate) decoder_start_token_id: Option<TokenId>,
    pub(crate) sampling: SamplingParams,
    pub(crate) seed: u64,
    pub(crate) choice: u32,
    pub(crate) max_tokens: u32,
    /// Most levels of a draft block.
    pub(crate) draft_len: u32,
    pub(crate) stops: Vec<String>,
    pub(crate) ignore_eos: bool,
    /// From when the request came in.
    pub(crate) timeout: Duration,
    /// How long a drafter may take for one draft.
    pub(crate) draft_timeout: Duration,
    /// How many alternatives come with the log probability of each token; none if no log probabilities are wanted.
    pub(crate) logprobs: Option<u32>,
    /// Whether the prompt's log probabilities are wanted too.
    pub(crate) prompt_logprobs: bool,
    pub(crate) report_rounds: bool,
    pub(crate) report_distributions: bool,
    pub(crate) lease_ms: u32,
    pub(crate) vocab_size: u32,
    pub(crate) vocab_fingerprint: Vec<u8>,
    /// For whom it is; may be empty.
    pub(crate) tenant: String,
}

impl AdmittedRequest {
    /// Tokens that the answer tells at most: the output's, and the prompt's if its log probabilities are wanted.
    pub(crate) fn told_tokens(&self) -> u64 {
        let prompt = if self.prompt_logprobs {
            self.prompt.len()
        } else {
            0
        };
        prompt as u64 + u64::from(self.max_tokens)
    }

    /// Tokens that stand before the output in the models' sequences.
    pub(crate) fn lead_len(&self) -> usize {
        match self.decoder_start_token_id {
            Some(_) => 1,
            None => self.prompt.len(),
        }
    }

    /// Distributions that the context of `drafter` has room for from the end of a sequence of `len` tokens on; none
    /// if it cannot even hold those. Of a cascade the largest model's is told; the drafter cuts to the others'.
    pub(crate) fn draft_room(&self, drafter: &v1::PeerDescription, len: usize) -> Option<u32> {
        match self.method.drafting {
            // No model reads the context.
            Drafting::MaxGram => Some(u32::MAX),
            Drafting::Model | Drafting::Cascade => {
                let free = drafter.context_len.checked_sub(len as u32);
                free.map(|free| free.saturating_add(1))
            }
        }
    }

    /// The label that an acceptance head must have been trained for so that a drafter may stop by it under draft
    /// length `auto`. None where the request fixes the length, or where the length must not depend on the draft
    /// tokens.
    pub(crate) fn foretold_by(&self) -> Option<AcceptanceLabel> {
        let method = &self.method;
        let is_open = method.auto && method.drafting == Drafting::Model;
        let label = method.verification.label;
        label.filter(|_| is_open && !method.verification.carries_layers)
    }

    /// Whether Max-Gram proposes only tokens whose estimated survival pays: under draft length `auto`, unless the
    /// verification forbids that the length of a block depends on its tokens.
    pub(crate) fn max_gram_is_sure(&self) -> bool {
        let method = &self.method;
        let is_open = method.auto && method.drafting == Drafting::MaxGram;
        is_open && !method.verification.carries_layers
    }

    /// The tokens whose text the output continues: a decoder's output is a text of its own.
    pub(crate) fn text_before(&self) -> &[TokenId] {
        match self.decoder_start_token_id {
            Some(_) => &[],
            None => &self.prompt,
        }
    }

    /// Returns what a drafter sends beside its distributions.
    pub(crate) fn proposal_fields(&self) -> ProposalFields {
        let options = self.method.proposal_options();
        let is_whole = options.form == ProposalForm::Dense { half: false };
        let reports = self.report_distributions;
        ProposalFields {
            confidences: options.confidence || reports,
            entropies: self.method.needs().entropy || reports,
            unscaled: options.unscaled || reports && (self.is_scaled() || !is_whole),
            logprobs: self.method.scores(),
        }
    }

    /// Returns the bounds that a drafter's proposals must keep.
    pub(crate) fn proposal_bounds(&self) -> ProposalBounds {
        ProposalBounds {
            form: self.method.proposal,
            vocab_size: self.vocab_size,
        }
    }

    /// Whether a decision at the coordinator needs the confidences of the target model.
    pub(crate) fn needs_confidences(&self) -> bool {
        let needs = self.method.needs();
        needs.max || needs.entropy
    }

    /// Whether sampling distributions differ from unscaled ones.
    fn is_scaled(&self) -> bool {
        self.sampling.temperature != 1.0 || self.sampling.cuts()
    }

    /// Whether the target model's unscaled distribution must come with its slices: a decision at the
    /// coordinator needs it or distributions are reported, and it is not the sampling distribution itself.
    pub(crate) fn needs_target_unscaled(&self) -> bool {
        let reads_unscaled = self.method.verification.reads_unscaled;
        let wanted =
            reads_unscaled || self.report_distributions || self.method.needs().target_unscaled;
        self.is_scaled() && wanted
    }
}
