//! How good predictions of acceptance are.

/// Predictions this close to 0 or 1 are taken for this, so that one of them cannot cost infinitely much.
const SURE: f64 = 1e-7;

/// The divergence of a prediction from a label, in nats: P ln(P / P^) + (1 - P) ln((1 - P) / (1 - P^)).
pub(crate) fn binary_kl(label: f64, predicted: f64) -> f64 {
    let predicted = predicted.clamp(SURE, 1.0 - SURE);
    let term = |p: f64, q: f64| if p > 0.0 { p * (p / q).ln() } else { 0.0 };
    term(label, predicted) + term(1.0 - label, 1.0 - predicted)
}

/// Its mean over `labels` and `predicted`, (positions) each; SpecDec++'s measure, unweighted. 0 for none.
pub(crate) fn mean_kl(labels: &[f32], predicted: &[f32]) -> f64 {
    let pairs = labels.iter().zip(predicted);
    let sum: f64 = pairs
        .map(|(&label, &predicted)| binary_kl(label.into(), predicted.into()))
        .sum();
    sum / labels.len().max(1) as f64
}

/// The same of the best predictor that says the same everywhere: the mean of the very labels.
pub(crate) fn constant_kl(labels: &[f32]) -> f64 {
    let count = labels.len().max(1) as f64;
    let mean = labels.iter().map(|&label| f64::from(label)).sum::<f64>() / count;
    let sum: f64 = labels
        .iter()
        .map(|&label| binary_kl(label.into(), mean))
        .sum();
    sum / count
}

/// Positions whose predictions lie in one range.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Bin {
    /// Number of positions.
    pub(crate) count: usize,
    /// Mean prediction; 0 for none.
    pub(crate) predicted: f64,
    /// Mean label; 0 for none.
    pub(crate) label: f64,
}

/// Predictions against labels in `bins` ranges of equal width.
pub(crate) fn calibration(labels: &[f32], predicted: &[f32], bins: usize) -> Vec<Bin> {
    let mut table = vec![Bin::default(); bins];
    for (&label, &predicted) in labels.iter().zip(predicted) {
        let bin = &mut table[((predicted * bins as f32) as usize).min(bins - 1)];
        bin.count += 1;
        bin.predicted += f64::from(predicted);
        bin.label += f64::from(label);
    }
    for bin in &mut table {
        bin.predicted /= bin.count.max(1) as f64;
        bin.label /= bin.count.max(1) as f64;
    }
    table
}
