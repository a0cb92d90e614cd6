//! What a peer's answer must be before it may reach the output.

use super::{DraftBlock, DraftStop, Plan, ScoredDrafts, SessionConfig};
use crate::TokenId;
use crate::draft_tree::DraftTree;
use crate::drafting::TreeShape;
use crate::verification::layers::ResidualLayer;
use crate::verification::{LastToken, Verdict};

/// Probabilities and their logarithms may exceed their range by this much through rounding.
const ROUNDING: f32 = 1e-4;

/// Most models of a drafter: a draw's key has four bits for the level.
const MOST_MODELS: usize = 16;

/// An answer that cannot be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed answer: {0}")]
pub(super) struct Malformed(String);

/// Refuses an answer, and says why.
fn refuse(why: impl Into<String>) -> Result<(), Malformed> {
    Err(Malformed(why.into()))
}

fn ids(config: &SessionConfig, tokens: &[TokenId]) -> Result<(), Malformed> {
    match tokens.iter().find(|&&token| token >= config.vocab_size) {
        Some(token) => {
            let size = config.vocab_size;
            refuse(format!(
                "token id {token} is not below the vocabulary's {size}"
            ))
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
        Some(at) => refuse(format!("tokens follow the end token at index {at}")),
        None => Ok(()),
    }
}

pub(super) fn draft(
    config: &SessionConfig,
    max_tokens: u32,
    answer: &DraftBlock,
) -> Result<(), Malformed> {
    let tokens = answer.drafts.tokens();
    let least = u32::from(!may_be_empty(config, max_tokens, answer.stop));
    let most = max_tokens.saturating_mul(config.tree.width());
    if tokens.len() > most as usize || tokens.len() < least as usize {
        let found = tokens.len();
        return refuse(format!("{found} draft tokens, expected {least} to {most}"));
    }
    shape(config, max_tokens, &answer.drafts)?;
    ids(config, tokens)?;
    ends_paths(config, &answer.drafts)?;
    if answer.stop == DraftStop::EndToken && !ends_block(config, &answer.drafts) {
        return refuse("the draft ends with no end token, and is said to");
    }
    if answer.forwards.len() > MOST_MODELS {
        let found = answer.forwards.len();
        return refuse(format!(
            "forwards of {found} draft models, expected at most {MOST_MODELS}"
        ));
    }
    if let Plan::SequenceCascade { .. } = config.plan {
        scores(tokens.len(), &answer.logprobs)?;
    }
    Ok(())
}

/// A chain where one was asked for; else no more levels than were asked for.
fn shape(config: &SessionConfig, max_tokens: u32, drafts: &DraftTree) -> Result<(), Malformed> {
    if config.tree == TreeShape::Chain && !drafts.is_chain() {
        return refuse("a draft tree, expected a chain");
    }
    let levels = drafts.levels();
    if levels > max_tokens {
        return refuse(format!(
            "a draft tree of {levels} levels, expected at most {max_tokens}"
        ));
    }
    Ok(())
}

/// Nothing may come after an end token on its path.
fn ends_paths(config: &SessionConfig, drafts: &DraftTree) -> Result<(), Malformed> {
    let is_end = |node: &usize| config.end_tokens.contains(&drafts.tokens()[*node]);
    let mut parents = (0..drafts.len()).filter_map(|node| drafts.parent(node));
    match parents.find(is_end) {
        Some(at) => refuse(format!("tokens follow the end token at index {at}")),
        None => Ok(()),
    }
}

/// Whether a draft block ends the output: its last token does, in a tree one of the last level.
pub(super) fn ends_block(config: &SessionConfig, drafts: &DraftTree) -> bool {
    let is_end = |token: &TokenId| config.end_tokens.contains(token);
    if drafts.is_chain() {
        return drafts.tokens().last().is_some_and(is_end);
    }
    let depths = drafts.depths();
    let deepest = depths.iter().max();
    let mut nodes = drafts.tokens().iter().zip(&depths);
    nodes.any(|(token, depth)| Some(depth) == deepest && is_end(token))
}

/// Whether there may be nothing drafted: because nothing was asked for or there is no room, or
/// because the first distribution says stop: every plan has something to do then but one of the drafter alone.
fn may_be_empty(config: &SessionConfig, max_tokens: u32, stop: DraftStop) -> bool {
    let hands_over = matches!(
        config.plan,
        Plan::Speculative | Plan::TokenCascade { .. } | Plan::Bild { .. }
    );
    let is_full = stop == DraftStop::Context;
    max_tokens == 0 || is_full || hands_over && stop == DraftStop::Policy
}

fn scores(tokens: usize, logprobs: &[f32]) -> Result<(), Malformed> {
    // A token may be likely enough to be drawn, and its unscaled probability too small for a number.
    let is_logprob = |logprob: &f32| *logprob <= ROUNDING;
    if logprobs.len() != tokens || !logprobs.iter().all(is_logprob) {
        return refuse("the draft tokens do not come with a log probability each");
    }
    Ok(())
}

pub(super) fn decoded(
    config: &SessionConfig,
    max_tokens: u32,
    tokens: &[TokenId],
    drafts: Option<ScoredDrafts>,
) -> Result<(), Malformed> {
    if let Some(it) = drafts {
        let (scored, accepted, is_end) =
            (it.scored, it.accepted, it.last == LastToken::AcceptedEnd);
        let added = u32::from(!is_end);
        let emitted = tokens.len() as u32;
        if !config.streams || accepted > scored || accepted.checked_add(added) != Some(emitted) {
            return refuse(format!(
                "{emitted} decoded tokens with {accepted} of {scored} drafts accepted"
            ));
        }
        let ends = |token| config.end_tokens.contains(token);
        if is_end && !tokens.last().is_some_and(ends) {
            return refuse("no token was added after one that does not end");
        }
    }
    if tokens.len() > max_tokens as usize {
        let found = tokens.len();
        return refuse(format!(
            "{found} decoded tokens, expected at most {max_tokens}"
        ));
    }
    ids(config, tokens)?;
    ends(config, tokens)
}

pub(super) fn prompt_scores(count: u32, wanted: u32) -> Result<(), Malformed> {
    if count <= wanted {
        return Ok(());
    }
    refuse(format!(
        "{count} scores of the prompt, expected at most {wanted}"
    ))
}

pub(super) fn verdict(
    config: &SessionConfig,
    drafts: &DraftTree,
    answer: &Verdict,
) -> Result<(), Malformed> {
    let (emitted, last) = (&answer.emitted, answer.last);
    let accepted = answer.path.len();
    let added = usize::from(last != LastToken::AcceptedEnd);
    if accepted > drafts.len() || emitted.len() != accepted + added {
        let (found, drafted) = (emitted.len(), drafts.len());
        return refuse(format!(
            "{found} tokens emitted with {accepted} of {drafted} accepted"
        ));
    }
    let mut node = None;
    for (&next, &token) in answer.path.iter().zip(emitted) {
        let next = next as usize;
        if drafts.tokens().get(next) != Some(&token) || drafts.parent(next) != node {
            return refuse("accepted tokens are not those drafted");
        }
        node = Some(next);
    }
    let added_token = emitted.last().filter(|_| added > 0);
    if !drafts.is_chain() && added_token.is_some_and(|&token| drafts.child(node, token).is_some()) {
        return refuse("the last token was drafted, and is not said to be accepted");
    }
    let at_leaf = node.map_or(drafts.is_empty(), |node| drafts.is_leaf(node));
    if (last == LastToken::Bonus) != at_leaf && last != LastToken::AcceptedEnd {
        return refuse("bonus and recovered token are confused");
    }
    let ends_output = emitted
        .last()
        .is_some_and(|token| config.end_tokens.contains(token));
    if last == LastToken::AcceptedEnd && !ends_output {
        return refuse("no token was added after one that does not end");
    }
    ids(config, emitted)?;
    ends(config, emitted)?;
    deferral(emitted.len(), &answer.deferral)?;
    layers(config, &answer.layers)
}

fn deferral(emitted: usize, deferral: &[f32]) -> Result<(), Malformed> {
    let is_share = |share: &f32| (-ROUNDING..=1.0 + ROUNDING).contains(share);
    if !(deferral.is_empty() || deferral.len() == emitted) || !deferral.iter().all(is_share) {
        return refuse("the emitted tokens do not come with a deferral each");
    }
    Ok(())
}

fn layers(config: &SessionConfig, layers: &[ResidualLayer]) -> Result<(), Malformed> {
    // A layer lasts for the rest of a block, and each block leaves at most one.
    let longest = if config.carries_layers {
        config.draft_len
    } else {
        0
    };
    let is_layer = |layer: &ResidualLayer| {
        layer.log_rho.is_finite() && (1..=longest).contains(&layer.remaining)
    };
    if layers.len() > config.draft_len as usize || !layers.iter().all(is_layer) {
        return refuse("the residual layers are no layers");
    }
    Ok(())
}
