//! Wide instructions where the CPU has them, the same bits everywhere.
//!
//! The kernels here and in the model runtime are plain loops whose order of summation does not depend on the width
//! of a vector: lanes are independent results, never parts of one sum. So a loop compiled for
//! AVX-512 gives what the same loop compiled for SSE2 or NEON gives, and one process may choose at
//! run time. (Rust never contracts `a * b + c` into a fused operation by itself.)

/// A loop to be compiled for each [`Level`].
pub trait Kernel {
    /// What the loop returns.
    type Output;

    /// Runs the loop. Implementations, and all they call, must be `#[inline(always)]`: only what is
    /// inlined is compiled with the level's instructions.
    fn run(self) -> Self::Output;
}

/// A function whose body is a [`Kernel`] of its own, run at the best level of this CPU. What the body calls must
/// be `#[inline(always)]`.
macro_rules! kernel {
    (
        $(#[$about:meta])*
        $visible:vis fn $name:ident<$a:lifetime, $F:ident: $bound:path>(
            $($argument:ident: $of:ty),+ $(,)?
        ) -> $output:ty $body:block
    ) => {
        $(#[$about])*
        #[allow(
            clippy::needless_lifetimes,
            clippy::unused_unit,
            reason = "the lifetime is that of the struct within"
        )]
        $visible fn $name<$a, $F: $bound>($($argument: $of),+) -> $output {
            struct Run<$a, $F> {
                $($argument: $of),+
            }

            impl<$a, $F: $bound> $crate::simd::Kernel for Run<$a, $F> {
                type Output = $output;

                #[inline(always)]
                fn run(self) -> $output {
                    let Self { $($argument),+ } = self;
                    $body
                }
            }

            $crate::simd::Level::detect().run(Run { $($argument),+ })
        }
    };
}
pub(crate) use kernel;

/// Instruction sets that kernels are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// AVX-512 with the 8-bit dot product (VNNI). Made only by [`Level::detect`].
    #[cfg(target_arch = "x86_64")]
    #[non_exhaustive]
    Avx512Vnni,
    /// 256-bit integer and floating-point vectors with fused multiply-add; half precision for those who ask for it by
    /// name. Made only by [`Level::detect`].
    #[cfg(target_arch = "x86_64")]
    #[non_exhaustive]
    Avx2,
    /// What the target triple promises.
    Baseline,
}

impl Level {
    /// The best level of this CPU. Cheap: the standard library caches the answer.
    pub fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vnni")
            {
                return Self::Avx512Vnni;
            }
            if is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("fma")
                && is_x86_feature_detected!("f16c")
            {
                return Self::Avx2;
            }
        }
        Self::Baseline
    }

    /// Runs `kernel` compiled for this level.
    #[inline]
    pub fn run<K: Kernel>(self, kernel: K) -> K::Output {
        match self {
            // SAFETY: only `detect` makes these levels, on CPUs that have the features.
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Vnni => unsafe { x86::avx512(kernel) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => unsafe { x86::avx2(kernel) },
            Self::Baseline => kernel.run(),
        }
    }

    /// Every level this CPU can run, for tests that compare them.
    pub fn all() -> Vec<Self> {
        match Self::detect() {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Vnni => vec![Self::Baseline, Self::Avx2, Self::Avx512Vnni],
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => vec![Self::Baseline, Self::Avx2],
            Self::Baseline => vec![Self::Baseline],
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Kernel;

    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
    pub(super) fn avx512<K: Kernel>(kernel: K) -> K::Output {
        kernel.run()
    }

    #[target_feature(enable = "avx2,fma")]
    pub(super) fn avx2<K: Kernel>(kernel: K) -> K::Output {
        kernel.run()
    }
}
