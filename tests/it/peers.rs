//! How the coordinator waits for its peers, blames them, remembers them and bounds what it holds of them.

mod draft_models;
mod limits;
mod overload;
mod prefill;
mod privacy;
mod readers;
mod restarts;
mod text;

use std::time::Duration;

use model::Model;
use model::source::ServedModel;
use ops::process::Process;
use verifier::VerifierConfig;

use crate::cluster::{Service, verifier_in};
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

/// Addresses of `role` that `coordinator` leaves alone for a while.
fn resting(coordinator: &Service, role: &str) -> f64 {
    let labels = [("role", role), ("state", "resting")];
    coordinator.scrape().sum("outrider_peers", &labels)
}

fn retries(coordinator: &Service) -> f64 {
    coordinator.scrape().sum("outrider_retries_total", &[])
}

/// Rounds of a verifier that ended in this way.
fn ended(verifier: &Service, outcome: &str) -> f64 {
    let labels = [("role", "verifier"), ("outcome", outcome)];
    verifier
        .scrape()
        .value("outrider_peer_rounds_total", &labels)
}

/// Milliseconds as a setting has them.
fn ms(milliseconds: u64) -> std::num::NonZeroU64 {
    milliseconds.try_into().expect("not zero")
}

const MS: Duration = Duration::from_millis(1);
