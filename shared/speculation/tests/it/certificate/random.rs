//! Numbers for random rows, the same on every machine.

use speculation::philox::philox;

/// A stream of numbers.
pub(crate) struct Random {
    stream: u64,
    drawn: u32,
}

impl Random {
    pub(crate) fn new(stream: u64) -> Self {
        Self { stream, drawn: 0 }
    }

    /// In (0, 1).
    pub(crate) fn uniform(&mut self) -> f64 {
        self.drawn += 1;
        let words = [self.stream as u32, (self.stream >> 32) as u32];
        let block = philox([self.drawn, 0x0ce7, words[0], words[1]], [17, 18]);
        (f64::from(block[0]) + 0.5) / f64::from(u32::MAX).next_up()
    }

    /// A whole number below `count`.
    pub(crate) fn below(&mut self, count: usize) -> usize {
        ((self.uniform() * count as f64) as usize).min(count - 1)
    }

    pub(crate) fn happens(&mut self, probability: f64) -> bool {
        self.uniform() < probability
    }

    /// Between `least` and `most`.
    pub(crate) fn between(&mut self, least: f64, most: f64) -> f64 {
        least + (most - least) * self.uniform()
    }

    /// Roughly normal: of six uniforms.
    pub(crate) fn normal(&mut self) -> f64 {
        let sum: f64 = (0..6).map(|_| self.uniform()).sum();
        (sum - 3.0) * 2.0_f64.sqrt()
    }
}
