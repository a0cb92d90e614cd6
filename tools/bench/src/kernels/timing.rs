//! Products measured in turn, together with reading memory.

use std::time::{Duration, Instant};

use crate::read_probe::ReadProbe;

use super::subject::KernelSubject;
use crate::timing::{median, microseconds};

/// Fewest and most turns.
const TURNS: std::ops::RangeInclusive<usize> = 3..=101;

/// How long to measure.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimeBudget {
    pub(super) time: Duration,
    /// Whether each product is computed a few times before it is timed: what ran before it took the
    /// cache.
    pub(super) warm: bool,
}

/// What a product cost, over the turns.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProductCost {
    /// Median, in microseconds.
    pub(super) us: f64,
    /// Median of the ratios to the first number of rows, in the same turn.
    pub(super) ratio: f64,
}

/// A product by our kernel and by candle's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Figure {
    pub(super) ours: ProductCost,
    pub(super) candle: Option<ProductCost>,
}

/// What was measured.
pub(super) struct KernelFigures {
    /// Median of a pass of the probe, in microseconds.
    pub(super) read_us: f64,
    /// One for each number of rows.
    pub(super) products: Vec<Figure>,
}

/// Times a pass of `probe` and a product of each number of `rows` in turn, until the budget is spent.
///
/// # Errors
/// What candle refuses.
pub(super) fn in_turn(
    budget: TimeBudget,
    probe: &ReadProbe,
    subject: &mut KernelSubject,
    rows: &[usize],
) -> anyhow::Result<KernelFigures> {
    let tensors: Vec<_> = if subject.has_candle() {
        rows.iter()
            .map(|&rows| KernelSubject::candle_inputs(rows))
            .collect::<Result<_, _>>()?
    } else {
        Vec::new()
    };
    let mut reads = Vec::new();
    let mut ours = vec![Vec::new(); rows.len()];
    let mut candle = vec![Vec::new(); tensors.len()];
    // The first turn faults pages in, and does not count.
    let mut started = Instant::now();
    let mut turns = 0;
    while turns <= *TURNS.start() || (turns < *TURNS.end() && started.elapsed() < budget.time) {
        // Threads are kept awake only meanwhile: candle has its own, for the same cores.
        probe.awake(|| {
            reads.push(time(budget.warm, || probe.pass()));
            // So that every product finds in the cache what a product leaves there.
            subject.ours(1);
            for (&rows, times) in rows.iter().zip(&mut ours) {
                times.push(time(budget.warm, || subject.ours(rows)));
            }
        });
        for (x, times) in tensors.iter().zip(&mut candle) {
            let mut result = Ok(());
            times.push(time(budget.warm, || result = subject.candle(x)));
            result?;
        }
        if turns == 0 {
            started = Instant::now();
            reads.clear();
            ours.iter_mut().chain(&mut candle).for_each(Vec::clear);
        }
        turns += 1;
    }
    let candle = costs(&candle).into_iter().map(Some);
    Ok(KernelFigures {
        read_us: median(reads),
        products: costs(&ours)
            .into_iter()
            .zip(candle.chain(std::iter::repeat(None)))
            .map(|(ours, candle)| Figure { ours, candle })
            .collect(),
    })
}

/// How long `work` takes, in microseconds; after three times that do not count if `warm`.
fn time(warm: bool, mut work: impl FnMut()) -> f64 {
    if warm {
        (0..3).for_each(|_| work());
    }
    let started = Instant::now();
    work();
    microseconds(started.elapsed())
}

/// Of times `(cases, turns)`.
fn costs(times: &[Vec<f64>]) -> Vec<ProductCost> {
    times
        .iter()
        .map(|of| ProductCost {
            us: median(of.clone()),
            ratio: median(of.iter().zip(&times[0]).map(|(us, one)| us / one).collect()),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_taken_within_a_turn() {
        // The machine slows down from turn to turn.
        let costs = costs(&[vec![2.0, 4.0, 8.0], vec![3.0, 8.0, 12.0]]);
        assert_eq!((costs[0].us, costs[0].ratio), (4.0, 1.0));
        assert_eq!((costs[1].us, costs[1].ratio), (8.0, 1.5));
    }

    #[test]
    fn warm_work_is_timed_the_last_time() {
        let mut calls = 0;
        let us = time(true, || {
            calls += 1;
            if calls < 4 {
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        assert_eq!(calls, 4);
        assert!(us < 20_000.0, "{us}");
    }
}
