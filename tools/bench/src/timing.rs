//! Times of things that are measured in turn.

use std::time::Duration;

/// What one of several things cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CaseTime {
    /// Median, in microseconds.
    pub(crate) us: f64,
    /// Median of the ratios to the first thing, measured in the same turn.
    pub(crate) ratio: f64,
}

/// Measures `cases` in turn, `repeats` times each; the first is what the others are compared with.
/// A turn before that fills the caches and counts not.
///
/// # Errors
/// What `run` says.
pub(crate) fn in_turn<C>(
    repeats: usize,
    cases: &[C],
    mut run: impl FnMut(&C) -> anyhow::Result<Duration>,
) -> anyhow::Result<Vec<CaseTime>> {
    let mut turns: Vec<Vec<f64>> = Vec::with_capacity(repeats);
    for case in cases {
        run(case)?;
    }
    for _ in 0..repeats {
        let turn: anyhow::Result<Vec<f64>> = cases
            .iter()
            .map(|case| Ok(microseconds(run(case)?)))
            .collect();
        turns.push(turn?);
    }
    Ok((0..cases.len())
        .map(|case| CaseTime {
            us: median(turns.iter().map(|turn| turn[case]).collect()),
            ratio: median(turns.iter().map(|turn| turn[case] / turn[0]).collect()),
        })
        .collect())
}

/// The middle one of `values`; of an even number the mean of the middle two.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 {
        values[middle]
    } else {
        f64::midpoint(values[middle - 1], values[middle])
    }
}

/// Returns the value below which `share` of the sorted `values` lie, between two of them by a straight line: numpy's
/// default, and so that of `vllm bench serve`. None of no values.
pub(crate) fn quantile(values: &[f64], share: f64) -> Option<f64> {
    let at = share * values.len().checked_sub(1)? as f64;
    let (below, above) = (values[at.floor() as usize], values[at.ceil() as usize]);
    Some(below + (above - below) * at.fract())
}

/// `time` in microseconds.
pub(crate) fn microseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(vec![9.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![9.0, 1.0, 2.0, 4.0]), 3.0);
        assert_eq!(median(vec![7.0]), 7.0);
    }

    #[test]
    fn ratios_are_taken_within_a_turn() {
        // The machine slows down from turn to turn; the first turn does not count.
        let mut turn = 0;
        let figures = in_turn(3, &[2_u64, 6], |&case| {
            turn += 1;
            let slow = if turn <= 2 {
                1000
            } else {
                1 << ((turn - 1) / 2)
            };
            Ok(Duration::from_micros(case * slow))
        })
        .expect("measured");
        assert_eq!((figures[0].us, figures[0].ratio), (8.0, 1.0));
        assert_eq!((figures[1].us, figures[1].ratio), (24.0, 3.0));
    }
}
