//! Every path through the random decisions of a program, with its exact probability.

use std::collections::HashMap;

use speculation::TokenId;
use speculation::cascade::CallChance;
use speculation::chance::Chance;
use speculation::noise::{InnerCall, Purpose};
use speculation::real::Real;

/// One path through the decisions of a program, and its probability.
///
/// A decision is made by a uniform of which only an interval is fixed. Decisions of one purpose,
/// offset and inner call share their uniform, as they do served, so a draw that serves twice shows as
/// a bias.
#[derive(Default)]
pub(crate) struct Branch {
    /// For each decision so far: which outcome is taken, and how many there are.
    decisions: Vec<(usize, usize)>,
    taken: usize,
    weight: f64,
    /// What is known of each uniform: at least the first, below the second.
    uniforms: HashMap<Key, (f64, f64)>,
}

/// What tells uniforms apart: level and start of the inner call, purpose, offset.
type Key = ((u8, u16), Purpose, u32);

/// The decisions of one inner call.
pub(crate) struct Within<'a>(&'a mut Branch, (u8, u16));

impl CallChance<f64> for &mut Branch {
    type Chance<'a>
        = Within<'a>
    where
        Self: 'a;

    fn of(&mut self, call: InnerCall) -> Within<'_> {
        Within(self, (call.level, call.start))
    }
}

impl Branch {
    pub(crate) fn weight(&self) -> f64 {
        self.weight
    }

    /// A token of `probs`, drawn with noise that serves nothing else, as coupled noise does.
    pub(crate) fn choice(&mut self, probs: &[f64]) -> TokenId {
        self.token(Purpose::Coupled, self.taken as u32, probs)
    }

    /// Takes one of the outcomes of the uniform `key`, which lie between neighbours of
    /// `boundaries` (ascending, from 0 to 1), and returns its index.
    fn decide(&mut self, key: Key, boundaries: &[f64]) -> usize {
        let (least, most) = self.uniforms.get(&key).copied().unwrap_or((0.0, 1.0));
        let possible: Vec<(usize, f64, f64)> = boundaries
            .windows(2)
            .enumerate()
            .map(|(at, ends)| (at, ends[0].max(least), ends[1].min(most)))
            .filter(|(_, from, to)| from < to)
            .collect();
        if self.taken == self.decisions.len() {
            self.decisions.push((0, possible.len()));
        }
        let (outcome, outcomes) = self.decisions[self.taken];
        assert_eq!(
            outcomes,
            possible.len(),
            "the program is not a function of its decisions"
        );
        self.taken += 1;
        let (at, from, to) = possible[outcome];
        self.weight *= (to - from) / (most - least);
        self.uniforms.insert(key, (from, to));
        at
    }
}

impl<F: Real> Chance<F> for Branch {
    fn accepts(&mut self, offset: u32, ratio: F) -> bool {
        Within(self, (0, 0)).accepts(offset, ratio)
    }

    fn token(&mut self, purpose: Purpose, offset: u32, probs: &[F]) -> TokenId {
        Within(self, (0, 0)).token(purpose, offset, probs)
    }
}

impl<F: Real> Chance<F> for Within<'_> {
    fn accepts(&mut self, offset: u32, ratio: F) -> bool {
        let boundaries = [0.0, ratio.as_f64().min(1.0), 1.0];
        let key = (self.1, Purpose::Accept, offset);
        self.0.decide(key, &boundaries) == 0
    }

    fn token(&mut self, purpose: Purpose, offset: u32, probs: &[F]) -> TokenId {
        let total: f64 = probs.iter().map(|mass| mass.as_f64()).sum();
        let mut boundaries = vec![0.0];
        let mut cumulated = 0.0;
        for mass in probs {
            cumulated += mass.as_f64() / total;
            boundaries.push(cumulated);
        }
        // Rounding must neither leave a gap at the end nor give it to a token without mass.
        let last = probs.iter().rposition(|&mass| mass > F::zero());
        boundaries[last.expect("a distribution has mass") + 1..].fill(1.0);
        self.0.decide((self.1, purpose, offset), &boundaries) as TokenId
    }
}

/// Runs `program` once for every path through its decisions.
pub(crate) fn enumerate(mut program: impl FnMut(&mut Branch)) {
    let mut decisions: Vec<(usize, usize)> = Vec::new();
    loop {
        let mut branch = Branch {
            decisions: std::mem::take(&mut decisions),
            weight: 1.0,
            ..Default::default()
        };
        program(&mut branch);
        decisions = branch.decisions;
        while let Some((outcome, outcomes)) = decisions.pop() {
            if outcome + 1 < outcomes {
                decisions.push((outcome + 1, outcomes));
                break;
            }
        }
        if decisions.is_empty() {
            return;
        }
    }
}
