//! A method on a task: how often it was right, and what that cost.

use serde_json::{Value, json};

use super::task::Task;
use crate::measure::Measured;
use crate::spec::{Series, Variant};

/// What was measured of one method.
#[derive(Clone, Debug)]
pub(super) struct Point {
    /// What it has in common with the others of its line.
    pub(super) series: String,
    /// What it differs in; empty if it stands alone.
    pub(super) values: String,
    method: String,
    pub(super) outputs: u32,
    right: u32,
    pub(super) measured: Measured,
}

impl Point {
    pub(super) fn new(series: &Series, variant: &Variant) -> Self {
        Self {
            series: series.label.clone(),
            values: variant.values.clone(),
            method: variant.method.to_string(),
            outputs: 0,
            right: 0,
            measured: Measured::default(),
        }
    }

    /// Counts one output.
    pub(super) fn add(&mut self, right: bool, measured: &Measured) {
        self.outputs += 1;
        self.right += u32::from(right);
        self.measured.add(measured);
    }

    /// The share of outputs that were right.
    pub(super) fn quality(&self) -> f64 {
        f64::from(self.right) / f64::from(self.outputs.max(1))
    }

    /// The standard error of [`Point::quality`], if the outputs are independent.
    pub(super) fn standard_error(&self) -> f64 {
        let quality = self.quality();
        (quality * (1.0 - quality) / f64::from(self.outputs.max(1))).sqrt()
    }

    pub(super) fn json(&self, task: &Task, temperature: f32, draft_len: u32) -> Value {
        json!({
            "task": task.name,
            "method": self.method,
            "series": self.series,
            "values": self.values,
            "temperature": temperature,
            "draft_len": draft_len,
            "outputs": self.outputs,
            "quality": self.quality(),
            "standard_error": self.standard_error(),
            "target_calls_per_token": self.measured.target_calls_per_token(),
            "tokens_per_second": self.measured.tokens_per_second(),
            "mean_acceptance_length": self.measured.mean_acceptance_length(),
            "draft_acceptance_rate": self.measured.acceptance_rate(),
            "deferral_rate": self.measured.deferral_rate(),
            "wire_bytes_per_round": self.measured.wire_bytes_per_round(),
        })
    }
}

/// A point that was right `right` times of `outputs`, with so many target forwards for 100 tokens.
#[cfg(test)]
pub(super) fn example(series: &str, values: &str, right: u32, target_forwards: f64) -> Point {
    Point {
        series: series.to_owned(),
        values: values.to_owned(),
        method: format!("{series}:{values}"),
        outputs: 20,
        right,
        measured: Measured {
            tokens: 100.0,
            total_ms: 50.0,
            target_forwards,
            ..Default::default()
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quality_is_a_share_with_its_error() {
        let mut point = example("coupled", "", 4, 30.0);
        assert_eq!(point.quality(), 0.2);
        assert!((point.standard_error() - (0.16_f64 / 20.0).sqrt()).abs() < 1e-15);
        point.add(true, &Measured::default());
        assert_eq!(point.quality(), 5.0 / 21.0);
        point.add(false, &Measured::default());
        assert_eq!(point.quality(), 5.0 / 22.0);
    }
}
