//! Rotary position embedding of a batch's rows.

use candle_core::{Device, Result, Tensor};
use candle_nn::rotary_emb::rope_thd;

use crate::rope::Rotary;

/// Cosines and sines of the rows' positions, each `(rows, dims / 2)`.
#[derive(Debug)]
pub(super) struct Rotation {
    cos: Tensor,
    sin: Tensor,
}

impl Rotation {
    /// Those of `positions`, at least one.
    pub(super) fn of(rotary: &mut Rotary, positions: &[usize], device: &Device) -> Result<Self> {
        rotary.reserve(positions.iter().max().map_or(0, |last| last + 1));
        let (mut cos, mut sin) = (Vec::new(), Vec::new());
        for &position in positions {
            let row = rotary.at(position);
            cos.extend_from_slice(row.0);
            sin.extend_from_slice(row.1);
        }
        let shape = (positions.len(), cos.len() / positions.len());
        Ok(Self {
            cos: Tensor::from_vec(cos, shape, device)?,
            sin: Tensor::from_vec(sin, shape, device)?,
        })
    }

    /// Rotates the heads of each row, `(1, rows, heads, head_dim)` in f32.
    pub(super) fn apply(&self, heads: &Tensor) -> Result<Tensor> {
        let (dims, head_dim) = (2 * self.cos.dim(1)?, heads.dim(3)?);
        if dims == head_dim {
            return rope_thd(heads, &self.cos, &self.sin);
        }
        let rotated = rope_thd(
            &heads.narrow(3, 0, dims)?.contiguous()?,
            &self.cos,
            &self.sin,
        )?;
        Tensor::cat(&[&rotated, &heads.narrow(3, dims, head_dim - dims)?], 3)
    }
}
