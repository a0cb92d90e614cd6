//! What the small multiples say of paper A's Figures 6 and 7.

use super::case::{Case, Point, of_family, p_together};
use crate::papers::claims::Claim;
use crate::papers::curve;
use crate::papers::statistics::SIGNIFICANT;

const LOSSY: &str = "SpecDecode [Lossy]";
const CASCADES: [&str; 2] = ["SpecCascade [OPT]", "SpecCascade [Token]"];

/// So many times the calls of another are as few.
const AS_FEW: f64 = 1.01;

/// A temperature and a block length.
#[derive(Debug)]
pub(super) struct Panel {
    pub(super) temperature: f32,
    pub(super) gamma: u32,
    pub(super) case: Case,
}

/// Returns what became of the claims; `panels` have those of a temperature together.
pub(super) fn claims(panels: &[Panel]) -> Vec<Claim> {
    let by_temperature: Vec<&[Panel]> = panels
        .chunk_by(|a, b| a.temperature == b.temperature)
        .collect();
    [
        Some(outperform(panels)),
        gap(&by_temperature),
        spread(&by_temperature),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Cascades are better than lossy decoding at every one of its settings.
fn outperform(panels: &[Panel]) -> Claim {
    let counted = panels.iter().map(|panel| {
        let lossy: Vec<usize> = (0..panel.case.points.len())
            .filter(|&index| panel.case.points[index].family == LOSSY)
            .collect();
        let beaten = lossy.iter().filter(|&&index| is_beaten(&panel.case, index));
        (&panel.case.name, beaten.count(), lossy.len())
    });
    let counted: Vec<_> = counted.collect();
    let words = counted
        .iter()
        .map(|(name, beaten, all)| format!("{name}: {beaten} of {all}"));
    Claim {
        of: "A, Figures 6 and 7",
        says: "at every temperature and block length speculative cascades are better than lossy speculative decoding, at each of its \
               settings with no more calls",
        found: words.collect::<Vec<_>>().join("; "),
        holds: counted
            .iter()
            .map(|(_, beaten, all)| beaten == all)
            .collect(),
        but: "up to T=0.5 the draft model's German is as good as the target's, and at T=0 lossy decoding emits the target's text: \
              neither leaves anything to win; at its most careful settings lossy decoding loses less than chance shows",
    }
}

/// Whether a cascade with no more calls is better than the point at `index`. The best of several is compared, so that as many
/// chances to be better by accident are counted.
fn is_beaten(case: &Case, index: usize) -> bool {
    let rivals = rivals(&case.points, case.points[index].calls);
    let best = rivals
        .iter()
        .copied()
        .max_by(|a, b| f64::total_cmp(&case.points[*a].quality, &case.points[*b].quality));
    best.is_some_and(|best| {
        let difference = |points: &[Point]| points[best].quality - points[index].quality;
        difference(&case.points) > 0.0 && rivals.len() as f64 * case.p(difference) < SIGNIFICANT
    })
}

/// Returns the cascades that need as few calls.
fn rivals(points: &[Point], calls: f64) -> Vec<usize> {
    let is_rival =
        |point: &Point| CASCADES.contains(&point.family) && point.calls <= AS_FEW * calls;
    let all = points.iter().enumerate();
    all.filter(|(_, point)| is_rival(point))
        .map(|(index, _)| index)
        .collect()
}

/// The gap between the rules grows with temperature.
fn gap(by_temperature: &[&[Panel]]) -> Option<Claim> {
    let (coldest, hottest) = (by_temperature.first()?, by_temperature.last()?);
    let gaps: Vec<f64> = by_temperature
        .iter()
        .map(|panels| mean_of(panels.iter().map(|panel| gap_of(&panel.case.points))))
        .collect();
    let both: Vec<&Case> = hottest
        .iter()
        .chain(*coldest)
        .map(|panel| &panel.case)
        .collect();
    let p = p_together(&both, |points| {
        let (hot, cold) = points.split_at(hottest.len());
        let [hot, cold] = [hot, cold].map(|of| mean_of(of.iter().map(|it| gap_of(it))));
        hot - cold
    });
    let words = by_temperature
        .iter()
        .zip(&gaps)
        .map(|(panels, gap)| format!("{:.1} points at T={}", 100.0 * gap, panels[0].temperature));
    Some(Claim {
        of: "A, Figure 6",
        says: "the gap between OPT and the token-specific rule is smaller at lower temperatures: here in quality at as many calls, mean \
               over settings and block lengths",
        found: format!("{} (p={p:.3})", words.collect::<Vec<_>>().join(", ")),
        holds: vec![gaps.last() > gaps.first() && p < SIGNIFICANT],
        but: "it grows by less than chance shows",
    })
}

/// Returns how far the two rules are apart in quality: the mean distance of the points of the one from the line of the other at as
/// many calls.
fn gap_of(points: &[Point]) -> f64 {
    let [opt, token] = CASCADES.map(|family| -> Vec<[f64; 2]> {
        let of_it = of_family(points, family);
        of_it.map(|point| [point.calls, point.quality]).collect()
    });
    let distances = token.iter().filter_map(|[calls, quality]| {
        let other = curve::height(&opt, *calls)?;
        Some((quality - other).abs())
    });
    mean_of(distances.collect::<Vec<_>>().into_iter())
}

/// Longer blocks make a wider range of trade-offs.
fn spread(by_temperature: &[&[Panel]]) -> Option<Claim> {
    let mut holds = Vec::new();
    let mut words = Vec::new();
    for panels in by_temperature {
        let (shortest, longest) = (panels.first()?, panels.last()?);
        let [short, long] = [shortest, longest].map(|panel| spread_of(&panel.case.points));
        let both = [&longest.case, &shortest.case];
        let p = p_together(&both, |points| {
            spread_of(&points[0]) - spread_of(&points[1])
        });
        words.push(format!(
            "T={}: {short:.2} at γ={}, {long:.2} at γ={} (p={p:.3})",
            shortest.temperature, shortest.gamma, longest.gamma
        ));
        holds.push(long > short && p < SIGNIFICANT);
    }
    Some(Claim {
        of: "A, Figure 7",
        says: "longer blocks give lossy decoding a wider range of latencies: here from its least to its most, over the target's",
        found: words.join("; "),
        holds,
        but: "hardly a draft is rejected below T=1, whatever the leniency, so that time hardly depends on it",
    })
}

/// Returns how far the latencies of lossy decoding are apart.
fn spread_of(points: &[Point]) -> f64 {
    let latencies = of_family(points, LOSSY).map(|point| point.latency);
    let most = latencies.clone().fold(f64::NEG_INFINITY, f64::max);
    most - latencies.fold(f64::INFINITY, f64::min)
}

fn mean_of(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    values.sum::<f64>() / count
}

#[cfg(test)]
mod tests {
    use super::super::case::TARGET;
    use super::super::case::tests::point;
    use super::*;

    #[test]
    fn gap_and_spread_are_those_of_the_points() {
        let points = [
            point(TARGET, 0.5, 2.0),
            point("SpecDecode", 0.5, 1.0),
            point(LOSSY, 0.4, 0.9),
            point(LOSSY, 0.3, 0.7),
            point(CASCADES[0], 0.6, 1.005),
            point(CASCADES[0], 0.9, 1.2),
            point(CASCADES[1], 0.45, 0.6),
        ];
        // The token-specific rule's only point is beyond the first of OPT.
        assert!((gap_of(&points) - 0.15).abs() < 1e-12);
        assert!((spread_of(&points) - 0.2).abs() < 1e-12);
        // Calls are half of the latency.
        assert_eq!(rivals(&points, 0.5), [4, 6]);
        assert_eq!(rivals(&points, 0.3), [6]);
        assert_eq!(mean_of([1.0, 2.0].into_iter()), 1.5);
    }
}
