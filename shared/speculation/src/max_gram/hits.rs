//! How often Max-Gram is right, by what speaks for a token.
//!
//! A long match is right more often than a short one, and a string that came once goes on otherwise than one that came
//! often. How much so depends on text, model and temperature, so it is counted on the text itself: before a token is
//! added to the context, what the match proposes is compared with it. The expected share of a sampled output's tokens
//! that are right is the mean of the target's probability of the proposed token, which is the probability that a point
//! proposal is accepted.

/// What speaks for a proposed token: how long the match before it is, in tokens, and how often the matched string came
/// before. A length of 0 stands for a token of the table of bigrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Evidence {
    /// Length of the match, with the proposed tokens before this one.
    pub(super) len: u32,
    /// Earlier occurrences of the match.
    pub(super) count: u32,
}

/// Largest length of each class but the last, and what is assumed of each class before anything was counted.
const LENGTHS: [u32; 6] = [1, 2, 3, 5, 8, 16];
const ASSUMED: [f64; 7] = [0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9];

/// Largest count of each class but the last.
const COUNTS: [u32; 2] = [1, 3];

/// Tokens for which the assumption counts.
const PRIOR: f64 = 3.0;

/// Share of what was counted in a class that is left after each further token of it: about 50 tokens count.
const MEMORY: f64 = 0.98;

/// What is assumed of bigrams, which are not counted.
const BIGRAM: f64 = 0.1;

/// Tokens of a class that were right, and all of them; older ones count less.
#[derive(Clone, Copy, Debug, Default)]
struct Class {
    right: f64,
    all: f64,
}

/// Counts of right and wrong proposals.
#[derive(Clone, Debug, Default)]
pub(super) struct Hits([[Class; COUNTS.len() + 1]; LENGTHS.len() + 1]);

impl Hits {
    /// Records whether the token that `evidence` supported was the one emitted.
    pub(super) fn observe(&mut self, evidence: Evidence, is_right: bool) {
        let (length, count) = classes(evidence);
        let class = &mut self.0[length][count];
        class.right = class.right * MEMORY + f64::from(u8::from(is_right));
        class.all = class.all * MEMORY + 1.0;
    }

    /// The probability that a token for which `evidence` speaks is right.
    pub(super) fn chance(&self, evidence: Evidence) -> f64 {
        if evidence.len == 0 {
            return BIGRAM;
        }
        let (length, count) = classes(evidence);
        let class = self.0[length][count];
        (class.right + PRIOR * ASSUMED[length]) / (class.all + PRIOR)
    }
}

/// The classes of length and count.
fn classes(evidence: Evidence) -> (usize, usize) {
    let of = |bounds: &[u32], value: u32| bounds.partition_point(|&most| most < value);
    (of(&LENGTHS, evidence.len), of(&COUNTS, evidence.count))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(len: u32, count: u32) -> Evidence {
        Evidence { len, count }
    }

    #[test]
    fn before_anything_is_counted_a_longer_match_is_surer() {
        let hits = Hits::default();
        let chances: Vec<f64> = (0..40).map(|len| hits.chance(evidence(len, 1))).collect();
        assert!(chances.is_sorted(), "{chances:?}");
        assert!(chances[1] < 0.15 && chances[39] > 0.85, "{chances:?}");
    }

    #[test]
    fn what_was_right_or_wrong_counts_for_its_own_class() {
        let mut hits = Hits::default();
        let before = hits.chance(evidence(7, 1));
        for at in 0..200 {
            hits.observe(evidence(1, 1), at % 4 != 0);
            hits.observe(evidence(30, 9), false);
        }
        assert!((hits.chance(evidence(1, 1)) - 0.75).abs() < 0.06);
        assert!(hits.chance(evidence(17, 4)) < 0.06);
        assert_eq!(hits.chance(evidence(7, 1)), before);
        assert!(hits.chance(evidence(17, 3)) > 0.85);
    }

    #[test]
    fn a_text_that_changes_is_followed() {
        let mut hits = Hits::default();
        for _ in 0..500 {
            hits.observe(evidence(4, 1), true);
        }
        assert!(hits.chance(evidence(5, 1)) > 0.95);
        for _ in 0..80 {
            hits.observe(evidence(4, 1), false);
        }
        assert!(hits.chance(evidence(5, 1)) < 0.25);
    }
}
