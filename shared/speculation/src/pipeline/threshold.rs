//! Where a row is cut, found without sorting it.
//!
//! A cut keeps the largest values until they weigh enough: top-k counts them, top-p adds up their mass. The
//! search asks what all values from a threshold on weigh, for several thresholds in a pass over the row, until few
//! values are left between two of them; only these are sorted. Weights are integers, so that no order of adding
//! them up changes the sum, and so neither thresholds nor the width of a vector change what is kept.

use std::ops::AddAssign;

use crate::real::Real;
use crate::simd::{Kernel, Level, kernel};

/// Thresholds that a pass asks for.
const PROBES: usize = 4;
/// Passes after which whatever is left is sorted: only rows with many equal or nearly equal values come here.
const MOST_PASSES: usize = 6;
/// The first thresholds, in powers of two below the largest value there may be.
const FIRST: [i32; PROBES] = [2, 5, 9, 14];
/// Where later thresholds stand around the expected one, and how near to the ends, as parts of what is left.
const AROUND: [f64; PROBES] = [-0.15, -0.03, 0.03, 0.15];
const EDGES: [f64; PROBES] = [0.02, 0.05, 0.1, 0.2];
/// One of so many values of a row may be left to be sorted.
const FEW: usize = 256;
/// Values that are looked at together for whether any of them is wanted.
const BLOCK: usize = 16;

/// What a value weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Weight {
    /// One.
    Count,
    /// Its mass in units of 2^-52, rounded to nearest; at most 1.
    Mass,
}

/// What a cut keeps: the values above `least`, and those equal to it but for the last `surplus` by index.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct CutPoint<F> {
    pub(super) least: F,
    pub(super) surplus: usize,
}

impl Weight {
    #[inline(always)]
    pub(super) fn of<F: Real>(self, value: F) -> u64 {
        match self {
            Self::Count => 1,
            // Next to 1 a double has a step of 2^-52, and its bits count these steps.
            Self::Mass => (1.0 + value.as_f64()).to_bits() - 1.0_f64.to_bits(),
        }
    }
}

/// The fewest of the largest values of `row`, all from 0 to 1 and the largest `max`, that weigh at least `goal`;
/// among equals the first go first. None if all positive ones weigh less. `scratch` is overwritten.
pub(super) fn find<F: Real>(
    row: &[F],
    max: F,
    weight: Weight,
    goal: u64,
    scratch: &mut Vec<f64>,
) -> Option<CutPoint<F>> {
    let mut bracket = Bracket {
        from: F::zero(),
        to: F::infinity(),
        above: 0,
        within: u64::MAX,
    };
    let few = (row.len() / FEW).max(BLOCK) as u64;
    for _ in 0..MOST_PASSES {
        let probes = bracket.probes(max, goal);
        let weights = Level::detect().run(Above {
            row,
            probes,
            weight,
        });
        bracket.narrow(&probes, &weights, goal);
        // Each of the values between the two weighs at least as much as the lower one.
        if bracket.within / weight.of(bracket.from).max(1) <= few {
            break;
        }
    }
    scratch.clear();
    let from = bracket.from.max(F::min_positive_value());
    collect(row, from, bracket.to, scratch);
    scratch.sort_unstable_by(|a, b| b.total_cmp(a));
    let mut sum = bracket.above;
    let last = scratch.iter().position(|&value| {
        sum += weight.of(value);
        sum >= goal
    })?;
    let least = scratch[last];
    Some(CutPoint {
        least: F::from_f64(least),
        surplus: scratch[last + 1..].partition_point(|&value| value == least),
    })
}

/// Two thresholds: the values from `to` on weigh less than the goal, those from `from` on do not, or it is 0.
struct Bracket<F> {
    from: F,
    to: F,
    /// What the values from `to` on weigh.
    above: u64,
    /// What those between the two weigh; the most there is while `from` is 0.
    within: u64,
}

