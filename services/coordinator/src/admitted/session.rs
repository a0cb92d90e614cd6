//! What opens the session of a request at its peers, and what configures it here.

use std::time::Duration;

use speculation::goodput::Estimator;
use speculation::session::{Peer, Plan, SessionConfig};
use wire::{proposal, sampling, target, v1};

use super::AdmittedRequest;
use crate::config::CoordinatorConfig;

/// Pause before the first repetition of a request to a peer.
const RETRY_PAUSE: Duration = Duration::from_millis(20);

/// The configuration of the session of `request`. `estimate` is what requests like it measured; `jitter`, from
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
        Plan::Speculative | Plan::OracleCascade if !request.has_drafters => Plan::TargetOnly,
        plan => plan,
    };
    SessionConfig {
        goodput: estimate,
        tree: method.tree,
        end_tokens: request.sampling.end_tokens.clone(),
        bonus_q: method.bonus_q() && !method.accept_at_coordinator,
        lazy_bonus: method.accept_at_coordinator,
        depends_on_draft: method.depends_on_draft(),
        carries_layers: method.verification.carries_layers,
        round_timeout: config.round_timeout(),
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
        ..SessionConfig::new(
            plan,
            request.draft_len,
            request.max_tokens,
            request.vocab_size,
        )
    }
}

/// The message that opens session `session_id` of `request` at a peer that describes itself as `described`, for the
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
        tenant: request.tenant.clone(),
        draft_logprobs: fields.logprobs,
        logprobs: logprobs.is_some(),
        top_logprobs: logprobs.unwrap_or(0),
        regenerates: kind == Peer::Verifier && method.regenerates(),
        rollback: method.verification.rollback(),
        ..Default::default()
    }
}
