//! One decoder layer on the device.

use candle_core::{DType, Device, Result, Tensor};
use candle_nn::rotary_emb::rope_thd;

use super::DeviceError;
use super::attention::{AttentionHeads, AttentionPlan};
use super::cache::DeviceLayerCache;
use super::linear::{DeviceLinear, DeviceLoader, Norm};
use super::rows::BatchRows;
use crate::rope::Rotary;
use crate::{
    config::Activation,
    decoder::tensors::LayerPart::{
        AttentionNorm, AttentionPostNorm, Down, Gate, Key, KeyNorm, MlpNorm, MlpPostNorm, Output,
        Query, QueryNorm, Up, Value,
    },
};

/// Weights of a layer. Projections of the same input are one matrix.
#[derive(Clone, Debug)]
pub(super) struct DeviceLayer {
    attention_norm: Option<Norm>,
    /// Query, key and value: `((heads + 2 * kv_heads) * head_dim, hidden)`.
    qkv: DeviceLinear,
    query_norm: Option<Norm>,
    key_norm: Option<Norm>,
    /// Whether they are over all heads at once, and not over each.
    qk_norm_whole: bool,
    /// `(hidden, heads * head_dim)`.
    output: DeviceLinear,
    /// Of what attention adds.
    attention_post_norm: Option<Norm>,
    mlp_norm: Option<Norm>,
    /// Gate and up: `(2 * intermediate, hidden)`.
    gate_up: DeviceLinear,
    /// `(hidden, intermediate)`.
    down: DeviceLinear,
    /// Of what the feed-forward network adds.
    mlp_post_norm: Option<Norm>,
    /// What is added to the hidden states is multiplied by it.
    residual_scale: Option<f32>,
    activation: Activation,
    heads: AttentionHeads,
    scale: f32,
    intermediate: usize,
    /// Whether it rotates as layers with a window do.
    pub(super) window_rope: bool,
    /// Whether it rotates at all.
    pub(super) rotated: bool,
}

/// What every layer of a forward works with.
#[derive(Clone, Copy, Debug)]
pub(super) struct DevicePass<'a> {
    pub(super) rows: &'a BatchRows,
    pub(super) plan: &'a AttentionPlan,
    pub(super) rotation: Option<&'a DeviceRotation>,
}

impl DeviceLayer {
    /// Loads the `index`-th layer.
    pub(super) fn load(
        loader: &DeviceLoader<'_>,
        index: usize,
    ) -> std::result::Result<Self, DeviceError> {
        let config = loader.config;
        let windowed = config.is_windowed(index);
        Ok(Self {
            attention_norm: loader.optional_norm(index, AttentionNorm)?,
            qkv: loader.stack(index, &[Query, Key, Value])?,
            query_norm: loader.optional_norm(index, QueryNorm)?,
            key_norm: loader.optional_norm(index, KeyNorm)?,
            qk_norm_whole: config.qk_norm_whole,
            output: loader.stack(index, &[Output])?,
            attention_post_norm: loader.optional_norm(index, AttentionPostNorm)?,
            mlp_norm: loader.optional_norm(index, MlpNorm)?,
            gate_up: loader.stack(index, &[Gate, Up])?,
            down: loader.stack(index, &[Down])?,
            mlp_post_norm: loader.optional_norm(index, MlpPostNorm)?,
            residual_scale: config.residual_scale,
            activation: config.activation,
            heads: AttentionHeads {
                query: config.heads,
                key_value: config.kv_heads,
                head_dim: config.head_dim,
                softcap: config.attention_softcap,
                windowed,
            },
            scale: config.attention_scale,
            intermediate: config.intermediate_size,
            window_rope: windowed && config.window_rope.is_some(),
            rotated: config.is_rotated(index),
        })
    }

