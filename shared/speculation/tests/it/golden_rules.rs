//! Golden vectors of one position: speculative sampling, the ten deferral rules, lossy sampling.
//!
//! Every case runs in double precision to 1e-9 and in single precision to 2e-5. None is for double
//! precision only: the ties in the files are between rows that single precision holds equal too.

use outrider_tests::acceptance::rejection;
use serde_json::Value;
use speculation::real::Real;
use speculation::sampling::SamplingParams;
use speculation::target::{Beta, Rule, TargetDistribution, tuned_beta};
use speculation::verification::token;

use crate::model::{Model, apply};
use crate::read::cases;

fn number(value: &Value) -> f64 {
    match value.as_str() {
        Some("inf") => f64::INFINITY,
        Some("-inf") => f64::NEG_INFINITY,
        _ => value.as_f64().expect("a number"),
    }
}

fn row<F: Real>(value: &Value) -> Vec<F> {
    let values = value.as_array().expect("a row");
    values
        .iter()
        .map(|value| F::from_f64(number(value)))
        .collect()
}

fn assert_number<F: Real>(got: F, expected: &Value, what: &str) {
    let (got, expected) = (got.as_f64(), number(expected));
    let tolerance = if size_of::<F>() == 4 { 2e-5 } else { 1e-9 };
    assert!(
        got == expected || (got - expected).abs() <= tolerance,
        "{what}: {got} is not {expected}"
    );
}

fn assert_row<F: Real>(got: &[F], expected: &Value, what: &str) {
    let expected = expected.as_array().expect("a row");
    assert_eq!(got.len(), expected.len(), "{what}");
    for (got, expected) in got.iter().zip(expected) {
        assert_number(*got, expected, what);
    }
}

/// Checks what token verification of `pi` makes of a draft token of distribution `q` against the file.
fn assert_position<F: Real>(q: &[F], pi: &[F], expected: &Value, what: &str) {
    let ratios = q.iter().zip(pi).map(|(&q, &pi)| {
        if q > F::zero() {
            token::acceptance_ratio(pi, q).min(F::one())
        } else {
            F::one()
        }
    });
    let accept: Vec<F> = ratios.collect();
    assert_row(&accept, &expected["accept"], what);
    let accepted = rejection(q, pi);
    assert_number(accepted, &expected["accept_rate"], what);
    assert_number(F::one() - accepted, &expected["reject_rate"], what);
    let excess: Vec<F> = q
        .iter()
        .zip(pi)
        .map(|(&q, &pi)| (pi - q).max(F::zero()))
        .collect();
    let mass = excess.iter().fold(F::zero(), |mass, &value| mass + value);
    if expected["residual"].is_null() {
        // Nothing is refused, so that the emitted distribution is q.
        assert_number(mass, &Value::from(0.0), what);
        assert_row(q, &expected["output"], what);
        return;
    }
    let residual: Vec<F> = excess.iter().map(|&value| value / mass).collect();
    assert_row(&residual, &expected["residual"], what);
    let refused = F::one() - accepted;
    let emitted = (0..q.len()).map(|v| q[v] * accept[v] + refused * residual[v]);
    assert_row(&emitted.collect::<Vec<_>>(), &expected["output"], what);
}

/// One model's distributions at the case's settings.
fn model<F: Real>(logits: &Value, case: &Value) -> Model<F> {
    let temperature = number(&case["temperature"]);
    let params = SamplingParams {
        temperature: temperature as f32,
        top_k: number(&case["top_k"]) as u32,
        top_p: number(&case["top_p"]) as f32,
        ..Default::default()
    };
    let logits = row::<F>(logits);
    let plain = Model::of(&logits, &params);
    let served = f64::from(params.temperature);
    if size_of::<F>() == 4 || served == temperature {
        return plain;
    }
    // Requests carry the temperature in single precision. Where that rounds it (0.1), the row of
    // double precision is stretched, so that the quotient is the file's.
    let stretch = F::from_f64(served / temperature);
    let stretched: Vec<F> = logits.iter().map(|&logit| logit * stretch).collect();
    Model {
        sampling: Model::of(&stretched, &params).sampling,
        ..plain
    }
}

