//! Random language models in double precision.

use speculation::TokenId;
use speculation::constraint::Constraint;
use speculation::history::History;
use speculation::noise::Noise;
use speculation::philox::philox;
use speculation::pipeline::Pipeline;
use speculation::proposal::{ProposalForm, ProposalProbs};
use speculation::sampling::SamplingParams;

/// What the masses of a distribution look like.
#[derive(Clone, Copy, PartialEq)]
enum Shape {
    /// Any; now and then one is 0.
    Plain,
    /// Multiples of one number, so that there are ties, within a distribution and between distributions.
    Coarse,
    /// Half of the tokens at some contexts: even ones for one model, odd ones for the other.
    Parity(u32),
}

/// A language model as a function from prefixes to distributions in double precision.
#[derive(Clone)]
pub(crate) struct Distributions {
    seed: u64,
    vocab: usize,
    shape: Shape,
    greedy: bool,
    /// Each distribution is what such a proposal says of it.
    form: ProposalForm,
    /// Whether no token may follow itself.
    masked: bool,
}

/// No token may follow itself.
#[derive(Clone, Debug)]
struct NoRepeats {
    vocab: usize,
    output: Vec<TokenId>,
}

impl Constraint for NoRepeats {
    fn push(&mut self, token: TokenId) {
        self.output.push(token);
    }

    fn pop(&mut self, tokens: usize) {
        self.output.truncate(self.output.len() - tokens);
    }

    fn allowed(&self) -> Result<Option<Vec<u32>>, String> {
        let last = self.output.last();
        let allowed = (0..self.vocab as u32).filter(|token| Some(token) != last);
        Ok(Some(vec![allowed.map(|token| 1 << token).sum()]))
    }

    fn fitting(&self, tokens: &[TokenId]) -> usize {
        let before = self.output.last().into_iter().chain(tokens);
        let pairs = before.zip(tokens).skip(usize::from(self.output.is_empty()));
        pairs.take_while(|(one, next)| one != next).count()
    }

    fn forced(&self) -> Vec<TokenId> {
        Vec::new()
    }

    fn boxed(&self) -> Box<dyn Constraint> {
        Box::new(self.clone())
    }
}

impl Distributions {
    /// Distributions drawn by `seed`; now and then one without full support.
    pub(crate) fn random(seed: u64, vocab: usize) -> Self {
        Self {
            seed,
            vocab,
            shape: Shape::Plain,
            greedy: false,
            form: ProposalForm::None,
            masked: false,
        }
    }

    /// The same under a constraint, as the pipeline makes them: no token follows itself.
    pub(crate) fn masked(self) -> Self {
        Self {
            masked: true,
            ..self
        }
    }

    /// The same distributions at temperature 0.
    pub(crate) fn greedy(self) -> Self {
        Self {
            greedy: true,
            ..self
        }
    }

    /// The same distributions, each as a proposal of `form` says it.
    pub(crate) fn reported(&self, form: ProposalForm) -> Self {
        Self {
            form,
            ..self.clone()
        }
    }

    pub(crate) fn vocab(&self) -> usize {
        self.vocab
    }

    /// The distribution (vocab) after `prefix`.
    pub(crate) fn after(&self, prefix: &[TokenId]) -> Vec<f64> {
        let context = prefix.iter().fold(1_u32, |hash, &token| {
            hash.wrapping_mul(7).wrapping_add(token + 1)
        });
        let mut probs: Vec<f64> = (0..self.vocab as u32)
            .map(|v| Noise::new(self.seed, 0).coupled(context, v)[0])
            .map(|u| match self.shape {
                Shape::Coarse => (u * 4.0).floor(),
                Shape::Plain | Shape::Parity(_) => -u.ln(),
            })
            .collect();
        let word = philox([context; 4], [self.seed as u32, 1])[0];
        match self.shape {
            Shape::Plain if word.is_multiple_of(4) => probs[context as usize % self.vocab] = 0.0,
            Shape::Parity(parity) if context.is_multiple_of(2) => {
                for mass in probs.iter_mut().skip(parity as usize).step_by(2) {
                    *mass = 0.0;
                }
            }
            Shape::Coarse if probs.iter().all(|&mass| mass == 0.0) => probs.fill(1.0),
            _ => {}
        }
        let total: f64 = probs.iter().sum();
        for mass in &mut probs {
            *mass /= total;
        }
        if self.masked {
            let none = SamplingParams::default();
            let constraint = NoRepeats {
                vocab: self.vocab,
                output: Vec::new(),
            };
            let mut history = History::new(&none, &[], &[]).under(Some(Box::new(constraint)));
            // As after drafts that were refused.
            history.push(0);
            history.push(0);
            history.follow(prefix);
            for mass in &mut probs {
                *mass = mass.ln();
            }
            let made = Pipeline::new(none).probs(&mut probs, &history, prefix.len() as u32);
            made.expect("a token is left");
        }
        if self.greedy {
            let best = (0..probs.len()).max_by(|&a, &b| probs[a].total_cmp(&probs[b]));
            probs.fill(0.0);
            probs[best.expect("a token")] = 1.0;
        }
        ProposalProbs::of(&mut probs, self.form);
        probs
    }
}

/// A draft model and a target model.
pub(crate) struct Pair {
    pub(crate) name: String,
    pub(crate) draft: Distributions,
    pub(crate) target: Distributions,
}

/// Pairs of models of every kind, each kind drawn by `seeds`.
pub(crate) fn pairs(seeds: std::ops::Range<u64>, vocab: usize) -> Vec<Pair> {
    let shaped = |shape, seed| Distributions {
        shape,
        ..Distributions::random(seed, vocab)
    };
    let mut pairs = Vec::new();
    for seed in seeds {
        let (draft, target) = (
            Distributions::random(seed, vocab),
            Distributions::random(seed + 100, vocab),
        );
        let (even, odd) = (Shape::Parity(1), Shape::Parity(0));
        let kinds = [
            ("random", draft.clone(), target.clone()),
            (
                "with ties",
                shaped(Shape::Coarse, seed),
                shaped(Shape::Coarse, seed + 100),
            ),
            ("disjoint", shaped(even, seed), shaped(odd, seed + 100)),
            ("equal", target.clone(), target.clone()),
            ("greedy target", draft.clone(), target.clone().greedy()),
            ("greedy draft", draft.clone().greedy(), target.clone()),
            ("greedy", draft.greedy(), target.greedy()),
        ];
        pairs.extend(kinds.map(|(kind, draft, target)| Pair {
            name: format!("{kind} models, vocabulary {vocab}, seed {seed}"),
            draft,
            target,
        }));
    }
    pairs
}
