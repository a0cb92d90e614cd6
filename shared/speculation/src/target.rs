//! Target distributions π(q, p): what a request aims at, as a function of draft distribution and target model's
//! distribution.
//!
//! A verification method emits exact samples of whatever distribution it is given as the target. Given p it
//! is lossless; given a π(q, p) the draft model speaks where it is good enough: lossy speculative
//! sampling and the deferral rules of Narasimhan et al., "Faster Cascades via Speculative Decoding".
//!
//! The distributions mixed are the sampling distributions; what a rule judges them by are the unscaled distributions
//! (temperature 1, no cuts), so that a rule means the same at every temperature.

mod kl_budget;
mod lossy;
pub mod rules;

pub use lossy::tuned_beta;
pub use rules::{RULES, Rule};

use crate::bad_value::BadValue;
use crate::confidence::Confidence;
use crate::real::Real;
use crate::verification::Verification;
use rules::{Judge, position, token_rules};

/// What a request aims at.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum TargetDistribution {
    /// The target model's distribution p itself.
    #[default]
    Exact,
    /// Lossy speculative sampling: accept with probability `min(1, p/((1 - α) q))`; at temperature 0 what the target model
    /// finds at least 1 - α times as likely as its first choice.
    Lossy {
        /// How much more often than p allows a draft token stands, in [0, 1).
        alpha: f64,
        /// Divides p in the residual.
        beta: Beta,
    },
    /// Lossy speculative sampling that accepts as much as a budget of divergence allows.
    LossyWithin {
        /// Largest `KL(p ‖ π)` at a position, in nats, at least 0.
        kl_budget: f64,
    },
    /// The mixture of q and p that a deferral rule makes.
    Deferral {
        /// The rule.
        rule: Rule,
        /// Its trade-off parameter.
        alpha: f64,
    },
}

/// The residual parameter of lossy sampling: the residual is `norm((p/β - q)_+)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Beta {
    /// The same at every position; at least 1 - α.
    Fixed(f64),
    /// Solved at each position, so that what is refused is what the residual holds.
    Tuned,
}

impl TargetDistribution {
    /// Largest β of lossy sampling; beyond it the residual holds nothing but what the draft model
    /// never says.
    pub const MAX_BETA: f64 = 1e6;

    /// Largest budget of divergence, in nats; far beyond what a draft model of any use is away.
    pub const MAX_KL_BUDGET: f64 = 100.0;

    /// Whether π is the target model's distribution itself, whatever the draft model says: [`Self::Exact`], and lossy
    /// sampling that loses nothing (α = 0 with β = 1 or tuned, which is then 1, or no budget).
    pub fn is_exact(&self) -> bool {
        match *self {
            Self::Exact => true,
            Self::Lossy { alpha, beta } => lossy::is_exact(alpha, beta),
            Self::LossyWithin { kl_budget } => kl_budget == 0.0,
            Self::Deferral { .. } => false,
        }
    }

    /// The least β beside `alpha`: 1 - α, less what rounding may add to it.
    pub fn least_beta(alpha: f64) -> f64 {
        (1.0 - alpha) * (1.0 - 1e-12)
    }

    /// Whether the token after a block that was accepted whole is drawn from π, rather than from p.
    ///
    /// A deferral rule decides that position like any other. Lossy sampling has nothing to relax there
    /// and draws from p (our choice), except where the output would then depend on where blocks end:
    /// under coupled verification, and under greedy block verification, whose residual reaches over
    /// the ends of blocks.
    pub fn mixes_bonus(&self, verification: Verification) -> bool {
        match self {
            Self::Exact => false,
            Self::Lossy { .. } | Self::LossyWithin { .. } => {
                !self.is_exact() && !verification.bonus_may_differ
            }
            Self::Deferral { .. } => true,
        }
    }

    /// Returns what must be known of the two models at each position. `greedy` is temperature 0.
    pub fn needs(&self, greedy: bool) -> Needs {
        match *self {
            _ if self.is_exact() => Needs::default(),
            Self::Lossy { .. } if greedy => (lossy::GREEDY.needs)(greedy),
            Self::Exact | Self::Lossy { .. } | Self::LossyWithin { .. } => Needs::DRAFT,
            Self::Deferral { rule, .. } => (rule.needs)(greedy),
        }
    }