fn rules_are_as_recorded<F: Real>() {
    for file in [
        "chow",
        "chow_log",
        "diff",
        "diff_log",
        "opt",
        "opt_log",
        "token_v1",
        "token_v2",
        "token_v3",
        "bild_star",
    ] {
        let name = file.trim_end_matches("_star").replace('_', "-");
        let rule = Rule::find(&name).expect("a rule");
        for case in cases(&format!("rules/{file}")) {
            let what = case["id"].as_str().expect("an id");
            let q = model::<F>(&case["logits_q"], &case);
            let p = model::<F>(&case["logits_p"], &case);
            for (model, name) in [(&q, "q"), (&p, "p")] {
                assert_row(&model.sampling, &case[name], what);
                assert_row(model.unscaled(), &case[format!("{name}_unscaled")], what);
                assert_number(model.confidence.max, &case[format!("max_{name}")], what);
                assert_number(
                    model.confidence.entropy,
                    &case[format!("entropy_{name}")],
                    what,
                );
            }
            let alpha = number(&case["alpha"]);
            let aim = TargetDistribution::Deferral { rule, alpha };
            assert_eq!(aim.validate(), Ok(()), "{what}");
            let greedy = number(&case["temperature"]) == 0.0;
            let (deferral, pi) = apply(aim, &q, &p, greedy);
            let deferral = deferral.expect("a deferral");
            if rule.judges_tokens() {
                assert_number(deferral, &case["eta"], what);
            } else {
                assert_eq!(deferral.as_f64(), number(&case["defer"]), "{what}");
            }
            assert_row(&pi, &case["pi"], what);
            assert_position(&q.sampling, &pi, &case, what);
        }
    }
}

#[test]
fn deferral_rules_are_as_recorded_in_both_precisions() {
    rules_are_as_recorded::<f64>();
    rules_are_as_recorded::<f32>();
}

fn speculative_sampling_is_as_recorded<F: Real>() {
    for case in cases("spec_token") {
        let what = case["id"].as_str().expect("an id");
        let (q, p) = (row::<F>(&case["q"]), row::<F>(&case["p"]));
        assert_position(&q, &p, &case, what);
    }
}

#[test]
fn speculative_sampling_is_as_recorded_in_both_precisions() {
    speculative_sampling_is_as_recorded::<f64>();
    speculative_sampling_is_as_recorded::<f32>();
}

/// The file's lossy cases all have α = 0, where nothing is lost; `targets.rs` holds α > 0 against
/// the definition.
fn lossy_sampling_is_as_recorded<F: Real>() {
    for case in cases("lossy") {
        let what = case["id"].as_str().expect("an id");
        let (q, p) = (row::<F>(&case["q"]), row::<F>(&case["p"]));
        let alpha = number(&case["alpha"]);
        let tuned = tuned_beta(&q, &p, alpha);
        assert_number(F::from_f64(tuned), &case["beta_exact"], what);
        for (beta, name) in [
            (Beta::Fixed(1.0), "beta1"),
            (Beta::Tuned, "tuned"),
            (Beta::Fixed(number(&case["beta_grid"])), "tuned"),
        ] {
            let aim = TargetDistribution::Lossy { alpha, beta };
            let (deferral, pi) = apply(aim, &Model::plain(&q), &Model::plain(&p), false);
            assert_eq!(deferral, None);
            assert_row(&pi, &case[name]["output"], what);
            assert_position(&q, &pi, &case[name], what);
        }
        for (kl_budget, name) in [(0.05, "mentored_kl_0.05"), (0.3, "mentored_kl_0.3")] {
            let aim = TargetDistribution::LossyWithin { kl_budget };
            let (_, pi) = apply(aim, &Model::plain(&q), &Model::plain(&p), false);
            // The file's search ends a little short of the budget.
            let expected = case[name]["output"].as_array().expect("a row");
            for (found, expected) in pi.iter().zip(expected) {
                let difference = (found.as_f64() - number(expected)).abs();
                assert!(difference < 1e-6, "{what} {name}: {pi:?}");
            }
        }
    }
}

#[test]
fn lossy_sampling_is_as_recorded_in_both_precisions() {
    lossy_sampling_is_as_recorded::<f64>();
    lossy_sampling_is_as_recorded::<f32>();
}
