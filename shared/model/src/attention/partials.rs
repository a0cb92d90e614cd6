//! The sums of chunks, added up.
//!
//! The weights of chunk c are exponentials relative to its largest score m_c. Its sum of weights t_c and of weighted
//! values v_c join what was summed before, (M, T, V), in the order of the chunks (the online softmax of Milakov and
//! Gimelshein 2018, equations 4 to 6, by chunks as in FlashAttention, Dao et al. 2022, algorithm 1):
//! M' = max(M, m_c), T' = T exp(M - M') + t_c exp(m_c - M'), V likewise. The first chunk's numbers come out
//! as they are.

use super::exponential::exponential;

/// Largest score and sum of weights of one query in one chunk.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChunkSum {
    pub(super) largest: f32,
    pub(super) total: f32,
}

impl ChunkSum {
    /// Of a chunk of which the query sees nothing.
    pub(super) const UNSEEN: Self = Self {
        largest: f32::NEG_INFINITY,
        total: 0.0,
    };

    /// Whether the query sees anything of the chunk.
    pub(super) fn is_seen(self) -> bool {
        self.largest > f32::NEG_INFINITY
    }
}

/// What one query's sums have come to, beside its values.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunningSum {
    largest: f32,
    total: f32,
}

impl RunningSum {
    /// Of no chunk; the values are zeros.
    pub(super) const NOTHING: Self = Self {
        largest: f32::MIN,
        total: 0.0,
    };

    /// Adds a chunk that the query sees, whose weighted values are `more`.
    #[inline(always)]
    pub(super) fn add(&mut self, values: &mut [f32], chunk: ChunkSum, more: &[f32]) {
        let largest = if chunk.largest > self.largest {
            chunk.largest
        } else {
            self.largest
        };
        let (old, new) = (
            exponential(self.largest - largest),
            exponential(chunk.largest - largest),
        );
        self.largest = largest;
        self.total = self.total * old + chunk.total * new;
        for (value, more) in values.iter_mut().zip(more) {
            *value = *value * old + *more * new;
        }
    }

    /// Divides the values by the sum of the weights.
    #[inline(always)]
    pub(super) fn divide(self, values: &mut [f32]) {
        for value in values {
            *value /= self.total;
        }
    }
}
