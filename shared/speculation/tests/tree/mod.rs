//! Enumeration of random programs, and random laws to run them on.

use speculation::TokenId;
use speculation::chance::Chance;
use speculation::noise::{Noise, Purpose};
use speculation::philox::philox;
use speculation::proposal::{Proposal, ProposalForm};

/// One path through the decisions of a program, and its probability.
pub(crate) struct Branch {
    /// For each decision so far: which outcome is taken, and how many there are.
    decisions: Vec<(usize, usize)>,
    taken: usize,
    weight: f64,
}

impl Branch {
    pub(crate) fn weight(&self) -> f64 {
        self.weight
    }

    fn decide(&mut self, probabilities: &[f64]) -> usize {
        if self.taken == self.decisions.len() {
            self.decisions.push((0, probabilities.len()));
        }
        let (outcome, outcomes) = self.decisions[self.taken];
        assert_eq!(
            outcomes,
            probabilities.len(),
            "the program is not a function of its decisions"
        );
        self.taken += 1;
        self.weight *= probabilities[outcome];
        outcome
    }
}

impl Chance<f64> for Branch {
    fn accepts(&mut self, _offset: u32, ratio: f64) -> bool {
        let accepted = ratio.min(1.0);
        self.decide(&[accepted, 1.0 - accepted]) == 0
    }

    fn token(&mut self, _purpose: Purpose, _offset: u32, law: &[f64]) -> TokenId {
        let total: f64 = law.iter().sum();
        let support: Vec<usize> = (0..law.len()).filter(|&v| law[v] > 0.0).collect();
        let masses: Vec<f64> = support.iter().map(|&v| law[v] / total).collect();
        support[self.decide(&masses)] as TokenId
    }
}

/// Runs `program` once for every path through its decisions.
pub(crate) fn enumerate(mut program: impl FnMut(&mut Branch)) {
    let mut decisions: Vec<(usize, usize)> = Vec::new();
    loop {
        let mut branch = Branch {
            decisions: std::mem::take(&mut decisions),
            taken: 0,
            weight: 1.0,
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

/// A language model as a function from prefixes to laws in double precision.
#[derive(Clone)]
pub(crate) struct Laws {
    seed: u64,
    vocab: usize,
    greedy: bool,
    quantised: bool,
}

impl Laws {
    /// Laws drawn by `seed`; now and then one without full support.
    pub(crate) fn random(seed: u64, vocab: usize) -> Self {
        Self {
            seed,
            vocab,
            greedy: false,
            quantised: false,
        }
    }

    /// The same laws at temperature 0.
    pub(crate) fn greedy(self) -> Self {
        Self {
            greedy: true,
            ..self
        }
    }

    /// The same laws, each rounded to what a sparse proposal can say.
    pub(crate) fn quantised(self) -> Self {
        Self {
            quantised: true,
            ..self
        }
    }

    /// The law (vocab) after `prefix`.
    pub(crate) fn after(&self, prefix: &[TokenId]) -> Vec<f64> {
        let context = prefix.iter().fold(1, |hash, &token| hash * 7 + token + 1);
        let mut law: Vec<f64> = (0..self.vocab as u32)
            .map(|v| Noise::new(self.seed, 0).coupled(context, v)[0])
            .map(|u| -u.ln())
            .collect();
        if philox([context; 4], [self.seed as u32, 1])[0].is_multiple_of(4) {
            law[context as usize % self.vocab] = 0.0;
        }
        let total: f64 = law.iter().sum();
        for mass in &mut law {
            *mass /= total;
        }
        if self.greedy {
            let best = (0..law.len()).max_by(|&a, &b| law[a].total_cmp(&law[b]));
            law.fill(0.0);
            law[best.expect("a token")] = 1.0;
        }
        if self.quantised {
            Proposal::of(
                &mut law,
                ProposalForm::Sparse {
                    top: self.vocab as u32,
                },
            );
        }
        law
    }

    /// Adds `weight` times the law of outputs of length `len` that begin with `prefix`.
    pub(crate) fn spread(&self, prefix: &[TokenId], len: usize, weight: f64, law: &mut [f64]) {
        if prefix.len() == len {
            let index = prefix
                .iter()
                .fold(0, |at, &token| at * self.vocab + token as usize);
            law[index] += weight;
            return;
        }
        for (token, mass) in self.after(prefix).into_iter().enumerate() {
            if mass > 0.0 {
                let longer = [prefix, &[token as TokenId]].concat();
                self.spread(&longer, len, weight * mass, law);
            }
        }
    }
}
