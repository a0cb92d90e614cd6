//! The three services, each in a process of its own as far as traces go.

use std::net::SocketAddr;
use std::sync::Arc;

use coordinator::CoordinatorConfig;
use drafter::{DrafterConfig, Loaded};
use ops::process::Process;
use ops::telemetry::{Telemetry, TelemetryConfig};
use verifier::VerifierConfig;

use super::collector::{Collector, Spans};
use crate::cluster::{
    Service, config, coordinator_in, draft, drafter_in, eventually, target, verifier_in,
};
use crate::relay::Relay;

/// The three services, and the collector that they tell.
pub(super) struct Watched {
    pub(super) coordinator: Service,
    pub(super) drafter: Service,
    pub(super) verifier: Service,
    /// Where the coordinator reaches them.
    pub(super) to_drafter: Relay,
    pub(super) to_verifier: Relay,
    drafter_monitor: Arc<drafter::Drafter>,
    pub(super) verifier_monitor: Arc<verifier::Verifier>,
    telemetry: Vec<Telemetry>,
    collector: Collector,
}

/// Everything is traced, and every second round has spans at the peers.
pub(super) fn everything(collector: SocketAddr) -> TelemetryConfig {
    TelemetryConfig {
        endpoint: format!("http://{collector}"),
        sample_ratio: Some(1.0),
        round_every: 2,
        ..TelemetryConfig::default()
    }
}

/// What a process of `role` sends, whatever this one's environment says.
pub(super) fn telemetry(config: &TelemetryConfig, role: &str) -> Telemetry {
    Telemetry::new(config, role, &|_| None).expect("in order")
}

pub(super) fn process(telemetry: &Telemetry) -> Process {
    Process {
        traces: telemetry.traces.clone(),
        ..Process::default()
    }
}

impl Watched {
    /// Starts the services; `change` the configuration of the coordinator's telemetry.
    pub(super) async fn start(change: impl FnOnce(&mut TelemetryConfig)) -> Self {
        Self::start_with(change, |_| {}).await
    }

    /// The same with a coordinator of its own configuration.
    pub(super) async fn start_with(
        change: impl FnOnce(&mut TelemetryConfig),
        configure: impl FnOnce(&mut CoordinatorConfig),
    ) -> Self {
        let (collector, address) = Collector::start().await;
        let peers = everything(address);
        let mut own = everything(address);
        change(&mut own);
        let drafter_telemetry = telemetry(&peers, "drafter");
        let verifier_telemetry = telemetry(&peers, "verifier");
        let coordinator_telemetry = telemetry(&own, "coordinator");
        let drafting = DrafterConfig::default();
        let loaded = Loaded::beside(draft(), &drafting).expect("in order");
        let (drafter, drafter_monitor) =
            drafter_in(process(&drafter_telemetry), loaded, drafting).await;
        let verifying = VerifierConfig::default();
        let (verifier, verifier_monitor) =
            verifier_in(process(&verifier_telemetry), target(), verifying).await;
        let to_drafter = Relay::start(drafter.address).await;
        let to_verifier = Relay::start(verifier.address).await;
        let mut config = config(&[to_drafter.url()], &[to_verifier.url()]);
        configure(&mut config);
        let coordinator = coordinator_in(process(&coordinator_telemetry), config).await;
        Self {
            coordinator,
            drafter,
            verifier,
            to_drafter,
            to_verifier,
            drafter_monitor,
            verifier_monitor,
            telemetry: vec![drafter_telemetry, verifier_telemetry, coordinator_telemetry],
            collector,
        }
    }

    /// What the collector has got once everything is over.
    pub(super) async fn spans(self) -> Spans {
        let is_over = || {
            let attached = self.drafter_monitor.sessions().attached
                + self.verifier_monitor.sessions().attached;
            attached == 0
        };
        eventually("sessions are closed", is_over).await;
        for telemetry in self.telemetry {
            telemetry.flush().await;
        }
        self.collector.spans()
    }
}
