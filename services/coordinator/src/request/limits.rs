//! The limits of a request's fields.

use std::time::Duration;

use server::transport::MAX_MESSAGE_BYTES;
use speculation::TokenId;
use speculation::drafting::TreeShape;
use speculation::methods::Choice;
use speculation::proposal::ProposalForm;
use speculation::session::Plan;
use wire::status::BadField;
use wire::v1;
use wire::v1::generate_request::Prompt;

use crate::config::{CoordinatorConfig, MAX_DRAFT_LEN};
use crate::text::ServedText;

/// Output tokens where a request does not say.
const DEFAULT_MAX_TOKENS: u32 = 256;
/// Most stop strings.
const MAX_STOPS: usize = 16;
/// Longest stop string, in bytes.
const MAX_STOP_BYTES: usize = 256;
/// Most further end tokens; the model's own come on top.
pub(super) const MAX_STOP_TOKENS: usize = 62;

/// More than any token stands for on average.
const MAX_BYTES_PER_TOKEN: usize = 256;

pub(super) fn in_range(field: &str, value: u32, least: u32, most: u32) -> Result<(), BadField> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(BadField::new(
        field,
        format!("{value} is out of range, expected {least} to {most}"),
    ))
}

pub(super) fn prompt_tokens(
    prompt: Option<Prompt>,
    text: &ServedText,
) -> Result<Vec<TokenId>, BadField> {
    let empty = || BadField::new("prompt", "empty, expected at least one token");
    let tokens = match prompt {
        None => return Err(empty()),
        Some(Prompt::Text(prompt)) if prompt.is_empty() => return Err(empty()),
        Some(Prompt::Text(prompt)) => {
            check_bytes(prompt.len(), text.target.context_len)?;
            let encoded = text.tokenizer.encode_fast(prompt, true);
            encoded
                .map_err(|error| BadField::new("prompt", error.to_string()))?
                .get_ids()
                .to_vec()
        }
        Some(Prompt::TokenIds(tokens)) => tokens.ids,
    };
    if tokens.is_empty() {
        return Err(empty());
    }
    let vocab_size = text.target.vocab_size;
    if let Some(token) = tokens.iter().find(|&&token| token >= vocab_size) {
        let problem = format!("token id {token} is out of range, the vocabulary has {vocab_size}");
        return Err(BadField::new("prompt", problem));
    }
    Ok(tokens)
}

/// Refuses at sight what cannot fit: turning it into tokens first would take long.
fn check_bytes(bytes: usize, context_len: u32) -> Result<(), BadField> {
    let most = (context_len as usize).saturating_mul(MAX_BYTES_PER_TOKEN);
    if bytes <= most {
        return Ok(());
    }
    let problem = format!("{bytes} bytes cannot fit the model's context of {context_len} tokens");
    Err(BadField::new("prompt", problem))
}

pub(super) fn max_tokens(
    asked: Option<u32>,
    prompt_len: usize,
    context_len: u32,
) -> Result<u32, BadField> {
    let left = (context_len as usize).saturating_sub(prompt_len) as u32;
    if left == 0 {
        let problem =
            format!("{prompt_len} tokens, the model's context holds {context_len} with the output");
        return Err(BadField::new("prompt", problem));
    }
    let max_tokens = asked.unwrap_or(DEFAULT_MAX_TOKENS.min(left));
    if max_tokens == 0 || max_tokens > left {
        let problem = format!(
            "{max_tokens} is out of range, expected 1 to {left} \
             (a context of {context_len} less {prompt_len} prompt tokens)"
        );
        return Err(BadField::new("max_tokens", problem));
    }
    Ok(max_tokens)
}

pub(super) fn check_stops(stops: &[String]) -> Result<(), BadField> {
    if stops.len() > MAX_STOPS {
        let problem = format!("{} texts, expected at most {MAX_STOPS}", stops.len());
        return Err(BadField::new("stop", problem));
    }
    match stops
        .iter()
        .find(|stop| stop.is_empty() || stop.len() > MAX_STOP_BYTES)
    {
        None => Ok(()),
        Some(stop) => {
            let problem = format!(
                "a text of {} bytes, expected 1 to {MAX_STOP_BYTES}",
                stop.len()
            );
            Err(BadField::new("stop", problem))
        }
    }
}

pub(super) fn timeout(asked_ms: u32, config: &CoordinatorConfig) -> Result<Duration, BadField> {
    let longest = config.request_timeout();
    let asked = Duration::from_millis(asked_ms.into());
    if asked > longest {
        let problem = format!(
            "{asked_ms} is out of range, expected at most {}",
            longest.as_millis()
        );
        return Err(BadField::new("timeout_ms", problem));
    }
    Ok(if asked.is_zero() { longest } else { asked })
}

/// Refuses a BiLD window that the verifier does not take as one block: where it looks decides what
/// it adds, so the window must not be cut silently.
pub(super) fn check_window(method: &Choice, most_drafts: u32) -> Result<(), BadField> {
    match method.plan {
        Plan::Bild { window, .. } if window > most_drafts => {
            let problem = format!("{window} is out of range, the verifier takes {most_drafts}");
            Err(BadField::new("window", problem))
        }
        _ => Ok(()),
    }
}

