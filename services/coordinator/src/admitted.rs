//! A request that was checked: plain data, which travels down through driver and peers; and what configures its session here
//! and opens it at a peer.

use std::sync::Arc;
use std::time::Duration;

use calls::OutputReading;
use fleet::{Beginning, DraftModel, Requirements};
use speculation::TokenId;
use speculation::drafting::Drafting;
use speculation::goodput::Estimator;
use speculation::methods::Choice;
use speculation::proposal::ProposalForm;
use speculation::sampling::SamplingParams;
use speculation::session::{Peer, Plan, SessionConfig};
use speculation::verification::AcceptanceLabel;
use wire::open::ProposalFields;
use wire::{proposal, sampling, target, v1};

use crate::config::CoordinatorConfig;

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
    pub(crate) requirements: Requirements,
    /// The draft model that is to draft; any where none is named.
    pub(crate) draft_model: Option<DraftModel>,
    pub(crate) prompt: Vec<TokenId>,
    pub(crate) decoder_start_token_id: Option<TokenId>,
    pub(crate) sampling: SamplingParams,
    pub(crate) seed: u64,
    pub(crate) choice: u32,
    pub(crate) max_tokens: u32,
    /// Most levels of a draft block.
    pub(crate) draft_len: u32,
    pub(crate) stops: Vec<String>,
    /// How the output is read; none if it is text and nothing else.
    pub(crate) reading: Option<OutputReading>,
    /// What could not be had as it was asked for, one sentence each.
    pub(crate) warnings: Vec<String>,
    pub(crate) ignore_eos: bool,
    /// From when the request came in.
    pub(crate) timeout: Duration,
    /// How long a drafter may take for one draft.
    pub(crate) draft_timeout: Duration,
    /// How many alternatives come with the log probability of each token; none if no log probabilities are wanted.
    pub(crate) logprobs: Option<u32>,
    /// Tokens that a verifier may be ahead of what the client took, and log probabilities of the prompt.
    pub(crate) tokens_ahead: u32,
    pub(crate) scores_ahead: u32,
    /// Whether the prompt's log probabilities are wanted too.
    pub(crate) prompt_logprobs: bool,
    /// The client's prediction of the output; empty without one, or where the method takes none.
    pub(crate) prediction: Arc<[TokenId]>,
    /// Whether Max-Gram proposes beside whoever else does while the target decodes.
    pub(crate) copies: bool,
    /// Whether a drafter that drafts ahead does so even where that does not pay.
    pub(crate) drafts_always: bool,
    pub(crate) report_rounds: bool,
    pub(crate) report_distributions: bool,
    pub(crate) lease_ms: u32,
    pub(crate) vocab_size: u32,
    pub(crate) vocab_fingerprint: Vec<u8>,
    /// Among whose requests equal beginnings are computed once; not for this one if it is empty.
    pub(crate) reuse_scope: String,
    /// What its text begins with.
    pub(crate) beginning: Beginning,
}

impl AdmittedRequest {
    /// Returns how many tokens the answer tells at most: the output's, and the prompt's if its log probabilities are wanted.
    pub(crate) fn told_tokens(&self) -> u64 {
        let prompt = if self.prompt_logprobs {
            self.prompt.len()
        } else {
            0
        };
        prompt as u64 + u64::from(self.max_tokens)
    }

    /// Returns the tokens that stand before the output in the models' sequences.
    pub(crate) fn lead(&self) -> &[TokenId] {
        match &self.decoder_start_token_id {
            Some(start) => std::slice::from_ref(start),
            None => &self.prompt,
        }
    }

    /// Returns what an encoder reads; empty for a model without one.
    pub(crate) fn source(&self) -> &[TokenId] {
        match self.decoder_start_token_id {
            Some(_) => &self.prompt,
            None => &[],
        }
    }

    /// Returns how many tokens stand before the output in the models' sequences.
    pub(crate) fn decoder_prefix_len(&self) -> usize {
        self.lead().len()
    }

    /// Returns how many distributions the context of `drafter` has room for from the end of a sequence of `len` tokens on; none
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

    /// Returns the label that an acceptance head must have been trained for so that a drafter may stop by it under draft
    /// length `auto`. None where the request fixes the length, or where the length must not depend on the draft
    /// tokens.
    pub(crate) fn predicting_head(&self) -> Option<AcceptanceLabel> {
        let method = &self.method;
        let is_open = method.auto && method.drafting == Drafting::Model;
        let label = method.verification.label;
        label.filter(|_| is_open && !method.verification.carries_layers)
    }

    /// Returns whether Max-Gram proposes only tokens whose estimated survival pays: under draft length `auto`, unless the
    /// verification forbids that the length of a block depends on its tokens.
    pub(crate) fn thresholds_max_gram(&self) -> bool {
        let method = &self.method;
        let is_open = method.auto && method.drafting == Drafting::MaxGram;
        is_open && !method.verification.carries_layers
    }

    /// Returns the tokens whose text the output continues: a decoder's output is a text of its own.
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

