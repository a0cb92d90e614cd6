//! What a round of a cascade brings and costs, by a Markov chain.
//!
//! Chen et al., "Cascade Speculative Drafting for Even Faster LLM Inference" (2024), §3 and appendix
//! C. Acceptance is taken to be independent: a reviewer keeps each token of a draft with the same
//! probability.

use speculation::cascade::CascadeConfig;

/// What a round of a cascade is expected to bring and to cost.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Expected {
    /// Tokens emitted by the target.
    pub(crate) tokens: f64,
    /// Calls of each draft: forwards of a model, proposals of Max-Gram.
    pub(crate) calls: Vec<f64>,
}

/// Returns what a round of any cascade is expected to bring, by an exact Markov chain, by which a matrix K can be
/// judged. Lenience counts as far as `acceptance` does.
///
/// `acceptance` (drafts, drafts) holds in row r the probability with which reviewer r (0: the target)
/// keeps a token that the draft of the column emitted last.
///
/// # Panics
/// If `acceptance` has no entry where K has one.
pub(crate) fn expected(config: &CascadeConfig, acceptance: &[Vec<f64>]) -> Expected {
    // The calls of each draft, the smallest first: those of larger ones are made of them.
    let mut drafts: Vec<CallDistribution> = vec![CallDistribution::default(); config.drafts()];
    for draft in (0..config.drafts()).rev() {
        let mut call = if is_max_gram(config, draft) {
            CallDistribution::of_max_gram(config)
        } else {
            CallDistribution::of_review(config, draft + 1, &drafts, acceptance)
        };
        call.calls[draft] += 1.0;
        drafts[draft] = call;
    }
    let target = CallDistribution::of_review(config, 0, &drafts, acceptance);
    let mean = |(tokens, chance): (usize, &f64)| tokens as f64 * chance;
    Expected {
        tokens: target.tokens.iter().enumerate().map(mean).sum(),
        calls: target.calls,
    }
}

/// What one call gives.
#[derive(Clone, Debug, Default)]
struct CallDistribution {
    /// How likely each number of tokens is.
    tokens: Vec<f64>,
    /// The expected calls of each draft in it.
    calls: Vec<f64>,
}

impl CallDistribution {
    fn of_max_gram(config: &CascadeConfig) -> Self {
        let count = config.mag_tokens() as usize;
        let mut tokens = vec![0.0; count + 1];
        tokens[count] = 1.0;
        Self {
            tokens,
            calls: vec![0.0; config.drafts()],
        }
    }

    /// A review, as a Markov chain whose state is the number of tokens drafted: how likely it is, and
    /// how likely together with the reviewer accepting all of them.
    fn of_review(
        config: &CascadeConfig,
        reviewer: usize,
        drafts: &[Self],
        acceptance: &[Vec<f64>],
    ) -> Self {
        let mut states = vec![(1.0, 1.0)];
        let mut calls = vec![0.0; config.drafts()];
        let mut tokens: Vec<f64> = Vec::new();
        let add = |tokens: &mut Vec<f64>, count: usize, chance: f64| {
            tokens.resize(tokens.len().max(count + 1), 0.0);
            tokens[count] += chance;
        };
        for draft in reviewer..config.drafts() {
            for added in 0..threshold(config, reviewer, draft) {
                let Some(state) = states.get_mut(added) else {
                    break;
                };
                let (reached, standing) = std::mem::take(state);
                if reached == 0.0 {
                    continue;
                }
                let keeps = acceptance[reviewer][draft];
                for (sum, each) in calls.iter_mut().zip(&drafts[draft].calls) {
                    *sum += reached * each;
                }
                for (more, &chance) in drafts[draft].tokens.iter().enumerate() {
                    let mut standing = standing * chance;
                    for kept in 0..more {
                        add(&mut tokens, added + kept + 1, standing * (1.0 - keeps));
                        standing *= keeps;
                    }
                    let len = states.len().max(added + more + 1);
                    states.resize(len, (0.0, 0.0));
                    states[added + more].0 += reached * chance;
                    states[added + more].1 += standing;
                }
            }
        }
        for (added, &(_, standing)) in states.iter().enumerate() {
            add(&mut tokens, added + 1, standing);
        }
        Self { tokens, calls }
    }
}

/// Whether draft `draft`, a column of K, is Max-Gram.
fn is_max_gram(config: &CascadeConfig, draft: usize) -> bool {
    config.max_gram() && draft + 1 == config.drafts()
}

/// Tokens after which `reviewer` turns from draft `draft` to the next.
fn threshold(config: &CascadeConfig, reviewer: usize, draft: usize) -> usize {
    config.k()[reviewer][..=draft].iter().sum::<u32>() as usize
}
