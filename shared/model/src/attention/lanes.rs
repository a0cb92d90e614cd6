//! Sixteen numbers side by side, in the registers of an instruction set.
//!
//! The compiler turns plain loops over several such sums at once into vectors only where it pleases. So
//! the two hot loops name the instructions: fused multiply-adds, the same bits everywhere.

pub(super) mod bytes;
#[cfg(target_arch = "x86_64")]
pub(super) mod x86;

use half::{f16, slice::HalfFloatSliceExt as _};
use speculation::simd::Kernel;

use crate::cache::{KvNumber, LANES};

/// Sixteen sums. Those of an instruction set may only be used in functions compiled for it.
pub(super) trait Lanes: Copy {
    /// Most sums that go on side by side: as many as the registers hold.
    const SUMS: usize;
    /// Most queries that have sums side by side.
    const TILE: usize;

    /// Has the line of memory that `at` is in brought to the second cache, where there is a way. Any address will do.
    /// Not to the first: it has few lines on their way at a time, fewer than memory needs to be read at its speed.
    fn prefetch(at: *const u8);

    /// Runs a loop compiled by itself: in one large function the compiler would keep sums in memory.
    fn run<K: Kernel>(kernel: K) -> K::Output;
    /// All zero.
    fn zero() -> Self;
    /// These numbers.
    fn load(numbers: &[f32; LANES]) -> Self;
    /// These numbers, which single precision holds exactly.
    fn load_half(numbers: &[f16; LANES]) -> Self;
    /// With `numbers` times `factor` added, rounded once.
    fn add_scaled(self, numbers: Self, factor: f32) -> Self;
    /// Times `factor`.
    fn scaled(self, factor: f32) -> Self;
    /// Lane by lane times `factors`.
    fn times(self, factors: Self) -> Self;
    /// Writes the sums.
    fn store(self, to: &mut [f32; LANES]);
}

/// How many vectors, 1, 2 or 4, each of `queries` has a sum of side by side, where no more than `sums` fit in all.
pub(super) const fn side_by_side(sums: usize, queries: usize) -> usize {
    match sums / queries {
        4.. => 4,
        2 | 3 => 2,
        _ => 1,
    }
}

/// Numbers of keys and values that lanes are loaded with.
pub(super) trait LaneNumber: KvNumber {
    /// These numbers.
    fn load<L: Lanes>(numbers: &[Self; LANES]) -> L;
}

impl LaneNumber for f32 {
    #[inline(always)]
    fn load<L: Lanes>(numbers: &[Self; LANES]) -> L {
        L::load(numbers)
    }
}

impl LaneNumber for f16 {
    #[inline(always)]
    fn load<L: Lanes>(numbers: &[Self; LANES]) -> L {
        L::load_half(numbers)
    }
}

impl Lanes for [f32; LANES] {
    const SUMS: usize = 4;
    const TILE: usize = 2;

    #[inline(always)]
    fn prefetch(_at: *const u8) {}

    #[inline(never)]
    fn run<K: Kernel>(kernel: K) -> K::Output {
        kernel.run()
    }

    #[inline(always)]
    fn zero() -> Self {
        [0.0; LANES]
    }

    #[inline(always)]
    fn load(numbers: &[f32; LANES]) -> Self {
        *numbers
    }

    #[inline(always)]
    fn load_half(numbers: &[f16; LANES]) -> Self {
        let mut lanes = [0.0; LANES];
        numbers.convert_to_f32_slice(&mut lanes);
        lanes
    }

    #[inline(always)]
    fn add_scaled(mut self, numbers: Self, factor: f32) -> Self {
        for (sum, number) in self.iter_mut().zip(numbers) {
            *sum = factor.mul_add(number, *sum);
        }
        self
    }

    #[inline(always)]
    fn scaled(self, factor: f32) -> Self {
        self.map(|sum| sum * factor)
    }

    #[inline(always)]
    fn times(mut self, factors: Self) -> Self {
        for (number, factor) in self.iter_mut().zip(factors) {
            *number *= factor;
        }
        self
    }

    #[inline(always)]
    fn store(self, to: &mut [f32; LANES]) {
        *to = self;
    }
}
