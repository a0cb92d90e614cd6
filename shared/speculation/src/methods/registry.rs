//! The methods.

use super::{BadValue, Choice, EffectiveSetting, MethodSpec, PlanKind, Setup};
use crate::target::{Beta, TargetDistribution, rules};
use crate::verification::Verification;

/// A named preset over the axes of a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Method {
    /// Name, as given in requests and reported in results.
    pub name: &'static str,
    /// Other names it answers to.
    pub aliases: &'static [&'static str],
    /// When to choose it, in one line for `outrider methods`.
    pub when: &'static str,
    /// What it does, in one line for `outrider methods`. p and q are the probabilities that the target
    /// and the draft model give a token.
    pub summary: &'static str,
    /// Which model does what, in which order.
    pub plan: PlanKind,
    /// The distribution aimed at, with the method's own defaults. For the token cascade and the
    /// sequence cascade it names the rule by which the drafter's answer is handed over.
    pub target: TargetDistribution,
    /// How a draft block is accepted.
    pub verification: Verification,
    /// Where it comes from.
    pub source: &'static str,
}

/// Lossy speculative sampling with its default parameters.
pub(super) const LOSSY: TargetDistribution = TargetDistribution::Lossy {
    alpha: 0.2,
    beta: Beta::Fixed(1.0),
};

/// Every method there is. The first is the default.
pub const METHODS: &[Method] = &[
    Method {
        name: "coupled",
        aliases: &["gumbel"],
        when: "by default: the output is the target's own, and a seed repeats it whatever was drafted",
        summary: "drafts tokens and keeps those that the target itself chooses with this seed",
        plan: PlanKind::Speculative,
        target: TargetDistribution::Exact,
        verification: Verification::COUPLED,
        source: "Daliri, Musco, Suresh 2024, Coupling without Communication and \
                 Drafter-Invariant Speculative Decoding",
    },
    Method {
        name: "rejection",
        aliases: &["token", "speculative-sampling"],
        when: "to compare with the literature; block accepts no fewer draft tokens",
        summary: "accepts each draft token with probability min(1, p/q), and redraws the first that fails",
        plan: PlanKind::Speculative,
        target: TargetDistribution::Exact,
        verification: Verification::TOKEN,
        source: "Leviathan, Kalman, Matias 2023; Chen et al. 2023; Narasimhan et al. 2025, \
                 Faster Cascades via Speculative Decoding, Algorithm 4",
    },
    Method {
        name: "block",
        aliases: &["block-verification"],
        when: "for fewer target calls than coupled above temperature 0, if no seed must repeat the output",
        summary: "tests the draft tokens of a block together, and accepts the longest beginning that passes",
        plan: PlanKind::Speculative,
        target: TargetDistribution::Exact,
        verification: Verification::BLOCK,
        source: "Sun et al. 2025, Block Verification Accelerates Speculative Decoding",
    },
    Method {
        name: "block-greedy",
        aliases: &[],
        when: "to compare with block: it accepts the most of one block, at the cost of later rounds",
        summary: "accepts more of a block than block does, and corrects for it in the next rounds",
        plan: PlanKind::Speculative,
        target: TargetDistribution::Exact,
        verification: Verification::BLOCK_GREEDY,
        source: "Sun et al. 2024, Optimal Block-Level Draft Verification, Algorithm 3",
    },
    Method {
        name: "lossy",
        aliases: &[],
        when: "for somewhat fewer target calls, with one number to tune",
        summary: "accepts each draft token with probability min(1, p/((1 - alpha) q))",
        plan: PlanKind::Speculative,
        target: LOSSY,
        verification: Verification::TOKEN,
        source: "Narasimhan et al. 2025, Faster Cascades via Speculative Decoding, section 2 \
                 and Table 1",
    },
    Method {
        name: "spec-cascade",
        aliases: &["speculative-cascade"],
        when: "if the draft model is good enough, or better, at some of the tokens, and a seed shall repeat it",
        summary: "draws from a mixture of both models; a deferral rule says where the target decides",
        plan: PlanKind::Speculative,
        target: TargetDistribution::Deferral {
            rule: rules::TOKEN_V3,
            alpha: 0.3,
        },
        verification: Verification::COUPLED,
        source: "Narasimhan et al. 2025, Faster Cascades via Speculative Decoding, Algorithm 5, with coupled \
                 verification in place of the paper's",
    },
    Method {
        name: "spec-cascade-rejection",
        aliases: &[],
        when: "to compare with the literature: spec-cascade as its paper has it",
        summary: "accepts each draft token with probability min(1, pi/q), where a rule mixes pi of p and q",
        plan: PlanKind::Speculative,
        target: TargetDistribution::Deferral {
            rule: rules::TOKEN_V3,
            alpha: 0.3,
        },
        verification: Verification::TOKEN,
        source: "Narasimhan et al. 2025, Faster Cascades via Speculative Decoding, Algorithm 5",
    },
    Method {
        name: "token-cascade",
        aliases: &[],
        when: "as bild, if the target need not check the draft tokens",
        summary: "the draft model decodes; where it is unsure the target adds one token",
        plan: PlanKind::TokenCascade,
        target: TargetDistribution::Deferral {
            rule: rules::CHOW,
            alpha: 0.5,
        },
        verification: Verification::COUPLED,
        source: "Narasimhan et al. 2025, Faster Cascades via Speculative Decoding, section 3.3",
    },
    Method {
        name: "sequence-cascade",
        aliases: &[],
        when: "if whole answers of the draft model are often good enough, and need not stream",
        summary: "the draft model answers; if its answer scores low the target answers anew",
        plan: PlanKind::SequenceCascade,
        target: TargetDistribution::Deferral {
            rule: rules::CHOW,
            alpha: 0.5,
        },
        verification: Verification::COUPLED,
        source: "Narasimhan et al. 2025, Faster Cascades via Speculative Decoding, baseline \
                 SeqCascade",
    },
    Method {
        name: "oracle-cascade",
        aliases: &[],
        when: "to measure what a deferral rule is worth; it saves nothing",
        summary: "runs both models at every position, and draws from the mixture that the rule makes",
        plan: PlanKind::OracleCascade,
        target: TargetDistribution::Deferral {
            rule: rules::DIFF,
            alpha: 0.1,
        },
        verification: Verification::COUPLED,
        source: "Narasimhan et al. 2025, Faster Cascades via Speculative Decoding, baseline \
                 OracleCascade",
    },
    Method {
        name: "bild",
        aliases: &[],
        when: "for few target calls at temperature 0, if the draft model knows when it is unsure",
        summary: "drafts while sure; the target then replaces the first token that it finds unlikely",
        plan: PlanKind::Bild,
        target: TargetDistribution::Exact,
        verification: Verification::bild(5.0),
        source: "Kim et al. 2023, Speculative Decoding with Big Little Decoder",
    },
    Method {
        name: "target-only",
        aliases: &[],
        when: "as the baseline: what the target does without drafts",
        summary: "the target model generates alone, one token a forward",
        plan: PlanKind::TargetOnly,
        target: TargetDistribution::Exact,
        verification: Verification::COUPLED,
        source: "baseline",
    },
    Method {
        name: "draft-only",
        aliases: &[],
        when: "to see what quality is left without the target",
        summary: "the draft model generates alone",
        plan: PlanKind::DraftOnly,
        target: TargetDistribution::Exact,
        verification: Verification::COUPLED,
        source: "baseline",
    },
];

