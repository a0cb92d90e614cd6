//! Sixteen numbers side by side, in the registers of an instruction set.
//!
//! The compiler turns plain loops over several such sums at once into vectors only where it pleases. So
//! the two hot loops name the instructions: fused multiply-adds, the same bits everywhere.

use half::{f16, slice::HalfFloatSliceExt as _};
use speculation::simd::Kernel;

use crate::cache::{KvNumber, LANES};

/// Sixteen sums. Those of an instruction set may only be used in functions compiled for it.
pub(super) trait Lanes: Copy {
    /// Most queries whose sums go on side by side.
    const TILE: usize;
    /// Most sums that go on side by side: as many as the registers hold.
    const SUMS: usize;

    /// Has the numbers from `at` on brought near: the rest of their line of the cache, where there is a way.
    fn prefetch<T>(at: &T);

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
    /// Writes the sums.
    fn store(self, to: &mut [f32; LANES]);
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
    const TILE: usize = 2;
    const SUMS: usize = 4;

    #[inline(always)]
    fn prefetch<T>(_at: &T) {}

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
    fn store(self, to: &mut [f32; LANES]) {
        *to = self;
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) mod x86 {
    #[allow(clippy::wildcard_imports, reason = "names of instructions")]
    use std::arch::x86_64::*;

    use super::{Kernel, LANES, Lanes, f16};

    /// One register of AVX-512.
    #[derive(Clone, Copy)]
    pub(in super::super) struct Avx512(__m512);

    /// Two registers of AVX.
    #[derive(Clone, Copy)]
    pub(in super::super) struct Avx2(__m256, __m256);

    // SAFETY of what follows: only functions compiled for the instruction set use the type, which run on
    // CPUs that have it; the addresses are those of sixteen numbers.

    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,fma")]
    #[inline(never)]
    fn run_avx512<K: Kernel>(kernel: K) -> K::Output {
        kernel.run()
    }

    #[target_feature(enable = "avx2,fma,f16c")]
    #[inline(never)]
    fn run_avx2<K: Kernel>(kernel: K) -> K::Output {
        kernel.run()
    }

    impl Lanes for Avx512 {
        const TILE: usize = 8;
        const SUMS: usize = 24;

        #[inline(always)]
        fn prefetch<T>(at: &T) {
            unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(at).cast()) }
        }

        #[inline(always)]
        fn run<K: Kernel>(kernel: K) -> K::Output {
            unsafe { run_avx512(kernel) }
        }

        #[inline(always)]
        fn zero() -> Self {
            Self(unsafe { _mm512_setzero_ps() })
        }

        #[inline(always)]
        fn load(numbers: &[f32; LANES]) -> Self {
            Self(unsafe { _mm512_loadu_ps(numbers.as_ptr()) })
        }

        #[inline(always)]
        fn load_half(numbers: &[f16; LANES]) -> Self {
            unsafe {
                let halves = _mm256_loadu_si256(numbers.as_ptr().cast());
                Self(_mm512_cvtph_ps(halves))
            }
        }

        #[inline(always)]
        fn add_scaled(self, numbers: Self, factor: f32) -> Self {
            Self(unsafe { _mm512_fmadd_ps(_mm512_set1_ps(factor), numbers.0, self.0) })
        }

        #[inline(always)]
        fn scaled(self, factor: f32) -> Self {
            Self(unsafe { _mm512_mul_ps(self.0, _mm512_set1_ps(factor)) })
        }

        #[inline(always)]
        fn store(self, to: &mut [f32; LANES]) {
            unsafe { _mm512_storeu_ps(to.as_mut_ptr(), self.0) }
        }
    }

    impl Lanes for Avx2 {
        const TILE: usize = 2;
        const SUMS: usize = 4;

        #[inline(always)]
        fn prefetch<T>(at: &T) {
            unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(at).cast()) }
        }

        #[inline(always)]
        fn run<K: Kernel>(kernel: K) -> K::Output {
            unsafe { run_avx2(kernel) }
        }

        #[inline(always)]
        fn zero() -> Self {
            unsafe { Self(_mm256_setzero_ps(), _mm256_setzero_ps()) }
        }

        #[inline(always)]
        fn load(numbers: &[f32; LANES]) -> Self {
            let (low, high) = numbers.split_at(LANES / 2);
            unsafe {
                Self(
                    _mm256_loadu_ps(low.as_ptr()),
                    _mm256_loadu_ps(high.as_ptr()),
                )
            }
        }

        #[inline(always)]
        fn load_half(numbers: &[f16; LANES]) -> Self {
            let (low, high) = numbers.split_at(LANES / 2);
            unsafe {
                let [low, high] = [low, high].map(|half| _mm_loadu_si128(half.as_ptr().cast()));
                Self(_mm256_cvtph_ps(low), _mm256_cvtph_ps(high))
            }
        }

        #[inline(always)]
        fn add_scaled(self, numbers: Self, factor: f32) -> Self {
            unsafe {
                let factor = _mm256_set1_ps(factor);
                Self(
                    _mm256_fmadd_ps(factor, numbers.0, self.0),
                    _mm256_fmadd_ps(factor, numbers.1, self.1),
                )
            }
        }

        #[inline(always)]
        fn scaled(self, factor: f32) -> Self {
            unsafe {
                let factor = _mm256_set1_ps(factor);
                Self(_mm256_mul_ps(self.0, factor), _mm256_mul_ps(self.1, factor))
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
}
