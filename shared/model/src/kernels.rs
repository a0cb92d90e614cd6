//! Single kernels, for whoever measures them: a product with one matrix, and the threads it runs on.

use speculation::simd::Level;

use crate::{
    cpu::Cpu,
    linear::{GgmlFormat, Linear, LinearScratch, Order, WeightFormat},
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

/// The threads that share this process's forwards, the caller's included.
#[derive(Clone, Debug)]
pub struct Threads(Cpu);

impl Threads {
    /// Those of this process.
    pub fn of_process() -> Self {
        Self(Cpu::detect())
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.threads.count()
    }

    /// Does `work` for each of `parts`, on all threads, each from one end of its share to the other.
    pub fn each(&self, parts: usize, work: impl Fn(usize) + Sync) {
        self.0.threads.each(parts, work);
    }

    /// Keeps the threads awake while `work` runs, as a forward does.
    pub fn awake<T>(&self, work: impl FnOnce() -> T) -> T {
        let _running = self.0.threads.open();
        work()
    }

    /// The instructions that kernels use here.
    pub fn level(&self) -> Level {
        self.0.level
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    }
}
