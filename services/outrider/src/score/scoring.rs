//! The distributions at every position of a text, as log probabilities.

use anyhow::Context;
use speculation::TokenId;
use speculation::logprobs::{Likely, LogitsRow};
use speculation::ports::{LanguageModel, Rows, Segment};

/// Logits held at once: 64 MiB.
const ROOM: usize = 16 << 20;
/// Most tokens of a forward.
const LONGEST: usize = 256;

/// A token of the text, and what the model thought.
#[derive(Debug, PartialEq)]
pub(super) struct ScoredPosition {
    pub(super) token_id: TokenId,
    /// ln of its probability given the tokens before it; none of the first.
    pub(super) logprob: Option<f64>,
    /// The most likely tokens after it, the likeliest first, each with ln of its probability.
    pub(super) top: Vec<Likely>,
}

/// Over all tokens of a text but the first.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct ScoreSummary {
    /// Sum of the log probabilities.
    pub(super) logprob: f64,
    pub(super) tokens: usize,
}

impl ScoreSummary {
    /// e to the mean negative log probability; none of a text of one token.
    pub(super) fn perplexity(self) -> Option<f64> {
        (self.tokens > 0).then(|| (-self.logprob / self.tokens as f64).exp())
    }
}

/// Returns the tokens of a forward of a model with this vocabulary.
pub(super) fn step(vocab_size: usize) -> usize {
    (ROOM / vocab_size).clamp(1, LONGEST)
}

/// Hands every token of `text` to `emit`, with the `top` likeliest next ones; goes on from what `cache` holds. A row
/// does not depend on how the text is cut into forwards, so only those of `step` tokens are held at a time.
///
/// # Errors
/// If a forward or `emit` fails, or logits are not finite.
pub(super) fn score<M: LanguageModel>(
    model: &mut M,
    mut cache: M::Cache,
    (text, step, top): (&[TokenId], usize, usize),
    mut emit: impl FnMut(usize, &ScoredPosition) -> anyhow::Result<()>,
) -> anyhow::Result<ScoreSummary> {
    let (mut rows, mut order) = (Rows::default(), Vec::new());
    let mut summary = ScoreSummary::default();
    let mut logprob = None;
    for (start, tokens) in (0..).step_by(step).zip(text.chunks(step)) {
        let segment = Segment {
            cache: &mut cache,
            tokens,
            parents: &[],
            scored_from: 0,
        };
        model.forward(&mut [segment], &mut rows)?;
        for (index, &token_id) in tokens.iter().enumerate() {
            let logits = rows.row(index);
            let position = start + index;
            let row = LogitsRow::of(logits).with_context(|| {
                format!("the model's logits at position {position} are not finite")
            })?;
            let reported = ScoredPosition {
                token_id,
                logprob,
                top: row.likeliest(top, &mut order),
            };
            emit(position, &reported)?;
            let next = text.get(position + 1);
            logprob = next.map(|&next| row.logprob(next));
            if let Some(logprob) = logprob {
                summary.logprob += logprob;
                summary.tokens += 1;
            }
        }
    }
    Ok(summary)
}

#[cfg(test)]
mod tests {
    use outrider_tests::toy::ToyModel;

    use super::*;

    const TEXT: [TokenId; 7] = [3, 1, 4, 1, 5, 9, 2];

    fn score(step: usize, top: usize) -> (Vec<ScoredPosition>, ScoreSummary) {
        let mut model = ToyModel::new(7, 10);
        let cache = model.new_cache();
        let mut positions = Vec::new();
        let summary = super::score(&mut model, cache, (&TEXT, step, top), |_, position| {
            positions.push(ScoredPosition {
                top: position.top.clone(),
                ..*position
            });
            Ok(())
        });
        (positions, summary.unwrap())
    }

    #[test]
    fn cutting_into_forwards_changes_nothing() {
        let whole = score(LONGEST, 4);
        assert_eq!(whole.0.len(), TEXT.len());
        for step in [1, 2, 3, 6, 7] {
            assert_eq!(score(step, 4), whole, "{step} tokens a forward");
        }
    }

    #[test]
    fn a_tokens_probability_is_what_was_told_after_the_one_before() {
        let (positions, summary) = score(3, 10);
        let tokens: Vec<_> = positions.iter().map(|position| position.token_id).collect();
        assert_eq!(tokens, TEXT);
        assert_eq!(positions[0].logprob, None);
        let mut total = 0.0;
        for pair in positions.windows(2) {
            let mass: f64 = pair[0].top.iter().map(|likely| likely.logprob.exp()).sum();
            assert!((mass - 1.0).abs() < 1e-12, "{mass}");
            assert!(pair[0].top.is_sorted_by(|a, b| a.logprob >= b.logprob));
            let mut top = pair[0].top.iter();
            let reported = top.find(|likely| likely.token == pair[1].token_id);
            assert_eq!(pair[1].logprob, reported.map(|likely| likely.logprob));
            total += pair[1].logprob.unwrap();
        }
        assert_eq!((summary.logprob, summary.tokens), (total, 6));
        assert_eq!(summary.perplexity(), Some((-total / 6.0).exp()));
        assert_eq!(ScoreSummary::default().perplexity(), None);
    }

    #[test]
    fn fewer_are_the_first_of_all() {
        let (all, _) = score(7, 10);
        for top in [0, 1, 4] {
            for (few, all) in score(7, top).0.iter().zip(&all) {
                assert_eq!(few.top, all.top[..top]);
            }
        }
    }
}
