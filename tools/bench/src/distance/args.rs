//! The flags of `distance`.

use std::path::PathBuf;

use anyhow::ensure;
use clap::Args;
use outrider::measure::BASELINE;

use super::paced::Pace;
use crate::ranges;
use crate::spec::MeasuredMethod;

#[derive(Clone, Debug, Args)]
pub(crate) struct DistanceArgs {
    /// Round trips between coordinator and drafter, in milliseconds.
    #[arg(
        long,
        value_name = "MS",
        value_delimiter = ',',
        default_value = "0,1,5,20,50,100"
    )]
    pub(super) round_trips: Vec<f64>,
    /// Share by which the time of a message varies.
    #[arg(long, value_name = "SHARE", default_value_t = 0.1)]
    pub(super) jitter: f64,
    /// Share of messages that are 200 ms late.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    pub(super) late: f64,
    /// Temperatures.
    #[arg(long, value_name = "TS", value_delimiter = ',', default_value = "0,1")]
    pub(super) temperatures: Vec<f32>,
    /// Draft tokens of a round to try: chains, and with alternates as trees.
    #[arg(
        long,
        value_name = "KS",
        value_delimiter = ',',
        default_value = "2,4,6,9,13"
    )]
    pub(super) draft_lens: Vec<u32>,
    /// Alternates beside each token of a round's tree.
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub(super) alternates: u32,
    /// Output tokens of a request.
    #[arg(long, value_name = "N", default_value_t = 160)]
    pub(super) max_tokens: u32,
    /// Requests of each kind; the median counts.
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(super) repeats: usize,
    #[command(flatten)]
    pub(super) pace: Pace,
    /// Draws the ratios in this file, too.
    #[arg(long, value_name = "FILE")]
    pub(super) svg: Option<PathBuf>,
}

impl DistanceArgs {
    pub(super) fn check(&self) -> anyhow::Result<()> {
        ranges::at_least_one([
            ("round-trips", self.round_trips.len()),
            ("temperatures", self.temperatures.len()),
            ("draft-lens", self.draft_lens.len()),
            ("repeats", self.repeats),
        ])?;
        ranges::temperatures(&self.temperatures)?;
        ensure!(
            self.round_trips
                .iter()
                .all(|ms| (0.0..=2_000.0).contains(ms)),
            "--round-trips: expected 0 to 2000"
        );
        ensure!(
            (2..=1_000).contains(&self.max_tokens),
            "--max-tokens: {} is out of range, expected 2 to 1000",
            self.max_tokens
        );
        self.pace.check()
    }

    /// The ways of drafting that are compared, each with what it is called and how it is asked for.
    pub(super) fn ways(&self) -> anyhow::Result<Vec<(&'static str, MeasuredMethod)>> {
        let mut ways = vec![(BASELINE, MeasuredMethod::parse(BASELINE)?)];
        let rounds = "coupled:schedule=rounds:drafting=model";
        for &draft_len in &self.draft_lens {
            let chain = format!("{rounds}:draft_len={draft_len}");
            ways.push(("chain", MeasuredMethod::parse(&chain)?));
            let tree = format!("{chain}:tree=alternates:{}", self.alternates);
            ways.push(("tree", MeasuredMethod::parse(&tree)?));
        }
        let stream = MeasuredMethod::parse("coupled:schedule=stream:drafting=model")?;
        ways.push(("stream", stream));
        ways.push(("default", MeasuredMethod::parse("coupled")?));
        Ok(ways)
    }
}
