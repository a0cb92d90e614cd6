//! The token cascade against its definition, for every length of a run.

use outrider_tests::session;
use speculation::TokenId;
use speculation::confidence::Confidence;
use speculation::drafting::StopRule;
use speculation::drafting::policies::{CONFIDENCE, ENTROPY};
use speculation::proposal::ProposalForm;
use speculation::session::{Plan, SessionConfig};
use speculation::target::{TargetDistribution, rules};

use super::plans::{Model, Peers};
use crate::tree::{Distributions, OutputDistribution, assert_same, outputs};

const VOCAB: usize = 3;
const LEN: u32 = 4;
const TOLERANCE: f64 = 1e-12;

fn config(plan: Plan) -> SessionConfig {
    session::limits(plan, 4, LEN, VOCAB as u32)
}

/// The cascade as the paper writes it: position by position, one model or the other.
struct Definition<'a> {
    draft: Model<'a>,
    target: Model<'a>,
    stop: StopRule,
    max_run: u32,
    probs: OutputDistribution,
    /// Expected number of target tokens, and of those after a full run.
    calls: [f64; 2],
}

impl Definition<'_> {
    fn spread(&mut self, prefix: &[TokenId], run: u32, weight: f64) {
        if prefix.len() == LEN as usize {
            *self.probs.entry(prefix.to_vec()).or_default() += weight;
            return;
        }
        let small = (self.draft)(prefix);
        let full = run == self.max_run;
        let defers = self.stop.stops(Confidence::of(&small, true));
        let (probs, run) = if full || defers {
            ((self.target)(prefix), 0)
        } else {
            (small, run + 1)
        };
        if run == 0 {
            self.calls[0] += weight;
            self.calls[1] += weight * f64::from(u8::from(full));
        }
        for (token, &mass) in probs.iter().enumerate() {
            if mass > 0.0 {
                let longer = [prefix, &[token as TokenId]].concat();
                self.spread(&longer, run, weight * mass);
            }
        }
    }
}

#[test]
fn the_session_runs_the_cascade_as_it_is_defined() {
    let mut at_max_run = 0.0;
    for seed in 0..6 {
        let draft = Distributions::random(seed, VOCAB);
        let target = Distributions::random(seed + 100, VOCAB);
        for (draft, target) in [
            (draft.clone(), target.clone()),
            (
                draft.clone().reported(ProposalForm::Sparse { top: 3 }),
                target.clone(),
            ),
            (draft, target.greedy()),
        ] {
            for stop in [
                StopRule::NEVER,
                StopRule::new(&CONFIDENCE, 0.55),
                StopRule::new(&ENTROPY, 0.8),
            ] {
                for max_run in [1, 2, 3, u32::MAX] {
                    at_max_run += compare(&draft, &target, stop, max_run);
                }
            }
        }
    }
    assert!(at_max_run > 20.0, "hardly any run was full");
}

/// Compares the session with the definition; returns the expected number of target tokens after full runs.
fn compare(draft: &Distributions, target: &Distributions, stop: StopRule, max_run: u32) -> f64 {
    let (draft, target) = (
        |prefix: &[TokenId]| draft.after(prefix),
        |prefix: &[TokenId]| target.after(prefix),
    );
    let mut definition = Definition {
        draft: &draft,
        target: &target,
        stop,
        max_run,
        probs: OutputDistribution::default(),
        calls: [0.0; 2],
    };
    definition.spread(&[], 0, 1.0);
    for most in [1, 2, u32::MAX] {
        let peers = Peers {
            most,
            ..Peers::new(&draft, &target, stop)
        };
        let mut calls = [0.0; 2];
        let probs = peers.probs(
            &config(Plan::TokenCascade { max_run }),
            |weight, finished| {
                let statistics = finished.session.statistics();
                calls[0] += weight * f64::from(statistics.target_forwards);
                calls[1] += weight * f64::from(statistics.at_max_run);
            },
        );
        let what = format!("{stop:?}, runs of {max_run}, blocks of {most}");
        assert_same(&probs, &definition.probs, TOLERANCE, &what);
        for (found, expected) in calls.iter().zip(definition.calls) {
            let difference = (found - expected).abs();
            assert!(
                difference < TOLERANCE,
                "{what}: {found}, expected {expected}"
            );
        }
    }
    definition.calls[1]
}

/// Chow's rule reads the draft distribution only, so two plans decide alike: the oracle, which
/// always runs both models, and the cascade, which runs the target where the rule defers.
#[test]
fn without_a_longest_run_the_token_cascade_is_the_oracle_cascade() {
    for seed in 0..6 {
        let (draft, target) = (
            Distributions::random(seed, VOCAB),
            Distributions::random(seed + 100, VOCAB),
        );
        let (draft, target) = (
            |prefix: &[TokenId]| draft.after(prefix),
            |prefix: &[TokenId]| target.after(prefix),
        );
        let (rule, alpha) = (rules::CHOW, 0.5);
        let peers = Peers {
            distribution: TargetDistribution::Deferral { rule, alpha },
            ..Peers::new(&draft, &target, StopRule::new(&CONFIDENCE, 0.5))
        };
        let probs = |plan| {
            let mut rate = 0.0;
            let probs = peers.probs(&config(plan), |weight, finished| {
                let deferral = finished.session.statistics().deferral_rate();
                rate += weight * deferral.expect("a rule that defers");
            });
            (probs, rate)
        };
        let max_run = u32::MAX;
        let (cascade, rate) = probs(Plan::TokenCascade { max_run });
        let (oracle, expected) = probs(Plan::OracleCascade);
        assert_same(&cascade, &oracle, TOLERANCE, "cascade and oracle");
        assert!((rate - expected).abs() < TOLERANCE, "{rate} and {expected}");
    }
}

#[test]
fn always_deferring_leaves_the_target_and_never_deferring_the_draft_model() {
    for seed in 0..6 {
        let (draft, target) = (
            Distributions::random(seed, VOCAB),
            Distributions::random(seed + 100, VOCAB),
        );
        // No probability is below 0, and all are below 2.
        for (least, alone) in [(0.0, &draft), (2.0, &target)] {
            let (draft, target) = (
                |prefix: &[TokenId]| draft.after(prefix),
                |prefix: &[TokenId]| target.after(prefix),
            );
            let peers = Peers::new(&draft, &target, StopRule::new(&CONFIDENCE, least));
            let max_run = u32::MAX;
            let probs = peers.probs(&config(Plan::TokenCascade { max_run }), |_, _| ());
            let expected = outputs(LEN as usize, &[], |prefix| alone.after(prefix));
            assert_same(&probs, &expected, TOLERANCE, "one model alone");
        }
    }
}
