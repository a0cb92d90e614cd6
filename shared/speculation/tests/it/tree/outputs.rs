//! Distributions over outputs.

use std::collections::BTreeMap;

use speculation::TokenId;
use speculation::verification::Verdict;
use speculation::verification::layers::ResidualLayer;

use super::{Branch, enumerate};

/// The probability of each output.
pub(crate) type OutputDistribution = BTreeMap<Vec<TokenId>, f64>;

/// Whether an output ends here: after `len` tokens, or with one of `ends`.
fn is_done(output: &[TokenId], len: usize, ends: &[TokenId]) -> bool {
    let ended = output.last().is_some_and(|last| ends.contains(last));
    ended || output.len() >= len
}

/// The distribution of outputs whose tokens each follow `probs`, a function of the tokens before.
pub(crate) fn outputs(
    len: usize,
    ends: &[TokenId],
    probs: impl Fn(&[TokenId]) -> Vec<f64>,
) -> OutputDistribution {
    let mut outputs = OutputDistribution::new();
    let mut open = vec![(Vec::new(), 1.0)];
    while let Some((prefix, weight)) = open.pop() {
        if is_done(&prefix, len, ends) {
            *outputs.entry(prefix).or_default() += weight;
            continue;
        }
        for (token, mass) in probs(&prefix).into_iter().enumerate() {
            if mass > 0.0 {
                let longer = [prefix.as_slice(), &[token as TokenId]].concat();
                open.push((longer, weight * mass));
            }
        }
    }
    outputs
}

/// Fails if any output is more or less likely by `tolerance` than in `expected`.
pub(crate) fn assert_same(
    found: &OutputDistribution,
    expected: &OutputDistribution,
    tolerance: f64,
    what: &str,
) {
    for output in found.keys().chain(expected.keys()) {
        let [found, expected] = [found, expected].map(|probs| probs.get(output).unwrap_or(&0.0));
        assert!(
            (found - expected).abs() < tolerance,
            "{what}: {output:?} has probability {found}, expected {expected}"
        );
    }
}

/// Plays rounds one after the other, in every way. `is_done` is told each output so far with its
/// probability, and says whether to stop there; `round` makes the next round, on top of the residual layers.
pub(crate) fn play(
    mut is_done: impl FnMut(&[TokenId], f64) -> bool,
    round: impl Fn(&[TokenId], &[ResidualLayer], &mut Branch) -> Verdict,
) {
    // Each output so far with its layers. Rounds only lengthen, so the first in order is complete.
    let mut open = BTreeMap::from([((Vec::new(), Vec::new()), 1.0)]);
    while let Some(((output, layers), weight)) = open.pop_first() {
        if is_done(&output, weight) {
            continue;
        }
        let started: Vec<ResidualLayer> = (layers.iter())
            .map(|&(bits, remaining)| ResidualLayer {
                log_rho: f64::from_bits(bits),
                remaining,
            })
            .collect();
        enumerate(|branch| {
            let verdict = round(&output, &started, branch);
            let output = [output.as_slice(), &verdict.emitted].concat();
            let layers: Vec<(u64, u32)> = (verdict.layers.iter())
                .map(|layer| (layer.log_rho.to_bits(), layer.remaining))
                .collect();
            *open.entry((output, layers)).or_default() += weight * branch.weight();
        });
    }
}

/// The distribution of the first `len` tokens that such rounds emit, or of all if the output ends before.
pub(crate) fn emitted(
    len: usize,
    ends: &[TokenId],
    round: impl Fn(&[TokenId], &[ResidualLayer], &mut Branch) -> Verdict,
) -> OutputDistribution {
    let mut probs = OutputDistribution::new();
    let ended = |output: &[TokenId], weight: f64| {
        let done = is_done(output, len, ends);
        if done {
            let cut = output[..output.len().min(len)].to_vec();
            *probs.entry(cut).or_default() += weight;
        }
        done
    };
    play(ended, round);
    probs
}
