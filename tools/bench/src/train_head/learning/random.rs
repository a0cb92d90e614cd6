//! Uniform numbers of a training, all of them functions of its seed.

use speculation::philox::philox;

/// Third word of the counter: no draw of a request has it.
const TRAINING: u32 = u32::from_le_bytes(*b"head");

/// Uniforms in (0, 1), one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Uniforms {
    key: [u32; 2],
    stream: u32,
    next: u32,
}

impl Uniforms {
    /// Those of `stream` under `seed`; streams are independent of each other.
    pub(crate) fn new(seed: u64, stream: u32) -> Self {
        Self {
            key: [seed as u32, (seed >> 32) as u32],
            stream,
            next: 0,
        }
    }

    /// The numbers `0..len` in random order (Fisher and Yates).
    pub(super) fn order(&mut self, len: usize) -> Vec<u32> {
        let mut order: Vec<u32> = (0..len as u32).collect();
        for last in (1..len).rev() {
            let other = (self.uniform() * (last + 1) as f64) as usize;
            order.swap(last, other.min(last));
        }
        order
    }

    /// The next number.
    pub(crate) fn uniform(&mut self) -> f64 {
        let block = philox([self.next, self.stream, TRAINING, 0], self.key);
        self.next += 1;
        let bits = (u64::from(block[0]) << 32 | u64::from(block[1])) >> 12;
        (bits as f64 + 0.5) / (1_u64 << 52) as f64
    }
}
