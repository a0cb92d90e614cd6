//! The limits of a request's fields.

use std::time::Duration;

use speculation::methods::Choice;
use speculation::session::Plan;
use wire::bounds::MAX_STOPS;
use wire::status::BadField;
use wire::{settings, v1};

use crate::config::CoordinatorConfig;
use crate::limits::{MAX_NAME_BYTES, MAX_STOP_BYTES};

pub(super) fn in_range(field: &str, value: u32, least: u32, most: u32) -> Result<(), BadField> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(BadField::new(
        field,
        format!("{value} is out of range, expected {least} to {most}"),
    ))
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
        in_range("max_tokens", max_tokens, 1, most)?;
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
    in_range("max_tokens", max_tokens, least, left)?;
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

/// Errors quote names, and travel in headers, which are short.
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

#[cfg(test)]
mod tests;
