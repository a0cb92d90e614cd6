//! What commands are called, and which of them report.

use super::BenchCommand;

impl BenchCommand {
    /// Returns what it is called on the command line.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Compare(_) => "compare",
            Self::Verification(_) => "verification",
            Self::Kernels(_) => "kernels",
            Self::Drafting(_) => "drafting",
            Self::Parts(_) => "parts",
            Self::Decode(_) => "decode",
            Self::Contexts(_) => "contexts",
            #[cfg(feature = "device")]
            Self::Device(_) => "device",
            #[cfg(feature = "llama-cpp")]
            Self::Port(_) => "port",
            Self::Batch(_) => "batch",
            Self::Speedup(_) => "speedup",
            Self::Load(_) => "load",
            Self::Loading(_) => "loading",
            Self::Distance(_) => "distance",
            Self::Capacity(_) => "capacity",
            Self::Http(_) => "http",
            Self::Serve(_) => "serve",
            Self::LoadService(_) => "load-service",
            Self::Structured(_) => "structured",
            Self::Turns(_) => "turns",
            Self::Telemetry(_) => "telemetry",
            Self::Papers(_) => "papers",
            Self::Sweep(_) => "sweep",
            Self::Record(_) => "record",
            Self::Replay(_) => "replay",
            Self::Bigram(_) => "bigram",
            Self::TrainHead(_) => "train-head",
            Self::Results(_) => "results",
        }
    }

    /// Whether it prints a report.
    pub(super) fn reports(&self) -> bool {
        !matches!(
            self,
            Self::Record(_) | Self::Bigram(_) | Self::Results(_) | Self::LoadService(_)
        )
    }
}
