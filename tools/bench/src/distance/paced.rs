//! Models whose forwards take as long as they are told.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::ensure;
use clap::Args;
use outrider_tests::toy::{ToyCache, ToyError, ToyModel};
use speculation::ports::{LanguageModel, ModelShape, Rows, Segment};

/// How long forwards take, and how good the draft model is.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Pace {
    /// Milliseconds of a forward of the target.
    #[arg(long, value_name = "MS", default_value_t = 30.0)]
    target_ms: f64,
    /// And of each row of it.
    #[arg(long, value_name = "MS", default_value_t = 0.3)]
    target_row_ms: f64,
    /// Milliseconds of a forward of the draft model.
    #[arg(long, value_name = "MS", default_value_t = 3.0)]
    draft_ms: f64,
    /// And of each row after the first.
    #[arg(long, value_name = "MS", default_value_t = 0.1)]
    draft_row_ms: f64,
    /// How often the draft model's first choice is the target's.
    #[arg(long, value_name = "SHARE", default_value_t = 0.8)]
    pub(super) first: f64,
    /// How often its second choice is.
    #[arg(long, value_name = "SHARE", default_value_t = 0.15)]
    pub(super) second: f64,
    /// How often its third choice is.
    #[arg(long, value_name = "SHARE", default_value_t = 0.03)]
    pub(super) third: f64,
}

impl Pace {
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let times = [
            ("target-ms", self.target_ms),
            ("target-row-ms", self.target_row_ms),
            ("draft-ms", self.draft_ms),
            ("draft-row-ms", self.draft_row_ms),
        ];
        for (flag, ms) in times {
            ensure!(
                (0.0..=10_000.0).contains(&ms),
                "--{flag}: {ms} is out of range, expected 0 to 10000"
            );
        }
        let shares = [self.first, self.second, self.third];
        ensure!(
            shares.iter().all(|share| (0.0..=1.0).contains(share))
                && shares.iter().sum::<f64>() <= 1.0,
            "--first, --second, --third: expected shares of 0 to 1, 1 together at most"
        );
        Ok(())
    }

    pub(super) fn target(&self) -> Tempo {
        Tempo {
            forward: Duration::from_secs_f64(self.target_ms / 1e3),
            row: Duration::from_secs_f64(self.target_row_ms / 1e3),
        }
    }

    pub(super) fn draft(&self) -> Tempo {
        Tempo {
            // Its first row is part of the forward.
            forward: Duration::from_secs_f64((self.draft_ms - self.draft_row_ms).max(0.0) / 1e3),
            row: Duration::from_secs_f64(self.draft_row_ms / 1e3),
        }
    }
}

impl fmt::Display for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "paced models on hosts of their own: a forward of the target takes {} ms and {} a row, one of the draft \
             model {} ms and {} a further row; its first, second and third choice are the target's at {}, {} and {} \
             of positions",
            self.target_ms,
            self.target_row_ms,
            self.draft_ms,
            self.draft_row_ms,
            self.first,
            self.second,
            self.third
        )
    }
}

/// How long a model's forwards take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tempo {
    forward: Duration,
    row: Duration,
}

/// A host, which computes one forward at a time.
pub(super) type Host = Arc<Mutex<()>>;

/// A model whose forwards take as long as they are told.
pub(super) struct PacedModel {
    pub(super) model: ToyModel,
    pub(super) tempo: Tempo,
    pub(super) host: Host,
    pub(super) forwards: Arc<AtomicU64>,
}

impl LanguageModel for PacedModel {
    type Cache = ToyCache;
    type Error = ToyError;

    fn shape(&self) -> ModelShape {
        self.model.shape()
    }

    fn new_cache(&self) -> ToyCache {
        self.model.new_cache()
    }

    fn forward(
        &mut self,
        batch: &mut [Segment<'_, ToyCache>],
        rows: &mut Rows,
    ) -> Result<(), ToyError> {
        let _busy = self.host.lock().unwrap_or_else(PoisonError::into_inner);
        let began = Instant::now();
        let tokens: usize = batch.iter().map(|segment| segment.tokens.len()).sum();
        self.model.forward(batch, rows)?;
        self.forwards.fetch_add(1, Ordering::Relaxed);
        let takes = self.tempo.forward + self.tempo.row * tokens as u32;
        std::thread::sleep(takes.saturating_sub(began.elapsed()));
        Ok(())
    }
}