    /// Takes the hidden states `x`, `(rows, hidden)` in f32, through this layer, and writes the rows' keys
    /// and values to `caches`, one for each segment.
    pub(super) fn forward(
        &self,
        pass: DevicePass<'_>,
        caches: &[&DeviceLayerCache],
        x: &Tensor,
    ) -> Result<Tensor> {
        let input = normed(self.attention_norm.as_ref(), x)?;
        let update = self.attend(pass, caches, &input)?;
        let x = (x + self.added(self.attention_post_norm.as_ref(), &update)?)?;
        let update = self.feed_forward(&normed(self.mlp_norm.as_ref(), &x)?)?;
        x + self.added(self.mlp_post_norm.as_ref(), &update)?
    }

    fn attend(
        &self,
        pass: DevicePass<'_>,
        caches: &[&DeviceLayerCache],
        x: &Tensor,
    ) -> Result<Tensor> {
        let AttentionHeads {
            query: heads,
            key_value: kv_heads,
            head_dim,
            ..
        } = self.heads;
        let rows = x.dim(0)?;
        let qkv = self.qkv.forward(x)?;
        let dtype = qkv.dtype();
        let (query_dim, kv_dim) = (heads * head_dim, kv_heads * head_dim);
        let part = |first: usize, width: usize| qkv.narrow(1, first, width);
        let turned = |part: Tensor, count: usize, norm: Option<&Norm>| {
            let shape = if self.qk_norm_whole {
                (rows, count * head_dim)
            } else {
                (rows * count, head_dim)
            };
            let heads = normed(norm, &part.to_dtype(DType::F32)?.reshape(shape)?)?;
            let heads = heads.reshape((1, rows, count, head_dim))?;
            match pass.rotation {
                Some(rotation) => rotation.apply(&heads),
                None => Ok(heads),
            }
        };
        let query = turned(part(0, query_dim)?, heads, self.query_norm.as_ref())?;
        let keys = turned(part(query_dim, kv_dim)?, kv_heads, self.key_norm.as_ref())?
            .to_dtype(dtype)?
            .reshape((rows, kv_heads, head_dim))?;
        let values = part(query_dim + kv_dim, kv_dim)?
            .contiguous()?
            .reshape((rows, kv_heads, head_dim))?;
        for (segment, cache) in pass.rows.segments.iter().zip(caches) {
            let own = |x: &Tensor| x.narrow(0, segment.first, segment.count);
            cache.write(segment.held, &own(&keys)?, &own(&values)?)?;
        }
        // Scaled in f32 and before the product, which f16 might not hold.
        let query = (query * f64::from(self.scale))?
            .to_dtype(dtype)?
            .reshape((rows, query_dim))?;
        let attended = pass.plan.attend(&query, caches, self.heads)?;
        self.output.forward(&attended)
    }

    fn feed_forward(&self, x: &Tensor) -> Result<Tensor> {
        let gate_up = self.gate_up.forward(x)?;
        let part = |first: usize| {
            let part = gate_up.narrow(1, first, self.intermediate)?;
            part.to_dtype(DType::F32)
        };
        let gate = part(0)?;
        let gate = match self.activation {
            Activation::Silu => gate.silu(),
            Activation::GeluTanh => gate.gelu(),
            Activation::Relu => gate.relu(),
        }?;
        self.down.forward(&(gate * part(self.intermediate)?)?)
    }

    /// Returns what a block that made `update` adds to the hidden states, in f32, normalised if there is a norm.
    fn added(&self, norm: Option<&Norm>, update: &Tensor) -> Result<Tensor> {
        let update = normed(norm, &update.to_dtype(DType::F32)?)?;
        match self.residual_scale {
            Some(scale) => update * f64::from(scale),
            None => Ok(update),
        }
    }
}

/// The rows of `x`, `(rows, width)` in f32, normalised if there is a norm.
fn normed(norm: Option<&Norm>, x: &Tensor) -> Result<Tensor> {
    match norm {
        Some(norm) => norm.forward(x),
        None => Ok(x.clone()),
    }
}

/// Cosines and sines of the rows' positions, each `(rows, dims / 2)`.
#[derive(Debug)]
pub(super) struct DeviceRotation {
    cos: Tensor,
    sin: Tensor,
}

impl DeviceRotation {
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
