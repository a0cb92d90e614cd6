//! The limits of a request's fields, and what its distributions take on the wire and in memory.

use std::time::Duration;

use fleet::Target;
use net::MAX_MESSAGE_BYTES;
use speculation::methods::Choice;
use speculation::proposal::ProposalForm;
use speculation::sampling::SamplingParams;
use speculation::session::Plan;
use wire::bounds::MAX_STOPS;
use wire::grammar::FIELD;
use wire::status::BadField;
use wire::{settings, v1};

use crate::admitted::AdmittedRequest;
use crate::config::CoordinatorConfig;
use crate::limits::{MAX_DRAFT_LEN, MAX_NAME_BYTES, MAX_STOP_BYTES};

/// Checks that the grammar of `params` can be followed, by tokens that may come, and that the request ends where it does.
///
/// # Errors
/// Names `ignore_eos`, or the grammar with the reason why it cannot be followed.
pub(super) fn check_grammar(
    params: &SamplingParams,
    ignore_eos: bool,
    target: &Target,
) -> Result<(), BadField> {
    let Some(grammar) = &params.grammar else {
        return Ok(());
    };
    if ignore_eos {
        let problem = "does not go with a grammar, which says where the output ends";
        return Err(BadField::new("ignore_eos", problem));
    }
    let compiled = target.grammars.compile(grammar);
    let compiled = compiled.map_err(|error| BadField::new(FIELD, error.to_string()))?;
    // What is left later depends on the output.
    let first = compiled.start().allowed();
    let first = first.map_err(|problem| BadField::new(FIELD, problem))?;
    let SamplingParams {
        allowed_tokens,
        banned_tokens,
        ..
    } = params;
    let may_come = |token: &u32| {
        let is_of_grammar = first.as_ref().is_none_or(|words| {
            let word = words.get(*token as usize / 32).copied().unwrap_or_default();
            word >> (token % 32) & 1 == 1
        });
        is_of_grammar && !banned_tokens.contains(token)
    };
    let is_left = if allowed_tokens.is_empty() {
        (0..target.description.vocab_size).any(|token| may_come(&token))
    } else {
        allowed_tokens.iter().any(may_come)
    };
    if is_left {
        return Ok(());
    }
    let problem =
        "no token that it begins with may come: see allowed_token_ids and banned_token_ids";
    Err(BadField::new(FIELD, problem))
}

/// Returns the most output tokens, of which there must be `least`: what was asked for, if it fits behind the prompt, or
/// behind the start token of a decoder, whose prompt goes to the encoder. A request that does not say gets what is
/// left there, but no more than `unasked`.
///
/// # Errors
/// Names the field that passes the context, and by what.
pub(super) fn max_tokens(
    requested: Option<u32>,
    prompt_len: usize,
    least: u32,
    unasked: u32,
    target: &v1::PeerDescription,
) -> Result<u32, BadField> {
    let context_len = target.context_len;
    if target.decoder_start_token_id.is_some() {
        if prompt_len > context_len as usize {
            let excess = format!("{prompt_len} tokens are in the prompt: shorten it");
            return Err(BadField::beyond_context("prompt", context_len, &excess));
        }
        // One place is the start token's.
        let most = context_len.saturating_sub(1);
        let max_tokens = requested.unwrap_or(unasked.min(most));
        if max_tokens > most {
            let excess = format!(
                "{max_tokens} are asked for as max_tokens, and one place is the start token's: expected 1 to {most}"
            );
            return Err(BadField::beyond_context("max_tokens", context_len, &excess));
        }
        BadField::in_range("max_tokens", max_tokens, 1..=most)?;
        return Ok(max_tokens);
    }
    let left = (context_len as usize).saturating_sub(prompt_len) as u32;
    // A request for output needs room for at least one token.
    let needed = least.max(requested.unwrap_or_default().min(1));
    if prompt_len > context_len as usize || left < needed {
        let output = match needed {
            0 => String::new(),
            needed => format!(", and the output needs {needed} at least"),
        };
        let excess = format!("{prompt_len} tokens are in the prompt{output}: shorten the prompt");
        return Err(BadField::beyond_context("prompt", context_len, &excess));
    }
    let max_tokens = requested.unwrap_or(unasked.min(left));
    if max_tokens > left {
        let excess = format!(
            "{prompt_len} tokens are before the output, and {max_tokens} are asked for as max_tokens: expected {least} \
             to {left}"
        );
        return Err(BadField::beyond_context("max_tokens", context_len, &excess));
    }
    BadField::in_range("max_tokens", max_tokens, least..=left)?;
    Ok(max_tokens)
}

