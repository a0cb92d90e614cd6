//! Sixteen numbers side by side, in the registers of AVX-512 and of AVX2.

#[allow(clippy::wildcard_imports, reason = "names of instructions")]
use std::arch::x86_64::*;

use super::{Kernel, LANES, Lanes, f16};

/// One register of AVX-512.
#[derive(Clone, Copy)]
pub(in super::super) struct Avx512(pub(super) __m512);

/// Two registers of AVX.
#[derive(Clone, Copy)]
pub(in super::super) struct Avx2(pub(super) __m256, pub(super) __m256);

// SAFETY of what follows: only functions compiled for the instruction set use the type, which run on
// CPUs that have it; the addresses are those of sixteen numbers.

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,fma")]
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
    const SUMS: usize = 24;
    const TILE: usize = 8;

    #[inline(always)]
    fn prefetch(at: *const u8) {
        unsafe { _mm_prefetch::<_MM_HINT_T1>(at.cast()) }
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
    fn times(self, factors: Self) -> Self {
        Self(unsafe { _mm512_mul_ps(self.0, factors.0) })
    }

    #[inline(always)]
    fn store(self, to: &mut [f32; LANES]) {
        unsafe { _mm512_storeu_ps(to.as_mut_ptr(), self.0) }
    }
}

impl Lanes for Avx2 {
    const SUMS: usize = 6;
    const TILE: usize = 6;

    #[inline(always)]
    fn prefetch(at: *const u8) {
        unsafe { _mm_prefetch::<_MM_HINT_T1>(at.cast()) }
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
    fn times(self, factors: Self) -> Self {
        unsafe {
            Self(
                _mm256_mul_ps(self.0, factors.0),
                _mm256_mul_ps(self.1, factors.1),
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
