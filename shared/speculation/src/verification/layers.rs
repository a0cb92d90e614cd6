//! The residual that greedy block verification carries over the next positions.
//!
//! Sun et al., "Optimal Block-Level Draft Verification for Accelerating Speculative Decoding" (first
//! version), Algorithm 3: after a block that was refused at length τ, the following positions are
//! not drawn from π but from `norm((ρ π - q)_+)`, as far as the block would have gone, with ρ the
//! joint ratio `Π π/q` from the block's start to the position. A block refused under such a target
//! lays another residual on top. A layer is therefore ρ at the present position and how long it
//! lasts; the distribution is made bottom up:
//!
//! ```text
//! d_0 = π,   d_s = norm((ρ_s d_(s-1) - q)_+)
//! ```
//!
//! and emitting t multiplies `ρ_s` by `d_(s-1)(t) / q(t)`.

use super::log_ratio;
use super::residual::{ResidualWeights, excess, residual_over_target};
use crate::real::Real;

/// One layer of the residual. The session owns the layers and sends them with each round, so they
/// survive a retry, a move to another verifier, and batching.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ResidualLayer {
    /// Natural logarithm of the joint ratio rho at the position the round starts from.
    pub log_rho: f64,
    /// Positions the layer stays active for.
    pub remaining: u32,
}

/// How far drafting goes from the start of a block: how long its layer lasts, and whether older ones end with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Horizon {
    /// Draft tokens there would be at most: without an end token and a stop rule that cut the block.
    pub len: u32,
    /// Whether the stop rule ended the block: drafting would not have gone on at the position after it.
    pub stopped: bool,
}

impl From<u32> for Horizon {
    /// A block that no stop rule ended.
    fn from(len: u32) -> Self {
        Self {
            len,
            stopped: false,
        }
    }
}

/// The layers at one position, oldest first, moved along a draft or an output token by token.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResidualLayers {
    stack: Vec<ResidualLayer>,
    /// `Σ (ρ_s d_(s-1) - q)_+` of each layer at the position, up to the factor of [`ResidualWeights`]; 0
    /// where rounding left nothing and the layer is passed through. Filled by [`ResidualLayers::probs`].
    masses: Vec<f64>,
}

impl ResidualLayers {
    /// The layers a round starts with, oldest first.
    pub fn new(layers: &[ResidualLayer]) -> Self {
        let active = layers.iter().filter(|layer| layer.remaining > 0);
        Self {
            stack: active.copied().collect(),
            masses: Vec::new(),
        }
    }

    /// Whether the target distribution stands unchanged.
    pub fn is_empty(&self) -> bool {
        self.stack.is_empty()
    }

    /// Lays `layer` on top. Without remaining positions it is none.
    pub fn push(&mut self, layer: ResidualLayer) {
        if layer.remaining > 0 {
            self.stack.push(layer);
        }
    }

    /// Writes the layered distribution (vocab), normalised, to `probs` for the target distribution `target`
    /// and the draft distribution `draft` at the present position.
    pub fn probs<F: Real>(&mut self, target: &[F], draft: &[F], probs: &mut Vec<F>) {
        probs.clear();
        probs.extend_from_slice(target);
        self.masses.clear();
        for layer in &self.stack {
            let weights = ResidualWeights::of(layer.log_rho);
            let mass = excess(weights, probs, draft);
            if mass > 0.0 {
                residual_over_target(weights, mass, probs, draft);
            }
            self.masses.push(mass.max(0.0));
        }
    }

    /// Moves over a token whose mass at the present position is `target` under π and `draft` under
    /// q. [`ResidualLayers::probs`] must have been called at the position. A layer ends when it has lasted its
    /// positions, or with a token that cannot be drafted.
    pub fn advance<F: Real>(&mut self, target: F, draft: F) {
        let mut below = target;
        for (layer, &mass) in self.stack.iter_mut().zip(&self.masses) {
            let weights = ResidualWeights::of(layer.log_rho);
            layer.log_rho += log_ratio(below, draft);
            layer.remaining -= 1;
            if mass > 0.0 {
                below = F::from_f64(weights.excess(below, draft) / mass);
            }
        }
        let drafted = draft > F::zero();
        self.stack.retain(|layer| drafted && layer.remaining > 0);
    }

