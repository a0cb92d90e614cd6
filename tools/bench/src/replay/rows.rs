//! From what is recorded of a position to the distributions that are evaluated.

use speculation::TokenId;
use speculation::confidence::Confidence;
use speculation::proposal::BadProposal;
use speculation::real::Real;
use speculation::target::{DraftProbs, TargetDistribution, TargetProbs};
use speculation::verification::{PositionDistributions, RoundDistributions};

use crate::recording::{RecordedDistribution, RecordedPosition, Rest};

/// The distributions of one position over the tokens kept and, last, one token for each group of the rest.
#[derive(Clone, Debug)]
pub(super) struct GroupedRows {
    /// The draft token, as an index into the rows.
    pub(super) drafted: TokenId,
    /// The draft model's sampling distribution q.
    pub(super) draft: Vec<f64>,
    /// The target distribution π.
    pub(super) target: Vec<f64>,
    /// What was deferred to the target, where there is deferral.
    pub(super) deferral: Option<f64>,
    /// The probability with which exact token verification accepts the draft token.
    pub(super) accepted: f64,
    /// TV(π, p).
    pub(super) from_target: f64,
    /// KL(p ‖ π), in nats.
    pub(super) divergence: f64,
    /// TV(q, p).
    pub(super) between: f64,
}

impl GroupedRows {
    /// The distributions at `recorded`, where `token` was drafted and `aim` is aimed at; `greedy` is
    /// temperature 0.
    pub(super) fn new(
        recorded: &RecordedPosition,
        token: TokenId,
        aim: &TargetDistribution,
        greedy: bool,
    ) -> Self {
        let RecordedPosition {
            ids,
            draft,
            target,
            rest,
        } = recorded;
        let drafted = ids.partition_point(|&id| id < token);
        let probs = sampling(draft, rest, |rest| rest.draft);
        let exact = sampling(target, rest, |rest| rest.target);
        let judges_tokens = match aim {
            TargetDistribution::Exact
            | TargetDistribution::Lossy { .. }
            | TargetDistribution::LossyWithin { .. } => false,
            TargetDistribution::Deferral { rule, .. } => rule.judges_tokens(),
        };
        // Judged one by one, no token of the rest is likely.
        let draft_unscaled = unscaled(draft, rest, |rest| {
            if judges_tokens {
                0.0
            } else {
                f64::from(rest.draft_unscaled)
            }
        });
        let target_unscaled = unscaled(target, rest, |rest| {
            if judges_tokens { 0.0 } else { typical(rest) }
        });
        let mut pi = exact.clone();
        let deferral = aim.apply(
            DraftProbs {
                probs: &probs,
                unscaled: Some(&draft_unscaled),
                confidence: wide(draft.confidence),
            },
            TargetProbs {
                probs: &mut pi,
                unscaled: Some(&target_unscaled),
                confidence: wide(target.confidence),
            },
            greedy,
        );
        Self {
            drafted: drafted as TokenId,
            accepted: (exact[drafted] / probs[drafted]).min(1.0),
            from_target: distance(&pi, &exact),
            divergence: divergence(&exact, &pi),
            between: distance(&probs, &exact),
            draft: probs,
            target: pi,
            deferral,
        }
    }
}

/// The sampling distribution with its masses in the `rest`, normalised in double precision.
fn sampling(probs: &RecordedDistribution, rest: &[Rest], mass: fn(&Rest) -> f32) -> Vec<f64> {
    let masses = probs
        .probabilities
        .iter()
        .copied()
        .chain(rest.iter().map(mass));
    let mut row: Vec<f64> = masses.map(f64::from).collect();
    let total: f64 = row.iter().sum();
    for value in &mut row {
        *value /= total;
    }
    row
}

/// The unscaled distribution as recorded, to the bit, so that its maximum is the maximum recorded; `judged` is
/// what a group of the rest is judged by.
fn unscaled(
    probs: &RecordedDistribution,
    rest: &[Rest],
    judged: impl Fn(&Rest) -> f64,
) -> Vec<f64> {
    let row = probs.unscaled.as_ref().unwrap_or(&probs.probabilities);
    let row = row.iter().copied().map(f64::from);
    row.chain(rest.iter().map(judged)).collect()
}

/// The probability p for which `-q ln p`, with the group's draft mass q, is the group's part of the
/// cross entropy.
fn typical(rest: &Rest) -> f64 {
    let mass = f64::from(rest.draft_unscaled);
    if mass > 0.0 {
        (-f64::from(rest.cross_entropy) / mass).exp_nonpositive()
    } else {
        0.0
    }
}

fn wide(confidence: Confidence<f32>) -> Confidence<f64> {
    Confidence {
        max: f64::from(confidence.max),
        entropy: f64::from(confidence.entropy),
    }
}

/// KL(p ‖ π), in nats; infinite where π has nothing of what p has.
fn divergence(p: &[f64], pi: &[f64]) -> f64 {
    let both = p.iter().zip(pi).filter(|(p, _)| **p > 0.0);
    both.map(|(p, pi)| p * (p / pi).ln()).sum()
}

/// TV of two distributions.
fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).max(0.0)).sum()
}

/// A block's distributions, as a verification asks for them. Nothing is known of the position after it, and
/// what is drawn there does not matter.
#[derive(Debug)]
pub(super) struct BlockChain<'a> {
    rows: &'a [GroupedRows],
    /// The draft distribution at the position requested last; verifications overwrite it.
    scratch: Vec<f64>,
}

impl<'a> BlockChain<'a> {
    pub(super) fn new(rows: &'a [GroupedRows]) -> Self {
        Self {
            rows,
            scratch: Vec::new(),
        }
    }
}

impl RoundDistributions<f64> for BlockChain<'_> {
    type Error = BadProposal;

    fn at(&mut self, offset: usize) -> Result<PositionDistributions<'_, f64>, BadProposal> {
        let rows = self.rows.get(offset);
        self.scratch.clear();
        self.scratch
            .extend(rows.iter().flat_map(|rows| &rows.draft));
        Ok(PositionDistributions {
            target: rows.map_or(&[], |rows| &rows.target),
            target_unscaled: None,
            draft: &mut self.scratch,
        })
    }
}
