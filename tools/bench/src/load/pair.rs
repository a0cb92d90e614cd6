//! The pair that is served, embedded or synthetic.

use clap::Args;

use crate::models::random;
use crate::pairs::{Pair, Synthetic, Which};

/// Width and layers of the synthetic target, 110 million parameters, its vocabulary, and how many of its layers
/// its draft has.
const HIDDEN: usize = 576;
const LAYERS: usize = 23;
pub(crate) const VOCAB: usize = 32_000;
const DRAFT_LAYERS: usize = 1;

/// Synthetic prompts that requests take in turn.
pub(crate) const SYNTHETIC_PROMPTS: usize = 64;

/// A pair, as a process of its own gets it on its command line.
#[derive(Clone, Debug, Args)]
pub(super) struct PairArgs {
    #[arg(long)]
    pub(super) pair: Which,
    /// Scale of the synthetic target's deeper layers.
    #[arg(long, default_value_t = 1.0)]
    pub(super) scale: f32,
}

impl PairArgs {
    pub(super) fn pair(&self) -> anyhow::Result<Pair> {
        match self.pair {
            Which::Embedded => Pair::embedded(),
            Which::Synthetic => synthetic()?.pair(self.scale),
        }
    }

    /// The flags that give this pair to another process.
    pub(super) fn flags(&self) -> [String; 4] {
        let name = name(self.pair).to_owned();
        let scale = self.scale.to_string();
        ["--pair".to_owned(), name, "--scale".to_owned(), scale]
    }
}

pub(crate) fn synthetic() -> anyhow::Result<Synthetic> {
    Ok(Synthetic {
        target: random(HIDDEN, LAYERS, VOCAB)?,
        draft_layers: DRAFT_LAYERS,
    })
}

pub(crate) fn name(which: Which) -> &'static str {
    match which {
        Which::Embedded => "embedded",
        Which::Synthetic => "synthetic",
    }
}