impl<F: Real> Bracket<F> {
    /// Thresholds between the two, the largest first; no value is above `max`. They stand around the place where
    /// the goal is if the weight grows evenly with the logarithm of the threshold. Another platform's power may put
    /// them elsewhere, which changes no result.
    fn probes(&self, max: F, goal: u64) -> [F; PROBES] {
        let (top, bottom) = (self.to.min(max).as_f64(), self.from.as_f64());
        let expected = (goal - self.above) as f64 / self.within as f64;
        std::array::from_fn(|probe| {
            let threshold = if bottom > 0.0 {
                let share =
                    (expected + AROUND[probe]).clamp(EDGES[probe], 1.0 - EDGES[PROBES - 1 - probe]);
                top * (bottom / top).powf(share)
            } else {
                top * 0.5_f64.powi(FIRST[probe])
            };
            F::from_f64(threshold).max(F::min_positive_value())
        })
    }

    /// Takes account of what the values from each threshold on weigh.
    fn narrow(&mut self, probes: &[F; PROBES], weights: &[u64; PROBES], goal: u64) {
        let before = self.above;
        for (&probe, &weight) in probes.iter().zip(weights) {
            if weight >= goal {
                self.from = self.from.max(probe);
                self.within = weight - self.above;
                return;
            }
            self.to = self.to.min(probe);
            self.above = weight;
        }
        if self.from > F::zero() {
            self.within -= self.above - before;
        }
    }
}

/// What the values from each threshold on weigh.
struct Above<'a, F> {
    row: &'a [F],
    probes: [F; PROBES],
    weight: Weight,
}

impl<F: Real> Kernel for Above<'_, F> {
    type Output = [u64; PROBES];

    #[inline(always)]
    fn run(self) -> [u64; PROBES] {
        let Self { row, probes, .. } = self;
        match self.weight {
            // Whole numbers of this size are exact, and as wide as what they count.
            Weight::Count => lanes::<F, F, 16>(row, probes, |_| F::one())
                .map(|lanes| lanes.iter().map(|lane| lane.as_f64() as u64).sum()),
            Weight::Mass => lanes::<F, u64, 8>(row, probes, |value| Weight::Mass.of(value))
                .map(|lanes| lanes.iter().sum()),
        }
    }
}

/// Adds up, in lanes, what the values from each threshold on weigh.
#[inline(always)]
fn lanes<F: Real, W, const LANES: usize>(
    row: &[F],
    probes: [F; PROBES],
    weight: impl Fn(F) -> W,
) -> [[W; LANES]; PROBES]
where
    W: Copy + Default + AddAssign,
{
    let mut sums = [[W::default(); LANES]; PROBES];
    let chunks = row.chunks_exact(LANES);
    let rest = chunks.remainder();
    let mut add = |lane: usize, value: F| {
        let weight = weight(value);
        for (sums, &probe) in sums.iter_mut().zip(&probes) {
            sums[lane] += if value >= probe { weight } else { W::default() };
        }
    };
    for chunk in chunks {
        for (lane, &value) in chunk.iter().enumerate() {
            add(lane, value);
        }
    }
    for (lane, &value) in rest.iter().enumerate() {
        add(lane, value);
    }
    sums
}

kernel! {
    /// Collects the values between two thresholds.
    fn collect<'a, F: Real>(row: &'a [F], from: F, to: F, found: &'a mut Vec<f64>) -> () {
        #[allow(
            clippy::needless_bitwise_bool,
            reason = "a branch a value would keep the loop from being vectorised"
        )]
        let is_inside = |value: F| (value >= from) & (value < to);
        for block in row.chunks(BLOCK) {
            if block
                .iter()
                .fold(false, |any, &value| any | is_inside(value))
            {
                let inside = block.iter().filter(|&&value| is_inside(value));
                found.extend(inside.map(|value| value.as_f64()));
            }
        }
    }
}

#[cfg(test)]
mod tests;
