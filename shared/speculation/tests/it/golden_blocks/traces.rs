//! Blocks with every uniform given.

use speculation::TokenId;
use speculation::chance::Chance;
use speculation::noise::Purpose;
use speculation::real::Real;
use speculation::target::TargetDistribution;
use speculation::verification::Verification;

use super::mixture::{mixed, rule_named};
use super::{METHODS, decide};
use crate::read::{cases, close, ids, numbers, row};
use crate::tree::chain::Chain;

/// Decides with the uniforms a trace gives.
struct Trace<F> {
    eta: Vec<f64>,
    last: f64,
    probs: Vec<F>,
}

impl<F: Real> Chance<F> for Trace<F> {
    fn accepts(&mut self, offset: u32, ratio: F) -> bool {
        self.eta[offset as usize] < ratio.as_f64()
    }

    fn token(&mut self, _purpose: Purpose, _offset: u32, probs: &[F]) -> TokenId {
        let total: f64 = probs.iter().map(|mass| mass.as_f64()).sum();
        self.probs = probs
            .iter()
            .map(|&mass| mass / F::from_f64(total))
            .collect();
        let mut mass = 0.0;
        let drawn = probs.iter().position(|probability| {
            mass += probability.as_f64() / total;
            mass > self.last
        });
        drawn.expect("a token") as TokenId
    }
}

fn check_traces<F: Real>(tolerance: f64) {
    for case in cases("traces") {
        let method = case["method"].as_str().expect("a method");
        let rows = |field: &str| -> Vec<Vec<F>> {
            case[field]
                .as_array()
                .expect("rows")
                .iter()
                .map(row)
                .collect()
        };
        let (mut targets, drafted) = (rows("p_laws"), rows("q_laws"));
        let known = METHODS.iter().find(|(name, _)| *name == method);
        let verification = known.map_or(Verification::TOKEN, |(_, verification)| *verification);
        if known.is_none() {
            let rule = rule_named(method).expect("a rule");
            let alpha = case["alpha"].as_f64().expect("a number");
            let distribution = TargetDistribution::Deferral { rule, alpha };
            for (p, q) in targets.iter_mut().zip(&drafted) {
                *p = mixed(distribution, (q, p), (q, p), false);
            }
        }
        let mut trace = Trace::<F> {
            eta: numbers(&case["eta"]),
            last: case["final_uniform"].as_f64().expect("a number"),
            probs: Vec::new(),
        };
        let draft = ids(&case["draft"]);
        let mut chain = Chain::new(targets, drafted);
        let verdict = decide(verification, &draft, &[], &[], &mut trace, &mut chain);
        assert_eq!(
            verdict.accepted() as u64,
            case["tau"].as_u64().expect("a length")
        );
        assert_eq!(verdict.emitted, ids(&case["emitted"]));
        let probs: Vec<f64> = trace.probs.into_iter().map(F::as_f64).collect();
        close(&probs, &numbers(&case["final_law"]), tolerance);
    }
}

#[test]
fn traces_with_given_uniforms_are_the_references() {
    check_traces::<f64>(1e-9);
    check_traces::<f32>(2e-5);
}
