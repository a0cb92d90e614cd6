//! How draft tokens are made: one token of a distribution, when to stop, the shape of a block, and what a request
//! may choose of them.

pub mod policies;
mod proposing;
mod stop;
mod tree;

pub use proposing::{ProposalOptions, draw, drawn_siblings, draws_siblings, propose};
pub use stop::{StopRule, Stopping};
pub use tree::{TreeBuilder, siblings};

use strum::{EnumMessage, EnumString, IntoStaticStr, VariantArray};

/// Who proposes, the default first. Max-Gram answers to the names that other servers have for it, too.
#[derive(EnumMessage, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Drafting {
    /// The draft model.
    #[default]
    #[strum(message = "the draft model")]
    Model,
    /// Max-Gram: the tokens after the longest earlier match of the context's suffix, then bigrams.
    #[strum(to_string = "max-gram", serialize = "ngram", serialize = "lookup")]
    #[strum(serialize = "prompt-lookup")]
    #[strum(
        message = "no model: copies what followed the longest earlier match of the text's end, then bigrams"
    )]
    MaxGram,
    /// A cascade of draft models, Max-Gram last.
    #[strum(message = "several draft models: the larger ones review what the smaller ones propose")]
    Cascade,
}

/// When the target and who proposes work, the default first.
#[derive(EnumMessage, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Schedule {
    /// One after the other: a block is drafted, then decided, round after round.
    #[default]
    #[strum(message = "one after the other: a block is drafted, then decided")]
    Rounds,
    /// At once: the target decodes, and takes what is [pending](crate::pending) when a forward begins.
    #[strum(
        message = "at once: the target decodes, and drafts are proposals that it takes as they come"
    )]
    Stream,
}

/// How many tokens are drafted in a round.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum DraftLen {
    /// As many as the request's limit says.
    #[default]
    Fixed,
    /// Until the stop rule says stop.
    Stop(StopRule),
    /// As many as pay, by measured acceptance, times and load; none where drafting does not pay.
    Auto,
}

/// The shape of a draft block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TreeShape {
    /// One token after the other.
    #[default]
    Chain,
    /// One lead path; each of its nodes is one of this many siblings, the others the most likely ones
    /// (Cascade Speculative Drafting). At least 2.
    Comb(u32),
    /// A chain with this many alternatives to each of its nodes, ranked as the shared noise ranks them.
    /// At least 1.
    Alternates(u32),
}

impl TreeShape {
    /// Nodes at each depth.
    pub fn width(self) -> u32 {
        match self {
            Self::Chain => 1,
            Self::Comb(siblings) => siblings,
            Self::Alternates(alternates) => 1 + alternates,
        }
    }
}
