//! Buffers that stretches reuse.

use super::partials::ChunkSum;
use crate::linear::{InputBlock, QUANT_BLOCK};

/// Buffers of one stretch after the other.
#[derive(Debug, Default)]
pub(super) struct StretchScratch {
    /// `(queries, slots of the stretch's pages)`: slots, then positions, counted from the first page's first on.
    pub(super) scores: Vec<f32>,
    /// `(chunks, queries)`.
    pub(super) chunks: Vec<ChunkSum>,
    /// Weighted values, `(chunks, queries, head_dim)`.
    pub(super) values: Vec<f32>,
    /// Of pages of numbers: sums over even and over odd positions, `(chunks, queries, 2, head_dim)`.
    pub(super) halves: Vec<f32>,
    /// Of pages of blocks.
    pub(super) shares: SharesScratch,
}

/// An item's queries as they are multiplied with keys.
#[derive(Debug, Default)]
pub(super) struct PackedQueries {
    /// With numbers: `(head_dim, queries)` for each of the tiles.
    pub(super) numbers: Vec<f32>,
    /// With blocks: `(blocks, queries)` for each of the tiles.
    pub(super) blocks: Vec<InputBlock>,
}

/// Shares of the queries of a chunk, by block of their values.
#[derive(Debug, Default)]
pub(super) struct SharesScratch {
    /// High and low halves, `(queries, blocks, 2, slots of the chunk's pages)`.
    pub(super) halves: Vec<u8>,
    /// What sums are multiplied by, `(queries, blocks)`.
    pub(super) units: Vec<f32>,
    /// Sums over what is seen of a branch, `(queries, blocks, 32)`.
    pub(super) branches: Vec<[i32; QUANT_BLOCK]>,
    /// Positions of a branch in the chunk, counted from the first page's first on, and their scales.
    pub(super) branch: Vec<(usize, f32)>,
    /// Shares that are not yet rounded.
    pub(super) unrounded: Vec<f32>,
}
