//! From whole distributions to what is recorded of them.

use speculation::TokenId;
use speculation::confidence::Confidence;
use speculation::real::Real;

use super::{RecordedDistribution, RecordedPosition, Rest};

/// What a model says at one position.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WholeProbs<'a> {
    /// The sampling distribution (vocab).
    pub(crate) probs: &'a [f32],
    /// The unscaled distribution (vocab); none if it is the same.
    pub(crate) unscaled: Option<&'a [f32]>,
    /// Confidence of the unscaled distribution.
    pub(crate) confidence: Confidence<f32>,
}

impl WholeProbs<'_> {
    /// The unscaled distribution.
    fn unscaled(&self) -> &[f32] {
        self.unscaled.unwrap_or(self.probs)
    }

    /// The `top` most likely tokens (0: all), lowest ids among equals; never one without mass, which
    /// no sampling distribution can use.
    fn most_likely(&self, top: usize) -> Vec<TokenId> {
        let mass = |id: TokenId| self.probs[id as usize];
        let mut ids: Vec<TokenId> = (0..self.probs.len() as TokenId)
            .filter(|&id| mass(id) > 0.0)
            .collect();
        if top > 0 && top < ids.len() {
            let order = |a: &TokenId, b: &TokenId| mass(*b).total_cmp(&mass(*a)).then(a.cmp(b));
            ids.select_nth_unstable_by(top - 1, order);
            ids.truncate(top);
        }
        ids
    }

    fn kept(&self, ids: &[TokenId]) -> RecordedDistribution {
        let of = |row: &[f32]| ids.iter().map(|&id| row[id as usize]).collect();
        RecordedDistribution {
            probabilities: of(self.probs),
            unscaled: self.unscaled.map(of),
            confidence: self.confidence,
        }
    }
}

/// Records a position: both distributions on the `top` most likely tokens of either (0: all), and on the draft
/// token `token`. What is left out is recorded in sum.
pub(crate) fn cut(
    draft: WholeProbs<'_>,
    target: WholeProbs<'_>,
    token: TokenId,
    top: usize,
) -> RecordedPosition {
    let mut ids = draft.most_likely(top);
    ids.extend(target.most_likely(top));
    ids.push(token);
    ids.sort_unstable();
    ids.dedup();
    RecordedPosition {
        draft: draft.kept(&ids),
        target: target.kept(&ids),
        rest: rest(&draft, &target, &ids),
        ids,
    }
}

/// The sums over tokens not in `ids`, likelier by the draft model or not; none of empty groups.
fn rest(draft: &WholeProbs<'_>, target: &WholeProbs<'_>, ids: &[TokenId]) -> Vec<Rest> {
    let mut kept = ids.iter().copied().peekable();
    let mut sums = [[0.0_f64; 5]; 2];
    for id in 0..draft.probs.len() {
        if kept.next_if_eq(&(id as TokenId)).is_some() {
            continue;
        }
        let [q, p] = [draft, target].map(|whole| f64::from(whole.probs[id]));
        let [qu, pu] = [draft, target].map(|whole| f64::from(whole.unscaled()[id]));
        let cross_entropy = if qu > 0.0 {
            -qu * pu.ln_portable()
        } else {
            0.0
        };
        let group = &mut sums[usize::from(q <= p)];
        for (sum, term) in group.iter_mut().zip([q, p, qu, pu, cross_entropy]) {
            *sum += term;
        }
    }
    let groups = sums.iter().filter(|sums| sums.iter().any(|&sum| sum > 0.0));
    let rest = |sums: &[f64; 5]| {
        let [
            draft,
            target,
            draft_unscaled,
            target_unscaled,
            cross_entropy,
        ] = sums.map(|sum| sum as f32);
        Rest {
            draft,
            target,
            draft_unscaled,
            target_unscaled,
            cross_entropy,
        }
    };
    groups.map(rest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(probs: &[f32]) -> WholeProbs<'_> {
        let confidence = Confidence::of(probs, true);
        WholeProbs {
            probs,
            unscaled: None,
            confidence,
        }
    }

    #[test]
    fn the_most_likely_of_both_and_the_draft_token_are_kept() {
        let draft = [0.5, 0.25, 0.125, 0.0625, 0.0625, 0.0, 0.0];
        let target = [0.0625, 0.0, 0.125, 0.0625, 0.25, 0.5, 0.0];
        let position = cut(whole(&draft), whole(&target), 3, 1);
        assert_eq!(position.ids, [0, 3, 5]);
        assert_eq!(position.draft.probabilities, [0.5, 0.0625, 0.0]);
        assert_eq!(position.target.probabilities, [0.0625, 0.0625, 0.5]);
        // Token 1 has draft mass and no target mass; tokens 2 and 4 are likelier by the target.
        let likelier = Rest {
            draft: 0.25,
            target: 0.0,
            draft_unscaled: 0.25,
            target_unscaled: 0.0,
            cross_entropy: f32::INFINITY,
        };
        assert_eq!(position.rest[0], likelier);
        assert_eq!(
            (position.rest[1].draft, position.rest[1].target),
            (0.1875, 0.375)
        );
        let position = cut(whole(&draft), whole(&target), 1, 2);
        assert_eq!(position.ids, [0, 1, 4, 5]);
        let expected = -(0.125 * 0.125_f64.ln() + 0.0625 * 0.0625_f64.ln());
        assert_eq!(position.rest.len(), 1);
        assert!((f64::from(position.rest[0].cross_entropy) - expected).abs() < 1e-7);
    }

    #[test]
    fn nothing_is_left_out_of_whole_distributions() {
        let (draft, target) = ([0.5, 0.25, 0.25, 0.0], [0.25, 0.5, 0.25, 0.0]);
        for top in [0, 3, 4, 100] {
            let position = cut(whole(&draft), whole(&target), 0, top);
            assert_eq!(position.ids, [0, 1, 2], "top {top}");
            assert!(position.rest.is_empty(), "top {top}");
        }
    }

    #[test]
    fn what_scaling_cut_is_a_rest_of_the_unscaled_distribution_only() {
        let unscaled = [0.5, 0.25, 0.25];
        let one_hot = WholeProbs {
            probs: &[1.0, 0.0, 0.0],
            unscaled: Some(&unscaled),
            confidence: Confidence::of(&unscaled, true),
        };
        let position = cut(one_hot, one_hot, 0, 5);
        assert_eq!(position.ids, [0]);
        let [rest] = position.rest[..] else {
            panic!("{position:?}");
        };
        assert_eq!((rest.draft, rest.draft_unscaled), (0.0, 0.5));
        assert_eq!(position.draft.unscaled, Some(vec![0.5]));
    }
}
