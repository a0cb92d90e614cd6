//! How a draft block grows into a tree: one lead path, and beside each of its tokens some others that
//! the verifier may choose instead.
//!
//! Under coupled verification there are two shapes: the comb of Chen et al., "Cascade Speculative Drafting for Even Faster LLM Inference"
//! (siblings are the most likely tokens), and top alternates, which are ranked as the shared noise ranks
//! them, by `ln f(v) + G_v`: the verifier ranks its own distribution with the same noise. Where tokens are tested
//! against the distribution they were drawn from, siblings of either shape are drawn too
//! ([`drawn_siblings`](super::drawn_siblings)).

use super::TreeShape;
use crate::TokenId;
use crate::draft_tree::DraftTree;
use crate::noise::Noise;
use crate::philox::LANES;
use crate::real::Real;
use crate::simd::kernel;

/// The siblings of the draft token `lead` at output position `position`, the best first: none for a
/// chain.
///
/// `probs` (vocab) is the sampling distribution that `lead` was drawn from, `unscaled` (vocab) the distribution
/// before temperature and cuts. Siblings are distinct, and none is `lead`; ties go to the lowest id. Where the
/// sampling distribution has too few tokens (at temperature 0 it has one), the unscaled distribution ranks further
/// ones, with the noise if it ranked the others and had a choice. There are fewer than the shape has where
/// all others are banned.
pub fn siblings<F: Real>(
    shape: TreeShape,
    probs: &[F],
    unscaled: &[F],
    lead: TokenId,
    noise: &Noise,
    position: u32,
) -> Vec<TokenId> {
    let wanted = shape.width().saturating_sub(1) as usize;
    if wanted == 0 {
        return Vec::new();
    }
    let is_perturbed = matches!(shape, TreeShape::Alternates(_));
    let noise = is_perturbed.then_some((noise, position));
    let mut taken = vec![lead];
    rank(probs, noise, wanted, &mut taken);
    if taken.len() <= wanted {
        // A distribution of one token draws that whatever the noise: so does the verifier's, cut alike.
        let noise = noise.filter(|_| probs.iter().filter(|&&mass| mass > F::zero()).count() > 1);
        let wanted = wanted + 1 - taken.len();
        rank(unscaled, noise, wanted, &mut taken);
    }
    taken.split_off(1)
}

/// Appends to `taken` the best `wanted` tokens of `probs` that are not among it: the most likely ones, or
/// those of least `E_v / f(v)` under the noise.
fn rank<F: Real>(
    probs: &[F],
    noise: Option<(&Noise, u32)>,
    wanted: usize,
    taken: &mut Vec<TokenId>,
) {
    let best = ranked(probs, noise, wanted, taken);
    taken.extend(best.into_iter().map(|(_, id)| id));
}

kernel! {
    fn ranked<'a, F: Real>(
        probs: &'a [F],
        noise: Option<(&'a Noise, u32)>,
        wanted: usize,
        taken: &'a [TokenId],
    ) -> Vec<(f64, TokenId)> {
        // By ascending score, the lowest id first among equals, since ids come in order.
        let mut best: Vec<(f64, TokenId)> = Vec::with_capacity(wanted + 1);
        let mut worst = f64::INFINITY;
        for (block, masses) in probs.chunks(LANES).enumerate() {
            if masses.iter().all(|&mass| mass == F::zero()) {
                continue;
            }
            let first = (block * LANES) as u32;
            let uniforms = noise.map(|(noise, position)| noise.coupled(position, first));
            for (lane, mass) in masses.iter().enumerate() {
                let (mass, id) = (mass.as_f64(), first + lane as u32);
                // -ln u >= 1 - u spares most logarithms, as in the coupled choice.
                let score = match &uniforms {
                    None => -mass,
                    Some(uniforms) if 1.0 - uniforms[lane] >= worst * mass => continue,
                    Some(uniforms) => uniforms[lane].ln_portable() / -mass,
                };
                if mass <= 0.0 || score >= worst || taken.contains(&id) {
                    continue;
                }
                let at = best.partition_point(|&(better, _)| better <= score);
                best.insert(at, (score, id));
                best.truncate(wanted);
                if best.len() == wanted {
                    worst = best[wanted - 1].0;
                }
            }
        }
        best
    }
}

/// A tree that grows level by level. A node at depth d, the first level being 0, stands at output
/// position `base_len + d`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TreeBuilder {
    tokens: Vec<TokenId>,
    parents: Vec<Option<u32>>,
    /// The lead node of the last level.
    lead: Option<u32>,
    levels: u32,
}

impl TreeBuilder {
    /// Adds a level below the last lead: the next `lead`, then its `siblings`. Those that repeat the
    /// lead or one another are left out.
    pub fn push(&mut self, lead: TokenId, siblings: &[TokenId]) {
        let parent = self.lead;
        let first = self.tokens.len();
        self.lead = Some(first as u32);
        self.levels += 1;
        self.tokens.push(lead);
        for sibling in siblings {
            if !self.tokens[first..].contains(sibling) {
                self.tokens.push(*sibling);
            }
        }
        self.parents.resize(self.tokens.len(), parent);
    }

    /// Number of levels.
    pub fn levels(&self) -> u32 {
        self.levels
    }

