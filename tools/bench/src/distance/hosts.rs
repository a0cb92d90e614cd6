//! Services on hosts of their own, whose models take as long as they are told.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::ensure;
use clap::Args;
use coordinator::{Coordinator, CoordinatorConfig, ModelGroup};
use drafter::{DrafterConfig, Loaded};
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
    forwards: Arc<AtomicU64>,
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

/// Seed of the target's choices.
const SEED: u64 = 11;

/// The built-in model of `role`, with a paced one in its place that is on a host of its own.
fn served(
    role: &str,
    model: impl FnOnce(usize) -> PacedModel,
) -> anyhow::Result<ServedModel<PacedModel>> {
    let served = ModelSource::embedded(role).load()?;
    Ok(ServedModel {
        model: model(served.model.shape().vocab_size),
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
    })
}

/// Where drafters and verifiers are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostPlan {
    /// The way to drafters.
    pub(crate) link: Link,
    pub(crate) drafters: usize,
    pub(crate) verifiers: usize,
    /// Whether drafters are on the first verifier's host, without a link.
    pub(crate) is_beside: bool,
}

impl HostPlan {
    /// One drafter on a host of its own.
    pub(crate) fn apart(link: Link) -> Self {
        Self {
            link,
            drafters: 1,
            verifiers: 1,
            is_beside: false,
        }
    }
}

/// A coordinator beside verifiers, and drafters at the end of links.
pub(crate) struct Hosts {
    /// The coordinator's.
    pub(crate) url: String,
    /// Forwards of all targets, and of all draft models.
    forwards: [Arc<AtomicU64>; 2],
    coordinator: Process,
    stop: CancellationToken,
    _relays: Vec<Relay>,
}

impl Hosts {
    /// Starts them.
    ///
    /// # Errors
    /// If one of them does not start.
    pub(crate) async fn start(pace: Pace, plan: HostPlan) -> anyhow::Result<Self> {
        let stop = CancellationToken::new();
        let forwards = [Arc::default(), Arc::default()];
        let first = Host::default();
        let mut relays = Vec::new();
        let mut group = ModelGroup {
            name: "default".to_owned(),
            drafters: Vec::new(),
            verifiers: Vec::new(),
            ..ModelGroup::default()
        };
        for index in 0..plan.verifiers {
            let target = served("target", |vocab_size| PacedModel {
                model: ToyModel::new(SEED, vocab_size).peaked([1.0, 0.0, 0.0]),
                tempo: pace.target(),
                host: if index == 0 {
                    Arc::clone(&first)
                } else {
                    Host::default()
                },
                forwards: Arc::clone(&forwards[0]),
            })?;
            let verifier = verifier::start(target, &VerifierConfig::default(), Process::default())?;
            let listener = listener().await?;
            (group.verifiers).push(format!("http://{}", listener.local_addr()?));
            tokio::spawn(verifier.serve(listener, stop.clone().cancelled_owned()));
        }
        for _ in 0..plan.drafters {
            let draft = served("draft", |vocab_size| PacedModel {
                model: ToyModel::new(SEED, vocab_size).peaked([
                    pace.first,
                    pace.second,
                    pace.third,
                ]),
                tempo: pace.draft(),
                host: if plan.is_beside {
                    Arc::clone(&first)
                } else {
                    Host::default()
                },
                forwards: Arc::clone(&forwards[1]),
            })?;
            let (loaded, config) = (Loaded::alone(draft), DrafterConfig::default());
            let drafter = drafter::start(loaded, &config, Process::default())?;
            let listener = listener().await?;
            let address = listener.local_addr()?;
            let relay = Relay::start(address, plan.link).await?;
            group.drafters.push(if plan.is_beside {
                format!("http://{address}")
            } else {
                relay.url.clone()
            });
            relays.push(relay);
            tokio::spawn(drafter.serve(listener, stop.clone().cancelled_owned()));
        }
        let config = CoordinatorConfig {
            models: vec![group],
            ..CoordinatorConfig::default()
        };
        let process = Process::default();
        let coordinator = Coordinator::new(config, process.clone())?;
        let listener = listener().await?;
        let url = format!("http://{}", listener.local_addr()?);
        tokio::spawn(coordinator.serve(listener, stop.clone().cancelled_owned()));
        Ok(Self {
            url,
            forwards,
            coordinator: process,
            stop,
            _relays: relays,
        })
    }

    /// Returns the forwards of all targets so far, and of all draft models.
    pub(crate) fn forwards(&self) -> [u64; 2] {
        let [target, draft] = &self.forwards;
        [target, draft].map(|forwards| forwards.load(Ordering::Relaxed))
    }

    /// Returns the draft tokens that were proposed so far while targets decoded, as the coordinator counts them.
    ///
    /// # Errors
    /// If its metrics cannot be read.
    pub(crate) fn proposed(&self) -> anyhow::Result<f64> {
        let metrics = self.coordinator.metrics.encode()?;
        let counts = metrics.lines().filter(|line| {
            line.starts_with("outrider_streamed_drafts_total{") && line.contains("\"proposed\"")
        });
        let values = counts.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        Ok(values.sum())
    }

    /// Stops them.
    pub(crate) fn stop(self) {
        self.stop.cancel();
    }
}

async fn listener() -> std::io::Result<TcpListener> {
    TcpListener::bind("127.0.0.1:0").await
}
