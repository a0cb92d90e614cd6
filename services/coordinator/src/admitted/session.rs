//! What configures the session of a request.

use std::time::Duration;

use speculation::goodput::Estimator;
use speculation::session::{Plan, SessionConfig};

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