    /// Turns the target's sampling distribution into π, in place, and returns how much of this position is
    /// deferred to the target: δ, 0 or 1, for rules that judge a position, and the refused draft mass
    /// η for rules that judge tokens; nothing where there is no deferral (exact, lossy).
    ///
    /// `greedy` is temperature 0, where both sampling distributions are one-hot. All rows are of one length.
    /// For lossy sampling π is the distribution emitted, not the paper's Table 1, which need not be a
    /// distribution; see [`tuned_beta`].
    pub fn apply<F: Real>(
        &self,
        draft: DraftProbs<'_, F>,
        mut target: TargetProbs<'_, F>,
        greedy: bool,
    ) -> Option<F> {
        match *self {
            Self::Exact => None,
            Self::Lossy { .. } if self.is_exact() => None,
            Self::Lossy { alpha, .. } if greedy => {
                let of_tokens = Self::Deferral {
                    rule: lossy::GREEDY,
                    alpha,
                };
                of_tokens.apply(draft, target, greedy);
                None
            }
            Self::Lossy { alpha, beta } => {
                lossy::apply(alpha, beta, draft.probs, target.probs);
                None
            }
            Self::LossyWithin { kl_budget } => {
                lossy::apply_within(kl_budget, draft.probs, target.probs);
                None
            }
            Self::Deferral { rule, alpha } => match rule.judge {
                Judge::Tokens { judged, bound } => {
                    Some(token_rules::apply(judged, bound, alpha, draft, &mut target))
                }
                Judge::Position(judge) => {
                    if position::defers(judge, alpha, draft, &target, greedy) {
                        return Some(F::one());
                    }
                    target.probs.copy_from_slice(draft.probs);
                    Some(F::zero())
                }
            },
        }
    }

    /// Checks the parameters against their ranges.
    ///
    /// # Errors
    /// Names the first parameter out of range. NaN is in no range.
    pub fn validate(&self) -> Result<(), BadValue> {
        match *self {
            Self::Exact => Ok(()),
            Self::Lossy { alpha, beta } => {
                let fits = (0.0..1.0).contains(&alpha);
                BadValue::in_range(fits, "alpha", alpha, "at least 0, below 1")?;
                let Beta::Fixed(beta) = beta else {
                    return Ok(());
                };
                let fits = (Self::least_beta(alpha)..=Self::MAX_BETA).contains(&beta);
                BadValue::in_range(fits, "beta", beta, "1 - alpha to 1000000")
            }
            Self::LossyWithin { kl_budget } => {
                BadValue::within("kl_budget", kl_budget, 0.0..=Self::MAX_KL_BUDGET)
            }
            Self::Deferral { rule, alpha } => {
                let (least, most) = rule.alpha.range;
                BadValue::within("alpha", alpha, least..=most)
            }
        }
    }
}

/// The draft model at one position.
#[derive(Clone, Copy, Debug)]
pub struct DraftProbs<'a, F> {
    /// The sampling distribution (vocab): exactly what a draft token is drawn from.
    pub probs: &'a [F],
    /// The unscaled distribution (vocab), right at least where `probs` has mass; none if it is `probs` itself.
    pub unscaled: Option<&'a [F]>,
    /// Confidence of the whole unscaled distribution.
    pub confidence: Confidence<F>,
}

/// The target model at one position.
#[derive(Debug)]
pub struct TargetProbs<'a, F> {
    /// The sampling distribution (vocab), to be turned into π in place.
    pub probs: &'a mut [F],
    /// The unscaled distribution (vocab); none if it is `probs` itself as it came.
    pub unscaled: Option<&'a [F]>,
    /// Confidence of the unscaled distribution.
    pub confidence: Confidence<F>,
}

