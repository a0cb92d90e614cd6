//! Which tokens may be drawn.

use clap::Args;
use wire::v1::SamplingParams;

/// Which tokens may be drawn.
#[derive(Clone, Copy, Debug, PartialEq, Args)]
pub(crate) struct CutArgs {
    /// Keeps the K most likely tokens; 0 keeps all.
    #[arg(long, value_name = "K", default_value_t = 0)]
    pub(crate) top_k: u32,
    /// Keeps the most likely tokens that together reach this probability.
    #[arg(
        long,
        value_name = "P",
        default_value_t = 1.0,
        allow_negative_numbers = true
    )]
    pub(crate) top_p: f32,
    /// Keeps tokens at least this fraction as likely as the most likely one.
    #[arg(
        long,
        value_name = "P",
        default_value_t = 0.0,
        allow_negative_numbers = true
    )]
    pub(crate) min_p: f32,
}

impl Default for CutArgs {
    /// Keeps all tokens.
    fn default() -> Self {
        Self {
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
        }
    }
}

impl CutArgs {
    /// Returns how tokens are drawn at a temperature. What is out of range the coordinator refuses by its name.
    pub(crate) fn sampling(self, temperature: f32) -> SamplingParams {
        SamplingParams {
            temperature: Some(temperature),
            top_k: self.top_k,
            top_p: Some(self.top_p),
            min_p: self.min_p,
            ..Default::default()
        }
    }

    /// Whether tokens may be cut off.
    pub(crate) fn is_cutting(self) -> bool {
        self.top_k > 0 || self.top_p < 1.0 || self.min_p > 0.0
    }
}
