//! The two questions of paper A's Table 2: how much quicker at the target's quality, and how good within its time.

use crate::papers::claims::Claim;
use crate::report::{BenchReport, number, percent, text};

/// A method with its setting.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    pub(super) family: &'static str,
    /// BLEU, 0 to 1.
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
pub(super) fn answer(
    temperature: f32,
    points: &[Point],
    report: &mut BenchReport,
) -> anyhow::Result<()> {
    let target = points[0];
    for family in families(points) {
        let speedup = quickest(points, family, target.quality, false).map(|latency| 1.0 / latency);
        let calls = quickest(points, family, target.quality, true);
        report.row(
            "A-questions",
            vec![
                text("temperature", temperature),
                text("method", family),
                number("speedup", speedup, 2).called("speedup at the target's BLEU"),
                number("calls", calls, 3).called("calls/token there"),
                percent("best", best(points, family, 1.0), 1).called("best BLEU within its time"),
            ],
        )?;
    }
    Ok(())
}

/// Returns what became of the paper's claims at a temperature.
pub(super) fn claims(temperature: f32, points: &[Point]) -> Vec<Claim> {
    let target = points[0];
    let calls = |family| quickest(points, family, target.quality, true);
    let best = |family| best(points, family, f64::INFINITY);
    let told =
        |value: Option<f64>| value.map_or("none is as good".to_owned(), |it| format!("{it:.3}"));
    let (token, lossy, exact) = (
        calls("SpecCascade [Token]"),
        calls("SpecDecode [Lossy]"),
        calls("SpecDecode"),
    );
    let fewer = |a: Option<f64>, b: Option<f64>| a.is_some_and(|a| b.is_none_or(|b| a < b));
    let (best_cascade, best_lossy) = (best("SpecCascade [Token]"), best("SpecDecode [Lossy]"));
    let percent = |value: Option<f64>| value.map_or(f64::NAN, |it| 100.0 * it);
    vec![
        Claim {
            of: "A, Table 2",
            says: "at the target's quality token-specific speculative cascades need fewer calls than lossy speculative decoding",
            found: format!(
                "T={temperature}: {} against {} calls a token",
                told(token),
                told(lossy)
            ),
            holds: fewer(token, lossy),
        },
        Claim {
            of: "A, Table 2",
            says: "at the target's quality they need fewer than speculative decoding",
            found: format!(
                "T={temperature}: {} against {} calls a token",
                told(token),
                told(exact)
            ),
            holds: fewer(token, exact),
        },
        Claim {
            of: "A, Table 2",
            says: "their best quality is above that of lossy speculative decoding",
            found: format!(
                "T={temperature}: BLEU {:.1} against {:.1}",
                percent(best_cascade),
                percent(best_lossy)
            ),
            holds: best_cascade > best_lossy,
        },
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
