//! Laws over outputs, by the output.

use std::collections::BTreeMap;

use speculation::TokenId;

/// The probability of each output.
#[derive(Clone, Debug, Default)]
pub(crate) struct OutputLaw(BTreeMap<Vec<TokenId>, f64>);

impl OutputLaw {
    pub(crate) fn add(&mut self, output: Vec<TokenId>, weight: f64) {
        *self.0.entry(output).or_default() += weight;
    }

    /// Fails if any output is more or less likely by `tolerance` than in `expected`.
    pub(crate) fn assert_equals(&self, expected: &Self, tolerance: f64, what: &str) {
        for output in self.0.keys().chain(expected.0.keys()) {
            let [found, expected] = [self, expected].map(|law| law.0.get(output).unwrap_or(&0.0));
            let difference = (found - expected).abs();
            assert!(
                difference < tolerance,
                "{what}: {output:?} has probability {found}, expected {expected}"
            );
        }
    }
}
