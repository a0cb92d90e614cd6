//! From shares and values in blocks to outputs.

use std::marker::PhantomData;

use speculation::simd::Kernel;

use super::super::{CHUNK, ahead::NeededLines, lanes::bytes::ByteLanes};
use crate::{
    cache::{LANES, PAGE, VALUE_LANES, ValueBlock},
    linear::QUANT_BLOCK,
};

/// Sums of `N` queries over one block of the values in some pages.
pub(super) struct MixedPages<'a, L, const N: usize> {
    pub(super) values: &'a [&'a ValueBlock],
    /// What is needed next, page by page.
    pub(super) ahead: &'a [NeededLines],
    /// High and low halves of the shares, by slot of the pages.
    pub(super) halves: [&'a [[u8; CHUNK]; 2]; N],
    /// What the sums begin with, `(32)` each.
    pub(super) start: [&'a [i32; QUANT_BLOCK]; N],
    /// What sums are multiplied by.
    pub(super) units: [f32; N],
    /// Where the weighted values go: `width` of each query, at multiples of `stride`.
    pub(super) outputs: &'a mut [f32],
    pub(super) stride: usize,
    pub(super) width: usize,
    pub(super) lanes: PhantomData<L>,
}

impl<L: ByteLanes, const N: usize> Kernel for MixedPages<'_, L, N> {
    type Output = ();

    #[inline(always)]
    fn run(mut self) {
        if const { 2 * VALUE_LANES * N <= L::SUMS } {
            self.dimensions::<VALUE_LANES>(0);
        } else {
            for first in 0..VALUE_LANES {
                self.dimensions::<1>(first);
            }
        }
    }
}

impl<L: ByteLanes, const N: usize> MixedPages<'_, L, N> {
    /// `S` times sixteen dimensions of the block.
    #[inline(always)]
    fn dimensions<const S: usize>(&mut self, first: usize) {
        // Of query n and strip s at [n][s].
        let mut high = [[L::load_sums(&[0; LANES]); S]; N];
        let mut low = high;
        unrolled!(n in N => {
            let start: &[[i32; LANES]] = self.start[n].as_chunks().0;
            unrolled!(s in S => low[n][s] = L::load_sums(&start[first + s]));
        });
        for (page, values) in self.values.iter().enumerate() {
            let mut ahead = self.ahead[page].in_steps(PAGE / 4);
            // Of query n, high and low, at [n][0] and [n][1].
            let halves: [[&[[u8; 4]]; 2]; N] = self.halves.map(|[high, low]| {
                [
                    &high.as_chunks().0[page * PAGE / 4..][..PAGE / 4],
                    &low.as_chunks().0[page * PAGE / 4..][..PAGE / 4],
                ]
            });
            for (quad, values) in values.quants.iter().enumerate() {
                ahead.step::<L>();
                unrolled!(n in N => unrolled!(s in S => {
                    let values = &values[first + s];
                    high[n][s] = L::add_values(high[n][s], values, halves[n][0][quad]);
                    low[n][s] = L::add_values(low[n][s], values, halves[n][1][quad]);
                }));
            }
        }
        unrolled!(n in N => unrolled!(s in S => {
            let sums = L::numbers(L::joined(high[n][s], low[n][s])).scaled(self.units[n]);
            let from = (first + s) * LANES;
            let output = &mut self.outputs[n * self.stride..][..self.width];
            let output = &mut output[from.min(self.width)..];
            if let Some(output) = output.first_chunk_mut() {
                sums.store(output);
            } else {
                let mut numbers = [0.0; LANES];
                sums.store(&mut numbers);
                output.copy_from_slice(&numbers[..output.len()]);
            }
        }));
    }
}
