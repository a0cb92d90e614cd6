//! T5 in double precision, as plainly as it can be written: how far rounding alone may take a logit.
//!
//! The tiny models' weights are wide and T5 does not scale its scores, so some softmaxes stand between two
//! keys that nearly tie, and a rounding of the last bit moves the logits behind them by up to 1e-3. The
//! reference's own single precision is that far from the exact logits too. So what rounding does is
//! measured, position by position: with noise of that size in the exact evaluation.

use std::{collections::HashMap, fs};

use safetensors::SafeTensors;
use serde_json::Value;
use speculation::TokenId;

use super::super::folder;

/// Relative size of the noise: a few units in the last place of single precision, which is what a sum of 64
/// rounded products comes to.
const NOISE: f64 = 3e-7;
/// Draws of the noise, the farthest of which counts.
const DRAWS: u64 = 12;

type Rows = Vec<Vec<f64>>;

/// A model in double precision.
pub(super) struct Exact {
    config: Value,
    tensors: HashMap<String, Rows>,
}

/// Rounding made visible: SplitMix64, or none.
struct Noise(Option<u64>);

impl Noise {
    fn on(&mut self, rows: Rows) -> Rows {
        let Some(state) = &mut self.0 else {
            return rows;
        };
        let mut factor = || {
            *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = *state;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^= z >> 31;
            1.0 + NOISE * ((z >> 11) as f64 / (1_u64 << 52) as f64 - 1.0)
        };
        let row = |row: Vec<f64>| row.into_iter().map(|x| x * factor()).collect();
        rows.into_iter().map(row).collect()
    }
}

