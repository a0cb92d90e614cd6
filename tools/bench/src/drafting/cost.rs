//! What forwards cost, by least squares over whole requests.
//!
//! Huang et al., "SpecDec++" (2024), §4: the time of a request is modelled as
//! `N_draft · t_draft + N_target · t_target`, and both times are found by linear regression over
//! requests. Here every draft model has a time of its own; and what else takes time is fitted beside
//! it, so that it is not taken for the cost of forwards: the request itself, its prefill among it, a
//! round that drafts, its hops between the services among it, and every position of a target forward
//! beyond the first.

use super::super::measure::Measured;

/// What forwards cost, in one unit of time or another.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ForwardCosts {
    /// A forward of the target model, with one position.
    pub(super) target: f64,
    /// A forward of each draft model, the largest first.
    pub(super) drafts: Vec<f64>,
    /// A position of a target forward beyond the first; 0 where forwards cost the same however long.
    pub(super) position: f64,
    /// A round that drafts, apart from its forwards; 0 where only forwards cost.
    pub(super) round: f64,
}

/// Costs in milliseconds, as they were measured.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CostFit {
    pub(super) costs: ForwardCosts,
    /// Share of the variance of request times that the costs explain.
    pub(super) explained: f64,
}

impl CostFit {
    /// Fits the times of `requests`, those of the target alone among them. No cost is negative. None if
    /// the requests do not tell what a target forward costs.
    pub(super) fn of(requests: &[Measured]) -> Option<Self> {
        let models = requests.iter().map(|of| of.draft_forwards.len()).max()?;
        let rows: Vec<Vec<f64>> = requests
            .iter()
            .map(|of| {
                let drafts = (0..models).map(|model| of.draft_forwards_of(model));
                let forwards = [1.0, of.totals.target_forwards].into_iter().chain(drafts);
                forwards.chain([of.totals.drafted, of.rounds]).collect()
            })
            .collect();
        let times: Vec<f64> = requests.iter().map(|of| of.totals.total_ms).collect();
        let found = least_squares(&rows, &times)?;
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        let square = |x: f64| x * x;
        let residual: f64 = rows
            .iter()
            .zip(&times)
            .map(|(row, time)| square(time - dot(row, &found)))
            .sum();
        let total: f64 = times.iter().map(|time| square(time - mean)).sum();
        let costs = ForwardCosts {
            target: found[1],
            drafts: found[2..2 + models].to_vec(),
            position: found[2 + models],
            round: found[3 + models],
        };
        (costs.target > 0.0).then(|| Self {
            costs,
            explained: 1.0 - residual / total.max(f64::MIN_POSITIVE),
        })
    }
}

impl ForwardCosts {
    /// Forwards of the draft models at these costs, the largest first, in forwards of the target; the
    /// last stands for all smaller ones.
    pub(super) fn given(drafts: &[f64], models: usize) -> Self {
        let last = drafts.last().copied().unwrap_or_default();
        let cost = |model| drafts.get(model).copied().unwrap_or(last);
        Self {
            target: 1.0,
            drafts: (0..models).map(cost).collect(),
            position: 0.0,
            round: 0.0,
        }
    }