/// What a target distribution reads at each position, beside the target model's sampling distribution.
#[expect(
    clippy::struct_excessive_bools,
    reason = "a list of independent wants, each named"
)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// The draft model's sampling distribution, at the position after the block too.
    pub draft_probs: bool,
    /// Both models' largest unscaled probability.
    pub max: bool,
    /// Both models' entropy.
    pub entropy: bool,
    /// The draft model's unscaled distribution where its sampling distribution has mass.
    pub draft_unscaled: bool,
    /// The target model's unscaled distribution.
    pub target_unscaled: bool,
    /// Whether the draft model's unscaled distribution is needed on the whole vocabulary.
    pub dense: bool,
}

impl Needs {
    /// The draft model's sampling distribution.
    pub(crate) const DRAFT: Self = Self {
        draft_probs: true,
        max: false,
        entropy: false,
        draft_unscaled: false,
        target_unscaled: false,
        dense: false,
    };

    /// Both models' largest probability beside it.
    pub(crate) const MAX: Self = Self {
        max: true,
        ..Self::DRAFT
    };

    /// Both models' entropy beside it.
    pub(crate) const ENTROPY: Self = Self {
        entropy: true,
        ..Self::DRAFT
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(target: TargetDistribution) -> Option<&'static str> {
        let bad = target.validate().err()?;
        ["alpha", "beta", "kl_budget"]
            .into_iter()
            .find(|field| *field == bad.field)
    }

    #[test]
    fn parameters_are_held_to_their_ranges() {
        assert_eq!(refused(TargetDistribution::Exact), None);
        let lossy = |alpha, beta| refused(TargetDistribution::Lossy { alpha, beta });
        assert_eq!(lossy(0.0, Beta::Tuned), None);
        assert_eq!(lossy(0.25, Beta::Fixed(0.75)), None);
        assert_eq!(lossy(0.25, Beta::Fixed(1e6)), None);
        for alpha in [-1e-9, 1.0, f64::NAN] {
            assert_eq!(lossy(alpha, Beta::Tuned), Some("alpha"));
        }
        for beta in [0.7499, 1.1e6, f64::INFINITY, f64::NAN] {
            assert_eq!(lossy(0.25, Beta::Fixed(beta)), Some("beta"));
        }
        let within = |kl_budget| refused(TargetDistribution::LossyWithin { kl_budget });
        assert_eq!([within(0.0), within(100.0)], [None, None]);
        for budget in [-1e-9, 100.1, f64::NAN] {
            assert_eq!(within(budget), Some("kl_budget"));
        }
    }

    #[test]
    fn only_what_a_rule_judges_by_is_needed() {
        let needs = |rule, greedy| {
            let needs = TargetDistribution::Deferral { rule, alpha: 0.0 }.needs(greedy);
            assert!(needs.draft_probs);
            let requested = [
                (needs.max, "max"),
                (needs.entropy, "entropy"),
                (needs.draft_unscaled, "draft"),
                (needs.target_unscaled, "target"),
                (needs.dense, "dense"),
            ];
            let requested = requested.iter().filter(|(needed, _)| *needed);
            requested
                .map(|&(_, name)| name)
                .collect::<Vec<_>>()
                .join(" ")
        };
        let expected = [
            "max",
            "entropy",
            "max",
            "entropy",
            "max",
            "entropy",
            "max draft",
            "max target",
            "max target",
        ];
        for (&rule, expected) in RULES.iter().zip(expected) {
            for greedy in [false, true] {
                assert_eq!(needs(rule, greedy), expected, "{}", rule.name);
            }
        }
        assert_eq!(needs(rules::BILD, false), "draft target dense");
        assert_eq!(needs(rules::BILD, true), "target");
        let lossy = |alpha, beta| TargetDistribution::Lossy { alpha, beta };
        for exact in [
            TargetDistribution::Exact,
            lossy(0.0, Beta::Fixed(1.0)),
            lossy(0.0, Beta::Tuned),
        ] {
            assert!(exact.is_exact());
            assert_eq!(exact.needs(false), Needs::default());
        }
        for inexact in [lossy(0.0, Beta::Fixed(2.0)), lossy(0.5, Beta::Tuned)] {
            assert!(!inexact.is_exact());
            let draft_probs = true;
            let expected = Needs {
                draft_probs,
                ..Default::default()
            };
            assert_eq!(inexact.needs(false), expected);
            assert_eq!(inexact.needs(true), (rules::TOKEN_V3.needs)(true));
        }
    }
}
