//! Whole rounds of speculative sampling under a rule, on trees.

use std::collections::BTreeMap;

use serde_json::Value;
use speculation::TokenId;
use speculation::chance::Chance;
use speculation::noise::Purpose;
use speculation::proposal::{BadProposal, Proposal, ProposalProbs};
use speculation::real::Real;
use speculation::round::{BlockInput, ComputedRound, RoundInputs, RoundScratch, TargetRows};
use speculation::target::{TargetDistribution, TargetProbs};
use speculation::verification::{RoundDistributions, Verdict, Verification};

use super::mixture::{mixed, rule_named};
use super::{along, decide, mean};
use crate::model::confidence;
use crate::read::{Tree, cases, close, numbers};
use crate::tree::chain::Chain;
use crate::tree::{Branch, enumerate};

/// One round of speculative sampling under a rule, on trees.
struct RuleRound<'a> {
    case: &'a Value,
    p: Tree,
    q: Tree,
    distribution: TargetDistribution,
    temperature: f64,
    length: usize,
    ends: Vec<TokenId>,
}

impl<'a> RuleRound<'a> {
    fn new(case: &'a Value) -> Self {
        let alpha = case["alpha"].as_f64().expect("a number");
        let rule = rule_named(case["rule"].as_str().expect("a rule"));
        let end = case["eos"].as_u64().map(|end| end as TokenId);
        Self {
            case,
            p: Tree::of(&case["p_tree"]),
            q: Tree::of(&case["q_tree"]),
            distribution: rule.map_or(TargetDistribution::Exact, |rule| {
                TargetDistribution::Deferral { rule, alpha }
            }),
            temperature: case["temperature"].as_f64().expect("a number"),
            length: case["gamma"].as_u64().expect("a length") as usize,
            ends: end.into_iter().collect(),
        }
    }

    fn greedy(&self) -> bool {
        self.temperature == 0.0
    }

    /// The sampling distribution of an unscaled distribution.
    fn sampled<F: Real>(&self, unscaled: &[F]) -> Vec<F> {
        let unscaled: Vec<f64> = unscaled.iter().map(|mass| mass.as_f64()).collect();
        let most = unscaled.iter().copied().fold(0.0, f64::max);
        let masses: Vec<f64> = if self.greedy() {
            let best = unscaled.iter().position(|&mass| mass == most);
            (0..unscaled.len())
                .map(|v| f64::from(u8::from(Some(v) == best)))
                .collect()
        } else {
            unscaled
                .iter()
                .map(|mass| mass.powf(1.0 / self.temperature))
                .collect()
        };
        let total: f64 = masses.iter().sum();
        masses
            .into_iter()
            .map(|mass| F::from_f64(mass / total))
            .collect()
    }

    fn draft<F: Real>(&self, branch: &mut Branch) -> Vec<TokenId> {
        let mut drafts = Vec::new();
        while drafts.len() < self.length {
            let probs = self.sampled::<F>(&self.q.probs(&drafts));
            drafts.push(branch.token(Purpose::Draft, drafts.len() as u32, &probs));
            if self.ends.contains(&drafts[drafts.len() - 1]) {
                break;
            }
        }
        drafts
    }

    /// Compares the distribution of what `round` emits.
    fn check<F: Real>(
        &self,
        tolerance: f64,
        round: impl Fn(&Self, &[TokenId], &mut Branch) -> Verdict,
    ) {
        let mut accepted = vec![0.0; self.length + 1];
        let mut probs: BTreeMap<String, f64> = BTreeMap::new();
        let mut tokens = 0.0;
        enumerate(|branch| {
            let drafts = self.draft::<F>(branch);
            let verdict = round(self, &drafts, branch);
            accepted[verdict.accepted()] += branch.weight();
            tokens += branch.weight() * verdict.emitted.len() as f64;
            *probs.entry(Tree::key(&verdict.emitted)).or_default() += branch.weight();
        });
        close(&accepted, &numbers(&self.case["accepted_law"]), tolerance);
        for (found, name) in [
            (mean(&accepted), "expected_accepted"),
            (tokens, "expected_tokens"),
        ] {
            close(&[found], &numbers(&self.case[name]), tolerance);
        }
        for (output, mass) in self.case["law"].as_object().expect("a distribution") {
            *probs.entry(output.clone()).or_default() -= mass.as_f64().expect("a number");
        }
        let off: Vec<f64> = probs.into_values().collect();
        close(&off, &vec![0.0; off.len()], tolerance);
    }
}

