//! What the command is told.

use std::path::PathBuf;

use super::learning::FitOptions;
use super::material::ResponseSettings;
use clap::Args;
use speculation::verification::AcceptanceLabel;

use crate::request::{CutArgs, FORMS, InputArgs};

/// Positions of a step.
const BATCH: usize = 256;

/// Responses of a step in the paper.
const PAPER_RESPONSES: usize = 32;

/// Arguments of `outrider-bench train-head`.
#[derive(Debug, Args)]
#[command(after_long_help = FORMS)]
pub(crate) struct TrainHeadArgs {
    /// Prompts: JSON lines {"kind": ..., "prompt": ...} or of another form, see below. At least 10; one of every ten is
    /// held out. A thousand is a good number.
    #[arg(long, value_name = "FILE")]
    pub(super) prompts: PathBuf,
    #[command(flatten)]
    pub(super) input: InputArgs,
    /// The draft model: a checkpoint folder, or embedded:draft. Without it, drafter.model of the
    /// configuration.
    #[arg(long, value_name = "SOURCE")]
    draft: Option<String>,
    /// The target model: a checkpoint folder, or embedded:target. A verifier is started in this process
    /// for it. Without it, verifier.model of the configuration.
    #[arg(long, value_name = "SOURCE", conflicts_with = "verifier")]
    target: Option<String>,
    /// A running verifier to ask instead, http://HOST:PORT.
    #[arg(long, value_name = "URL")]
    verifier: Option<String>,
    /// Verification the head is meant for: coupled, or rejection for all that test against the draft distribution
    /// (token, block, block-greedy), where drafting and testing use the distribution as it is sent, by
    /// default its 32 most likely tokens. Coupling accepts less, so the heads differ.
    #[arg(long, value_name = "LABEL", default_value_t = AcceptanceLabel::Coupled)]
    pub(super) label: AcceptanceLabel,
    /// Gives depth, weight of refusals, learning rate and positions a step the values that SpecDec++ was trained with,
    /// where they are not given: 3, 6, 5e-5, and 32 responses.
    #[arg(long)]
    paper_defaults: bool,
    /// Residual blocks, 0 to 4. More predict better and cost more at each draft token.
    #[arg(
        long,
        value_name = "D",
        default_value_t = 1,
        default_value_if("paper_defaults", "true", "3")
    )]
    depth: usize,
    /// One weight for all blocks, as in the authors' release.
    #[arg(long)]
    tied: bool,
    /// Weight of refusals in the loss. With 1 the prediction is a probability as it stands; the paper
    /// tries 1, 3, 6 and 12, which make it warier.
    #[arg(
        long,
        value_name = "W",
        default_value_t = 1.0,
        default_value_if("paper_defaults", "true", "6"),
        allow_negative_numbers = true
    )]
    w_rej: f64,
    /// Share of the target's own tokens in the contexts that are learnt from, the others being drafted.
    /// With 1 the context is all the target's and each drafted token branches off it: what a drafter sees
    /// while all it drafts is accepted, at twice the draft forwards.
    #[arg(
        long,
        value_name = "R",
        default_value_t = 0.15,
        allow_negative_numbers = true
    )]
    pub(super) mix: f64,
    /// Passes over the positions learnt from.
    #[arg(long, value_name = "N", default_value_t = 3)]
    epochs: usize,
    /// Largest learning rate; it rises over the first 3 % of the steps, then falls along a cosine.
    #[arg(
        long,
        value_name = "RATE",
        default_value_t = 1e-3,
        default_value_if("paper_defaults", "true", "5e-5"),
        allow_negative_numbers = true
    )]
    lr: f64,
    /// Positions a step; 256 if not given.
    #[arg(long, value_name = "N")]
    batch: Option<usize>,
    /// Tokens of each response, unless it ends before.
    #[arg(long, value_name = "N", default_value_t = 128)]
    pub(super) max_tokens: u32,
    /// Temperature of both models' distributions, in responses, drafts and labels.
    #[arg(
        long,
        value_name = "T",
        default_value_t = 1.0,
        allow_negative_numbers = true
    )]
    pub(super) temperature: f32,
    // Of both models.
    #[command(flatten)]
    pub(super) cuts: CutArgs,
    /// Seed of everything that is drawn.
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub(super) seed: u64,
    /// Milliseconds of a draft forward, for the best h; measured if not given.
    #[arg(long, value_name = "MS", allow_negative_numbers = true)]
    pub(super) draft_ms: Option<f64>,
    /// Milliseconds of a target forward, for the best h; measured if not given.
    #[arg(long, value_name = "MS", allow_negative_numbers = true)]
    pub(super) target_ms: Option<f64>,
    /// Folder that keeps what was sampled.
    #[arg(long, value_name = "DIR", default_value = "outrider-cache")]
    cache: PathBuf,
    /// File to write the head to.
    #[arg(long, value_name = "FILE")]
    pub(super) out: PathBuf,
    /// Replaces that file if it is there already.
    #[arg(long)]
    pub(super) force: bool,
}

impl TrainHeadArgs {
    /// How responses are made.
    pub(super) fn responses(&self) -> ResponseSettings<'_> {
        ResponseSettings {
            draft: self.draft.as_deref(),
            target: self.target.as_deref(),
            verifier: self.verifier.as_deref(),
            temperature: self.temperature,
            cuts: self.cuts,
            max_input: self.input.max_input,
            max_tokens: self.max_tokens,
            seed: self.seed,
            cache: &self.cache,
        }
    }

    /// How to learn, for the draft model with this fingerprint.
    pub(super) fn options(&self, draft_fingerprint: &str) -> FitOptions {
        FitOptions {
            depth: self.depth,
            tied: self.tied,
            label: self.label,
            draft_fingerprint: draft_fingerprint.to_owned(),
            w_rej: self.w_rej,
            mix: self.mix,
            epochs: self.epochs,
            learning_rate: self.lr,
            batch: self.batch.unwrap_or(if self.paper_defaults {
                PAPER_RESPONSES * self.max_tokens as usize
            } else {
                BATCH
            }),
            seed: self.seed,
        }
    }
}
