//! The accept tests and next distributions of single drafts.

use std::collections::BTreeMap;

use outrider_tests::acceptance::length_distribution;
use serde_json::Value;
use speculation::TokenId;
use speculation::chance::Chance;
use speculation::noise::Purpose;
use speculation::real::Real;
use speculation::verification::Verification;
use speculation::verification::layers::{ResidualLayer, ResidualLayers};

use super::{METHODS, along, decide};
use crate::read::{Tree, cases, close, ids, numbers};
use crate::tree::chain::Chain;

/// Lets one length pass, and writes down the probabilities of the tests made and the distribution of the
/// token after the block.
struct Forced<F> {
    verification: Verification,
    length: usize,
    passes: usize,
    next: TokenId,
    /// By length from 1 on.
    tested: BTreeMap<usize, f64>,
    probs: Vec<F>,
}

impl<F: Real> Forced<F> {
    fn new(verification: Verification, length: usize, passes: usize, next: TokenId) -> Self {
        Self {
            verification,
            length,
            passes,
            next,
            tested: BTreeMap::new(),
            probs: Vec::new(),
        }
    }

    /// The distribution of the next token, normalised.
    fn probs(&self) -> Vec<f64> {
        let total: f64 = self.probs.iter().map(|mass| mass.as_f64()).sum();
        self.probs
            .iter()
            .map(|mass| mass.as_f64() / total)
            .collect()
    }
}

impl<F: Real> Chance<F> for Forced<F> {
    fn accepts(&mut self, offset: u32, ratio: F) -> bool {
        let length = if self.verification == Verification::BLOCK_GREEDY {
            self.length - offset as usize
        } else {
            offset as usize + 1
        };
        self.tested.insert(length, ratio.as_f64().min(1.0));
        if self.verification == Verification::TOKEN {
            length <= self.passes
        } else {
            length == self.passes
        }
    }

    fn token(&mut self, _purpose: Purpose, _offset: u32, probs: &[F]) -> TokenId {
        self.probs = probs.to_vec();
        self.next
    }
}

/// The accept probabilities, the distribution of the length and the next distributions of one draft.
fn check_draft<F: Real>(case: &Value, given: &Value, tolerance: f64) {
    let (p, q) = (Tree::of(&case["p_tree"]), Tree::of(&case["q_tree"]));
    let draft = ids(&given["draft"]);
    let length = draft.len();
    let chain = || Chain::<F>::new(along(&p, &draft), along(&q, &draft));
    for (method, verification) in METHODS {
        let lengths =
            length_distribution(verification, &draft, &mut chain()).expect("distributions");
        close(
            &lengths,
            &numbers(&given[format!("tau_{method}")]),
            tolerance,
        );
        // With no length let through all lengths are tested; token verification stops at the first.
        let passes = if verification == Verification::TOKEN {
            length
        } else {
            0
        };
        let mut tests = Forced::<F>::new(verification, length, passes, draft[0]);
        decide(verification, &draft, &[], &[], &mut tests, &mut chain());
        let tested: Vec<f64> = (1..=length)
            .map(|length| tests.tested.get(&length).copied().unwrap_or(0.0))
            .collect();
        let expected = match verification.name {
            "token" => numbers(&given["token_accept"]),
            "block" => numbers(&given["iclr_h"])[1..].to_vec(),
            _ => numbers(&given["v1_accept_desc"])[1..].to_vec(),
        };
        close(&tested, &expected, tolerance);
        for (passes, next) in given["next_law"][method]
            .as_object()
            .expect("distributions")
        {
            let passes: usize = passes.parse().expect("a length");
            let forced = |next| {
                let mut forced = Forced::<F>::new(verification, length, passes, next);
                let verdict = decide(verification, &draft, &[], &[], &mut forced, &mut chain());
                assert_eq!(verdict.accepted(), passes);
                (forced.probs(), verdict)
            };
            close(&forced(0).0, &numbers(&next["first"]), tolerance);
            let seconds = next["second_given_first"].as_object();
            for (first, expected) in seconds.into_iter().flatten() {
                let (_, verdict) = forced(first.parse().expect("a token"));
                let probs = layered::<F>(&p, &q, &verdict.emitted, &verdict.layers);
                close(&probs, &numbers(expected), tolerance);
            }
        }
    }
}

/// The layered distribution after `output`.
fn layered<F: Real>(p: &Tree, q: &Tree, output: &[TokenId], layers: &[ResidualLayer]) -> Vec<f64> {
    let mut probs = Vec::<F>::new();
    ResidualLayers::new(layers).probs(&p.probs(output), &q.probs(output), &mut probs);
    probs.into_iter().map(F::as_f64).collect()
}

/// A round on top of the residual that the first left.
fn check_second_round<F: Real>(case: &Value, given: &Value, tolerance: f64) {
    let (p, q) = (Tree::of(&case["p_tree"]), Tree::of(&case["q_tree"]));
    let greedy = Verification::BLOCK_GREEDY;
    let first = ids(&given["first_draft"]);
    let passes = given["tau"].as_u64().expect("a length") as usize;
    let z = given["z"].as_u64().expect("a token") as TokenId;
    let mut forced = Forced::<F>::new(greedy, first.len(), passes, z);
    let mut chain = Chain::new(along(&p, &first), along(&q, &first));
    let verdict = decide(greedy, &first, &[], &[], &mut forced, &mut chain);
    let draft = ids(&given["second_draft"]);
    let output = |at: usize| [verdict.emitted.as_slice(), &draft[..at]].concat();
    let rows = |tree: &Tree| -> Vec<Vec<F>> {
        (0..=draft.len())
            .map(|at| tree.probs(&output(at)))
            .collect()
    };
    let (targets, drafted) = (rows(&p), rows(&q));
    let mut layers = ResidualLayers::new(&verdict.layers);
    for (at, expected) in given["target_laws"]
        .as_array()
        .expect("distributions")
        .iter()
        .enumerate()
    {
        let mut probs = Vec::new();
        layers.probs(&targets[at], &drafted[at], &mut probs);
        close(
            &probs.into_iter().map(F::as_f64).collect::<Vec<_>>(),
            &numbers(expected),
            tolerance,
        );
        if let Some(&token) = draft.get(at) {
            layers.advance(targets[at][token as usize], drafted[at][token as usize]);
        }
    }
    let second = |passes: usize| {
        let mut forced = Forced::<F>::new(greedy, draft.len(), passes, 0);
        let mut chain = Chain::new(targets.clone(), drafted.clone());
        decide(
            greedy,
            &draft,
            &verdict.layers,
            &[],
            &mut forced,
            &mut chain,
        );
        forced
    };
    let tests = second(0);
    let tested: Vec<f64> = (1..=draft.len())
        .map(|length| tests.tested.get(&length).copied().unwrap_or(0.0))
        .collect();
    close(&tested, &numbers(&given["accept_desc"])[1..], tolerance);
    for (passes, expected) in given["next_law"].as_object().expect("distributions") {
        let forced = second(passes.parse().expect("a length"));
        close(&forced.probs(), &numbers(expected), tolerance);
    }
}

#[test]
fn tests_and_next_distributions_of_every_draft_are_the_references() {
    for case in cases("block_verify") {
        for draft in case["drafts"].as_array().expect("drafts") {
            check_draft::<f64>(&case, draft, 1e-9);
            check_draft::<f32>(&case, draft, 2e-5);
        }
        for second in case["v1_second_iteration"].as_array().expect("rounds") {
            check_second_round::<f64>(&case, second, 1e-9);
            check_second_round::<f32>(&case, second, 2e-5);
        }
    }
}
