//! The whole configuration: one section a service.

use coordinator::CoordinatorConfig;
use drafter::DrafterConfig;
use serde::{Deserialize, Serialize};
use server::telemetry::LogConfig;
use verifier::VerifierConfig;

/// The configuration of `outrider`; each command uses the sections it needs.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    /// Logs, on stderr.
    pub(crate) log: LogConfig,
    /// The coordinator.
    pub(crate) coordinator: CoordinatorConfig,
    /// The drafter.
    pub(crate) drafter: DrafterConfig,
    /// The verifier.
    pub(crate) verifier: VerifierConfig,
}

impl Config {
    /// The same with all services on free loopback ports.
    pub(crate) fn on_loopback(mut self) -> Self {
        let any_port = std::net::SocketAddr::from(([127, 0, 0, 1], 0)).into();
        self.coordinator.listen = any_port;
        self.drafter.listen = any_port;
        self.verifier.listen = any_port;
        self
    }
}
