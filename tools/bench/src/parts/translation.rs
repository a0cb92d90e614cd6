//! What a round takes of a drafter of another vocabulary, beside the draft model: the target's new tokens read as text and
//! tokenised for the draft model, and what is drafted tokenised for the target.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use model::embedded;
use outrider::progress;
use speculation::TokenId;
use text::{ServedText, TranslatedText, Translator};
use wire::v1::TokenizerPart;

use super::PartsArgs;
use super::row::PartRow;
use crate::structured::spelling;
use crate::timing::in_turn;

/// Tokens of the target's vocabulary: as many as Llama 3 and Qwen 2.5 have.
const VOCABS: [usize; 2] = [128_256, 152_064];

/// Tokens before those that are measured.
const CONTEXTS: [usize; 2] = [128, 4_096];

/// Microseconds that a round may take.
const GOAL_US: f64 = 50.0;

/// Rounds of a measurement, and tokens that each commits and drafts.
const ROUNDS: usize = 64;
const TOKENS: usize = 4;

/// Measures the built-in draft model's vocabulary against made ones.
pub(super) fn rows(args: &PartsArgs) -> anyhow::Result<Vec<PartRow>> {
    let draft = embedded::draft().context("this build has no built-in pair")?;
    let json = draft.tokenizer_json().context("no tokenizer")?;
    let draft = (served(json)?, draft.config().vocab_size as u32);
    let mut rows = Vec::new();
    for vocab in VOCABS {
        progress::show(&format!("translation: a vocabulary of {vocab}"))?;
        let target = served(&spelling::tokenizer(vocab)?)?;
        let prompts: String = (0..1_000).map(|at| spelling::prompt(at) + " ").collect();
        let tokens = target.tokens(&prompts, false, usize::MAX);
        let tokens = tokens.map_err(|error| anyhow!("{error}"))?;
        let tokens: Vec<TokenId> = tokens
            .into_iter()
            .cycle()
            .take(CONTEXTS[1] + ROUNDS * TOKENS)
            .collect();
        let translator = Arc::new(Translator::new((target, vocab as u32), draft.clone()));
        let figures = in_turn(args.repeats, &CONTEXTS, |&context| {
            Ok(rounds(
                &translator,
                &tokens[..context + ROUNDS * TOKENS],
                context,
            ))
        })?;
        rows.extend(CONTEXTS.iter().zip(&figures).map(|(&context, of)| {
            let us = of.us / ROUNDS as f64;
            PartRow::limited(
                format!("vocabularies of 4096 and {vocab}"),
                context,
                "translation, a round",
                us,
                GOAL_US,
            )
        }));
    }
    Ok(rows)
}

fn served(json: &[u8]) -> anyhow::Result<Arc<ServedText>> {
    let served = ServedText::new(json, TokenizerPart::default());
    Ok(Arc::new(served.map_err(|error| anyhow!("{error}"))?))
}

/// How long the rounds after the first `context` tokens of `tokens` take.
fn rounds(translator: &Arc<Translator>, tokens: &[TokenId], context: usize) -> Duration {
    let mut text = TranslatedText::new(Arc::clone(translator));
    text.follow(&tokens[..context]);
    let started = Instant::now();
    for committed in tokens[context..].chunks(TOKENS) {
        text.follow(committed);
        // About as many bytes as so many draft tokens are.
        let last = text.tokens().iter().rev().take(TOKENS);
        let drafted: Vec<u8> = last.flat_map(|&token| translator.drafted(token)).collect();
        std::hint::black_box(translator.in_target(&drafted));
    }
    started.elapsed()
}
