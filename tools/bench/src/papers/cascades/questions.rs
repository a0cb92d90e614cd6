//! The two questions of paper A's Table 2: how much quicker at the target's quality, and how good within its time.

use super::case::{Case, Point, of_family};
use crate::papers::claims::Claim;
use crate::papers::statistics::SIGNIFICANT;
use crate::report::{BenchReport, number, percent, text};

/// Returns the least cost of those of a family that are as good as the target alone, which is the first point.
fn cheapest(points: &[Point], family: &str, cost: fn(&Point) -> f64) -> Option<f64> {
    let good = of_family(points, family).filter(|point| point.quality >= points[0].quality);
    good.map(cost).min_by(f64::total_cmp)
}

/// Returns the fewest calls a token of a family that is as good as the target alone; none where none of it is.
fn calls(points: &[Point], family: &str) -> Option<f64> {
    cheapest(points, family, |point| point.calls)
}

/// Returns the best quality of a family within `latency`.
fn best(points: &[Point], family: &str, latency: f64) -> Option<f64> {
    let quick = of_family(points, family).filter(|point| point.latency <= latency);
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
pub(super) fn answer(
    case: &Case,
    (task, temperature): (&'static str, f32),
    report: &mut BenchReport,
) -> anyhow::Result<()> {
    let points = &case.points;
    for family in families(points) {
        let speedup = cheapest(points, family, |point| point.latency).map(|latency| 1.0 / latency);
        report.row(
            "A-questions",
            vec![
                text("task", task),
                text("temperature", temperature),
                text("method", family),
                number("speedup", speedup, 2).called("speedup at the target's quality"),
                number("calls", calls(points, family), 3).called("calls/token there"),
                percent("best", best(points, family, 1.0), 1)
                    .called("best quality within its time"),
            ],
        )?;
    }
    Ok(())
}

/// Returns by how much fewer calls `a` comes to the target's quality than `b`; a family that does not has more than any.
fn saved(points: &[Point], a: &str, b: &str) -> f64 {
    match (calls(points, a), calls(points, b)) {
        (Some(a), Some(b)) => b - a,
        (Some(_), None) => f64::INFINITY,
        (None, Some(_)) => f64::NEG_INFINITY,
        (None, None) => 0.0,
    }
}

/// Returns by how much the best quality of `a` is above that of `b`.
fn better(points: &[Point], a: &str, b: &str) -> f64 {
    let best = |family| best(points, family, f64::INFINITY).unwrap_or(f64::NAN);
    best(a) - best(b)
}

/// Returns what became of the paper's claims.
pub(super) fn claims(cases: &[Case]) -> Vec<Claim> {
    let (token, lossy, exact) = ("SpecCascade [Token]", "SpecDecode [Lossy]", "SpecDecode");
    let compared = |says,
                    but,
                    other: &'static str,
                    difference: fn(&[Point], &str, &str) -> f64,
                    shown: &dyn Fn(&[Point], &str) -> String| {
        let cases = cases.iter().map(|case| {
            let of = |points: &[Point]| difference(points, token, other);
            let p = case.p(of);
            let [a, b] = [token, other].map(|family| shown(&case.points, family));
            let words = format!("{}: {a} and {b} (p={p:.3})", case.name);
            (words, of(&case.points) > 0.0 && p < SIGNIFICANT)
        });
        let (words, holds): (Vec<_>, Vec<_>) = cases.unzip();
        Claim {
            of: "A, Table 2",
            says,
            found: words.join("; "),
            holds,
            but,
        }
    };
    let shown_calls = |points: &[Point], family: &str| {
        calls(points, family).map_or("none as good".to_owned(), |it| format!("{it:.3}"))
    };
    let shown_best = |points: &[Point], family: &str| {
        let best = best(points, family, f64::INFINITY);
        format!("{:.1}%", 100.0 * best.unwrap_or(f64::NAN))
    };
    vec![
        compared(
            "at the target's quality token-specific speculative cascades need fewer calls a token than lossy speculative decoding",
            "the German of both models is nearly the same, which leaves nothing to trade; elsewhere the quality of so few texts \
             hardly tells one setting from another",
            lossy,
            saved,
            &shown_calls,
        ),
        compared(
            "at the target's quality they need fewer calls a token than speculative decoding",
            "the German of both models is nearly the same, which leaves nothing to trade; elsewhere the quality of so few texts \
             hardly tells one setting from another",
            exact,
            saved,
            &shown_calls,
        ),
        compared(
            "their best quality is above that of lossy speculative decoding",
            "at T=0 both give the target's own text at their most careful setting; elsewhere the quality of so few texts \
             hardly tells one setting from another",
            lossy,
            better,
            &shown_best,
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::case::TARGET;
    use super::super::case::tests::point;
    use super::*;

    #[test]
    fn the_questions_are_answered_by_the_points() {
        let points = [
            point(TARGET, 0.5, 1.0),
            point("a", 0.6, 1.2),
            point("a", 0.5, 0.8),
            point("a", 0.4, 0.2),
            point("b", 0.4, 0.1),
            point("c", 0.7, 1.0),
        ];
        assert_eq!(families(&points), ["a", "b", "c"]);
        assert_eq!(cheapest(&points, "a", |point| point.latency), Some(0.8));
        assert_eq!(calls(&points, "a"), Some(0.4));
        assert_eq!(calls(&points, "b"), None);
        assert_eq!(best(&points, "a", 1.0), Some(0.5));
        assert_eq!(best(&points, "b", 0.05), None);
        assert!((saved(&points, "a", "c") - 0.1).abs() < 1e-15);
        assert_eq!(saved(&points, "a", "b"), f64::INFINITY);
        assert_eq!(saved(&points, "b", "b"), 0.0);
        assert!((better(&points, "c", "a") - 0.1).abs() < 1e-15);
    }
}
