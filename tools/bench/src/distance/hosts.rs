//! Services on hosts of their own, whose models take as long as they are told.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::ensure;
use clap::Args;
use coordinator::{Coordinator, CoordinatorConfig, ModelGroup};
use drafter::{DrafterConfig, Loaded};
use model::Model;
use model::source::{ModelSource, ServedModel};
use ops::process::Process;
use outrider_tests::toy::{ToyCache, ToyError, ToyModel};
use speculation::ports::{LanguageModel, ModelShape, Rows, Segment};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use verifier::VerifierConfig;

use super::link::{Link, Relay};

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
    first: f64,
    /// How often its second choice is.
    #[arg(long, value_name = "SHARE", default_value_t = 0.15)]
    second: f64,
    /// How often its third choice is.
    #[arg(long, value_name = "SHARE", default_value_t = 0.03)]
    third: f64,
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

    fn target(&self) -> Tempo {
        Tempo {
            forward: Duration::from_secs_f64(self.target_ms / 1e3),
            row: Duration::from_secs_f64(self.target_row_ms / 1e3),
        }
    }

    fn draft(&self) -> Tempo {
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
struct Tempo {
    forward: Duration,
    row: Duration,
}

/// A host, which computes one forward at a time.
type Host = Arc<Mutex<()>>;

/// A model whose forwards take as long as they are told.
struct PacedModel {
    model: ToyModel,
    tempo: Tempo,
    host: Host,
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
        let takes = self.tempo.forward + self.tempo.row * tokens as u32;
        std::thread::sleep(takes.saturating_sub(began.elapsed()));
        Ok(())
    }
}

/// Seed of the target's choices.
const SEED: u64 = 11;

/// A target and its draft model, which take as long as they are told.
fn models(pace: Pace, hosts: [Host; 2]) -> anyhow::Result<[ServedModel<PacedModel>; 2]> {
    let served = |role, ranks, tempo, host| {
        let served = ModelSource::embedded(role).load()?;
        let vocab_size = served.model.shape().vocab_size;
        let model = ToyModel::new(SEED, vocab_size).peaked(ranks);
        let model = PacedModel { model, tempo, host };
        anyhow::Ok(with_model(served, model))
    };
    let [target, draft] = hosts;
    let ranks = [pace.first, pace.second, pace.third];
    Ok([
        served("target", [1.0, 0.0, 0.0], pace.target(), target)?,
        served("draft", ranks, pace.draft(), draft)?,
    ])
}

/// `served`, with another model in its place that is on a host of its own.
fn with_model<N>(served: ServedModel<Model>, model: N) -> ServedModel<N> {
    ServedModel {
        model,
        outline: served.outline,
        text: served.text,
        numerics: served.numerics,
        is_on_processors: false,
        weights_fingerprint: served.weights_fingerprint,
        is_converted: served.is_converted,
        head_format: served.head_format,
        heads: Vec::new(),
        eos_token_ids: served.eos_token_ids,
        load_time: served.load_time,
    }
}

/// A coordinator beside a verifier, and a drafter at the end of a link.
pub(crate) struct Hosts {
    /// The coordinator's.
    pub(crate) url: String,
    stop: CancellationToken,
    _relay: Relay,
}

impl Hosts {
    /// Starts them.
    ///
    /// # Errors
    /// If one of them does not start.
    pub(crate) async fn start(pace: Pace, link: Link) -> anyhow::Result<Self> {
        let stop = CancellationToken::new();
        let [target, draft] = models(pace, [Host::default(), Host::default()])?;
        let drafter = drafter::start(
            Loaded::alone(draft),
            &DrafterConfig::default(),
            Process::default(),
        )?;
        let verifier = verifier::start(target, &VerifierConfig::default(), Process::default())?;
        let listeners = [listener().await?, listener().await?, listener().await?];
        let [far, near, own] = listeners;
        let relay = Relay::start(far.local_addr()?, link).await?;
        let config = CoordinatorConfig {
            models: vec![ModelGroup {
                name: "default".to_owned(),
                drafters: vec![relay.url.clone()],
                verifiers: vec![format!("http://{}", near.local_addr()?)],
                ..ModelGroup::default()
            }],
            ..CoordinatorConfig::default()
        };
        let coordinator = Coordinator::new(config, Process::default())?;
        let url = format!("http://{}", own.local_addr()?);
        let until = || stop.clone().cancelled_owned();
        tokio::spawn(drafter.serve(far, until()));
        tokio::spawn(verifier.serve(near, until()));
        tokio::spawn(coordinator.serve(own, until()));
        Ok(Self {
            url,
            stop,
            _relay: relay,
        })
    }

    /// Stops them.
    pub(crate) fn stop(self) {
        self.stop.cancel();
    }
}

async fn listener() -> std::io::Result<TcpListener> {
    TcpListener::bind("127.0.0.1:0").await
}