    /// The layers at the present position, oldest first.
    pub fn into_layers(self) -> Vec<ResidualLayer> {
        self.stack
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(log_rho: f64, remaining: u32) -> ResidualLayer {
        ResidualLayer { log_rho, remaining }
    }

    /// π and q of model pair `pair` after a context of tokens.
    fn distributions(pair: usize, context: &[usize]) -> ([f64; 3], [f64; 3]) {
        let hash = (context.iter()).fold(pair + 1, |hash, token| (hash * 31 + token + 1) % 10_007);
        let probs = |factor: usize| {
            let masses = [1, 2, 3].map(|v| (hash * factor * v % 101 % 13) as f64 + 0.01);
            let total: f64 = masses.iter().sum();
            masses.map(|mass| mass / total)
        };
        (probs(3), probs(7))
    }

    /// The residual target by its nested definition: `levels` are the starts of the refused blocks,
    /// oldest first, and each level's distribution is the residual of the level below it along the tokens
    /// since that start.
    fn nested(pair: usize, context: &[usize], levels: &[usize]) -> Vec<f64> {
        let (target, draft) = distributions(pair, context);
        let Some((&start, below)) = levels.split_last() else {
            return target.to_vec();
        };
        let rho: f64 = (start..context.len())
            .map(|at| {
                let (before, token) = (&context[..at], context[at]);
                nested(pair, before, below)[token] / distributions(pair, before).1[token]
            })
            .product();
        let mut probs = nested(pair, context, below);
        for (mass, q) in probs.iter_mut().zip(draft) {
            *mass = (rho * *mass - q).max(0.0);
        }
        let total: f64 = probs.iter().sum();
        probs.iter().map(|mass| mass / total).collect()
    }

    #[test]
    fn layers_are_the_nested_residuals() {
        let mut compared = [0; 4];
        for (pair, path) in (0..20).flat_map(|pair| (0..81).map(move |path| (pair, path))) {
            let tokens = [path % 3, path / 3 % 3, path / 9 % 3, path / 27];
            let mut layers = ResidualLayers::default();
            let mut levels = Vec::new();
            let mut probs = Vec::new();
            for (at, &token) in tokens.iter().enumerate() {
                let context = &tokens[..at];
                let (target, draft) = distributions(pair, context);
                if at < 3 {
                    layers.push(layer(0.0, 4));
                    levels.push(at);
                }
                layers.probs(&target, &draft, &mut probs);
                if layers.masses.iter().any(|&mass| mass < 1e-6) {
                    // The distribution below is q: nothing would be refused here.
                    break;
                }
                for (found, expected) in probs.iter().zip(nested(pair, context, &levels)) {
                    assert!((found - expected).abs() < 1e-11, "{probs:?} at {context:?}");
                }
                compared[at] += 1;
                if probs[token] <= 1e-6 {
                    break;
                }
                layers.advance(target[token], draft[token]);
            }
        }
        assert!(compared.iter().all(|&count| count > 30), "{compared:?}");
    }

    #[test]
    fn layers_end_when_they_have_lasted_or_the_draft_could_not_go_on() {
        let mut layers = ResidualLayers::new(&[layer(1.0, 0), layer(1.0, 1), layer(2.0, 3)]);
        let mut probs = Vec::new();
        let (target, draft) = ([0.5, 0.5], [0.75, 0.25]);
        layers.probs(&target, &draft, &mut probs);
        layers.advance(target[1], draft[1]);
        let left = layers.clone().into_layers();
        assert_eq!(left.len(), 1);
        assert_eq!(left[0].remaining, 2);
        layers.probs(&[0.5, 0.5], &[1.0, 0.0], &mut probs);
        layers.advance(0.5, 0.0);
        assert!(layers.is_empty());
    }

    #[test]
    fn a_layer_that_rounding_emptied_is_passed_through() {
        let mut layers = ResidualLayers::new(&[layer(0.0, 2)]);
        let mut probs = Vec::new();
        layers.probs(&[0.25_f32, 0.75], &[0.25, 0.75], &mut probs);
        assert_eq!(probs, [0.25, 0.75]);
        layers.advance(0.25_f32, 0.25);
        assert_eq!(layers.into_layers(), [layer(0.0, 1)]);
    }
}
