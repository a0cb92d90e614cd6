//! The pair that is served, embedded or synthetic.

use clap::Args;
use outrider::prompts;

use crate::models::random;
use crate::pairs::calibration::calibrate;
use crate::pairs::{self, Pair, Synthetic, WhichPair};
use crate::ranges;
use crate::report::BenchReport;

/// Width and layers of the synthetic target, 110 million parameters, its vocabulary, and how many of its layers
/// its draft has.
const HIDDEN: usize = 576;
const LAYERS: usize = 23;
const VOCAB: usize = 32_000;
const DRAFT_LAYERS: usize = 1;

/// Synthetic prompts that requests take in turn.
const SYNTHETIC_PROMPTS: usize = 64;

/// How the synthetic pair is made.
#[derive(Clone, Debug, Args)]
pub(crate) struct SyntheticArgs {
    /// Share of coupled drafts that the synthetic target accepts.
    #[arg(long, value_name = "SHARE", default_value_t = 0.8)]
    acceptance: f64,
    /// Scale of the synthetic target's deeper layers, which else is searched for --acceptance; what a run before
    /// printed saves a minute.
    #[arg(long, value_name = "SCALE")]
    scale: Option<f32>,
}

impl SyntheticArgs {
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        ranges::acceptance(self.acceptance)
    }

    /// How pair `which` is made for `temperature`, and its prompts; the report notes the scale.
    pub(crate) fn pair(
        &self,
        which: WhichPair,
        temperature: f32,
        report: &mut BenchReport,
    ) -> anyhow::Result<(PairArgs, Vec<String>)> {
        let pair = |scale| PairArgs { pair: which, scale };
        if which == WhichPair::Embedded {
            let known = prompts::load(None, usize::MAX)?;
            let texts = known.into_iter().map(|prompt| prompt.text);
            return Ok((pair(1.0), texts.collect()));
        }
        let scale = match self.scale {
            Some(scale) => scale,
            None => calibrate(&synthetic()?, temperature, self.acceptance)?.scale,
        };
        report.note(format!(
            "synthetic, T={temperature}: deeper layers at a scale of {scale}"
        ));
        let prompt = |seed| pairs::prompt(VOCAB, pairs::PROMPT_WORDS, 1000 + seed);
        Ok((pair(scale), (0..SYNTHETIC_PROMPTS).map(prompt).collect()))
    }
}

/// A pair, as a process of its own gets it on its command line.
#[derive(Clone, Debug, Args)]
pub(crate) struct PairArgs {
    #[arg(long)]
    pub(super) pair: WhichPair,
    /// Scale of the synthetic target's deeper layers.
    #[arg(long, default_value_t = 1.0)]
    pub(super) scale: f32,
}

impl PairArgs {
    pub(crate) fn pair(&self) -> anyhow::Result<Pair> {
        match self.pair {
            WhichPair::Embedded => Pair::embedded(),
            WhichPair::Synthetic => synthetic()?.pair(self.scale),
        }
    }

    /// The flags that give this pair to another process.
    pub(super) fn flags(&self) -> [String; 4] {
        let name = name(self.pair).to_owned();
        let scale = self.scale.to_string();
        ["--pair".to_owned(), name, "--scale".to_owned(), scale]
    }
}

fn synthetic() -> anyhow::Result<Synthetic> {
    Ok(Synthetic {
        target: random(HIDDEN, LAYERS, VOCAB)?,
        draft_layers: DRAFT_LAYERS,
    })
}

pub(crate) fn name(which: WhichPair) -> &'static str {
    match which {
        WhichPair::Embedded => "embedded",
        WhichPair::Synthetic => "synthetic",
    }
}
