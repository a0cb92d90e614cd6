//! Services on hosts of their own, whose models take as long as they are told.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use coordinator::{Coordinator, CoordinatorConfig, ModelGroup};
use drafter::{DrafterConfig, Loaded};
use model::source::{ModelSource, ServedModel};
use ops::process::Process;
use outrider_tests::toy::ToyModel;
use speculation::ports::LanguageModel;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use verifier::VerifierConfig;

use super::link::{Link, Relay};
use super::paced::{Host, Pace, PacedModel};

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
        self.sum(|series| {
            series.starts_with("outrider_streamed_drafts_total{") && series.contains("\"proposed\"")
        })
    }

    /// Returns the processor seconds of this process so far: models that are paced take none, so it is what the services and
    /// their client take.
    ///
    /// # Errors
    /// If the metrics cannot be read.
    pub(crate) fn processor_seconds(&self) -> anyhow::Result<f64> {
        self.sum(|series| series.starts_with("process_cpu_seconds_total"))
    }

    /// Returns the sum of the coordinator's metrics in the chosen series.
    fn sum(&self, is_chosen: impl Fn(&str) -> bool) -> anyhow::Result<f64> {
        let metrics = self.coordinator.metrics.encode()?;
        let lines = metrics.lines().filter_map(|line| line.rsplit_once(' '));
        let chosen = lines.filter(|(series, _)| is_chosen(series));
        Ok(chosen
            .filter_map(|(_, value)| value.parse::<f64>().ok())
            .sum())
    }

    /// Stops them.
    pub(crate) fn stop(self) {
        self.stop.cancel();
    }
}

async fn listener() -> std::io::Result<TcpListener> {
    TcpListener::bind("127.0.0.1:0").await
}
