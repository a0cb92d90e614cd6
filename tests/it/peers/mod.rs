//! How the coordinator waits for its peers, blames them, remembers them and bounds what it holds of them.

mod limits;
mod overload;
mod prefill;
mod privacy;
mod readers;
mod restarts;
mod text;

use std::time::Duration;

use coordinator::CoordinatorConfig;
use model::Model;
use model::source::ServedModel;
use server::process::Process;
use verifier::VerifierConfig;

use crate::cluster::{Service, coordinator_in, verifier_in};
use crate::metrics::Scrape;
use crate::paced::{Pace, paced};

/// A verifier on a model that goes at a pace.
async fn paced_verifier(
    pace: &Pace,
    served: ServedModel<Model>,
    configure: impl FnOnce(&mut VerifierConfig),
) -> Service {
    let mut config = VerifierConfig::default();
    configure(&mut config);
    let (service, _) = verifier_in(Process::default(), paced(served, pace), config).await;
    service
}

/// A coordinator, and what it counts.
struct Counted {
    service: Service,
    process: Process,
}

impl Counted {
    async fn start(config: CoordinatorConfig) -> Self {
        let process = Process::default();
        let service = coordinator_in(process.clone(), config).await;
        Self { service, process }
    }

    /// The sum of all samples of `metric` with these labels.
    fn count(&self, metric: &str, labels: &[(&str, &str)]) -> f64 {
        let text = self.process.metrics.encode().expect("text");
        Scrape::read(&text).sum(metric, labels)
    }

    /// Addresses of `role` that are left alone for a while.
    fn resting(&self, role: &str) -> f64 {
        let labels = [("role", role), ("state", "resting")];
        self.count("outrider_peers", &labels)
    }

    fn retries(&self) -> f64 {
        self.count("outrider_retries_total", &[])
    }
}

/// Milliseconds as a setting has them.
fn ms(milliseconds: u64) -> std::num::NonZeroU64 {
    milliseconds.try_into().expect("not zero")
}

const MS: Duration = Duration::from_millis(1);