impl Exact {
    pub(super) fn open(name: &str) -> Self {
        let file = |file: &str| fs::read(folder(name).join(file)).unwrap();
        let weights = file("model.safetensors");
        let tensors = SafeTensors::deserialize(&weights).unwrap();
        let rows = |tensor: &safetensors::tensor::TensorView<'_>| -> Rows {
            let (numbers, _) = tensor.data().as_chunks::<4>();
            let values: Vec<f64> = numbers
                .iter()
                .map(|n| f64::from(f32::from_le_bytes(*n)))
                .collect();
            let width = *tensor.shape().last().unwrap();
            values.chunks(width).map(<[f64]>::to_vec).collect()
        };
        Self {
            config: serde_json::from_slice(&file("config.json")).unwrap(),
            tensors: tensors
                .iter()
                .map(|(name, tensor)| (name.to_owned(), rows(&tensor)))
                .collect(),
        }
    }

    /// The logits of every position, and how far rounding takes those of each.
    pub(super) fn logits(&self, source: &[TokenId], tokens: &[TokenId]) -> (Rows, Vec<f64>) {
        let exact = self.evaluate(source, tokens, &mut Noise(None));
        let mut farthest = vec![0.0_f64; tokens.len()];
        for seed in 0..DRAWS {
            let noisy = self.evaluate(source, tokens, &mut Noise(Some(seed)));
            for ((farthest, exact), noisy) in farthest.iter_mut().zip(&exact).zip(noisy) {
                *farthest = farthest.max(distance(exact, &noisy));
            }
        }
        (exact, farthest)
    }

    fn evaluate(&self, source: &[TokenId], tokens: &[TokenId], noise: &mut Noise) -> Rows {
        let mut states = self.embed(source);
        for block in 0..self.size("num_layers") {
            let layer = format!("encoder.block.{block}.layer");
            self.attend(&mut states, None, &format!("{layer}.0"), "encoder", noise);
            self.feed_forward(&mut states, &format!("{layer}.1"), noise);
        }
        let states = noise.on(self.norm(&states, "encoder.final_layer_norm.weight"));
        let mut x = self.embed(tokens);
        for block in 0..self.size("num_decoder_layers") {
            let layer = format!("decoder.block.{block}.layer");
            self.attend(&mut x, None, &format!("{layer}.0"), "decoder", noise);
            self.attend(&mut x, Some(&states), &format!("{layer}.1"), "", noise);
            self.feed_forward(&mut x, &format!("{layer}.2"), noise);
        }
        let mut x = noise.on(self.norm(&x, "decoder.final_layer_norm.weight"));
        if self.config["scale_decoder_outputs"].as_bool().unwrap() {
            let scale = (self.size("d_model") as f64).sqrt();
            x.iter_mut().flatten().for_each(|x| *x /= scale);
        }
        self.linear(&x, "shared.weight")
    }

    fn size(&self, key: &str) -> usize {
        self.config[key].as_u64().unwrap() as usize
    }

    fn embed(&self, tokens: &[TokenId]) -> Rows {
        let table = &self.tensors["shared.weight"];
        tokens.iter().map(|t| table[*t as usize].clone()).collect()
    }

    fn linear(&self, x: &Rows, name: &str) -> Rows {
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum();
        let weights = &self.tensors[name];
        x.iter()
            .map(|x| weights.iter().map(|row| dot(x, row)).collect())
            .collect()
    }

    fn norm(&self, x: &Rows, name: &str) -> Rows {
        let (weight, eps) = (
            &self.tensors[name],
            self.config["layer_norm_epsilon"].as_f64(),
        );
        x.iter()
            .map(|x| {
                let mean = x.iter().map(|x| x * x).sum::<f64>() / x.len() as f64;
                let root = (mean + eps.unwrap()).sqrt();
                let weight = weight.iter().flatten();
                x.iter().zip(weight).map(|(x, w)| w * x / root).collect()
            })
            .collect()
    }

    /// Adds attention to `states`, or of `x` to itself in `stack`, whose bias is by distance.
    fn attend(
        &self,
        x: &mut Rows,
        states: Option<&Rows>,
        layer: &str,
        stack: &str,
        noise: &mut Noise,
    ) {
        let normed = noise.on(self.norm(x, &format!("{layer}.layer_norm.weight")));
        let kind = if states.is_some() {
            "EncDecAttention"
        } else {
            "SelfAttention"
        };
        let project = |rows: &Rows, part: &str, noise: &mut Noise| {
            noise.on(self.linear(rows, &format!("{layer}.{kind}.{part}.weight")))
        };
        let seen = states.unwrap_or(&normed);
        let queries = project(&normed, "q", noise);
        let (keys, values) = (project(seen, "k", noise), project(seen, "v", noise));
        let dim = self.size("d_kv");
        let mut mixed = vec![vec![0.0; queries[0].len()]; queries.len()];
        for (at, (query, mixed)) in queries.iter().zip(&mut mixed).enumerate() {
            let visible = if stack == "decoder" {
                at + 1
            } else {
                keys.len()
            };
            for head in 0..self.size("num_heads") {
                let dims = head * dim..(head + 1) * dim;
                let score = |key: usize| -> f64 {
                    let key_dims = &keys[key][dims.clone()];
                    let products = query[dims.clone()].iter().zip(key_dims);
                    let bias = if stack.is_empty() {
                        0.0
                    } else {
                        self.bias(stack, at, key, head)
                    };
                    products.map(|(q, k)| q * k).sum::<f64>() + bias
                };
                let scores: Vec<f64> = (0..visible).map(score).collect();
                let largest = scores.iter().fold(f64::MIN, |a, b| a.max(*b));
                let weights: Vec<f64> = scores.iter().map(|s| (s - largest).exp()).collect();
                let total: f64 = weights.iter().sum();
                for d in dims {
                    let terms = weights.iter().zip(&values);
                    mixed[d] = terms.map(|(w, value)| w / total * value[d]).sum();
                }
            }
        }
        let mixed = noise.on(mixed);
        let update = project(&mixed, "o", noise);
        add(x, &update);
    }

    fn bias(&self, stack: &str, query: usize, key: usize, head: usize) -> f64 {
        let name = format!("{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight");
        let mut buckets = self.size("relative_attention_num_buckets");
        let mut first = 0;
        if stack == "encoder" {
            buckets /= 2;
            first = if key > query { buckets } else { 0 };
        }
        let (exact, distance) = (buckets / 2, query.abs_diff(key));
        let far = self.size("relative_attention_max_distance") as f64;
        let mut bucket = distance;
        if distance >= exact {
            let octaves = (distance as f64 / exact as f64).ln() / (far / exact as f64).ln();
            // A bucket that begins at a whole distance begins there.
            let further = (octaves * (buckets - exact) as f64 + 1e-9) as usize;
            bucket = (exact + further).min(buckets - 1);
        }
        self.tensors[&name][first + bucket][head]
    }

    fn feed_forward(&self, x: &mut Rows, layer: &str, noise: &mut Noise) {
        let normed = noise.on(self.norm(x, &format!("{layer}.layer_norm.weight")));
        let dense = |part: &str| format!("{layer}.DenseReluDense.{part}.weight");
        let inner = match self.config["feed_forward_proj"].as_str().unwrap() {
            "relu" => {
                let mut inner = self.linear(&normed, &dense("wi"));
                inner.iter_mut().flatten().for_each(|x| *x = x.max(0.0));
                inner
            }
            "gated-gelu" => {
                let mut inner = self.linear(&normed, &dense("wi_0"));
                let gated = self.linear(&normed, &dense("wi_1"));
                for (x, gated) in inner.iter_mut().flatten().zip(gated.iter().flatten()) {
                    let root = (2.0 / std::f64::consts::PI).sqrt();
                    let tanh = (root * (*x + 0.044_715 * x.powi(3))).tanh();
                    *x *= 0.5 * (1.0 + tanh) * gated;
                }
                inner
            }
            other => panic!("{other} is no golden model's"),
        };
        let inner = noise.on(inner);
        let update = noise.on(self.linear(&inner, &dense("wo")));
        add(x, &update);
    }
}

fn add(x: &mut Rows, update: &Rows) {
    for (x, update) in x.iter_mut().flatten().zip(update.iter().flatten()) {
        *x += update;
    }
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    let differences = a.iter().zip(b).map(|(a, b)| (a - b).abs());
    differences.fold(0.0, f64::max)
}
