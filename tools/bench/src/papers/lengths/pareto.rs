//! Whether a policy is on the better side of what fixed lengths come to: paper B, Figure 4.

use crate::papers::claims::Claim;
use crate::papers::curve;
use crate::papers::resampling::{Bootstrap, Ratio};
use crate::papers::statistics::SIGNIFICANT;
use crate::papers::trial::Outcome;

/// Rates of a method, request by request (equation 2.3).
#[derive(Clone, Debug)]
pub(super) struct Rates {
    /// Draft tokens not emitted, by emitted token.
    discard: Ratio,
    /// Target forwards, by emitted token.
    verification: Ratio,
}

/// A policy beside fixed lengths that discard as much.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Compared {
    /// Its verification rate.
    pub(super) own: f64,
    /// That of fixed lengths; none where even the shortest discards more.
    pub(super) fixed: Option<f64>,
    /// How likely such a difference is by chance.
    pub(super) p: f64,
}

impl Rates {
    pub(super) fn of(outcome: &Outcome) -> Self {
        Self {
            discard: outcome.by_token(|of| of.discarded),
            verification: outcome.by_token(|of| of.totals.target_forwards),
        }
    }

    /// Returns discard and verification rate over the requests at `picks`.
    fn point(&self, picks: &[usize]) -> [f64; 2] {
        [self.discard.of(picks), self.verification.of(picks)]
    }
}

/// Compares each of `policies` with `fixed` lengths.
pub(super) fn compare(fixed: &[Rates], policies: &[Rates], bootstrap: &Bootstrap) -> Vec<Compared> {
    let whole = |rates: &Rates| [rates.discard.whole(), rates.verification.whole()];
    let curve: Vec<_> = fixed.iter().map(whole).collect();
    let compared = policies.iter().map(|policy| {
        let [discard, own] = whole(policy);
        Compared {
            own,
            fixed: at(&curve, discard),
            p: bootstrap.p(|picks| {
                let curve: Vec<_> = fixed.iter().map(|rates| rates.point(picks)).collect();
                let [discard, own] = policy.point(picks);
                at(&curve, discard).map_or(f64::NAN, |fixed| fixed - own)
            }),
        }
    });
    compared.collect()
}

/// Returns the verification rate of fixed lengths that discard as much as `discard`: of two lengths, taken in turn so that their
/// mean discards as much, which is a straight line between their points. None below the least.
fn at(curve: &[[f64; 2]], discard: f64) -> Option<f64> {
    let least = curve.iter().map(|point| point[0]).min_by(f64::total_cmp)?;
    let rate = curve::height(curve, discard);
    rate.filter(|_| discard >= least)
}

/// Returns what became of the claim; each comparison has the sampling and the policy's name.
pub(super) fn claim(compared: &[(&str, &str, Compared)]) -> Claim {
    let words = compared.iter().map(|(sampling, name, it)| {
        let fixed = it
            .fixed
            .map_or("no length".to_owned(), |fixed| format!("{fixed:.3}"));
        format!(
            "{sampling}, {name}: {:.3}, fixed {fixed} (p={:.3})",
            it.own, it.p
        )
    });
    Claim {
        of: "B, Figure 4",
        says: "learned stopping is on a better Pareto frontier than fixed lengths: fewer calls where as many drafts are discarded",
        found: words.collect::<Vec<_>>().join("; "),
        holds: compared
            .iter()
            .map(|(.., it)| it.fixed.is_some_and(|fixed| it.own < fixed) && it.p < SIGNIFICANT)
            .collect(),
        but: "the head tells too little more than a length at these thresholds, or the requests are too few to show it",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_below_the_line_is_better() {
        let rates = |discarded: f64, forwards: f64| {
            let ratio = |above: f64| Ratio {
                parts: vec![[above, 10.0]; 8],
            };
            Rates {
                discard: ratio(discarded),
                verification: ratio(forwards),
            }
        };
        let fixed = [rates(5.0, 6.0), rates(15.0, 4.0)];
        let policies = [rates(10.0, 4.0), rates(10.0, 5.5), rates(1.0, 5.0)];
        let found = compare(&fixed, &policies, &Bootstrap::new(8, 1, 0));
        let near = |a: f64, b: f64| (a - b).abs() < 1e-12;
        assert!(near(found[0].own, 0.4) && near(found[0].fixed.expect("a length"), 0.5));
        assert!(found[0].p < 0.01 && found[1].p < 0.01, "{found:?}");
        assert_eq!((found[2].fixed, found[2].p), (None, 1.0));
        let named: Vec<_> = found.into_iter().map(|it| ("T=1", "h", it)).collect();
        assert_eq!(claim(&named).holds, [true, false, false]);
    }
}
