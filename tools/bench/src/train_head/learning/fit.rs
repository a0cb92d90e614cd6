//! Fitting a head to examples.

use anyhow::{bail, ensure};
use candle_core::{DType, Device, Tensor};
use candle_nn::{AdamW, Optimizer, ParamsAdamW};
use model::head::{AcceptanceHead, HeadInfo, MAX_DEPTH};
use speculation::verification::AcceptanceLabel;

use super::network::{HeadNetwork, loss};
use super::random::Uniforms;

/// Share of the steps over which the learning rate rises.
const WARM_UP: f64 = 0.03;
/// Stream of the order of examples; one more for each epoch.
const STREAM: u32 = 1;

/// What is learnt from: states, and how likely their tokens were to be accepted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Examples {
    /// Length of a state.
    pub(crate) hidden_size: usize,
    /// The draft model's last hidden states after the final norm, `(examples, hidden)`.
    pub(crate) states: Vec<f32>,
    /// Probability of acceptance, `(examples)`.
    pub(crate) labels: Vec<f32>,
}

/// How to learn.
#[derive(Clone, Debug)]
pub(crate) struct FitOptions {
    /// Number D of residual blocks, 0 to 4.
    pub(crate) depth: usize,
    /// Whether they share one weight and bias.
    pub(crate) tied: bool,
    /// What the labels mean.
    pub(crate) label: AcceptanceLabel,
    /// Fingerprint of the draft model the states are from.
    pub(crate) draft_fingerprint: String,
    /// Weight of refusals in the loss; above 0.
    pub(crate) w_rej: f64,
    /// Share of the target's own tokens in the contexts; noted in the head.
    pub(crate) mix: f64,
    /// Passes over the examples; at least 1.
    pub(crate) epochs: usize,
    /// Largest learning rate; above 0.
    pub(crate) learning_rate: f64,
    /// Examples a step; at least 1.
    pub(crate) batch: usize,
    /// Seed of the initial weights and of the order of examples.
    pub(crate) seed: u64,
}

impl FitOptions {
    /// Checks the values.
    ///
    /// # Errors
    /// Names the option and its limits.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let Self {
            depth,
            w_rej,
            mix,
            learning_rate,
            epochs,
            batch,
            ..
        } = self;
        ensure!(
            *depth <= MAX_DEPTH,
            "depth is {depth}, expected 0 to {MAX_DEPTH}"
        );
        ensure!(
            *w_rej > 0.0 && *w_rej <= 1000.0,
            "w_rej is {w_rej}, expected above 0, at most 1000"
        );
        ensure!((0.0..=1.0).contains(mix), "mix is {mix}, expected 0 to 1");
        ensure!(
            *learning_rate > 0.0 && *learning_rate <= 1.0,
            "lr is {learning_rate}, expected above 0, at most 1"
        );
        ensure!(
            (1..=1000).contains(epochs),
            "epochs is {epochs}, expected 1 to 1000"
        );
        ensure!(
            (1..=1_000_000).contains(batch),
            "batch is {batch}, expected 1 to 1000000"
        );
        Ok(())
    }
}

/// Learns a head; `progress` hears, after each step, how many of how many steps are done.
///
/// # Errors
/// If an option is out of range, there are no examples, or the arithmetic leaves the numbers.
pub(crate) fn fit(
    examples: &Examples,
    options: &FitOptions,
    mut progress: impl FnMut(usize, usize),
) -> anyhow::Result<AcceptanceHead> {
    options.check()?;
    let (hidden, count) = (examples.hidden_size, examples.labels.len());
    ensure!(
        count > 0 && hidden > 0 && examples.states.len() == count * hidden,
        "examples is {count} labels, {} numbers of states, expected at least 1 label, each with a state of \
         {hidden} numbers",
        examples.states.len()
    );
    let info = HeadInfo {
        depth: options.depth,
        tied: options.tied,
        hidden_size: hidden,
        label: options.label,
        draft_fingerprint: options.draft_fingerprint.clone(),
        w_rej: options.w_rej,
        mix: options.mix,
        seed: options.seed,
    };
    let network = HeadNetwork::new(
        (options.depth, info.stored_blocks(), hidden),
        DType::F32,
        options.seed,
    )?;
    let parameters = ParamsAdamW {
        weight_decay: 0.0,
        ..ParamsAdamW::default()
    };
    let mut optimiser = AdamW::new(network.vars(), parameters)?;
    let states = Tensor::from_slice(&examples.states, (count, hidden), &Device::Cpu)?;
    let labels = Tensor::from_slice(&examples.labels, count, &Device::Cpu)?;
    let steps = count.div_ceil(options.batch) * options.epochs;
    let mut step = 0;
    for epoch in 0..options.epochs {
        let order = Uniforms::new(options.seed, STREAM + epoch as u32).order(count);
        for batch in order.chunks(options.batch) {
            let batch = Tensor::new(batch, &Device::Cpu)?;
            let logits = network.logits(&states.index_select(&batch, 0)?)?;
            let loss = loss(&logits, &labels.index_select(&batch, 0)?, options.w_rej)?;
            optimiser.set_learning_rate(options.learning_rate * schedule(step, steps));
            optimiser.backward_step(&(loss.sum / loss.weight)?)?;
            step += 1;
            progress(step, steps);
        }
    }
    let weights = network.weights()?;
    let all = (weights.blocks.iter())
        .flat_map(|(weight, bias)| weight.iter().chain(bias))
        .chain(&weights.out_weight)
        .chain(&weights.out_bias);
    if !all.fold(true, |finite, value| finite & value.is_finite()) {
        bail!("the training failed: a weight is not finite; lower --lr");
    }
    Ok(AcceptanceHead::new(info, weights, "the training")?)
}

/// The factor of the learning rate at `step` of `steps`: up to 1 in a straight line, then down to 0 along
/// a cosine.
pub(super) fn schedule(step: usize, steps: usize) -> f64 {
    let warm_up = (steps as f64 * WARM_UP).ceil();
    let step = step as f64;
    if step < warm_up {
        return (step + 1.0) / warm_up;
    }
    let done = (step - warm_up) / (steps as f64 - warm_up).max(1.0);
    0.5 * (1.0 + (std::f64::consts::PI * done).cos())
}