/// Cuts `max_tokens` to `coordinator.max_output_tokens`, and refuses a request that asked for more.
pub(super) fn allowed_tokens(
    max_tokens: u32,
    is_requested: bool,
    config: &CoordinatorConfig,
) -> Result<u32, BadField> {
    let most = match config.max_output_tokens {
        0 => u32::MAX,
        most => most,
    };
    if is_requested && max_tokens > most {
        let problem = format!(
            "{max_tokens} is out of range, expected at most {most} (coordinator.max_output_tokens)"
        );
        return Err(BadField::new("max_tokens", problem));
    }
    Ok(max_tokens.min(most))
}

/// Refuses a least length of the output that is above its greatest.
pub(super) fn check_min_tokens(min_tokens: u32, max_tokens: u32) -> Result<(), BadField> {
    if min_tokens <= max_tokens {
        return Ok(());
    }
    let problem = format!("{min_tokens} is above max_tokens, which is {max_tokens}");
    Err(BadField::new("min_tokens", problem))
}

pub(super) fn check_stops(stops: &[String]) -> Result<(), BadField> {
    BadField::at_most("stop", stops.len(), MAX_STOPS, "texts")?;
    let mut lengths = stops.iter().map(String::len);
    match lengths.find(|length| !(1..=MAX_STOP_BYTES).contains(length)) {
        None => Ok(()),
        Some(found) => {
            let problem = format!("a text of {found} bytes, expected 1 to {MAX_STOP_BYTES}");
            Err(BadField::new("stop", problem))
        }
    }
}

/// Checks the lengths of names: errors quote them, and travel in headers, which are short.
pub(crate) fn check_names(request: &v1::GenerateRequest) -> Result<(), BadField> {
    let at_most =
        |field: &str, name: &str| BadField::at_most(field, name.len(), MAX_NAME_BYTES, "bytes");
    at_most("model", &request.model)?;
    at_most("method", &request.method)?;
    for (name, text) in settings::texts(request) {
        at_most(settings::FIELD, name)?;
        at_most(&format!("{}.{name}", settings::FIELD), text)?;
    }
    Ok(())
}

pub(super) fn timeout(asked_ms: u32, config: &CoordinatorConfig) -> Result<Duration, BadField> {
    let longest = config.request_timeout();
    let requested = Duration::from_millis(asked_ms.into());
    if requested > longest {
        let problem = format!(
            "{asked_ms} is out of range, expected at most {}",
            longest.as_millis()
        );
        return Err(BadField::new("timeout_ms", problem));
    }
    Ok(if requested.is_zero() {
        longest
    } else {
        requested
    })
}

/// Refuses a BiLD window that the verifier does not take as one block: where it looks decides what
/// it adds, so the window must not be cut silently.
pub(super) fn check_window(method: &Choice, most_drafts: u32) -> Result<(), BadField> {
    match method.plan {
        Plan::Bild { window, .. } if window > most_drafts => {
            let problem = format!("{window} is out of range, the verifier takes {most_drafts}");
            Err(BadField::new("settings.window", problem))
        }
        _ => Ok(()),
    }
}

