//! A client's request, checked: what the rest of the coordinator works with.

mod drafting;
pub(crate) mod limits;

use std::sync::Arc;
use std::time::Duration;

use speculation::TokenId;
use speculation::goodput::Estimator;
use speculation::methods::Choice;
use speculation::noise::Noise;
use speculation::proposal::ProposalForm;
use speculation::sampling::SamplingParams;
use speculation::session::{Plan, SessionConfig};
use speculation::verification::Verification;
use wire::open::Telling;
use wire::status::BadField;
use wire::{open, proposal, sampling, target, v1};

use crate::config::CoordinatorConfig;
use crate::demand::Demand;
use crate::exchange::Bounds;
use crate::method;
use crate::output::Output;
use crate::peers::{EstimateKind, Group, Kind};
use crate::text::ServedText;
pub(crate) use drafting::DraftingAsked;
use limits::{
    MAX_STOP_TOKENS, check_stops, check_tenant, in_range, max_tokens, prompt_tokens, timeout,
};

/// A request in range.
pub(crate) struct CheckedRequest {
    pub(crate) group: Arc<Group>,
    pub(crate) text: Arc<ServedText>,
    pub(crate) method: Choice,
    /// What the method needs of a drafter.
    pub(crate) demand: Demand,
    pub(crate) prompt: Vec<TokenId>,
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
    pub(crate) report_rounds: bool,
    pub(crate) report_laws: bool,
    pub(crate) lease_ms: u32,
    pub(crate) vocab_size: u32,
    /// For whom it is; may be empty.
    pub(crate) tenant: String,
}

impl CheckedRequest {
    /// Checks `request` against the model it asks for.
    ///
    /// # Errors
    /// Names the first field that is missing, out of range, or not carried out by this version.
    pub(crate) fn new(
        request: v1::GenerateRequest,
        group: Arc<Group>,
        text: Arc<ServedText>,
        config: &CoordinatorConfig,
    ) -> Result<Self, BadField> {
        refuse_what_is_reserved(&request)?;
        check_tenant(&request.tenant)?;
        let vocab_size = text.target.vocab_size;
        let prompt = prompt_tokens(request.prompt.clone(), &request.messages, &text)?;
        let max_tokens = max_tokens(request.max_tokens, prompt.len(), &text.target)?;
        let drafting = DraftingAsked::read(&request)?;
        let limits = text.target.limits.unwrap_or_default();
        let most_drafts = limits.max_draft_tokens.max(1);
        in_range("choice", request.choice, 0, Noise::MAX_CHOICE)?;
        check_stops(&request.stop)?;
        if request.stop_token_ids.len() > MAX_STOP_TOKENS {
            let found = request.stop_token_ids.len();
            let problem = format!("{found} tokens, expected at most {MAX_STOP_TOKENS}");
            return Err(BadField::new("stop_token_ids", problem));
        }
        let mut end_tokens = request.stop_token_ids.clone();
        if !request.ignore_eos {
            end_tokens.extend_from_slice(&text.target.eos_token_ids);
        }
        let params = sampling::from_wire(request.sampling.clone(), end_tokens, vocab_size);
        let params = params.map_err(as_clients_name_it)?;
        let method = method::choose(&request, drafting, &params, &group, config)?;
        limits::check_trees(&method, &text.target)?;
        let draft_len = drafting.levels(&method, most_drafts, config)?;
        limits::check_window(&method, most_drafts)?;
        limits::check_rows(&method, draft_len, vocab_size, request.report_laws)?;
        Ok(Self {
            demand: Demand::of(&method),
            method,
            prompt,
            sampling: params,
            seed: request.seed.unwrap_or_else(random_seed),
            choice: request.choice,
            max_tokens,
            draft_len,
            stops: request.stop,
            ignore_eos: request.ignore_eos,
            timeout: timeout(request.timeout_ms, config)?,
            draft_timeout: config.draft_timeout(),
            report_rounds: request.report_rounds || request.report_laws,
            report_laws: request.report_laws,
            lease_ms: config.lease_ms.get(),
            vocab_size,
            tenant: request.tenant,
            group,
            text,
        })
    }

    /// What the session needs to know.
    pub(crate) fn session_config(&self, config: &CoordinatorConfig) -> SessionConfig {
        // Without drafters there is nothing to speculate with, and nothing to report as lost.
        let plan = match self.method.plan {
            Plan::Speculative | Plan::OracleCascade if !self.group.has_drafters() => {
                Plan::TargetOnly
            }
            plan => plan,
        };
        SessionConfig {
            goodput: self.estimate(),
            tree: self.method.tree,
            end_tokens: self.sampling.end_tokens.clone(),
            bonus_q: self.method.bonus_q() && !self.method.accept_at_coordinator,
            lazy_bonus: self.method.accept_at_coordinator,
            depends_on_draft: self.method.depends_on_draft(),
            carries_layers: self.method.verification == Verification::BlockGreedy,
            round_timeout: config.round_timeout(),
            draft_timeout: self.draft_timeout,
            retries: config.retries,
            last_resort_retries: config.verifier_retries,
            deadline: Some(self.timeout),
            ..SessionConfig::new(plan, self.draft_len, self.max_tokens, self.vocab_size)
        }
    }