#[test]
fn rounds_under_a_rule_are_the_references() {
    for case in &cases("spec_block") {
        RuleRound::new(case).check::<f64>(1e-9, |setup, drafts, branch| {
            let (mut targets, mut drafted) = (Vec::new(), Vec::new());
            for at in 0..=drafts.len() {
                let (q, p) = (setup.q.probs(&drafts[..at]), setup.p.probs(&drafts[..at]));
                let (sampled_q, sampled_p) = (setup.sampled::<f64>(&q), setup.sampled(&p));
                let (sampled, unscaled) = ((&sampled_q[..], &sampled_p[..]), (&q[..], &p[..]));
                let target = mixed(setup.distribution, sampled, unscaled, setup.greedy());
                let given = &case["pi_tree"][Tree::key(&drafts[..at])];
                close(&target, &numbers(given), 1e-9);
                targets.push(target);
                drafted.push(sampled_q);
            }
            let mut chain = Chain::new(targets, drafted);
            setup.decide(drafts, branch, &mut chain)
        });
        // In single precision, from what is sent.
        RuleRound::new(case).check::<f32>(2e-5, |setup, drafts, branch| {
            let rows = Rows::new(setup, drafts);
            let block = BlockInput {
                drafts: drafts.to_vec().into(),
                proposals: (0..drafts.len())
                    .map(|at| setup.proposal(&drafts[..at]))
                    .collect(),
                bonus: Some(setup.proposal(drafts)),
                ..Default::default()
            };
            let inputs = RoundInputs {
                target: &setup.distribution,
                verification: Verification::TOKEN,
                greedy: setup.greedy(),
                block: &block,
                base_len: 0,
                ends: &setup.ends,
                vocab_size: case["vocab"].as_u64().expect("a size") as usize,
            };
            let mut scratch = RoundScratch::default();
            let mut distributions = ComputedRound::new(inputs, rows, &mut scratch);
            setup.decide(drafts, branch, &mut distributions)
        });
    }
}

impl RuleRound<'_> {
    fn decide<F: Real>(
        &self,
        drafts: &[TokenId],
        branch: &mut Branch,
        distributions: &mut impl RoundDistributions<F, Error = BadProposal>,
    ) -> Verdict {
        decide(
            Verification::TOKEN,
            drafts,
            &[],
            &self.ends,
            branch,
            distributions,
        )
    }

    fn proposal(&self, prefix: &[TokenId]) -> Proposal {
        let unscaled: Vec<f32> = self.q.probs(prefix);
        Proposal {
            probs: ProposalProbs::Dense(self.sampled(&unscaled)),
            confidence: Some(confidence(&unscaled)),
            unscaled: Some(unscaled),
            logprob: None,
        }
    }
}

struct Rows {
    distributions: Vec<Vec<f32>>,
    unscaled: Vec<Vec<f32>>,
}

impl Rows {
    fn new(setup: &RuleRound<'_>, drafts: &[TokenId]) -> Self {
        let unscaled: Vec<Vec<f32>> = along(&setup.p, drafts);
        let distributions = unscaled.iter().map(|row| setup.sampled(row)).collect();
        Self {
            distributions,
            unscaled,
        }
    }
}

impl TargetRows<f32> for Rows {
    type Error = BadProposal;

    fn distributions(&mut self, offset: usize) -> Result<TargetProbs<'_, f32>, BadProposal> {
        let unscaled = self.unscaled[offset].as_slice();
        Ok(TargetProbs {
            probs: &mut self.distributions[offset],
            unscaled: Some(unscaled),
            confidence: confidence(unscaled),
        })
    }

    fn row(&self, offset: usize) -> &[f32] {
        &self.distributions[offset]
    }
}