    /// How many times faster than the target alone `measured` is at these costs, a token of the target
    /// alone being one of its forwards.
    pub(super) fn speedup(&self, measured: &Measured) -> f64 {
        let drafts = self.drafts.iter().enumerate();
        let drafting: f64 = drafts
            .map(|(model, cost)| cost * measured.draft_forwards_of(model))
            .sum();
        let verifying =
            self.target * measured.totals.target_forwards + self.position * measured.totals.drafted;
        let time = drafting + verifying + self.round * measured.rounds;
        measured.totals.tokens * self.target / time.max(f64::MIN_POSITIVE)
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The coefficients, none negative, that bring the products with `rows` nearest to `values`: the best of
/// the fits that leave some columns out and make none of the others negative. Of columns that say the same
/// the first counts. None without rows.
fn least_squares(rows: &[Vec<f64>], values: &[f64]) -> Option<Vec<f64>> {
    let unknowns = rows.first()?.len();
    let column = |of: usize| rows.iter().map(|row| row[of]).collect::<Vec<_>>();
    let columns: Vec<Vec<f64>> = (0..unknowns).map(column).collect();
    let normal: Vec<Vec<f64>> = columns
        .iter()
        .map(|a| columns.iter().map(|b| dot(a, b)).collect())
        .collect();
    let right: Vec<f64> = columns.iter().map(|column| dot(column, values)).collect();
    // How much less than the values' own squares is left over, and the coefficients that make it so.
    let mut best = (0.0, vec![0.0; unknowns]);
    for subset in 1..1_u32 << unknowns {
        let kept: Vec<usize> = (0..unknowns).filter(|of| subset >> of & 1 == 1).collect();
        let part = |of: &usize| kept.iter().map(|other| normal[*of][*other]).collect();
        let Some(found) = solve(
            kept.iter().map(part).collect(),
            kept.iter().map(|&of| right[of]).collect(),
        ) else {
            continue;
        };
        let explained: f64 = kept.iter().zip(&found).map(|(&of, x)| x * right[of]).sum();
        if found.iter().all(|&x| x >= 0.0) && explained > best.0 * (1.0 + 1e-12) {
            let mut all = vec![0.0; unknowns];
            for (&of, &x) in kept.iter().zip(&found) {
                all[of] = x;
            }
            best = (explained, all);
        }
    }
    Some(best.1)
}

/// Solves normal equations by elimination, which needs no pivots: the matrix is positive unless columns
/// depend on one another, and then there is no one solution.
fn solve(mut matrix: Vec<Vec<f64>>, mut right: Vec<f64>) -> Option<Vec<f64>> {
    let size = right.len();
    let diagonal: Vec<f64> = (0..size).map(|of| matrix[of][of]).collect();
    for step in 0..size {
        let (done, rest) = matrix.split_at_mut(step + 1);
        let pivot = &done[step];
        // What is left of the diagonal when the columns before it are taken out.
        if pivot[step] <= 1e-9 * diagonal[step] {
            return None;
        }
        for (below, row) in rest.iter_mut().enumerate() {
            let factor = row[step] / pivot[step];
            for (value, above) in row.iter_mut().zip(pivot) {
                *value -= factor * above;
            }
            right[step + 1 + below] -= factor * right[step];
        }
    }
    for step in (0..size).rev() {
        let known: f64 = (step + 1..size)
            .map(|of| matrix[step][of] * right[of])
            .sum();
        right[step] = (right[step] - known) / matrix[step][step];
    }
    Some(right)
}

#[cfg(test)]
mod tests {
    use outrider::measure::RequestTotals;

    use super::*;

    /// A request of 30 tokens whose time is
    /// `1 + 2·target + 0.5·large + 0.25·small + 0.125·drafted + 0.75·rounds`.
    fn request_of(target: f64, large: f64, small: f64, drafted: f64) -> Measured {
        let rounds = if drafted > 0.0 { target - 1.0 } else { 0.0 };
        let drafting = 0.5 * large + 0.25 * small + 0.125 * drafted;
        Measured {
            totals: RequestTotals {
                tokens: 30.0,
                total_ms: 1.0 + 2.0 * target + drafting + 0.75 * rounds,
                target_forwards: target,
                drafted,
                ..RequestTotals::default()
            },
            draft_forwards: vec![large, small],
            rounds,
            ..Measured::default()
        }
    }

    fn requests() -> Vec<Measured> {
        vec![
            request_of(30.0, 0.0, 0.0, 0.0),
            request_of(28.0, 0.0, 0.0, 0.0),
            request_of(10.0, 40.0, 0.0, 40.0),
            request_of(8.0, 64.0, 0.0, 60.0),
            request_of(9.0, 20.0, 40.0, 50.0),
            request_of(12.0, 13.0, 7.0, 31.0),
            request_of(11.0, 0.0, 0.0, 90.0),
            request_of(9.0, 30.0, 9.0, 44.0),
        ]
    }

    #[test]
    fn costs_are_found_where_times_are_made_of_them() {
        let CostFit { costs, explained } = CostFit::of(&requests()).expect("fitted");
        let found = [
            costs.target,
            costs.drafts[0],
            costs.drafts[1],
            costs.position,
            costs.round,
        ];
        for (found, made) in found.into_iter().zip([2.0, 0.5, 0.25, 0.125, 0.75]) {
            assert!((found - made).abs() < 1e-6, "{found} {made}");
        }
        assert!((explained - 1.0).abs() < 1e-9);
    }

    /// Leaving out the most negative coefficient, again and again, would end with the first column alone.
    #[test]
    fn the_best_fit_without_negative_coefficients_is_found() {
        let rows = [
            [2.0, 3.0, 1.0],
            [3.0, 3.0, 3.0],
            [2.0, 0.0, 3.0],
            [3.0, 3.0, 3.0],
        ];
        let found = least_squares(&rows.map(Vec::from), &[2.0, 1.0, 3.0, 3.0]).expect("fitted");
        for (found, best) in found.iter().zip([4.5 / 13.0, 0.0, 0.5]) {
            assert!((found - best).abs() < 1e-9, "{found} {best}");
        }
    }

    #[test]
    fn no_cost_is_negative() {
        let mut requests = requests();
        // The more of these forwards, the faster: the model leaves them out.
        for request in &mut requests {
            request.totals.total_ms -= 0.6 * request.draft_forwards[1];
        }
        let fit = CostFit::of(&requests).expect("fitted");
        assert_eq!(fit.costs.drafts[1], 0.0);
        assert!(fit.costs.target > 0.0 && fit.explained < 1.0);
    }

    #[test]
    fn what_the_requests_leave_open_costs_nothing() {
        let mut requests = requests();
        for request in &mut requests {
            // No forward of the small model, and one of the large one for each token drafted.
            let RequestTotals {
                target_forwards,
                drafted,
                ..
            } = request.totals;
            *request = request_of(target_forwards, drafted, 0.0, drafted);
        }
        let costs = CostFit::of(&requests).expect("fitted").costs;
        assert!((costs.target - 2.0).abs() < 1e-6);
        // What both cost is the draft forward's.
        assert!((costs.drafts[0] - 0.625).abs() < 1e-6, "{costs:?}");
        assert_eq!((costs.drafts[1], costs.position), (0.0, 0.0));
    }

    /// 53 draft forwards of 23.4 ms and 31 target forwards of 112 ms, for 60 tokens: a run recorded from
    /// SpecDec++'s reference implementation, 78.5 ms a token.
    #[test]
    fn the_papers_model_of_time_is_reproduced() {
        let costs = ForwardCosts {
            target: 0.112,
            drafts: vec![0.0234],
            position: 0.0,
            round: 0.0,
        };
        let measured = Measured {
            totals: RequestTotals {
                tokens: 60.0,
                target_forwards: 31.0,
                drafted: 53.0,
                ..RequestTotals::default()
            },
            draft_forwards: vec![53.0],
            rounds: 30.0,
            ..Measured::default()
        };
        let latency = 0.112 / costs.speedup(&measured);
        assert!((latency - 0.078_536_666_666_666_67).abs() < 1e-12);
    }

    #[test]
    fn a_speedup_is_the_target_alone_over_all_forwards() {
        let costs = CostFit::of(&requests()).expect("fitted").costs;
        // 30 tokens · 2 ms over 9 · 2 + 20 · 0.5 + 40 · 0.25 + 50 · 0.125 + 8 · 0.75 ms.
        let measured = request_of(9.0, 20.0, 40.0, 50.0);
        assert!((costs.speedup(&measured) - 60.0 / 50.25).abs() < 1e-6);
        // 30 over 9 + 20 · 0.2 + 40 · 0.1; and both models at 0.2.
        let given = ForwardCosts::given(&[0.2, 0.1], 2);
        assert!((given.speedup(&measured) - 30.0 / 17.0).abs() < 1e-9);
        let given = ForwardCosts::given(&[0.2], 2);
        assert!((given.speedup(&measured) - 30.0 / 21.0).abs() < 1e-9);
    }
}
