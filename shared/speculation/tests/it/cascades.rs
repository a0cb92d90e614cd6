//! The sequential plans as exact distributions: the shipped session is answered in every way its peers may
//! answer, and the outputs are added up with their probabilities.

mod bild;
mod plans;
mod token_cascade;

use crate::read::{Tree, cases_of, numbers};
use crate::tree::{OutputDistribution, assert_same};
use outrider_tests::session;
use plans::{Finished, Peers};
use serde_json::Value;
use speculation::TokenId;
use speculation::drafting::StopRule;
use speculation::drafting::policies::{CONFIDENCE, ENTROPY};
use speculation::session::{Plan, SessionConfig};
use speculation::target::{TargetDistribution, rules};

const TOLERANCE: f64 = 1e-9;

fn number(case: &Value, name: &str) -> f64 {
    case[name].as_f64().unwrap_or_else(|| panic!("no {name}"))
}

/// A case of the sequential cascades.
struct Case(Value);

impl Case {
    /// The cases of a kind.
    fn all(kind: &str) -> Vec<Self> {
        let cases = cases_of("cascade", kind).into_iter().map(Self);
        let cases: Vec<_> = cases.collect();
        // The distributions of the file are the distributions sampled from.
        assert!(cases.iter().all(|case| case.number("temperature") == 1.0));
        cases
    }

    fn number(&self, name: &str) -> f64 {
        number(&self.0, name)
    }

    fn name(&self) -> &str {
        self.0["id"].as_str().expect("a name")
    }

    /// The distribution of a tree after `prefix`.
    fn probs(&self, tree: &str, prefix: &[TokenId]) -> Vec<f64> {
        numbers(&self.0[tree][Tree::key(prefix)])
    }

    fn expected(&self) -> OutputDistribution {
        let probs = self.0["law"].as_object().expect("a distribution").iter();
        let parsed = probs.map(|(output, mass)| {
            let tokens = output
                .split(',')
                .map(|token| token.parse().expect("a token"));
            (tokens.collect(), mass.as_f64().expect("a number"))
        });
        parsed.collect()
    }

    fn session(&self, plan: Plan) -> SessionConfig {
        let vocab_size = self.number("vocab") as u32;
        SessionConfig {
            end_tokens: self.ends(),
            ..session::limits(plan, 4, self.number("n") as u32, vocab_size)
        }
    }

    fn ends(&self) -> Vec<TokenId> {
        let end = self.0.get("eos").and_then(Value::as_u64);
        end.into_iter().map(|end| end as TokenId).collect()
    }

    /// Runs `plan` in every way, however many tokens the drafter drafts at once; the distribution must be the
    /// expected one. What is expected of the counts.
    fn assert_probs(
        &self,
        plan: Plan,
        stop: StopRule,
        distribution: TargetDistribution,
    ) -> [Means; 3] {
        [1, 2, u32::MAX].map(|most| {
            let ends = self.ends();
            let (draft, target) = (
                |prefix: &[TokenId]| self.probs("q_tree", prefix),
                |prefix: &[TokenId]| self.probs("p_tree", prefix),
            );
            let peers = Peers {
                most,
                distribution,
                ends: &ends,
                ..Peers::new(&draft, &target, stop)
            };
            let mut means = Means::default();
            let probs = peers.probs(&self.session(plan), |weight, finished| {
                assert!(finished.session.is_exact());
                means.add(weight, finished);
            });
            assert_same(&probs, &self.expected(), TOLERANCE, self.name());
            means
        })
    }
}

/// Expectations of what a session counts.
#[derive(Default)]
struct Means {
    target_forwards: f64,
    at_max_run: f64,
    deferrals: f64,
    /// Responses of the target, where it has none of its own but the second.
    second_responses: f64,
}

impl Means {
    fn add(&mut self, weight: f64, finished: &Finished) {
        let statistics = finished.session.statistics();
        let second = f64::from(u8::from(statistics.target_forwards > 0));
        self.target_forwards += weight * f64::from(statistics.target_forwards);
        self.at_max_run += weight * f64::from(statistics.at_max_run);
        self.deferrals += weight * statistics.deferral_sum;
        self.second_responses += weight * second;
    }
}

fn assert_close(found: f64, expected: f64, what: &str) {
    let difference = (found - expected).abs();
    assert!(
        difference < TOLERANCE,
        "{what}: {found}, expected {expected}"
    );
}

#[test]
fn a_token_cascade_emits_its_distribution_and_asks_the_target_as_often_as_expected() {
    for case in Case::all("token") {
        let alpha = case.number("alpha");
        let stop = match case.0["rule"].as_str() {
            Some("chow") => StopRule::new(&CONFIDENCE, 1.0 - alpha),
            Some("chow_log") => StopRule::new(&ENTROPY, alpha),
            other => panic!("the drafter cannot test {other:?}"),
        };
        let max_run = case.0["cap"].as_u64().map_or(u32::MAX, |cap| cap as u32);
        for means in case.assert_probs(
            Plan::TokenCascade { max_run },
            stop,
            TargetDistribution::Exact,
        ) {
            let calls = case.number("expected_large_calls");
            assert_close(means.target_forwards, calls, case.name());
            assert_close(means.deferrals, calls, case.name());
            let expected = case.number("expected_forced");
            assert_close(means.at_max_run, expected, case.name());
        }
    }
}

#[test]
fn an_oracle_cascade_emits_the_target_distribution() {
    for case in Case::all("oracle") {
        assert_eq!(case.0["rule"], "diff_log");
        let distribution = TargetDistribution::Deferral {
            rule: rules::DIFF_LOG,
            alpha: case.number("alpha"),
        };
        for means in case.assert_probs(Plan::OracleCascade, StopRule::NEVER, distribution) {
            let expected = case.number("expected_deferrals");
            assert_close(means.deferrals, expected, case.name());
            assert_close(means.target_forwards, case.number("n"), case.name());
        }
    }
}

#[test]
fn a_sequence_cascade_emits_its_distribution_and_defers_as_often_as_expected() {
    for case in Case::all("seq") {
        let plan = Plan::SequenceCascade {
            threshold: (1.0 - case.number("alpha")).max(0.0).ln(),
            mean: case.0["length_norm"] == true,
        };
        for means in case.assert_probs(plan, StopRule::NEVER, TargetDistribution::Exact) {
            assert_close(
                means.second_responses,
                case.number("defer_prob"),
                case.name(),
            );
        }
    }
}
