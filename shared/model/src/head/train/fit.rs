//! Fitting a head to examples.

use candle_core::{DType, Device, Tensor};
use candle_nn::{AdamW, Optimizer, ParamsAdamW};
use speculation::drafting::AcceptanceLabel;
use thiserror::Error;

use super::network::{Network, loss};
use super::random::Uniforms;
use crate::head::{AcceptanceHead, HeadError, HeadInfo, MAX_DEPTH};

/// Share of the steps over which the learning rate rises.
const WARM_UP: f64 = 0.03;
/// Stream of the order of examples; one more for each epoch.
const STREAM: u32 = 1;

/// What is learnt from: states, and how likely their tokens were to be accepted.
#[derive(Clone, Debug, Default)]
pub struct Examples {
    /// Length of a state.
    pub hidden_size: usize,
    /// The draft model's last hidden states after the final norm, `(examples, hidden)`.
    pub states: Vec<f32>,
    /// Probability of acceptance, `(examples)`.
    pub labels: Vec<f32>,
}

/// How to learn.
#[derive(Clone, Debug)]
pub struct FitOptions {
    /// Number D of residual blocks, 0 to 4.
    pub depth: usize,
    /// Whether they share one weight and bias.
    pub tied: bool,
    /// What the labels mean.
    pub label: AcceptanceLabel,
    /// Fingerprint of the draft model the states are from.
    pub draft_fingerprint: String,
    /// Weight of refusals in the loss; above 0.
    pub w_rej: f64,
    /// Share of the target's own tokens in the contexts; noted in the head.
    pub mix: f64,
    /// Passes over the examples; at least 1.
    pub epochs: usize,
    /// Largest learning rate; above 0.
    pub learning_rate: f64,
    /// Examples a step; at least 1.
    pub batch: usize,
    /// Seed of the initial weights and of the order of examples.
    pub seed: u64,
}

/// Why nothing is learnt.
#[derive(Debug, Error)]
pub enum FitError {
    /// An option has a value that cannot be.
    #[error("{field} is {found}, expected {expected}")]
    Option {
        /// The option.
        field: &'static str,
        /// What stands there.
        found: String,
        /// What should.
        expected: String,
    },
    /// The arithmetic failed, or left the numbers.
    #[error("the training failed: {0}")]
    Candle(#[from] candle_core::Error),
    /// The head that came out cannot be one.
    #[error(transparent)]
    Head(#[from] HeadError),
}

impl FitOptions {
    /// Checks the values.
    ///
    /// # Errors
    /// Names the option and its limits.
    pub fn check(&self) -> Result<(), FitError> {
        let wrong = |field, found: String, expected: &str| {
            Err(FitError::Option {
                field,
                found,
                expected: expected.to_owned(),
            })
        };
        if self.depth > MAX_DEPTH {
            return wrong(
                "depth",
                self.depth.to_string(),
                &format!("0 to {MAX_DEPTH}"),
            );
        }
        if !(self.w_rej > 0.0 && self.w_rej <= 1000.0) {
            return wrong("w_rej", self.w_rej.to_string(), "above 0, at most 1000");
        }
        if !(0.0..=1.0).contains(&self.mix) {
            return wrong("mix", self.mix.to_string(), "0 to 1");
        }
        if !(self.learning_rate > 0.0 && self.learning_rate <= 1.0) {
            return wrong("lr", self.learning_rate.to_string(), "above 0, at most 1");
        }
        if !(1..=1000).contains(&self.epochs) {
            return wrong("epochs", self.epochs.to_string(), "1 to 1000");
        }
        if !(1..=1_000_000).contains(&self.batch) {
            return wrong("batch", self.batch.to_string(), "1 to 1000000");
        }
        Ok(())
    }
}

/// Learns a head; `progress` hears, after each step, how many of how many steps are done.
///
/// # Errors
/// If an option is out of range, there are no examples, or the arithmetic leaves the numbers.
pub fn fit(
    examples: &Examples,
    options: &FitOptions,
    mut progress: impl FnMut(usize, usize),
) -> Result<AcceptanceHead, FitError> {
    options.check()?;
    let (hidden, count) = (examples.hidden_size, examples.labels.len());
    if count == 0 || hidden == 0 || examples.states.len() != count * hidden {
        let found = format!(
            "{count} labels, {} numbers of states",
            examples.states.len()
        );
        let expected = format!("at least 1 label, each with a state of {hidden} numbers");
        let field = "examples";
        return Err(FitError::Option {
            field,
            found,
            expected,
        });
    }
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
    let network = Network::new(
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
        let message = "a weight is not finite; lower --lr".to_owned();
        return Err(FitError::Candle(candle_core::Error::Msg(message)));
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
