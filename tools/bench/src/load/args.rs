//! What is measured, from the command line.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;

use super::clients::{ClientTraffic, WindowSample};
use super::pair::SyntheticArgs;
use super::services::ServiceLayout;
use crate::pairs::WhichPair;
use crate::ranges;

#[derive(Clone, Debug, Args)]
pub(crate) struct LoadArgs {
    /// Pairs to measure.
    #[arg(
        long,
        value_name = "PAIRS",
        value_delimiter = ',',
        default_value = "embedded,synthetic"
    )]
    pub(super) pairs: Vec<WhichPair>,
    /// The method beside target-only, with its settings after colons as in `compare`.
    #[arg(long, value_name = "METHOD", default_value = "coupled")]
    pub(super) method: String,
    /// Temperatures. The synthetic pair is made anew for each.
    #[arg(long, value_name = "TS", value_delimiter = ',', default_value = "0,1")]
    pub(super) temperatures: Vec<f32>,
    /// Numbers of clients.
    #[arg(
        long,
        value_name = "NS",
        value_delimiter = ',',
        default_value = "1,4,16,64"
    )]
    pub(super) clients: Vec<usize>,
    /// Where the services run: in one process, each in a process of its own, or these apart from one another, the
    /// drafter on the last processor and the verifier on the others (with taskset).
    #[arg(
        long,
        value_name = "LAYOUTS",
        value_delimiter = ',',
        default_value = "one"
    )]
    pub(super) layouts: Vec<ServiceLayout>,
    /// Times that both are measured, in turn.
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(super) repeats: usize,
    /// Seconds in which tokens are counted.
    #[arg(long, value_name = "S", default_value_t = 2.0)]
    pub(super) window: f64,
    /// Seconds before, in which requests get under way.
    #[arg(long, value_name = "S", default_value_t = 0.5)]
    pub(super) settle: f64,
    /// Most output tokens of each request.
    #[arg(long, value_name = "N", default_value_t = 128)]
    pub(super) max_tokens: u32,
    #[command(flatten)]
    pub(super) synthetic: SyntheticArgs,
    /// Measures, too, how long the method takes to settle when one client becomes as many as there are at most, and
    /// when these leave.
    #[arg(long)]
    pub(super) step: bool,
    /// File to draw the ratios in, as SVG.
    #[arg(long, value_name = "FILE")]
    pub(super) svg: Option<PathBuf>,
}

impl LoadArgs {
    /// Measures `count` clients once.
    ///
    /// # Errors
    /// If a request was refused or failed.
    pub(super) async fn sample(
        &self,
        traffic: &Arc<ClientTraffic>,
        count: usize,
    ) -> anyhow::Result<WindowSample> {
        let [settle, window] = [self.settle, self.window].map(Duration::from_secs_f64);
        traffic.sample(count, settle, window).await
    }

    pub(super) fn check(&self) -> anyhow::Result<()> {
        ranges::at_least_one([
            ("pairs", self.pairs.len()),
            ("temperatures", self.temperatures.len()),
            ("layouts", self.layouts.len()),
            ("repeats", self.repeats),
            ("max-tokens", self.max_tokens as usize),
        ])?;
        ranges::seconds([("window", self.window), ("settle", self.settle)])?;
        ranges::clients(&self.clients)?;
        ranges::temperatures(&self.temperatures)?;
        self.synthetic.check()
    }
}
