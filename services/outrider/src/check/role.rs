//! Which services a process runs.

use clap::ValueEnum;

/// The services of a process, as `outrider serve` is told them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Role {
    /// All three in one process.
    #[default]
    All,
    /// The coordinator alone.
    Coordinator,
    /// A drafter alone.
    Drafter,
    /// A verifier alone.
    Verifier,
}

impl Role {
    /// Returns its name on the command line and in traces.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Coordinator => "coordinator",
            Self::Drafter => "drafter",
            Self::Verifier => "verifier",
        }
    }

    pub(crate) fn has_coordinator(self) -> bool {
        matches!(self, Self::All | Self::Coordinator)
    }

    pub(crate) fn has_drafter(self) -> bool {
        matches!(self, Self::All | Self::Drafter)
    }

    pub(crate) fn has_verifier(self) -> bool {
        matches!(self, Self::All | Self::Verifier)
    }
}
