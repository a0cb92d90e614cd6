//! Times of things that are measured in turn.

use std::time::Duration;

use super::laws::{median, microseconds};

/// What one of several things cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures {
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
) -> anyhow::Result<Vec<Figures>> {
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
        .map(|case| Figures {
            us: median(turns.iter().map(|turn| turn[case]).collect()),
            ratio: median(turns.iter().map(|turn| turn[case] / turn[0]).collect()),
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

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
