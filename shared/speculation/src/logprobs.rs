//! Log probabilities of tokens under a model's own distribution: softmax of its logits as they come, at temperature 1
//! and without bans, bias, penalties or cuts, which is what other servers and evaluations report.

use crate::TokenId;
use crate::real::any_nan;

/// Log probabilities at one position, natural logarithms.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TokenLogprobs {
    /// That of the token which stands there.
    pub logprob: f64,
    /// The most likely tokens, the likeliest first.
    pub top: Vec<Likely>,
    /// ln Σ exp(logit): what is taken from a logit to get a log probability.
    pub normaliser: f64,
}

/// A token that may stand there, and its log probability.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Likely {
    /// The token.
    pub token: TokenId,
    /// Natural logarithm of its probability.
    pub logprob: f64,
}

/// What a row of logits says.
#[derive(Clone, Copy, Debug)]
pub struct LogitsRow<'a> {
    logits: &'a [f32],
    normaliser: f64,
}

impl<'a> LogitsRow<'a> {
    /// Reads `logits` (vocab); none if one of them is NaN or +inf, or all are -inf.
    pub fn of(logits: &'a [f32]) -> Option<Self> {
        if any_nan(logits) {
            return None;
        }
        let largest = logits.iter().fold(f32::NEG_INFINITY, |m, &l| m.max(l));
        let largest = f64::from(largest);
        let sum: f64 = logits
            .iter()
            .map(|&logit| (f64::from(logit) - largest).exp())
            .sum();
        let normaliser = largest + sum.ln();
        normaliser
            .is_finite()
            .then_some(Self { logits, normaliser })
    }

    /// ln of the probability of `token`; -inf of one whose logit is.
    ///
    /// # Panics
    /// If the row has no such token.
    pub fn logprob(&self, token: TokenId) -> f64 {
        f64::from(self.logits[token as usize]) - self.normaliser
    }

    /// The `count` most likely tokens, the lowest ids among equals first. `order` is scratch.
    pub fn likeliest(&self, count: usize, order: &mut Vec<TokenId>) -> Vec<Likely> {
        if count == 0 {
            return Vec::new();
        }
        let by_logit = |a: &TokenId, b: &TokenId| {
            let [left, right] = [a, b].map(|&id| self.logits[id as usize]);
            right.total_cmp(&left).then(a.cmp(b))
        };
        order.clear();
        order.extend(0..self.logits.len() as TokenId);
        if count < order.len() {
            order.select_nth_unstable_by(count - 1, by_logit);
            order.truncate(count);
        }
        order.sort_unstable_by(by_logit);
        let likely = order.iter().map(|&token| Likely {
            token,
            logprob: self.logprob(token),
        });
        likely.collect()
    }

    /// The log probability of `token`, and those of the `top` most likely ones. `order` is scratch.
    pub fn logprobs(&self, token: TokenId, top: usize, order: &mut Vec<TokenId>) -> TokenLogprobs {
        TokenLogprobs {
            logprob: self.logprob(token),
            top: self.likeliest(top, order),
            normaliser: self.normaliser,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_are_those_of_the_softmax() {
        let row = LogitsRow::of(&[1000.0, 1000.0, f32::NEG_INFINITY]).expect("a row");
        let found = row.logprobs(1, 3, &mut Vec::new());
        assert!((found.logprob - 0.5_f64.ln()).abs() < 1e-12, "{found:?}");
        assert!((found.normaliser - 1000.0 - 2_f64.ln()).abs() < 1e-12);
        assert_eq!(found.top[2].logprob, f64::NEG_INFINITY);
        let logits = [0.3, -2.0, 1.5, 0.0];
        let row = LogitsRow::of(&logits).expect("a row");
        let sum: f64 = (0..4).map(|token| row.logprob(token).exp()).sum();
        assert!((sum - 1.0).abs() < 1e-12, "{sum}");
    }

    #[test]
    fn fewer_are_the_first_of_all_and_the_lowest_of_equals() {
        let logits = [0.0, 1.0, 1.0, 1.0, -3.0, 2.0];
        let row = LogitsRow::of(&logits).expect("a row");
        let mut order = Vec::new();
        let all = row.likeliest(6, &mut order);
        let ids: Vec<_> = all.iter().map(|likely| likely.token).collect();
        assert_eq!(ids, [5, 1, 2, 3, 0, 4]);
        for count in 0..9 {
            let few = row.likeliest(count, &mut order);
            assert_eq!(few, all[..count.min(6)]);
        }
    }

    #[test]
    fn logits_that_are_no_numbers_make_no_distribution() {
        for bad in [
            [1.0, f32::NAN],
            [1.0, f32::INFINITY],
            [f32::NEG_INFINITY; 2],
        ] {
            assert!(LogitsRow::of(&bad).is_none(), "{bad:?}");
        }
    }
}
