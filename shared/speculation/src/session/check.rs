//! What a peer's answer must be before it may reach the output.

use super::answers::{DraftAnswer, VerdictAnswer};
use super::{DraftStop, Plan, SessionConfig};
use crate::TokenId;
use crate::verification::LastToken;
use crate::verification::layers::Layer;

/// Probabilities and their logarithms may exceed their range by this much through rounding.
const ROUNDING: f32 = 1e-4;

/// An answer that cannot be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed answer: {0}")]
pub(super) struct Malformed(String);

fn ids(config: &SessionConfig, tokens: &[TokenId]) -> Result<(), Malformed> {
    match tokens.iter().find(|&&token| token >= config.vocab_size) {
        Some(token) => {
            let size = config.vocab_size;
            Err(Malformed(format!(
                "token id {token} is not below the vocabulary's {size}"
            )))
        }
        None => Ok(()),
    }
}

/// Nothing may come after an end token.
fn ends(config: &SessionConfig, tokens: &[TokenId]) -> Result<(), Malformed> {
    let before_last = &tokens[..tokens.len().saturating_sub(1)];
    match before_last
        .iter()
        .position(|token| config.end_tokens.contains(token))
    {
        Some(at) => Err(Malformed(format!(
            "tokens follow the end token at index {at}"
        ))),
        None => Ok(()),
    }
}

pub(super) fn draft(
    config: &SessionConfig,
    max_tokens: u32,
    answer: &DraftAnswer,
) -> Result<(), Malformed> {
    let tokens = &answer.tokens;
    let least = u32::from(!may_be_empty(config, max_tokens, answer.stop));
    if tokens.len() > max_tokens as usize || tokens.len() < least as usize {
        let found = tokens.len();
        return Err(Malformed(format!(
            "{found} draft tokens, expected {least} to {max_tokens}"
        )));
    }
    ids(config, tokens)?;
    ends(config, tokens)?;
    let last = tokens.last();
    let ended = last.is_some_and(|token| config.end_tokens.contains(token));
    if answer.stop == DraftStop::EndToken && !ended {
        return Err(Malformed(
            "the draft ends with no end token, and is said to".to_owned(),
        ));
    }
    match config.plan {
        Plan::SequenceCascade { .. } => scores(tokens.len(), &answer.logprobs),
        _ => Ok(()),
    }
}

/// Whether there may be nothing drafted: because nothing was asked for or there is no room, or
/// because the first law says stop and the plan has something to do then.
fn may_be_empty(config: &SessionConfig, max_tokens: u32, stop: DraftStop) -> bool {
    let hands_over = matches!(config.plan, Plan::TokenCascade { .. } | Plan::Bild { .. });
    let is_full = stop == DraftStop::Context;
    max_tokens == 0 || is_full || hands_over && stop == DraftStop::Policy
}

fn scores(tokens: usize, logprobs: &[f32]) -> Result<(), Malformed> {
    // A token may be likely enough to be drawn, and its unscaled probability too small for a number.
    let is_logprob = |logprob: &f32| *logprob <= ROUNDING;
    if logprobs.len() != tokens || !logprobs.iter().all(is_logprob) {
        return Err(Malformed(
            "the draft tokens do not come with a log probability each".to_owned(),
        ));
    }
    Ok(())
}

pub(super) fn decoded(
    config: &SessionConfig,
    max_tokens: u32,
    tokens: &[TokenId],
) -> Result<(), Malformed> {
    if tokens.len() > max_tokens as usize {
        let found = tokens.len();
        return Err(Malformed(format!(
            "{found} decoded tokens, expected at most {max_tokens}"
        )));
    }
    ids(config, tokens)?;
    ends(config, tokens)
}

pub(super) fn verdict(
    config: &SessionConfig,
    drafts: &[TokenId],
    answer: &VerdictAnswer,
) -> Result<(), Malformed> {
    let (emitted, accepted, last) = (&answer.emitted, answer.accepted, answer.last);
    let added = usize::from(last != LastToken::AcceptedEnd);
    if accepted > drafts.len() || emitted.len() != accepted + added {
        let (found, drafted) = (emitted.len(), drafts.len());
        return Err(Malformed(format!(
            "{found} tokens emitted with {accepted} of {drafted} accepted"
        )));
    }
    if emitted[..accepted] != drafts[..accepted] {
        return Err(Malformed(
            "accepted tokens are not those drafted".to_owned(),
        ));
    }
    if (last == LastToken::Bonus) != (accepted == drafts.len()) && last != LastToken::AcceptedEnd {
        return Err(Malformed(
            "bonus and recovered token are confused".to_owned(),
        ));
    }
    let ends_output = emitted
        .last()
        .is_some_and(|token| config.end_tokens.contains(token));
    if last == LastToken::AcceptedEnd && !ends_output {
        return Err(Malformed(
            "no token was added after one that does not end".to_owned(),
        ));
    }
    ids(config, emitted)?;
    ends(config, emitted)?;
    deferral(emitted.len(), &answer.deferral)?;
    layers(config, &answer.layers)
}

fn deferral(emitted: usize, deferral: &[f32]) -> Result<(), Malformed> {
    let is_share = |share: &f32| (-ROUNDING..=1.0 + ROUNDING).contains(share);
    if !(deferral.is_empty() || deferral.len() == emitted) || !deferral.iter().all(is_share) {
        return Err(Malformed(
            "the emitted tokens do not come with a deferral each".to_owned(),
        ));
    }
    Ok(())
}

fn layers(config: &SessionConfig, layers: &[Layer]) -> Result<(), Malformed> {
    // A layer lasts for the rest of a block, and each block leaves at most one.
    let longest = if config.carries_layers {
        config.draft_len
    } else {
        0
    };
    let is_layer =
        |layer: &Layer| layer.log_rho.is_finite() && (1..=longest).contains(&layer.remaining);
    if layers.len() > config.draft_len as usize || !layers.iter().all(is_layer) {
        return Err(Malformed("the residual layers are no layers".to_owned()));
    }
    Ok(())
}