/// Refuses a tree that the verifier would not understand.
pub(super) fn check_trees(method: &Choice, verifier: &v1::PeerDescription) -> Result<(), BadField> {
    if method.tree == TreeShape::Chain || verifier.trees {
        return Ok(());
    }
    let problem = format!(
        "verifier '{}' does not verify trees; ask for a chain",
        verifier.model
    );
    Err(BadField::new("tree", problem))
}

/// Refuses laws that would not fit into one message.
pub(super) fn check_rows(
    method: &Choice,
    draft_len: u32,
    vocab_size: u32,
    report_laws: bool,
) -> Result<(), BadField> {
    let telling = method.telling();
    let numbers = |bytes: u64| bytes * u64::from(vocab_size);
    let draft_row = match telling.form {
        ProposalForm::Dense { half } => numbers(if half { 2 } else { 4 }),
        _ => 0,
    };
    let unscaled_row = if telling.unscaled && draft_row > 0 {
        numbers(4)
    } else {
        0
    };
    let positions = u64::from(match method.plan {
        Plan::OracleCascade => 1,
        Plan::Speculative => draft_len + 1,
        _ => MAX_DRAFT_LEN + 1,
    });
    let drafted = positions * (draft_row + unscaled_row);
    // Law and unscaled law of the target model come on top.
    let reported = drafted + positions * numbers(8);
    for (field, bytes, asked) in [
        ("proposal_form", drafted, true),
        ("report_laws", reported, report_laws),
    ] {
        if asked && bytes > MAX_MESSAGE_BYTES as u64 {
            let (megabytes, most) = (bytes >> 20, MAX_MESSAGE_BYTES >> 20);
            let problem = format!(
                "the laws of {positions} positions take {megabytes} MiB, a message holds {most}; \
                 ask for fewer draft tokens, or for sparse laws"
            );
            return Err(BadField::new(field, problem));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use speculation::methods::Asked;

    use super::*;

    #[test]
    fn max_tokens_must_fit_the_context() {
        assert_eq!(max_tokens(None, 12, 512), Ok(256));
        assert_eq!(max_tokens(None, 500, 512), Ok(12));
        assert_eq!(max_tokens(Some(500), 12, 512), Ok(500));
        let error = max_tokens(Some(501), 12, 512)
            .expect_err("too many")
            .to_string();
        assert!(
            error.contains("501") && error.contains("1 to 500"),
            "{error}"
        );
        assert_eq!(
            max_tokens(Some(0), 12, 512).expect_err("none").field,
            "max_tokens"
        );
        let error = max_tokens(None, 512, 512).expect_err("no room");
        assert_eq!(error.field, "prompt");
        assert!(error.to_string().contains("512"), "{error}");
    }

    #[test]
    fn a_tree_is_for_a_verifier_that_understands_it() {
        let method = |tree| {
            let asked = Asked {
                tree: Some(tree),
                ..Default::default()
            };
            Choice::resolve(&asked, 1.0, false).expect("a method")
        };
        let (chain, comb) = (method(TreeShape::Chain), method(TreeShape::Comb(4)));
        let peer = |trees| v1::PeerDescription {
            model: "x".to_owned(),
            trees,
            ..Default::default()
        };
        assert_eq!(check_trees(&chain, &peer(false)), Ok(()));
        assert_eq!(check_trees(&comb, &peer(true)), Ok(()));
        let bad = check_trees(&comb, &peer(false)).expect_err("of chains");
        assert!(bad.field == "tree" && bad.problem.contains("'x'"), "{bad}");
    }

    #[test]
    fn what_cannot_fit_is_refused_at_sight() {
        assert!(check_bytes(512 * 256, 512).is_ok());
        assert_eq!(
            check_bytes(512 * 256 + 1, 512).expect_err("too long").field,
            "prompt"
        );
    }

    #[test]
    fn laws_that_fit_no_message_are_refused() {
        let method = |proposal| {
            let asked = Asked {
                method: "rejection",
                proposal: Some(proposal),
                ..Default::default()
            };
            Choice::resolve(&asked, 1.0, false).expect("a method")
        };
        let dense = method(ProposalForm::Dense { half: false });
        let half = method(ProposalForm::Dense { half: true });
        let sparse = method(ProposalForm::Sparse { top: 32 });
        assert!(check_rows(&dense, 64, 152_000, false).is_ok());
        let error = check_rows(&dense, 64, 300_000, false).expect_err("74 MiB");
        assert_eq!(error.field, "proposal_form");
        assert!(check_rows(&half, 64, 300_000, false).is_ok());
        assert!(check_rows(&sparse, 64, 300_000, false).is_ok());
        let error = check_rows(&dense, 64, 152_000, true).expect_err("113 MiB");
        assert_eq!(error.field, "report_laws");
        assert!(check_rows(&dense, 4, 152_000, true).is_ok());
    }

    #[test]
    fn stops_are_bounded() {
        assert!(check_stops(&["a".to_owned()]).is_ok());
        assert!(check_stops(&vec!["a".to_owned(); 17]).is_err());
        assert!(check_stops(&[String::new()]).is_err());
        assert!(check_stops(&["a".repeat(257)]).is_err());
    }
}
