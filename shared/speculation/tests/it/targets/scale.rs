//! Single precision over a large vocabulary.

use speculation::noise::{InnerCall, Noise, Purpose};
use speculation::sampling::SamplingParams;
use speculation::target::{Beta, RULES, TargetDistribution};

use crate::model::{Model, apply};

const VOCAB: u32 = 152_000;

/// Both models' logits: a head that they mostly share, and a long tail.
fn logits(seed: u64) -> Vec<f64> {
    let draw = |seed, v| {
        let call = InnerCall::default();
        Noise::new(seed, 0).draw(Purpose::Draft, v, 0, call)
    };
    let logit = |v| {
        let head = if v < 40 { 9.0 + 3.0 * draw(7, v) } else { 0.0 };
        // What both precisions can hold, so that only the arithmetic differs.
        f64::from((head + 2.0 * draw(seed, v)) as f32)
    };
    (0..VOCAB).map(logit).collect()
}

#[test]
fn single_precision_agrees_with_double_over_a_large_vocabulary() {
    let (small, big) = (logits(1), logits(2));
    let single = |row: &[f64]| row.iter().map(|&logit| logit as f32).collect::<Vec<_>>();
    let rules = RULES.iter().copied().map(|rule| {
        let alpha = rule.alpha.default;
        TargetDistribution::Deferral { rule, alpha }
    });
    let lossy =
        [Beta::Fixed(1.0), Beta::Tuned].map(|beta| TargetDistribution::Lossy { alpha: 0.3, beta });
    let aims: Vec<_> = rules.chain(lossy).collect();
    for temperature in [1.0, 2.0] {
        let params = SamplingParams {
            temperature,
            ..Default::default()
        };
        let (q, p) = (Model::of(&small, &params), Model::of(&big, &params));
        let served = [&small, &big].map(|row| Model::of(&single(row), &params));
        let [served_q, served_p] = &served;
        for (exact, served) in [(&q, served_q), (&p, served_p)] {
            let apart = exact.confidence.max - f64::from(served.confidence.max);
            assert!(apart.abs() < 2e-5, "max: {apart:e}");
            let apart = exact.confidence.entropy - f64::from(served.confidence.entropy);
            assert!(apart.abs() < 2e-5, "entropy: {apart:e}");
        }
        for &aim in &aims {
            let (deferral, pi) = apply(aim, &q, &p, false);
            let (served_deferral, served_pi) = apply(aim, served_q, served_p, false);
            let difference = deferral.unwrap_or(0.0) - f64::from(served_deferral.unwrap_or(0.0));
            assert!(difference.abs() < 2e-5, "{aim:?}: {difference:e}");
            let differences = pi
                .iter()
                .zip(&served_pi)
                .map(|(a, &b)| (a - f64::from(b)).abs());
            let distance = differences.sum::<f64>() / 2.0;
            assert!(distance < 2e-5, "{aim:?}: {distance:e}");
        }
    }
}
