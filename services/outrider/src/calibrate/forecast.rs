//! What is forecast from that.

use speculation::cascade::ewif::{DraftShare, horizontal};

/// Standard errors of a range.
const RANGE: f64 = 2.0;

/// A line: what something takes by the number of draft tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Line {
    pub(super) fixed: f64,
    pub(super) each: f64,
}

impl Line {
    /// Returns the line of least squares through points of an x, a mean and a weight; level through points of one x. None
    /// without points.
    pub(super) fn through(points: &[(f64, f64, f64)]) -> Option<Self> {
        let sum = |of: &dyn Fn(&(f64, f64, f64)) -> f64| {
            points.iter().map(|it| of(it) * it.2).sum::<f64>()
        };
        let weight = sum(&|_| 1.0);
        if weight <= 0.0 {
            return None;
        }
        let (x, y) = (sum(&|it| it.0) / weight, sum(&|it| it.1) / weight);
        let spread = sum(&|it| (it.0 - x).powi(2));
        let each = if spread > 0.0 {
            (sum(&|it| (it.0 - x) * (it.1 - y)) / spread).max(0.0)
        } else {
            0.0
        };
        Some(Self {
            fixed: y - each * x,
            each,
        })
    }

    /// Returns its value at `x`.
    pub(super) fn at(self, x: f64) -> f64 {
        self.fixed + self.each * x
    }
}

/// What rounds cost, in milliseconds, and bring.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Costs {
    /// A token of the target alone.
    pub(super) alone_ms: f64,
    /// From asking the drafter to its block, and the verifier to its verdict, by draft tokens.
    pub(super) draft: Line,
    pub(super) verify: Line,
    /// What of that were forwards.
    pub(super) draft_forward: Line,
    pub(super) verify_forward: Line,
    /// What else a round takes.
    pub(super) beside_ms: f64,
    /// Rounds that acceptance was measured in.
    pub(super) rounds: f64,
    /// The probability that a draft token is accepted, and all before it.
    pub(super) survival: Vec<f64>,
}

/// What rounds of a length are worth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Forecast {
    pub(super) draft_len: u32,
    /// Times the speed of the target alone; and if acceptance is less, or more, by twice its standard error.
    pub(super) speedup: f64,
    pub(super) range: [f64; 2],
}

impl Costs {
    /// Returns what rounds of `draft_len` tokens are worth: the expected walltime improvement factor of
    /// [`horizontal`], where each draft token is a draft of its own, with the acceptance of its position.
    pub(super) fn forecast(&self, draft_len: u32) -> Forecast {
        let len = f64::from(draft_len);
        let round_ms = self.draft.at(len) + self.verify.at(len) + self.beside_ms;
        // In forwards of the target alone, the first of which is the target's own.
        let cost = (round_ms / self.alone_ms - 1.0) / len;
        let speedup = |errors: f64| {
            let mut before = 1.0;
            let drafts = (0..draft_len as usize).map(|at| {
                // Beyond what was measured as at its end.
                let known = self.survival.get(at).copied();
                let survival = known.map_or(before * self.last(), |share| {
                    let error = (share * (1.0 - share) / self.rounds.max(1.0)).sqrt();
                    (share + errors * error).clamp(0.0, before)
                });
                let acceptance = if before > 0.0 { survival / before } else { 0.0 };
                before = survival;
                DraftShare {
                    acceptance,
                    tokens: 1,
                    cost,
                }
            });
            horizontal(&drafts.collect::<Vec<_>>())
        };
        Forecast {
            draft_len,
            speedup: speedup(0.0),
            range: [speedup(-RANGE), speedup(RANGE)],
        }
    }

    /// The acceptance of the last position.
    fn last(&self) -> f64 {
        match self.survival[..] {
            [.., before, last] if before > 0.0 => last / before,
            _ => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_goes_through_its_points() {
        let line = Line::through(&[(1.0, 3.0, 5.0), (8.0, 17.0, 2.0)]).expect("points");
        assert!((line.fixed - 1.0).abs() < 1e-12 && (line.each - 2.0).abs() < 1e-12);
        let level = Line::through(&[(4.0, 3.0, 1.0), (4.0, 5.0, 3.0)]).expect("points");
        assert_eq!(
            level,
            Line {
                fixed: 4.5,
                each: 0.0
            }
        );
        assert_eq!(Line::through(&[]), None);
    }

    /// A target of 10 ms, a draft model of 1 ms a token, half of the drafts accepted.
    #[test]
    fn a_forecast_is_tokens_by_time() {
        let line = |fixed, each| Line { fixed, each };
        let costs = Costs {
            alone_ms: 10.0,
            draft: line(0.0, 1.0),
            verify: line(10.0, 0.5),
            draft_forward: line(0.0, 1.0),
            verify_forward: line(10.0, 0.5),
            beside_ms: 0.5,
            rounds: 100.0,
            survival: vec![0.5, 0.25],
        };
        let two = costs.forecast(2);
        assert!((two.speedup - 1.75 / 1.35).abs() < 1e-12, "{two:?}");
        let errors = [0.05, (0.25_f64 * 0.75 / 100.0).sqrt()];
        let least = 1.75 - 2.0 * (errors[0] + errors[1]);
        assert!((two.range[0] - least / 1.35).abs() < 1e-12, "{two:?}");
        assert!(two.range[1] > two.speedup);
        // A third is accepted as often as the second.
        let three = costs.forecast(3);
        assert!((three.speedup - 1.875 / 1.5).abs() < 1e-12, "{three:?}");
        let never = Costs {
            survival: vec![0.0],
            ..costs
        };
        assert!((never.forecast(2).speedup - 1.0 / 1.35).abs() < 1e-12);
    }
}
