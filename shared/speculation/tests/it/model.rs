//! One model's distributions at one position, and what a target distribution makes of two models.

use speculation::confidence::Confidence;
use speculation::history::History;
use speculation::pipeline::{Pipeline, Want};
use speculation::real::Real;
use speculation::sampling::SamplingParams;
use speculation::target::{DraftProbs, TargetDistribution, TargetProbs};

/// One model's distributions at one position.
#[derive(Clone, Debug)]
pub(crate) struct Model<F> {
    /// The sampling distribution.
    pub(crate) sampling: Vec<F>,
    /// The unscaled distribution; none where it is the sampling distribution.
    pub(crate) apart: Option<Vec<F>>,
    pub(crate) confidence: Confidence<F>,
}

impl<F: Real> Model<F> {
    pub(crate) fn of(logits: &[F], params: &SamplingParams) -> Self {
        let want = Want {
            max: true,
            entropy: true,
            unscaled: true,
        };
        let (mut sampling, mut unscaled) = (logits.to_vec(), Vec::new());
        let seen = Pipeline::new(params.clone())
            .distributions(&mut sampling, &mut unscaled, want, &History::default(), 0)
            .expect("distributions");
        Self {
            sampling,
            apart: seen.unscaled.then_some(unscaled),
            confidence: seen.confidence.expect("a confidence"),
        }
    }

    /// A model to whose distribution nothing was done.
    pub(crate) fn plain(probs: &[F]) -> Self {
        Self {
            sampling: probs.to_vec(),
            apart: None,
            confidence: Confidence::of(probs, true),
        }
    }

    /// A model with an unscaled distribution of its own.
    pub(crate) fn scaled(sampling: &[F], unscaled: &[F]) -> Self {
        Self {
            sampling: sampling.to_vec(),
            apart: Some(unscaled.to_vec()),
            confidence: confidence(unscaled),
        }
    }

    pub(crate) fn unscaled(&self) -> &[F] {
        self.apart.as_ref().unwrap_or(&self.sampling)
    }
}

/// Returns what `aim` makes of a position: the deferral and π.
pub(crate) fn apply<F: Real>(
    aim: TargetDistribution,
    q: &Model<F>,
    p: &Model<F>,
    greedy: bool,
) -> (Option<F>, Vec<F>) {
    let mut pi = p.sampling.clone();
    let draft = DraftProbs {
        probs: &q.sampling,
        unscaled: q.apart.as_deref(),
        confidence: q.confidence,
    };
    let target = TargetProbs {
        probs: &mut pi,
        unscaled: p.apart.as_deref(),
        confidence: p.confidence,
    };
    let deferral = aim.apply(draft, target, greedy);
    (deferral, pi)
}

/// The confidence of an unscaled distribution, by its definition.
pub(crate) fn confidence<F: Real>(probs: &[F]) -> Confidence<F> {
    let entropy = |mass: f64| if mass > 0.0 { -mass * mass.ln() } else { 0.0 };
    Confidence {
        max: probs.iter().copied().fold(F::zero(), F::max),
        entropy: F::from_f64(probs.iter().map(|mass| entropy(mass.as_f64())).sum()),
    }
}
