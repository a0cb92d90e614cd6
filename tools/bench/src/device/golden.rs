//! Tiny checkpoints against what Hugging Face transformers computed for them in f32.

use std::fs;
use std::path::Path;

use anyhow::{Context, ensure};
use candle_core::{DType, Device, Tensor};
use model::{Checkpoint, Computation, ComputeDevice, NumberFormat};
use speculation::TokenId;
use speculation::ports::{LanguageModel, Rows, Segment};

use crate::report::{self, number, text};

/// Largest difference of a logit; those of these models are of the order of 1. cuBLAS sums in another order.
const ALLOWED: f32 = 1e-3;

/// How near a device came to one checkpoint's numbers.
pub(super) struct GoldenDistance {
    pub(super) name: String,
    /// Largest difference of two logits.
    difference: f32,
    /// Greedy continuations, and those that are the reference's.
    greedy: (usize, usize),
}

impl GoldenDistance {
    /// Whether it is within rounding.
    pub(super) fn is_right(&self) -> bool {
        // NaN is within nothing.
        self.difference <= ALLOWED && self.greedy.0 == self.greedy.1
    }

    /// A row of the report.
    pub(super) fn fields(&self) -> report::Row {
        let (all, right) = self.greedy;
        vec![
            text("model", self.name.clone()),
            number("difference", f64::from(self.difference), 6).called("largest difference"),
            text("greedy", format!("{right} of {all}")).called("greedy continuations"),
            text("right", if self.is_right() { "yes" } else { "NO" }),
        ]
    }
}

/// Compares every decoder-only checkpoint in `folder`, in f32.
///
/// # Errors
/// If one cannot be read, or the device refuses it.
pub(super) fn compare(folder: &Path, place: Place) -> anyhow::Result<Vec<GoldenDistance>> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut paths = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<std::io::Result<Vec<_>>>()?;
    paths.retain(|path| path.join("golden.safetensors").exists());
    paths.sort();
    let mut all = Vec::new();
    for path in paths {
        let checkpoint = Checkpoint::open(&path)?;
        if checkpoint.config().encoder.is_none() {
            let found = compare_one(&checkpoint, &path, place);
            all.push(found.with_context(|| path.display().to_string())?);
        }
    }
    ensure!(
        !all.is_empty(),
        "--golden: {} has no checkpoints with golden.safetensors",
        folder.display()
    );
    Ok(all)
}

fn compare_one(
    checkpoint: &Checkpoint,
    path: &Path,
    place: Place,
) -> anyhow::Result<GoldenDistance> {
    let mut model = checkpoint.load(Computation::Device(place, NumberFormat::F32))?;
    let file = path.join("golden.safetensors");
    let tensors = candle_core::safetensors::load(file, &Device::Cpu)?;
    let tensor = |name: &str| {
        tensors
            .get(name)
            .with_context(|| format!("no tensor {name}"))
    };
    let ids = |tensor: &Tensor| -> anyhow::Result<Vec<Vec<TokenId>>> {
        Ok(tensor.to_dtype(DType::U32)?.to_vec2()?)
    };
    let (inputs, greedy) = (ids(tensor("input_ids")?)?, ids(tensor("greedy")?)?);
    let logits: Vec<Vec<f32>> = tensor("logits")?.flatten_from(1)?.to_vec2()?;
    let mut found = GoldenDistance {
        name: path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned(),
        difference: 0.0,
        greedy: (greedy.len(), 0),
    };
    for ((input, logits), greedy) in inputs.iter().zip(&logits).zip(&greedy) {
        let mut sequence = GoldenSequence::new(&model);
        let rows = sequence.extend(&mut model, input)?;
        ensure!(rows.len() == logits.len(), "another number of logits");
        for (one, other) in rows.iter().zip(logits) {
            let difference = (one - other).abs();
            if difference.is_nan() || difference > found.difference {
                found.difference = difference;
            }
        }
        let mut next = sequence.best();
        let mut same = true;
        for &expected in greedy {
            same &= next == expected;
            sequence.extend(&mut model, &[next])?;
            next = sequence.best();
        }
        found.greedy.1 += usize::from(same);
    }
    Ok(found)
}

/// A sequence and the rows of what was last appended.
struct GoldenSequence<M: LanguageModel> {
    cache: M::Cache,
    rows: Rows,
}

impl<M: LanguageModel> GoldenSequence<M>
where
    M::Error: std::error::Error + Send + Sync + 'static,
{
    fn new(model: &M) -> Self {
        Self {
            cache: model.new_cache(),
            rows: Rows::default(),
        }
    }

    /// Logits of all of `tokens`.
    fn extend(&mut self, model: &mut M, tokens: &[TokenId]) -> anyhow::Result<&[f32]> {
        let segment = Segment {
            cache: &mut self.cache,
            tokens,
            parents: &[],
            scored_from: 0,
        };
        model.forward(&mut [segment], &mut self.rows)?;
        Ok(&self.rows.logits)
    }

    /// The most likely token of the last row.
    fn best(&self) -> TokenId {
        let first = self.rows.logits.len().saturating_sub(self.rows.vocab_size);
        let last = self.rows.logits[first..].iter().enumerate();
        let best = last.max_by(|(_, a), (_, b)| a.total_cmp(b));
        best.map_or(0, |(id, _)| id as TokenId)
    }
}
