//! A pass over memory that does nothing but read.

use std::hint::black_box;

use model::Cpu;
use speculation::simd::Level;

/// Memory that is read and nothing else: what a product can at best reach.
#[derive(Debug)]
pub(crate) struct ReadProbe {
    memory: Vec<CacheLine>,
    cpu: Cpu,
}

/// A line of the caches.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct CacheLine([u32; 16]);

/// Lines of 64 bytes that a thread reads at a time.
const LINES: usize = 1024;

impl ReadProbe {
    /// Takes `bytes` of memory, rounded up to pieces of 64 KiB.
    pub(crate) fn new(bytes: usize) -> Self {
        let lines = bytes.div_ceil(64 * LINES) * LINES;
        Self {
            memory: vec![CacheLine([1; 16]); lines],
            cpu: Cpu::detect(),
        }
    }

    /// Bytes that one pass reads.
    pub(crate) fn bytes(&self) -> usize {
        self.memory.len() * 64
    }

    /// Reads everything once, on all threads, each from one end of its share to the other.
    pub(crate) fn pass(&self) {
        let pieces = self.memory.len() / LINES;
        self.cpu.threads.each(pieces, &|piece| {
            let lines = &self.memory[piece * LINES..][..LINES];
            black_box(sum(self.cpu.level, lines));
        });
    }

    /// Keeps the threads awake while `work` runs, as a forward does.
    pub(crate) fn awake<T>(&self, work: impl FnOnce() -> T) -> T {
        let _running = self.cpu.threads.open();
        work()
    }
}

/// Adds up all numbers.
fn sum(level: Level, lines: &[CacheLine]) -> u32 {
    match level {
        // SAFETY: this level is made only on CPUs with the features that `sum_avx512` enables.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512Vnni { .. } => unsafe { sum_avx512(lines) },
        _ => lines
            .iter()
            .fold([0_u32; 16], |sums, line| {
                std::array::from_fn(|lane| sums[lane].wrapping_add(line.0[lane]))
            })
            .iter()
            .fold(0, |a, b| a.wrapping_add(*b)),
    }
}

/// In eight sums, so that reads do not wait for additions.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn sum_avx512(lines: &[CacheLine]) -> u32 {
    use std::arch::x86_64::{
        _mm512_add_epi32, _mm512_loadu_si512, _mm512_reduce_add_epi32, _mm512_setzero_si512,
    };

    let mut sums = [_mm512_setzero_si512(); 8];
    let (eights, rest) = lines.as_chunks::<8>();
    for eight in eights {
        for i in 0..8 {
            // SAFETY: an array of 64 bytes.
            let line = unsafe { _mm512_loadu_si512(eight[i].0.as_ptr().cast()) };
            sums[i] = _mm512_add_epi32(sums[i], line);
        }
    }
    for line in rest {
        // SAFETY: as above.
        let line = unsafe { _mm512_loadu_si512(line.0.as_ptr().cast()) };
        sums[0] = _mm512_add_epi32(sums[0], line);
    }
    let sum = sums
        .into_iter()
        .fold(_mm512_setzero_si512(), |a, b| _mm512_add_epi32(a, b));
    _mm512_reduce_add_epi32(sum).cast_unsigned()
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
}