    /// Returns whether a drafter's proposal is of the form that is asked for, and no larger than it may be.
    pub(crate) fn allows(&self, proposal: &v1::Proposal) -> bool {
        proposal::fits(proposal, self.method.proposal, self.vocab_size)
    }

    /// Returns whether a decision at the coordinator needs the confidences of the target model.
    pub(crate) fn needs_confidences(&self) -> bool {
        let needs = self.method.needs();
        needs.max || needs.entropy
    }

    /// Returns whether sampling distributions differ from unscaled ones.
    fn is_scaled(&self) -> bool {
        self.sampling.temperature != 1.0 || self.sampling.cuts()
    }

    /// Returns whether the target model's unscaled distribution must come with its slices: a decision at the
    /// coordinator needs it or distributions are reported, and it is not the sampling distribution itself.
    pub(crate) fn needs_target_unscaled(&self) -> bool {
        let reads_unscaled = self.method.verification.reads_unscaled;
        let wanted =
            reads_unscaled || self.report_distributions || self.method.needs().target_unscaled;
        self.is_scaled() && wanted
    }
}

/// Tokens that the target decodes alone before a drafter that was lost is tried again.
const FALLBACK_TOKENS: u32 = 32;

/// Pause before the first repetition of a request to a peer.
const RETRY_PAUSE: Duration = Duration::from_millis(20);

/// Returns the configuration of the session of `request`. `estimate` is what requests like it measured; `jitter`, from
/// 0 to 1, keeps the sessions of a peer that failed from asking again all at once.
pub(crate) fn session_config(
    request: &AdmittedRequest,
    config: &CoordinatorConfig,
    estimate: Option<Estimator>,
    jitter: f64,
) -> SessionConfig {
    let method = &request.method;
    // Without drafters there is nothing to speculate with, and nothing to report as lost.
    let plan = match method.plan {
        Plan::Speculative if method.streams() => Plan::Speculative,
        Plan::Speculative | Plan::OracleCascade if !request.has_drafters => Plan::TargetOnly,
        plan => plan,
    };
    SessionConfig {
        plan,
        draft_len: request.draft_len,
        max_tokens: request.max_tokens,
        vocab_size: request.vocab_size,
        goodput: estimate,
        streams: method.streams(),
        tree: method.tree,
        end_tokens: request.sampling.end_tokens.clone(),
        bonus_q: method.bonus_q() && !method.accept_at_coordinator,
        lazy_bonus: method.accept_at_coordinator,
        depends_on_draft: method.depends_on_draft(),
        carries_layers: method.verification.carries_layers,
        round_timeout: Duration::from_millis(config.round_timeout_ms.get()),
        draft_timeout: request.draft_timeout,
        retries: config.retries,
        last_resort_retries: config.verifier_retries,
        retry_pause: RETRY_PAUSE.mul_f64(0.75 + 0.5 * jitter),
        deadline: Some(request.timeout),
        // The first token has none.
        prompt_scores: if request.prompt_logprobs {
            request.prompt.len() as u32 - 1
        } else {
            0
        },
        fallback_tokens: FALLBACK_TOKENS,
    }
}

/// Returns the message that opens session `session_id` of `request` at a peer that describes itself as `described`, for the
/// `epoch`th time.
pub(crate) fn open(
    request: &AdmittedRequest,
    session_id: [u8; 16],
    epoch: u32,
    kind: Peer,
    described: &v1::PeerDescription,
) -> v1::Open {
    let method = &request.method;
    let (proposal_form, proposal_top) = proposal::form_to_wire(method.proposal);
    let fields = request.proposal_fields();
    let accept_at = if method.accept_at_coordinator {
        v1::AcceptAt::Coordinator
    } else {
        v1::AcceptAt::Verifier
    };
    let logprobs = request.logprobs.filter(|_| kind == Peer::Verifier);
    v1::Open {
        session_id: session_id.to_vec(),
        epoch,
        model: described.model.clone(),
        numerics: described.numerics.clone().unwrap_or_default().weights,
        prompt_token_ids: request.prompt.clone(),
        decoder_start_token_id: request.decoder_start_token_id,
        sampling: Some(sampling::to_wire(&request.sampling)),
        seed: request.seed,
        choice: request.choice,
        end_token_ids: request.sampling.end_tokens.clone(),
        ignore_eos: request.ignore_eos,
        vocab_size: request.vocab_size,
        vocab_fingerprint: request.vocab_fingerprint.clone(),
        lease_ms: request.lease_ms,
        verification: method.verification.wire,
        proposal_form: proposal_form.into(),
        proposal_top,
        accept_at: accept_at.into(),
        target: Some(target::to_wire(method.target)),
        confidences: fields.confidences,
        entropies: fields.entropies,
        unscaled: fields.unscaled,
        tenant: request.reuse_scope.clone(),
        draft_logprobs: fields.logprobs,
        logprobs: logprobs.is_some(),
        top_logprobs: logprobs.unwrap_or(0),
        regenerates: kind == Peer::Verifier && method.regenerates(),
        rollback: method.verification.rollback(),
        ..Default::default()
    }
}
