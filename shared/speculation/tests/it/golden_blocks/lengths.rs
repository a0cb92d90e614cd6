//! The distribution of the accepted length and the number of rounds, on trees.

use serde_json::Value;
use speculation::TokenId;
use speculation::chance::Chance;
use speculation::noise::Purpose;
use speculation::real::Real;
use speculation::verification::layers::ResidualLayer;
use speculation::verification::{Verdict, Verification};

use super::{METHODS, decide, mean};
use crate::read::{Tree, cases, close, numbers};
use crate::tree::chain::Chain;
use crate::tree::{Branch, enumerate, play};

/// Rounds on trees.
struct Play<'a> {
    p: Tree,
    q: Tree,
    length: usize,
    /// Prefixes after which drafting stops.
    stops: Option<&'a Value>,
    verification: Verification,
}

impl<'a> Play<'a> {
    fn new(case: &'a Value, verification: Verification) -> Self {
        Self {
            p: Tree::of(&case["p_tree"]),
            q: Tree::of(&case["q_tree"]),
            length: case["L"].as_u64().expect("a length") as usize,
            stops: case.get("stop_after"),
            verification,
        }
    }

    fn round<F: Real>(
        &self,
        output: &[TokenId],
        layers: &[ResidualLayer],
        branch: &mut Branch,
    ) -> Verdict {
        let mut context = output.to_vec();
        for offset in 0..self.length {
            let probs: Vec<F> = self.q.probs(&context);
            context.push(branch.token(Purpose::Draft, offset as u32, &probs));
            if self
                .stops
                .is_some_and(|stops| stops[Tree::key(&context)] == true)
            {
                break;
            }
        }
        let rows = |tree: &Tree| -> Vec<Vec<F>> {
            (output.len()..=context.len())
                .map(|at| tree.probs(&context[..at]))
                .collect()
        };
        let mut chain = Chain::new(rows(&self.p), rows(&self.q));
        decide(
            self.verification,
            &context[output.len()..],
            layers,
            &[],
            branch,
            &mut chain,
        )
    }

    /// The distribution of the first round's accepted length.
    fn accepted<F: Real>(&self) -> Vec<f64> {
        let mut probs = vec![0.0; self.length + 1];
        enumerate(|branch| {
            let verdict = self.round::<F>(&[], &[], branch);
            probs[verdict.accepted()] += branch.weight();
        });
        probs
    }

    /// The expected number of rounds until there are `len` tokens.
    fn expected_rounds<F: Real>(&self, len: usize) -> f64 {
        let mut expected = 0.0;
        let is_done = |output: &[TokenId], weight| {
            let done = output.len() >= len;
            expected += if done { 0.0 } else { weight };
            done
        };
        play(is_done, |output, layers, branch| {
            self.round::<F>(output, layers, branch)
        });
        expected
    }
}

/// The distribution of the first round's accepted length, whose mean and the rounds needed are as `given`.
fn check_means<F: Real>(play: &Play<'_>, case: &Value, given: &Value, tolerance: f64) -> Vec<f64> {
    let probs = play.accepted::<F>();
    let rounds = play.expected_rounds::<F>(case["n"].as_u64().expect("a length") as usize);
    for (found, name) in [
        (mean(&probs), "expected_tau"),
        (rounds, "expected_calls_for_n"),
    ] {
        close(&[found], &numbers(&given[name]), tolerance);
    }
    probs
}

fn check_lengths<F: Real>(tolerance: f64) {
    for case in cases("block_verify") {
        for (method, verification) in METHODS {
            let (play, given) = (Play::new(&case, verification), &case[method]);
            let probs = check_means::<F>(&play, &case, given, tolerance);
            close(&probs, &numbers(&given["tau_law"]), tolerance);
            if verification == Verification::BLOCK_GREEDY {
                close(&[mean(&probs)], &numbers(&case["sum_min_joint"]), tolerance);
            }
        }
    }
}

#[test]
fn lengths_and_rounds_are_the_references() {
    check_lengths::<f64>(1e-9);
    check_lengths::<f32>(2e-5);
}

/// Greedy block verification is not offered with a stop rule: it would have to decide at every
/// prefix whether drafting would have gone on. The other two need no such care.
fn check_adaptive<F: Real>(tolerance: f64) {
    for case in cases("block_verify_adaptive") {
        for (method, verification) in &METHODS[..2] {
            let play = Play::new(&case, *verification);
            check_means::<F>(&play, &case, &case[method], tolerance);
        }
    }
}

#[test]
fn blocks_that_a_stop_rule_ended_are_the_references() {
    check_adaptive::<f64>(1e-9);
    check_adaptive::<f32>(2e-5);
}
