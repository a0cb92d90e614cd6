//! Sixteen numbers side by side, in the registers of an instruction set.
//!
//! The compiler turns plain loops over several such sums at once into vectors only where it pleases. So
//! the two hot loops name the instructions: fused multiply-adds, the same bits everywhere.

use crate::cache::LANES;

/// Sixteen sums. Those of an instruction set may only be used in functions compiled for it.
pub(super) trait Lanes: Copy {
    /// Queries whose sums go on side by side: as many as the registers hold.
    const TILE: usize;
    /// Registers of one query's sums of values that go on side by side.
    const STRIPS: usize;

    /// All zero.
    fn zero() -> Self;
    /// These numbers.
    fn load(numbers: &[f32; LANES]) -> Self;
    /// With `numbers` times `factor` added, rounded once.
    fn add_scaled(self, numbers: &[f32; LANES], factor: f32) -> Self;
    /// Writes the sums.
    fn store(self, to: &mut [f32; LANES]);
}

impl Lanes for [f32; LANES] {
    const TILE: usize = 2;
    const STRIPS: usize = 1;

    #[inline(always)]
    fn zero() -> Self {
        [0.0; LANES]
    }

    #[inline(always)]
    fn load(numbers: &[f32; LANES]) -> Self {
        *numbers
    }

    #[inline(always)]
    fn add_scaled(mut self, numbers: &[f32; LANES], factor: f32) -> Self {
        for (sum, number) in self.iter_mut().zip(numbers) {
            *sum = factor.mul_add(*number, *sum);
        }
        self
    }

    #[inline(always)]
    fn store(self, to: &mut [f32; LANES]) {
        *to = self;
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) mod x86 {
    #[allow(clippy::wildcard_imports, reason = "names of instructions")]
    use std::arch::x86_64::*;

    use super::{LANES, Lanes};

    /// One register of AVX-512.
    #[derive(Clone, Copy)]
    pub(in super::super) struct Avx512(__m512);

    /// Two registers of AVX.
    #[derive(Clone, Copy)]
    pub(in super::super) struct Avx2(__m256, __m256);

    // SAFETY of what follows: only functions compiled for the instruction set use the type, which run on
    // CPUs that have it; the addresses are those of sixteen numbers.

    impl Lanes for Avx512 {
        const TILE: usize = 4;
        const STRIPS: usize = 2;

        #[inline(always)]
        fn zero() -> Self {
            Self(unsafe { _mm512_setzero_ps() })
        }

        #[inline(always)]
        fn load(numbers: &[f32; LANES]) -> Self {
            Self(unsafe { _mm512_loadu_ps(numbers.as_ptr()) })
        }

        #[inline(always)]
        fn add_scaled(self, numbers: &[f32; LANES], factor: f32) -> Self {
            unsafe {
                let numbers = _mm512_loadu_ps(numbers.as_ptr());
                Self(_mm512_fmadd_ps(_mm512_set1_ps(factor), numbers, self.0))
            }
        }

        #[inline(always)]
        fn store(self, to: &mut [f32; LANES]) {
            unsafe { _mm512_storeu_ps(to.as_mut_ptr(), self.0) }
        }
    }

    impl Lanes for Avx2 {
        const TILE: usize = 2;
        const STRIPS: usize = 1;

        #[inline(always)]
        fn zero() -> Self {
            unsafe { Self(_mm256_setzero_ps(), _mm256_setzero_ps()) }
        }

        #[inline(always)]
        fn load(numbers: &[f32; LANES]) -> Self {
            let [low, high] = halves(numbers);
            unsafe { Self(_mm256_loadu_ps(low), _mm256_loadu_ps(high)) }
        }

        #[inline(always)]
        fn add_scaled(self, numbers: &[f32; LANES], factor: f32) -> Self {
            let [low, high] = halves(numbers);
            unsafe {
                let factor = _mm256_set1_ps(factor);
                Self(
                    _mm256_fmadd_ps(factor, _mm256_loadu_ps(low), self.0),
                    _mm256_fmadd_ps(factor, _mm256_loadu_ps(high), self.1),
                )
            }
        }

        #[inline(always)]
        fn store(self, to: &mut [f32; LANES]) {
            let (low, high) = to.split_at_mut(LANES / 2);
            unsafe {
                _mm256_storeu_ps(low.as_mut_ptr(), self.0);
                _mm256_storeu_ps(high.as_mut_ptr(), self.1);
            }
        }
    }

    #[inline(always)]
    fn halves(numbers: &[f32; LANES]) -> [*const f32; 2] {
        let (low, high) = numbers.split_at(LANES / 2);
        [low.as_ptr(), high.as_ptr()]
    }
}
