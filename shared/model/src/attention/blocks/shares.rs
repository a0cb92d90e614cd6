//! From weights and the scales of values to shares.

use std::{marker::PhantomData, ops::Range};

use speculation::simd::Kernel;

use super::{
    super::{
        CHUNK,
        lanes::bytes::{ByteLanes, LARGEST_SHARE},
    },
    PAGES,
};
use crate::{
    cache::{LANES, PAGE, ValueBlock},
    norm::fold_lanes,
};

/// The largest share below which all count as zero: its inverse must be a number.
const SMALLEST: f32 = 1e-30;

/// One query's shares of one block of the values in a chunk's pages, to be rounded to 14 bits of the largest. Returns
/// the unit of what is written; no number where one of them is none.
pub(super) struct RoundedShares<'a, L> {
    /// By slot of the pages, a whole number of pages.
    pub(super) weights: &'a [f32],
    pub(super) values: &'a [&'a ValueBlock; PAGES],
    /// Slots that are seen. Others may hold anything.
    pub(super) trunk: Range<usize>,
    /// Positions behind these, and the scales of their values, whose slots are elsewhere.
    pub(super) branch: &'a [(usize, f32)],
    /// Room.
    pub(super) shares: &'a mut [f32; CHUNK],
    /// Halves of what is written, by slot of the pages.
    pub(super) high: &'a mut [u8],
    pub(super) low: &'a mut [u8],
    pub(super) lanes: PhantomData<L>,
}

impl<L: ByteLanes> Kernel for RoundedShares<'_, L> {
    type Output = f32;

    #[inline(always)]
    fn run(self) -> f32 {
        let mut largest = L::zero();
        let weights = self.weights.as_chunks::<PAGE>().0;
        let shares = self.shares.as_chunks_mut::<PAGE>().0;
        let shares = &mut shares[..weights.len()];
        for (page, (weights, shares)) in weights.iter().zip(&mut *shares).enumerate() {
            let slot = |slot: usize| slot.saturating_sub(page * PAGE).min(PAGE);
            let seen = slot(self.trunk.start)..slot(self.trunk.end);
            if seen.is_empty() {
                shares.fill(0.0);
                continue;
            }
            let mut of_page = largest;
            let scales = self.values[page].scales.as_chunks().0;
            let sixteens = weights.as_chunks().0.iter().zip(scales);
            for ((weights, scales), shares) in sixteens.zip(shares.as_chunks_mut().0) {
                let shared = L::load(weights).times(L::load_half(scales));
                shared.store(shares);
                of_page = of_page.larger(shared);
            }
            if seen.len() < PAGE {
                shares[..seen.start].fill(0.0);
                shares[seen.end..].fill(0.0);
                of_page = largest;
                for shares in shares.as_chunks().0 {
                    of_page = of_page.larger(L::load(shares));
                }
            }
            largest = of_page;
        }
        let mut lanes = [0.0; LANES];
        largest.store(&mut lanes);
        let mut largest = fold_lanes(lanes, larger);
        for (position, scale) in self.branch {
            let share = self.weights[*position] * scale;
            shares.as_flattened_mut()[*position] = share;
            largest = larger(largest, share);
        }
        let factor = if largest > SMALLEST {
            LARGEST_SHARE / largest
        } else {
            0.0
        };
        let halves = (self.high.as_chunks_mut().0.iter_mut()).zip(self.low.as_chunks_mut().0);
        for (shares, (high, low)) in shares.iter().zip(halves) {
            let shares = shares.as_chunks().0.first_chunk().expect("a page's");
            L::store_halves(shares, factor, high, low);
        }
        // What is no number is not below anything.
        if largest <= SMALLEST {
            0.0
        } else {
            largest / LARGEST_SHARE
        }
    }
}

/// The larger of two shares, as [`ByteLanes::larger`].
#[inline(always)]
fn larger(a: f32, b: f32) -> f32 {
    f32::from_bits(a.to_bits().max(b.to_bits()))
}