    /// The nodes so far, parents before children.
    pub fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    /// The nodes' parents so far, none for a child of the root.
    pub fn parents(&self) -> &[Option<u32>] {
        &self.parents
    }

    /// The tree.
    ///
    /// # Panics
    /// Never: what grows by [`TreeBuilder::push`] is a tree with distinct siblings.
    pub fn finish(self) -> DraftTree {
        DraftTree::new(self.tokens, self.parents).expect("levels make a tree")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coupled::choice;

    const LAW: [f64; 8] = [0.05, 0.3, 0.0, 0.3, 0.2, 0.1, 0.05, 0.0];
    const UNCUT: [f64; 8] = [0.1, 0.2, 0.1, 0.2, 0.15, 0.1, 0.1, 0.05];

    fn noise() -> Noise {
        Noise::new(0x5eed, 0)
    }

    /// Tokens of `probs` by `ln f + G`, without any shortcut.
    fn by_definition(probs: &[f64], position: u32) -> Vec<TokenId> {
        let mut scored: Vec<(f64, TokenId)> = (0..probs.len() as u32)
            .filter(|&id| probs[id as usize] > 0.0)
            .map(|id| {
                let exponential = -noise().coupled(position, id)[0].ln_portable();
                (exponential / probs[id as usize], id)
            })
            .collect();
        scored.sort_by(|a, b| a.partial_cmp(b).expect("numbers"));
        scored.into_iter().map(|(_, id)| id).collect()
    }

    #[test]
    fn a_comb_takes_the_most_likely_others() {
        let comb =
            |siblings_, lead| siblings(TreeShape::Comb(siblings_), &LAW, &UNCUT, lead, &noise(), 3);
        // Ties: the lowest id.
        assert_eq!(comb(4, 4), [1, 3, 5]);
        assert_eq!(comb(4, 1), [3, 4, 5]);
        // Six tokens in the distribution: then 2 and 7 of the unscaled distribution.
        assert_eq!(comb(8, 1), [3, 4, 5, 0, 6, 2, 7]);
        assert_eq!(comb(64, 1).len(), 7);
        assert_eq!(comb(2, 0), [1]);
    }

    #[test]
    fn alternates_are_ranked_by_the_shared_noise() {
        for position in 0..200 {
            let ranked = by_definition(&LAW, position);
            let lead = choice(&LAW, &noise(), position);
            assert_eq!(ranked[0], lead);
            for count in 1..=5_u32 {
                let shape = TreeShape::Alternates(count);
                let found = siblings(shape, &LAW, &UNCUT, lead, &noise(), position);
                assert_eq!(found, ranked[1..=count as usize]);
            }
            // A lead that was not the first by this distribution is left out all the same.
            let shape = TreeShape::Alternates(2);
            let found = siblings(shape, &LAW, &UNCUT, ranked[1], &noise(), position);
            assert_eq!(found, [ranked[0], ranked[2]]);
            // Beyond the distribution's six tokens, the unscaled distribution and the noise.
            let shape = TreeShape::Alternates(7);
            let found = siblings(shape, &LAW, &UNCUT, lead, &noise(), position);
            let mut rest = by_definition(&UNCUT, position);
            rest.retain(|id| [2, 7].contains(id));
            assert_eq!(found[..5], ranked[1..]);
            assert_eq!(found[5..], rest);
        }
    }

    #[test]
    fn many_tokens_are_ranked_like_few() {
        let probs: Vec<f64> = (1..=300).map(|v| f64::from(v % 37 + 1) / 5000.0).collect();
        for position in 0..50 {
            let ranked = by_definition(&probs, position);
            let shape = TreeShape::Alternates(16);
            let found = siblings(shape, &probs, &probs, ranked[0], &noise(), position);
            assert_eq!(found, ranked[1..17]);
        }
    }

    #[test]
    fn at_temperature_0_siblings_come_from_the_unscaled_distribution() {
        let mut one_hot = [0.0; 8];
        one_hot[1] = 1.0;
        for shape in [TreeShape::Comb(5), TreeShape::Alternates(4)] {
            for position in 0..20 {
                let found = siblings(shape, &one_hot, &UNCUT, 1, &noise(), position);
                assert_eq!(found, [3, 4, 0, 2], "{shape:?}");
            }
        }
        assert!(siblings(TreeShape::Chain, &LAW, &UNCUT, 1, &noise(), 0).is_empty());
    }

    #[test]
    fn levels_hang_on_the_lead_of_the_level_before() {
        let mut growth = TreeBuilder::default();
        growth.push(7, &[8, 7, 9, 8]);
        growth.push(5, &[]);
        growth.push(7, &[1]);
        assert_eq!(growth.levels(), 3);
        let tree = growth.finish();
        assert_eq!(tree.tokens(), [7, 8, 9, 5, 7, 1]);
        let parents = [None, None, None, Some(0), Some(3), Some(3)];
        assert_eq!(tree.parents(), parents);
        assert_eq!(tree.depths(), [0, 0, 0, 1, 2, 2]);
        let mut chain = TreeBuilder::default();
        for token in [4, 5, 6] {
            chain.push(token, &[]);
        }
        assert_eq!(chain.finish(), vec![4, 5, 6].into());
        assert!(TreeBuilder::default().finish().is_empty());
    }
}
