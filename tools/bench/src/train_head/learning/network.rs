//! The head as candle differentiates it.

use candle_core::{D, DType, Device, Result, Tensor, Var};
use candle_nn::ops::log_softmax;
use model::head::HeadWeights;

use super::random::Uniforms;

/// Stream of the initial weights.
const STREAM: u32 = 0;

/// A head's parameters, to be changed by an optimiser.
pub(super) struct HeadNetwork {
    depth: usize,
    /// Weight `(hidden, hidden)` and bias `(hidden)`; one entry if the blocks are tied.
    blocks: Vec<(Var, Var)>,
    out_weight: Var,
    out_bias: Var,
}

/// The loss of some positions, not yet divided.
pub(super) struct WeightedLoss {
    /// Σ w_acc P (-ln P^) + w_rej (1 - P) (-ln(1 - P^)).
    pub(super) sum: Tensor,
    /// Σ w_acc P + w_rej (1 - P).
    pub(super) weight: Tensor,
}

impl HeadNetwork {
    /// A fresh head: weights and biases uniform within ±1/√hidden, as a linear layer begins by default.
    pub(super) fn new(
        (depth, stored_blocks, hidden): (usize, usize, usize),
        dtype: DType,
        seed: u64,
    ) -> Result<Self> {
        let mut uniforms = Uniforms::new(seed, STREAM);
        let bound = 1.0 / (hidden as f64).sqrt();
        let mut fresh = |shape: &[usize]| {
            let count = shape.iter().product();
            let values: Vec<f64> = (0..count)
                .map(|_| (2.0 * uniforms.uniform() - 1.0) * bound)
                .collect();
            Var::from_tensor(&Tensor::from_vec(values, shape, &Device::Cpu)?.to_dtype(dtype)?)
        };
        let blocks = (0..stored_blocks)
            .map(|_| Ok((fresh(&[hidden, hidden])?, fresh(&[hidden])?)))
            .collect::<Result<_>>()?;
        Ok(Self {
            depth,
            blocks,
            out_weight: fresh(&[2, hidden])?,
            out_bias: fresh(&[2])?,
        })
    }

    /// All parameters.
    pub(super) fn vars(&self) -> Vec<Var> {
        let blocks = self.blocks.iter();
        blocks
            .flat_map(|(weight, bias)| [weight.clone(), bias.clone()])
            .chain([self.out_weight.clone(), self.out_bias.clone()])
            .collect()
    }

    /// Logits `(rows, 2)`, refused and accepted, of states `(rows, hidden)`.
    pub(super) fn logits(&self, states: &Tensor) -> Result<Tensor> {
        let mut x = states.clone();
        for block in 0..self.depth {
            // Tied blocks are one.
            let (weight, bias) = &self.blocks[block.min(self.blocks.len() - 1)];
            let product = x.matmul(&weight.t()?)?.broadcast_add(bias)?;
            x = (x + product.silu()?)?;
        }
        x.matmul(&self.out_weight.t()?)?
            .broadcast_add(&self.out_bias)
    }

    /// The parameters as a head stores them.
    pub(super) fn weights(&self) -> Result<HeadWeights> {
        let values = |var: &Var| var.as_tensor().flatten_all()?.to_vec1::<f32>();
        let blocks = self.blocks.iter();
        Ok(HeadWeights {
            blocks: blocks
                .map(|(weight, bias)| Ok((values(weight)?, values(bias)?)))
                .collect::<Result<_>>()?,
            out_weight: values(&self.out_weight)?,
            out_bias: values(&self.out_bias)?,
        })
    }
}

/// The weighted cross-entropy of `logits` (rows, 2) with `labels` (rows), the weight of acceptance
/// being 1.
pub(super) fn loss(logits: &Tensor, labels: &Tensor, w_rej: f64) -> Result<WeightedLoss> {
    let logs = log_softmax(logits, D::Minus1)?;
    let refused = (labels.neg()? + 1.0)?.affine(w_rej, 0.0)?;
    let weights = Tensor::stack(&[&refused, labels], 1)?;
    Ok(WeightedLoss {
        sum: (&weights * &logs)?.sum_all()?.neg()?,
        weight: weights.sum_all()?,
    })
}
