//! Top-k, top-p and min-p: the cuts between the softmax and the sampling distribution.

use super::threshold::{CutPoint, Weight, find};
use super::{Pipeline, normalise};
use crate::real::Real;
use crate::simd::kernel;

impl Pipeline {
    /// Top-k, then top-p over what is left, then min-p, each followed by renormalisation. The largest value
    /// stands at `best`, and stays the largest.
    ///
    /// Top-p adds up masses in units of 2^-52, so what it keeps does not depend on the order of adding.
    pub(super) fn cut<F: Real>(&mut self, probs: &mut [F], best: usize) {
        let (params, scratch) = (&self.params, &mut self.scratch);
        let k = params.top_k as usize;
        if k > 0 && k < probs.len() {
            let kept = find(probs, probs[best], Weight::Count, k as u64, scratch);
            keep(probs, kept);
        }
        if params.top_p < 1.0 {
            // The largest is kept, however small top-p is.
            let goal = Weight::Mass.of(F::from_f32(params.top_p)).max(1);
            let kept = find(probs, probs[best], Weight::Mass, goal, scratch);
            keep(probs, kept);
        }
        if params.min_p > 0.0 {
            let floor = probs[best] * F::from_f32(params.min_p);
            keep_from(probs, floor);
        }
    }
}

/// Keeps the listed part of `probs`, or all of it without a list, and renormalises it.
fn keep<F: Real>(probs: &mut [F], kept: Option<CutPoint<F>>) {
    let Some(CutPoint { least, surplus }) = kept else {
        return keep_from(probs, F::zero());
    };
    let equals = (probs.iter_mut().rev()).filter(|value| **value == least);
    for value in equals.take(surplus) {
        *value = F::zero();
    }
    keep_from(probs, least);
}

kernel! {
    /// Leaves out the values below `least` and divides the others by their sum.
    fn keep_from<'a, F: Real>(probs: &'a mut [F], least: F) -> () {
        // In blocks, so that a value is still at hand when it is added up.
        for value in probs.iter_mut() {
            *value = if *value < least { F::zero() } else { *value };
        }
        normalise(probs);
    }
}
