//! `outrider-bench speedup`: what drafts bring from a request's start to its end, through the three
//! services, against the fastest that the target can do alone.

mod outcome;
mod trial;

use anyhow::{Context, ensure};
use clap::Args;

use self::outcome::{GOAL, SpeedupOutcome};
use self::trial::{Trial, TrialDraftLen};
use super::models::random;
use super::pairs::calibration::calibrate;
use super::pairs::{self, PROMPT_WORDS, Pair, Synthetic, WhichPair};
use super::report::BenchReport;
use crate::ranges;
use outrider::config::Config;
use outrider::prompts;

#[derive(Clone, Debug, Args)]
pub(super) struct SpeedupArgs {
    /// Pairs to measure.
    #[arg(
        long,
        value_name = "PAIRS",
        value_delimiter = ',',
        default_value = "synthetic,embedded"
    )]
    pairs: Vec<WhichPair>,
    /// Temperatures. The synthetic pair is made anew for each.
    #[arg(long, value_name = "TS", value_delimiter = ',', default_value = "0,1")]
    temperatures: Vec<f32>,
    /// Draft tokens a round to try, beside those that are measured to pay.
    #[arg(
        long,
        value_name = "KS",
        value_delimiter = ',',
        default_value = "1,2,3,4,5,6,8"
    )]
    draft_lens: Vec<u32>,
    /// Prompts that draft lengths are tried on.
    #[arg(long, value_name = "N", default_value_t = 12)]
    sweep_prompts: usize,
    /// Other prompts, that the best draft length is measured on, and `auto`.
    #[arg(long, value_name = "N", default_value_t = 15)]
    prompts: usize,
    /// Output tokens of each request, unless it ends before.
    #[arg(long, value_name = "N", default_value_t = 96)]
    max_tokens: u32,
    /// Width of the synthetic target, a multiple of 64.
    #[arg(long, value_name = "N", default_value_t = 576)]
    hidden: usize,
    /// Layers of the synthetic target.
    #[arg(long, value_name = "N", default_value_t = 23)]
    layers: usize,
    /// Vocabulary of the synthetic target.
    #[arg(long, value_name = "N", default_value_t = 32_000)]
    vocab: usize,
    /// Layers of the synthetic target that are its draft too.
    #[arg(long, value_name = "N", default_value_t = 1)]
    draft_layers: usize,
    /// Share of coupled drafts that the synthetic target accepts.
    #[arg(long, value_name = "SHARE", default_value_t = 0.8)]
    acceptance: f64,
}

impl SpeedupArgs {
    fn check(&self) -> anyhow::Result<()> {
        ranges::at_least_one([
            ("pairs", self.pairs.len()),
            ("temperatures", self.temperatures.len()),
            ("sweep-prompts", self.sweep_prompts),
            ("prompts", self.prompts),
            ("max-tokens", self.max_tokens as usize),
        ])?;
        ranges::temperatures(&self.temperatures)?;
        for &draft_len in &self.draft_lens {
            ensure!(
                (1..=64).contains(&draft_len),
                "--draft-lens: {draft_len} is out of range, expected 1 to 64"
            );
        }
        ensure!(
            (1..self.layers).contains(&self.draft_layers),
            "--draft-layers: {} is out of range, expected 1 to {}, fewer than --layers",
            self.draft_layers,
            self.layers.saturating_sub(1)
        );
        ranges::acceptance(self.acceptance)?;
        let config = random(self.hidden, self.layers, self.vocab)?;
        let room = config.context_len - PROMPT_WORDS;
        ensure!(
            self.max_tokens as usize <= room,
            "--max-tokens: {} is out of range, expected 1 to {room}",
            self.max_tokens
        );
        Ok(())
    }

    fn synthetic(&self) -> anyhow::Result<Synthetic> {
        Ok(Synthetic {
            target: random(self.hidden, self.layers, self.vocab)?,
            draft_layers: self.draft_layers,
        })
    }

    /// Prompts for the sweep, and others for the measurement.
    fn prompts(&self, which: WhichPair) -> anyhow::Result<[Vec<String>; 2]> {
        let all = self.sweep_prompts + self.prompts;
        let mut texts: Vec<String> = match which {
            WhichPair::Synthetic => (0..all)
                // Calibration has the first ones.
                .map(|seed| pairs::prompt(self.vocab, PROMPT_WORDS, 1000 + seed))
                .collect(),
            WhichPair::Embedded => {
                let known = prompts::load(None, usize::MAX)?;
                ensure!(
                    all <= known.len(),
                    "--prompts: {} and {} to sweep are more than the {} built-in ones",
                    self.prompts,
                    self.sweep_prompts,
                    known.len()
                );
                // Spread over the kinds of text, which stand one after another.
                let at = |index: usize| index * known.len() / all;
                (0..all)
                    .map(|index| known[at(index)].text.clone())
                    .collect()
            }
        };
        // Every so manieth is for the sweep, so that it too has all kinds.
        let (mut sweep, mut rest) = (Vec::new(), Vec::new());
        for (index, text) in texts.drain(..).enumerate() {
            let is_next = index * self.sweep_prompts / all >= sweep.len();
            if is_next && sweep.len() < self.sweep_prompts {
                sweep.push(text);
            } else {
                rest.push(text);
            }
        }
        Ok([sweep, rest])
    }
}

