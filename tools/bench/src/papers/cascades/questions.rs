//! The two questions of paper A's Table 2: how much quicker at the target's quality, and how good within its time.

use crate::papers::claims::Claim;
use crate::report::{BenchReport, number, percent, text};

/// A method with its setting.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    pub(super) family: &'static str,
    /// By the task's metric, 0 to 1.
    pub(super) quality: f64,
    /// Time a token over that of the target alone.
    pub(super) latency: f64,
    /// Target forwards a token.
    pub(super) calls: f64,
}

/// Returns the quickest of a family that is as good as `quality`; by calls where `by_calls`.
fn quickest(points: &[Point], family: &str, quality: f64, by_calls: bool) -> Option<f64> {
    let good = points
        .iter()
        .filter(|point| point.family == family && point.quality >= quality);
    let cost = good.map(|point| if by_calls { point.calls } else { point.latency });
    cost.min_by(f64::total_cmp)
}

/// Returns the best quality of a family within `latency`.
fn best(points: &[Point], family: &str, latency: f64) -> Option<f64> {
    let quick = points
        .iter()
        .filter(|point| point.family == family && point.latency <= latency);
    quick.map(|point| point.quality).max_by(f64::total_cmp)
}

/// Returns the families, each once, but the target's own, which is the first.
fn families(points: &[Point]) -> Vec<&'static str> {
    let mut found: Vec<&'static str> = Vec::new();
    for point in &points[1..] {
        if !found.contains(&point.family) {
            found.push(point.family);
        }
    }
    found
}

/// Adds the table.
pub(super) fn answer(case: &Case, report: &mut BenchReport) -> anyhow::Result<()> {
    let points = &case.points;
    let target = points[0];
    for family in families(points) {
        let speedup = quickest(points, family, target.quality, false).map(|latency| 1.0 / latency);
        report.row(
            "A-questions",
            vec![
                text("task", case.task),
                text("temperature", case.temperature),
                text("method", family),
                number("speedup", speedup, 2).called("speedup at the target's quality"),
                number("calls", case.calls(family), 3).called("calls/token there"),
                percent("best", best(points, family, 1.0), 1)
                    .called("best quality within its time"),
            ],
        )?;
    }
    Ok(())
}

/// What was measured of a task at a temperature.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) task: &'static str,
    pub(super) temperature: f32,
    /// Those of the target alone first.
    pub(super) points: Vec<Point>,
}

impl Case {
    /// Returns the fewest calls a token of a family that is as good as the target alone; none where none of it is.
    fn calls(&self, family: &str) -> Option<f64> {
        quickest(&self.points, family, self.points[0].quality, true)
    }

    fn best(&self, family: &str) -> f64 {
        best(&self.points, family, f64::INFINITY).unwrap_or(f64::NAN)
    }
}

/// Returns what became of the paper's claims.
pub(super) fn claims(cases: &[Case]) -> Vec<Claim> {
    let token = "SpecCascade [Token]";
    let calls =
        |value: Option<f64>| value.map_or("none as good".to_owned(), |it| format!("{it:.3}"));
    let fewer = |a: Option<f64>, b: Option<f64>| a.is_some_and(|a| b.is_none_or(|b| a < b));
    let compared = |says, found: &dyn Fn(&Case) -> (String, bool)| {
        let cases = cases.iter().map(|case| {
            let (words, holds) = found(case);
            (
                format!("{}, T={}: {words}", case.task, case.temperature),
                holds,
            )
        });
        let (words, holds): (Vec<_>, Vec<_>) = cases.unzip();
        Claim {
            of: "A, Table 2",
            says,
            found: words.join("; "),
            holds,
        }
    };
    let against = |other: &'static str| {
        move |case: &Case| {
            let (a, b) = (case.calls(token), case.calls(other));
            (format!("{} and {}", calls(a), calls(b)), fewer(a, b))
        }
    };
    vec![
        compared(
            "at the target's quality token-specific speculative cascades need fewer calls a token than lossy speculative decoding",
            &against("SpecDecode [Lossy]"),
        ),
        compared(
            "at the target's quality they need fewer calls a token than speculative decoding",
            &against("SpecDecode"),
        ),
        compared(
            "their best quality is above that of lossy speculative decoding",
            &|case| {
                let (a, b) = (case.best(token), case.best("SpecDecode [Lossy]"));
                (format!("{:.1}% and {:.1}%", 100.0 * a, 100.0 * b), a > b)
            },
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_questions_are_answered_by_the_points() {
        let point = |family, quality, latency| Point {
            family,
            quality,
            latency,
            calls: latency / 2.0,
        };
        let points = [
            point("TargetOnly", 0.5, 1.0),
            point("a", 0.6, 1.2),
            point("a", 0.5, 0.8),
            point("a", 0.4, 0.2),
            point("b", 0.4, 0.1),
        ];
        assert_eq!(families(&points), ["a", "b"]);
        assert_eq!(quickest(&points, "a", 0.5, false), Some(0.8));
        assert_eq!(quickest(&points, "a", 0.5, true), Some(0.4));
        assert_eq!(quickest(&points, "b", 0.5, false), None);
        assert_eq!(best(&points, "a", 1.0), Some(0.5));
        assert_eq!(best(&points, "b", 0.05), None);
    }
}