    /// What earlier requests of its kind measured, if its draft lengths follow that.
    fn estimate(&self) -> Option<Estimator> {
        let follows = self.method.goodput;
        follows.then(|| self.group.estimates.find(self.estimate_kind()))
    }

    /// Keeps what this request measured for the next of its kind.
    pub(crate) fn keep_estimate(&self, measured: &Estimator) {
        let estimates = &self.group.estimates;
        estimates.keep(self.estimate_kind(), measured.clone());
    }

    fn estimate_kind(&self) -> EstimateKind {
        EstimateKind::of(&self.method, self.sampling.temperature)
    }

    /// A text to turn output tokens into.
    pub(crate) fn output(&self) -> Output {
        // A decoder's output is a text of its own, not the prompt's continuation.
        let before = match self.text.target.decoder_start_token_id {
            Some(_) => &[],
            None => self.prompt.as_slice(),
        };
        Output::new(Arc::clone(&self.text), self.stops.clone(), before)
    }

    /// What a drafter tells of its law beside the law.
    pub(crate) fn telling(&self) -> Telling {
        let telling = self.method.telling();
        let is_whole = telling.form == ProposalForm::Dense { half: false };
        Telling {
            confidences: telling.confidence || self.report_laws,
            entropies: self.method.needs().entropy || self.report_laws,
            unscaled: telling.unscaled || self.report_laws && (self.is_scaled() || !is_whole),
            logprobs: self.method.scores(),
        }
    }

    /// What may come of a drafter.
    pub(crate) fn bounds(&self) -> Bounds {
        Bounds {
            form: self.method.proposal,
            vocab_size: self.vocab_size,
            width: self.method.tree.width(),
        }
    }

    /// Whether a decision at the coordinator needs the confidences of the target model.
    pub(crate) fn needs_confidences(&self) -> bool {
        let needs = self.method.needs();
        needs.max || needs.entropy
    }

    /// Whether sampling laws differ from unscaled ones.
    fn is_scaled(&self) -> bool {
        self.sampling.temperature != 1.0 || method::cuts(&self.sampling)
    }

    /// Whether the target model's unscaled law must come with its slices: a decision at the
    /// coordinator needs it or laws are reported, and it is not the sampling law itself.
    pub(crate) fn needs_target_unscaled(&self) -> bool {
        let looks_at_tokens = matches!(self.method.verification, Verification::Bild { .. });
        let wanted = looks_at_tokens || self.report_laws || self.method.needs().target_unscaled;
        self.is_scaled() && wanted
    }

    /// Tokens that stand before the output in the models' sequences.
    pub(crate) fn lead_len(&self) -> usize {
        match self.text.target.decoder_start_token_id {
            Some(_) => 1,
            None => self.prompt.len(),
        }
    }

    /// What a session at a peer is opened with.
    pub(crate) fn open(
        &self,
        session_id: [u8; 16],
        epoch: u32,
        kind: Kind,
        model: &str,
    ) -> v1::Open {
        let (proposal_form, proposal_top) = proposal::form_to_wire(self.method.proposal);
        let telling = self.telling();
        let accept_at = if self.method.accept_at_coordinator {
            v1::AcceptAt::Coordinator
        } else {
            v1::AcceptAt::Verifier
        };
        v1::Open {
            session_id: session_id.to_vec(),
            epoch,
            model: model.to_owned(),
            prompt_token_ids: self.prompt.clone(),
            decoder_start_token_id: self.text.target.decoder_start_token_id,
            sampling: Some(sampling::to_wire(&self.sampling)),
            seed: self.seed,
            choice: self.choice,
            end_token_ids: self.sampling.end_tokens.clone(),
            ignore_eos: self.ignore_eos,
            vocab_size: self.vocab_size,
            vocab_fingerprint: self.text.target.vocab_fingerprint.clone(),
            lease_ms: self.lease_ms,
            verification: open::verification_to_wire(self.method.verification).into(),
            proposal_form: proposal_form.into(),
            proposal_top,
            accept_at: accept_at.into(),
            target: Some(target::to_wire(self.method.target)),
            confidences: telling.confidences,
            entropies: telling.entropies,
            unscaled: telling.unscaled,
            tenant: self.tenant.clone(),
            draft_logprobs: telling.logprobs,
            regenerates: kind == Kind::Verifier && self.method.regenerates(),
            rollback: match self.method.verification {
                Verification::Bild { rollback } => rollback,
                _ => 0.0,
            },
            ..Default::default()
        }
    }
}

/// Peers are told all tokens that end the output in one list, clients ask for theirs in another.
fn as_clients_name_it(mut bad: BadField) -> BadField {
    if bad.field == "end_token_ids" {
        "stop_token_ids".clone_into(&mut bad.field);
    }
    bad
}

fn refuse_what_is_reserved(request: &v1::GenerateRequest) -> Result<(), BadField> {
    if request.top_logprobs > 0 {
        let problem = "not carried out by this version";
        return Err(BadField::new("top_logprobs", problem));
    }
    if request.logprobs {
        return Err(BadField::new("logprobs", "not carried out by this version"));
    }
    Ok(())
}

/// A seed nobody chose. It is reported, so that the request can be repeated.
fn random_seed() -> u64 {
    // Without a source of entropy the time still tells requests apart.
    getrandom::u64().unwrap_or_else(|_| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.map_or(0, |since| since.as_nanos() as u64)
    })
}
