//! Methods on the same prompts at the same temperature: how good each is, and what it costs.

use crate::measure::Measured;
use crate::papers::resampling::{Bootstrap, Ratio, whole};
use crate::papers::trial::{Outcome, Trial};
use crate::quality::{Metric, Resampled};

/// The method that the others are compared with: its figures are those of the target model alone.
pub(super) const TARGET: &str = "TargetOnly";

/// What a method gave, request by request.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    pub(super) family: &'static str,
    pub(super) quality: Resampled,
    /// Target forwards a token.
    pub(super) calls: Ratio,
    /// Milliseconds a token.
    pub(super) time: Ratio,
}

impl Sample {
    /// Returns what was measured of a method of `family`.
    ///
    /// # Errors
    /// If the metric asks a model.
    pub(super) fn of(
        family: &'static str,
        trial: &Trial<'_>,
        metric: Metric,
        outcome: &Outcome,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            family,
            quality: trial.quality(metric, outcome)?,
            calls: outcome.by_token(|of: &Measured| of.totals.target_forwards),
            time: outcome.by_token(|of: &Measured| of.totals.total_ms),
        })
    }
}

/// A method as a point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    pub(super) family: &'static str,
    /// By the task's metric, 0 to 1.
    pub(super) quality: f64,
    /// Time a token over that of the target alone.
    pub(super) latency: f64,
    /// Target forwards a token.
    pub(super) calls: f64,
}

/// What was measured of some methods.
#[derive(Clone, Debug)]
pub(super) struct Case {
    /// Task, temperature, block length: what it is called in words.
    pub(super) name: String,
    /// Those of the target alone first.
    samples: Vec<Sample>,
    bootstrap: Bootstrap,
    /// Of all requests, in the order of the samples.
    pub(super) points: Vec<Point>,
}

impl Case {
    /// Returns the case of `samples`, of which the first are of the target alone.
    pub(super) fn new(name: String, samples: Vec<Sample>, bootstrap: Bootstrap) -> Self {
        let points = points(&samples, &whole(samples[0].calls.parts.len()));
        Self {
            name,
            samples,
            bootstrap,
            points,
        }
    }

    /// Returns how likely a difference at least so large is if there is none.
    pub(super) fn p(&self, difference: impl Fn(&[Point]) -> f64) -> f64 {
        self.bootstrap
            .p(|picks| difference(&points(&self.samples, picks)))
    }

    /// Returns the standard error of the quality of the sample at `index`.
    pub(super) fn quality_error(&self, index: usize) -> f64 {
        let quality = &self.samples[index].quality;
        self.bootstrap.error(|picks| quality.value(picks))
    }
}

/// Returns the same of several cases together, which have the same prompts: `difference` has the points of each.
pub(super) fn p_together(cases: &[&Case], difference: impl Fn(&[Vec<Point>]) -> f64) -> f64 {
    cases[0].bootstrap.p(|picks| {
        let each = cases.iter().map(|case| points(&case.samples, picks));
        difference(&each.collect::<Vec<_>>())
    })
}

fn points(samples: &[Sample], picks: &[usize]) -> Vec<Point> {
    let base = samples[0].time.of(picks);
    let point = |sample: &Sample| Point {
        family: sample.family,
        quality: sample.quality.value(picks),
        latency: sample.time.of(picks) / base,
        calls: sample.calls.of(picks),
    };
    samples.iter().map(point).collect()
}

/// Returns the points of a family.
pub(super) fn of_family<'a>(
    points: &'a [Point],
    family: &'a str,
) -> impl Iterator<Item = &'a Point> + Clone {
    points.iter().filter(move |point| point.family == family)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A point whose calls are half its latency.
    pub(in crate::papers::cascades) fn point(
        family: &'static str,
        quality: f64,
        latency: f64,
    ) -> Point {
        Point {
            family,
            quality,
            latency,
            calls: latency / 2.0,
        }
    }

    #[test]
    fn a_case_has_the_points_of_its_samples() {
        let answers = [vec!["yes".to_owned()], vec!["no".to_owned()]];
        let sample = |family, outputs: [&str; 2], forwards: [f64; 2], ms: [f64; 2]| {
            let outputs = [(outputs[0], &answers[0][..]), (outputs[1], &answers[1][..])];
            let ratio = |above: [f64; 2]| Ratio {
                parts: vec![[above[0], 4.0], [above[1], 6.0]],
            };
            Sample {
                family,
                quality: Resampled::of(Metric::Exact, &outputs).expect("no model is asked"),
                calls: ratio(forwards),
                time: ratio(ms),
            }
        };
        let samples = vec![
            sample(TARGET, ["yes", "no"], [4.0, 6.0], [8.0, 12.0]),
            sample("a", ["yes", "yes"], [1.0, 2.0], [4.0, 6.0]),
        ];
        let case = Case::new("b".to_owned(), samples, Bootstrap::new(2, 1, 0));
        let expected = Point {
            family: "a",
            quality: 0.5,
            latency: 0.5,
            calls: 0.3,
        };
        assert_eq!(case.points[1], expected);
        assert_eq!((case.points[0].latency, case.points[0].calls), (1.0, 1.0));
        assert_eq!(case.quality_error(0), 0.0);
        assert_eq!(case.p(|points| points[0].calls - points[0].calls), 1.0);
        // Every choice of requests calls the target less often.
        assert!(case.p(|points| points[0].calls - points[1].calls) < 0.01);
        assert_eq!(of_family(&case.points, "a").count(), 1);
    }
}