/// Measures.
pub(super) async fn run(
    args: &SpeedupArgs,
    config: Config,
    report: &mut BenchReport,
) -> anyhow::Result<()> {
    args.check()?;
    report.title("Coupled drafts beside the target alone, whole requests");
    for &which in &args.pairs {
        for &temperature in &args.temperatures {
            // Boxed: the services' start is a large future, which no other command should carry.
            let outcome = Box::pin(measure(args, which, temperature, config.clone())).await?;
            outcome.add_to(report)?;
        }
    }
    report.note(format!(
        "The synthetic pair should gain {GOAL:.1} at least."
    ));
    Ok(())
}

async fn measure(
    args: &SpeedupArgs,
    which: WhichPair,
    temperature: f32,
    config: Config,
) -> anyhow::Result<SpeedupOutcome> {
    let config = pairs::without_extras(config);
    let [sweep_prompts, prompts] = args.prompts(which)?;
    let (name, calibrated, pair) = match which {
        WhichPair::Embedded => ("embedded", None, Pair::embedded()?),
        WhichPair::Synthetic => {
            let synthetic = args.synthetic()?;
            let found = calibrate(&synthetic, temperature, args.acceptance)?;
            ("synthetic", Some(found), synthetic.pair(found.scale)?)
        }
    };
    let description = pair.describe(which);
    let start = Trial::start(pair, config, temperature, args.max_tokens, &prompts[0]);
    let mut trial = Box::pin(start).await?;
    let fixed = args.draft_lens.iter().copied().map(TrialDraftLen::Fixed);
    let lens: Vec<TrialDraftLen> = fixed.chain([TrialDraftLen::Auto]).collect();
    let tried = trial.compare(&sweep_prompts, &lens).await?;
    let sweep: Vec<_> = lens.into_iter().zip(tried).collect();
    let fixed = sweep.iter().filter(|tried| tried.0 != TrialDraftLen::Auto);
    let best = fixed.max_by(|a, b| a.1.speedup().total_cmp(&b.1.speedup()));
    let chosen = [best.context("a draft length")?.0, TrialDraftLen::Auto];
    let compared = trial.compare(&prompts, &chosen).await?;
    trial.stop().await?;
    Ok(SpeedupOutcome {
        pair: name,
        description,
        temperature,
        calibrated,
        sweep,
        prompts: prompts.len(),
        compared: chosen.into_iter().zip(compared).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::parsed;
    use crate::models::{millions, parameters};

    fn args(flags: &[&str]) -> SpeedupArgs {
        parsed(flags)
    }

    #[test]
    fn the_synthetic_target_has_110_million_parameters() {
        let config = args(&[]).synthetic().expect("a pair").target;
        assert_eq!(millions(parameters(&config)), "110 M");
    }

    #[test]
    fn no_prompt_serves_twice() {
        let args = args(&["--sweep-prompts=3", "--prompts=8"]);
        for which in [WhichPair::Embedded, WhichPair::Synthetic] {
            let [sweep, rest] = args.prompts(which).expect("prompts");
            assert_eq!((sweep.len(), rest.len()), (3, 8), "{which:?}");
            let mut all = [sweep, rest].concat();
            all.sort();
            all.dedup();
            assert_eq!(all.len(), 11, "{which:?}");
        }
        let many = SpeedupArgs {
            prompts: 100,
            ..args
        };
        let error = many
            .prompts(WhichPair::Embedded)
            .expect_err("refused")
            .to_string();
        assert!(error.starts_with("--prompts: 100"), "{error}");
    }

    #[test]
    fn what_cannot_be_measured_is_refused() {
        for (flag, words) in [
            ("--temperatures=-1", "--temperatures: -1"),
            ("--draft-lens=0", "--draft-lens: 0"),
            ("--draft-layers=23", "--draft-layers: 23"),
            ("--acceptance=1", "--acceptance: 1"),
            ("--prompts=0", "--prompts: 0"),
            ("--max-tokens=3000", "--max-tokens: 3000"),
            ("--hidden=100", "--hidden: 100"),
        ] {
            let error = args(&[flag]).check().expect_err(flag).to_string();
            assert!(error.starts_with(words), "{error}");
        }
    }
}
