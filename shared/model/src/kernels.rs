//! Single kernels, to be measured: a product with one matrix, and a pass over memory that does nothing
//! but read.

mod candle;

use std::hint::black_box;

use speculation::simd::Level;

pub use self::candle::{CandleInputs, CandleMatrix};
pub use crate::linear::GgmlFormat;
use crate::{
    cpu::Cpu,
    linear::{Linear, LinearScratch, Order, WeightFormat},
};

/// A matrix of weights, and what products with it need.
#[derive(Clone, Debug)]
pub struct Matrix {
    linear: Linear,
    cpu: Cpu,
    scratch: LinearScratch,
}

impl Matrix {
    /// Takes `weights`, `(outputs, inputs)`, and brings them to `format`.
    ///
    /// # Panics
    /// If there are no inputs, or `weights` are no whole rows.
    pub fn new(weights: &[f32], inputs: usize, format: WeightFormat) -> Self {
        assert!(weights.len().is_multiple_of(inputs), "not of whole rows");
        Self::of(Linear::new(weights, None, inputs, format))
    }

    /// Takes ggml's blocks of `outputs` rows of `inputs`; `None` if they are not as many bytes as that
    /// takes, or rows are no whole blocks.
    pub fn from_ggml(
        format: GgmlFormat,
        bytes: &[u8],
        outputs: usize,
        inputs: usize,
    ) -> Option<Self> {
        Linear::from_ggml(Order::AsGiven, format, bytes, None, outputs, inputs).map(Self::of)
    }

    fn of(linear: Linear) -> Self {
        Self {
            linear,
            cpu: Cpu::detect(),
            scratch: LinearScratch::default(),
        }
    }

    /// Bytes of the weights as the kernel reads them.
    pub fn bytes(&self) -> usize {
        self.linear.bytes()
    }

    /// Writes the products of `x`, `(rows, inputs)`, to `y`, `(rows, outputs)`.
    ///
    /// # Panics
    /// If the two are not of as many whole rows.
    pub fn forward(&mut self, x: &[f32], y: &mut [f32]) {
        self.linear.forward(&self.cpu, x, y, &mut self.scratch);
    }
}

/// Memory that is read and nothing else: what a product can at best reach.
#[derive(Debug)]
pub struct ReadProbe {
    memory: crate::linear::Storage<[u32; 16]>,
    cpu: Cpu,
}

/// Lines of 64 bytes that a thread reads at a time.
const LINES: usize = 1024;

impl ReadProbe {
    /// Takes `bytes` of memory, rounded up to pieces of 64 KiB.
    pub fn new(bytes: usize) -> Self {
        let lines = bytes.div_ceil(64 * LINES) * LINES;
        Self {
            memory: crate::linear::Storage::filled([1; 16], lines),
            cpu: Cpu::detect(),
        }
    }

    /// Bytes that one pass reads.
    pub fn bytes(&self) -> usize {
        self.memory.len() * 64
    }

    /// Reads everything once, on all threads, each from one end of its share to the other.
    pub fn pass(&self) {
        let threads = &self.cpu.threads;
        let pieces = self.memory.len() / LINES;
        threads.each(pieces, |piece| {
            let lines = &self.memory[piece * LINES..][..LINES];
            black_box(sum(self.cpu.level, lines));
        });
    }

    /// Keeps the threads awake while `work` runs, as a forward does.
    pub fn awake<T>(&self, work: impl FnOnce() -> T) -> T {
        let _running = self.cpu.threads.open();
        work()
    }
}

/// Adds up all numbers.
fn sum(level: Level, lines: &[[u32; 16]]) -> u32 {
    match level {
        // SAFETY: this level is made only on CPUs with the features that `sum_avx512` enables.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512Vnni { .. } => unsafe { sum_avx512(lines) },
        _ => lines
            .iter()
            .fold([0_u32; 16], |sums, line| {
                std::array::from_fn(|lane| sums[lane].wrapping_add(line[lane]))
            })
            .iter()
            .fold(0, |a, b| a.wrapping_add(*b)),
    }
}

/// In eight sums, so that reads do not wait for additions.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn sum_avx512(lines: &[[u32; 16]]) -> u32 {
    use std::arch::x86_64::{
        _mm512_add_epi32, _mm512_loadu_si512, _mm512_reduce_add_epi32, _mm512_setzero_si512,
    };

    let mut sums = [_mm512_setzero_si512(); 8];
    let (eights, rest) = lines.as_chunks::<8>();
    for eight in eights {
        for i in 0..8 {
            // SAFETY: an array of 64 bytes.
            let line = unsafe { _mm512_loadu_si512(eight[i].as_ptr().cast()) };
            sums[i] = _mm512_add_epi32(sums[i], line);
        }
    }
    for line in rest {
        // SAFETY: as above.
        let line = unsafe { _mm512_loadu_si512(line.as_ptr().cast()) };
        sums[0] = _mm512_add_epi32(sums[0], line);
    }
    let sum = sums
        .into_iter()
        .fold(_mm512_setzero_si512(), |a, b| _mm512_add_epi32(a, b));
    _mm512_reduce_add_epi32(sum).cast_unsigned()
}

/// Number of threads that share a forward, the caller's included.
pub fn threads() -> usize {
    Cpu::detect().threads.count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_reads_every_byte() {
        let probe = ReadProbe::new(100_000);
        assert_eq!(probe.bytes(), 128 << 10);
        for level in Level::all() {
            let lines = &probe.memory[..1001];
            assert_eq!(sum(level, lines), 1001 * 16, "{level:?}");
        }
        probe.awake(|| probe.pass());
    }

    #[test]
    fn both_ways_to_a_matrix_agree() {
        // One output, one block: scale 0.5, quants 0 to 31.
        let mut bytes = half::f16::from_f32(0.5).to_le_bytes().to_vec();
        bytes.extend(0..32);
        let x = [1.0; 32];
        let mut y = [0.0];
        let stored = Matrix::from_ggml(GgmlFormat::Q8_0, &bytes, 1, 32);
        stored.expect("whole blocks").forward(&x, &mut y);
        // 127 quants of x, each 1 / 127.
        assert!((y[0] - 0.5 * 496.0).abs() < 1e-3, "{y:?}");
        let weights: Vec<f32> = (0..32).map(|i| i as f32 * 0.5).collect();
        let mut matrix = Matrix::new(&weights, 32, WeightFormat::F32);
        matrix.forward(&x, &mut y);
        assert_eq!(y, [248.0]);
        assert_eq!(matrix.bytes(), 32 * 32 * 4);
        for (outputs, inputs) in [(2, 32), (1, 31), (1, 64), (1, 0), (0, 32)] {
            let refused = Matrix::from_ggml(GgmlFormat::Q8_0, &bytes, outputs, inputs);
            assert!(refused.is_none(), "{outputs} x {inputs}");
        }
    }
}