/// Refuses log probabilities where the verifier does not read every token, or does not decide.
pub(super) fn check_logprobs(method: &Choice, wanted: Option<u32>) -> Result<(), BadField> {
    if wanted.is_none() {
        return Ok(());
    }
    let refused = |problem: String| Err(BadField::new("logprobs", problem));
    if !method.target_reads_every_token() {
        return refused(format!(
            "they are the target model's, which does not read every token of method '{}'; leave them out, or choose \
             another method",
            method.name()
        ));
    }
    if method.accept_at_coordinator {
        let problem =
            "come with the verifier's verdicts; leave them out, or set accept_at to VERIFIER";
        return refused(problem.to_owned());
    }
    Ok(())
}

/// Refuses log probabilities of a prompt without those of the output, or of one that an encoder reads.
pub(super) fn check_prompt_logprobs(
    are_wanted: bool,
    logprobs: Option<u32>,
    verifier: &v1::PeerDescription,
) -> Result<(), BadField> {
    if !are_wanted {
        return Ok(());
    }
    let refused = |problem: &str| Err(BadField::new("prompt_logprobs", problem));
    if logprobs.is_none() {
        return refused("come with log probabilities only; set logprobs too");
    }
    if verifier.decoder_start_token_id.is_some() {
        return refused("the model's encoder reads the prompt whole; there are none of its tokens");
    }
    Ok(())
}

/// Bytes of a number of a distribution that comes whole.
const NUMBER: u64 = 4;

/// Each message stands in memory twice for a while: as it came, and as it was read or is passed on.
const COPIES: u64 = 2;

/// Returns the most positions of one round.
fn positions(method: &Choice, draft_len: u32) -> u64 {
    u64::from(match method.plan {
        Plan::OracleCascade => 1,
        Plan::Speculative => draft_len + 1,
        _ => MAX_DRAFT_LEN + 1,
    })
}

/// Returns the bytes of what a drafter sends of its distributions in a round, where it sends them whole.
fn drafted(method: &Choice, draft_len: u32, vocab_size: u32) -> u64 {
    let fields = method.proposal_options();
    let row = match fields.form {
        ProposalForm::Dense { half: true } => NUMBER / 2,
        ProposalForm::Dense { half: false } => NUMBER,
        _ => return 0,
    };
    let unscaled = if fields.unscaled { NUMBER } else { 0 };
    positions(method, draft_len) * u64::from(vocab_size) * (row + unscaled)
}

/// Refuses distributions that would not fit into one message.
///
/// # Errors
/// Names the field that asks for them.
pub(super) fn check_message(
    method: &Choice,
    draft_len: u32,
    vocab_size: u32,
    reports: bool,
) -> Result<(), BadField> {
    let positions = positions(method, draft_len);
    let drafted = drafted(method, draft_len, vocab_size);
    // The target model's distribution, scaled and unscaled, comes on top.
    let reported = drafted + positions * u64::from(vocab_size) * 2 * NUMBER;
    for (field, bytes, requested) in [
        ("settings.proposal", drafted, true),
        ("report_distributions", reported, reports),
    ] {
        if requested && bytes > MAX_MESSAGE_BYTES as u64 {
            let (megabytes, most) = (bytes >> 20, MAX_MESSAGE_BYTES >> 20);
            let problem = format!(
                "the distributions of {positions} positions take {megabytes} MiB, a message holds {most}; \
                 ask for fewer draft tokens, or for sparse distributions"
            );
            return Err(BadField::new(field, problem));
        }
    }
    Ok(())
}

/// Returns the most bytes of distributions that `request` holds at a time; 0 where only tokens and sparse distributions
/// travel.
pub(crate) fn distribution_bytes(request: &AdmittedRequest) -> u64 {
    let (method, vocab_size) = (&request.method, request.vocab_size);
    let drafted = drafted(method, request.draft_len, vocab_size);
    if !method.accept_at_coordinator {
        return COPIES * drafted;
    }
    let rows = 1 + u64::from(request.needs_target_unscaled());
    let scored = positions(method, request.draft_len) * u64::from(vocab_size) * rows * NUMBER;
    // One report is made while another waits for the client.
    let rounds = 1 + u64::from(request.report_distributions);
    rounds * COPIES * (drafted + scored)
}

#[cfg(test)]
mod tests;
