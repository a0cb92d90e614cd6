//! Laws over outputs.

use std::collections::BTreeMap;

use speculation::TokenId;

/// The probability of each output.
pub(crate) type OutputLaw = BTreeMap<Vec<TokenId>, f64>;

/// Whether an output ends here: after `len` tokens, or with one of `ends`.
pub(crate) fn is_done(output: &[TokenId], len: usize, ends: &[TokenId]) -> bool {
    let ended = output.last().is_some_and(|last| ends.contains(last));
    ended || output.len() >= len
}

/// The law of outputs each token of which follows `law`, which is told the tokens before.
pub(crate) fn outputs(
    len: usize,
    ends: &[TokenId],
    law: impl Fn(&[TokenId]) -> Vec<f64>,
) -> OutputLaw {
    let mut outputs = OutputLaw::new();
    let mut open = vec![(Vec::new(), 1.0)];
    while let Some((prefix, weight)) = open.pop() {
        if is_done(&prefix, len, ends) {
            *outputs.entry(prefix).or_default() += weight;
            continue;
        }
        for (token, mass) in law(&prefix).into_iter().enumerate() {
            if mass > 0.0 {
                let longer = [prefix.as_slice(), &[token as TokenId]].concat();
                open.push((longer, weight * mass));
            }
        }
    }
    outputs
}

/// Fails if any output is more or less likely by `tolerance` than in `expected`.
pub(crate) fn assert_same(found: &OutputLaw, expected: &OutputLaw, tolerance: f64, what: &str) {
    for output in found.keys().chain(expected.keys()) {
        let [found, expected] = [found, expected].map(|law| law.get(output).unwrap_or(&0.0));
        assert!(
            (found - expected).abs() < tolerance,
            "{what}: {output:?} has probability {found}, expected {expected}"
        );
    }
}
