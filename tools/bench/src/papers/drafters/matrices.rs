//! Matrices K of a cascade of the draft model and Max-Gram: the paper's Table 4 and its ablation, request by request.

use super::super::claims::Claim;
use super::super::statistics::{SIGNIFICANT, wilcoxon};
use super::super::trial::{Outcome, ms_a_token};

/// Cascades, each with its name: the paper's values with K00 from 1 to 3, then K00 = 1 without the horizontal cascade. A block is
/// as long as K has it; with a length that follows what pays, none might be drafted.
pub(super) const MATRICES: [(&str, &str); 4] = [
    (
        "cascade, K 1+10/0+10",
        "coupled:drafting=cascade:draft-len=20:paper_defaults:cascade_k=1+10/0+10",
    ),
    (
        "cascade, K 2+10/0+10",
        "coupled:drafting=cascade:draft-len=20:paper_defaults",
    ),
    (
        "cascade, K 3+10/0+10",
        "coupled:drafting=cascade:draft-len=20:paper_defaults:cascade_k=3+10/0+10",
    ),
    (
        "cascade, K 1+0/0+10",
        "coupled:drafting=cascade:draft-len=20:paper_defaults:cascade_k=1+0/0+10",
    ),
];

/// Most that the worst K00 loses of the best one's speed: a little more than in the paper.
const SLIGHT: f64 = 0.05;

/// Returns what became of the claims about `outcomes`, which are those of [`MATRICES`].
pub(super) fn claims(outcomes: &[Outcome]) -> [Claim; 2] {
    let times: Vec<f64> = outcomes.iter().map(|it| ms_a_token(&it.total())).collect();
    let best = times[..3].iter().copied().fold(f64::INFINITY, f64::min);
    let worst = times[..3].iter().copied().fold(0.0, f64::max);
    let lost = 1.0 - best / worst;
    let [with, without] = [&outcomes[0], &outcomes[3]].map(|it| it.each(ms_a_token));
    let differences: Vec<f64> = with.iter().zip(&without).map(|(a, b)| b - a).collect();
    let p = wilcoxon(&differences);
    let gained = times[3] / times[0] - 1.0;
    [
        Claim {
            of: "C, Table 4",
            says: "K00, how many tokens of the draft model the target wants, hardly matters: 1 to 3 are within 4%",
            found: format!(
                "the worst of them is {:.1}% slower than the best",
                100.0 * lost
            ),
            holds: vec![lost <= SLIGHT],
            but: "the draft model's tokens are a larger part of the time here than in the paper",
        },
        Claim {
            of: "C, ablation",
            says: "the horizontal cascade brings 5%: Max-Gram goes on after the draft model's tokens",
            found: format!("{:+.1}% with K00 = 1 (p={p:.3})", 100.0 * gained),
            holds: vec![gained > 0.0 && p < SIGNIFICANT],
            but: "ten more tokens save target calls, but the target's forwards of so many rows cost more than that here",
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{Measured, MeasuredAnswer};

    /// An outcome of ten requests of ten tokens that took this many milliseconds each.
    fn outcome(ms: f64) -> Outcome {
        let mut measured = Measured::default();
        (measured.totals.total_ms, measured.totals.tokens) = (ms, 10.0);
        let answer = MeasuredAnswer {
            measured,
            ..MeasuredAnswer::default()
        };
        Outcome {
            answers: vec![answer; 10],
        }
    }

    #[test]
    fn a_claim_holds_where_the_times_say_so() {
        let of = |ms: [f64; 4]| claims(&ms.map(outcome)).map(|claim| claim.holds[0]);
        assert_eq!(of([10.0, 10.4, 10.2, 11.0]), [true, true]);
        assert_eq!(of([10.0, 11.0, 10.2, 10.0]), [false, false]);
        assert_eq!(of([10.0, 10.0, 10.0, 9.0]), [true, false]);
    }
}
