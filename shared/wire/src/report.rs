//! What a request's client is told about it: statistics, origins, timing, why it ended.

use std::time::Duration;

use speculation::drafting::DraftLen;
use speculation::methods::Choice;
use speculation::session::{Fallback, FinishReason, Origin, Plan, Statistics};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

use crate::failure::Failure;
use crate::v1;

/// Writes where a token came from.
pub fn origin(origin: Origin) -> v1::Origin {
    match origin {
        Origin::Accepted => v1::Origin::Accepted,
        Origin::Recovered => v1::Origin::Recovered,
        Origin::Bonus => v1::Origin::Bonus,
        Origin::Target => v1::Origin::Target,
        Origin::Deferred => v1::Origin::Deferred,
    }
}

/// Writes where an output went on without its drafter.
pub fn fallbacks(fallbacks: &[Fallback]) -> Vec<v1::Fallback> {
    let told = fallbacks.iter().map(|fallback| v1::Fallback {
        position: fallback.position,
        reason: fallback.reason.clone(),
    });
    told.collect()
}

/// Writes what a session counted; what its peers counted is left to the caller.
pub fn statistics(statistics: &Statistics) -> v1::SpeculationStatistics {
    v1::SpeculationStatistics {
        num_spec_steps: statistics.num_spec_steps(),
        num_draft_tokens: statistics.num_draft_tokens(),
        num_accepted_draft_tokens: statistics.num_accepted_draft_tokens(),
        mean_acceptance_length: statistics.mean_acceptance_length(),
        draft_acceptance_rate: statistics.draft_acceptance_rate(),
        acceptance_histogram: statistics.acceptance_histogram(),
        per_step_drafted: statistics.per_step_drafted.clone(),
        per_step_accepted: statistics.per_step_accepted.clone(),
        target_forwards: statistics.target_forwards,
        drafted: statistics.drafted,
        discarded: statistics.discarded,
        withheld: statistics.withheld,
        retries: statistics.retries,
        fallbacks: fallbacks(&statistics.fallbacks),
        deferral_rate: statistics.deferral_rate(),
        rejection_rate: statistics.rejection_rate(),
        draft_forwards: statistics.draft_forwards,
        draft_forwards_by_model: statistics.draft_forwards_by_model.clone(),
        at_max_run: statistics.at_max_run,
        fallback_tokens: statistics.fallback_tokens,
        rested_tokens: statistics.rested_tokens,
        target_calls_per_token: statistics.verification_rate().unwrap_or(0.0),
        ..Default::default()
    }
}

/// Writes the axes and parameters in effect, with the most levels that a draft block has.
pub fn settings(method: &Choice, levels: u32) -> Vec<v1::Setting> {
    let mut axes = method.effective_axes();
    let drafts_blocks = method.plan == Plan::Speculative;
    if method.draft_len() == DraftLen::Fixed && drafts_blocks {
        for (_, value) in axes.iter_mut().filter(|(name, _)| *name == "draft_len") {
            *value = levels.to_string();
        }
    }
    let is_capped = method.draft_len() != DraftLen::Fixed;
    let cap = is_capped.then(|| ("draft_cap", levels.to_string()));
    let settings = axes
        .into_iter()
        .chain(cap)
        .chain(method.effective_cascade())
        .chain(method.effective_parameters());
    let setting = |(name, value): (&str, String)| v1::Setting {
        name: name.to_owned(),
        value,
    };
    settings.map(setting).collect()
}

/// Writes how long a request took.
pub fn timing(first_token: Option<Duration>, total: Duration, tokens: usize) -> v1::RequestTiming {
    let seconds = total.as_secs_f64();
    v1::RequestTiming {
        time_to_first_token_ms: first_token.unwrap_or(total).as_secs_f64() * 1e3,
        total_ms: seconds * 1e3,
        tokens_per_second: if seconds > 0.0 {
            tokens as f64 / seconds
        } else {
            0.0
        },
    }
}

/// Writes why an output ended: the reason, and code and text of a failure.
pub fn finish(reason: &FinishReason) -> (v1::FinishReason, Code, String) {
    let failed = |code, what: String| (v1::FinishReason::Error, code, what);
    let ended = |reason| (reason, Code::Ok, String::new());
    match reason {
        FinishReason::Stop => ended(v1::FinishReason::Stop),
        FinishReason::Length => ended(v1::FinishReason::Length),
        FinishReason::Cancelled => ended(v1::FinishReason::Cancelled),
        FinishReason::DeadlineExceeded => {
            let what = "the request's deadline passed".to_owned();
            failed(Failure::Late.code(), what)
        }
        FinishReason::Failed { peer, reason } => failed(
            Failure::Unavailable.code(),
            format!("{} lost: {reason}", peer.name()),
        ),
    }
}

/// The status with which a call ends after `finished`, with a time to wait if it names one; none if the answer did not
/// fail.
pub fn failure(finished: &v1::Finished) -> Option<Status> {
    if finished.reason() != v1::FinishReason::Error {
        return None;
    }
    let code = Code::from_i32(finished.error_code as i32);
    let details = match finished.retry_after_ms {
        0 => ErrorDetails::new(),
        ms => ErrorDetails::with_retry_info(Some(Duration::from_millis(ms.into()))),
    };
    Some(Status::with_error_details(code, &finished.error, details))
}

/// Adds up a peer's share over the parts of an answer, which come one after another.
pub fn together(so_far: v1::Timing, timing: v1::Timing) -> v1::Timing {
    v1::Timing {
        queue_us: so_far.queue_us.saturating_add(timing.queue_us),
        forward_us: so_far.forward_us.saturating_add(timing.forward_us),
        accept_us: so_far.accept_us.saturating_add(timing.accept_us),
        total_us: so_far.total_us.saturating_add(timing.total_us),
        batch: so_far.batch.max(timing.batch),
        forwarded_tokens: so_far
            .forwarded_tokens
            .saturating_add(timing.forwarded_tokens),
        row_ns: timing.row_ns,
        sessions: timing.sessions,
        reused_tokens: so_far.reused_tokens.saturating_add(timing.reused_tokens),
    }
}