/// The names of all methods, the default first.
pub fn names() -> Vec<&'static str> {
    METHODS.iter().map(|method| method.name).collect()
}

/// The method called `name`, or by an alias; the default if `name` is empty.
///
/// # Errors
/// If there is none; the message lists them all.
pub fn find(name: &str) -> Result<&'static Method, BadValue> {
    if name.is_empty() {
        return Ok(&METHODS[0]);
    }
    METHODS
        .iter()
        .find(|method| method.name == name || method.aliases.contains(&name))
        .ok_or_else(|| BadValue::unknown("method", name, names()))
}

impl Method {
    /// The method with all its defaults, at `temperature`, nothing cut.
    ///
    /// # Panics
    /// Never: every preset of [`METHODS`] fits together, at every temperature.
    pub fn preset(&self, temperature: f32) -> Choice {
        let preset = MethodSpec::new(self.name);
        Choice::resolve(&preset, Setup::at(temperature)).expect("presets fit together")
    }

    /// The parameters it takes, at their defaults.
    pub fn parameters(&self) -> Vec<EffectiveSetting> {
        self.preset(1.0).settings().to_vec()
    }

    /// Whether, with its defaults, every token is an exact sample of the target model.
    pub fn is_lossless(&self) -> bool {
        self.preset(1.0).is_lossless()
    }

    /// Whether, with its defaults, a seed gives the same tokens whatever was drafted, retried or
    /// moved.
    pub fn is_reproducible(&self) -> bool {
        self.preset(1.0).is_reproducible()
    }

    /// Whether, with its defaults and above temperature 0, the verifier needs the draft distribution.
    pub fn needs_draft_probs(&self) -> bool {
        self.preset(1.0).needs_draft_probs()
    }
}
