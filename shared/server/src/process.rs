//! What a process gives each service in it.

use crate::auth::Auth;
use crate::health::services::Services;
use crate::health::warnings::Warnings;
use crate::metrics::Metrics;
use crate::reload::Reloads;
use crate::tls::Tls;
use crate::trace::Traces;

/// What a process gives each service in it, and each of its channels to others. Cheap to clone; the default
/// is a process without TLS, tokens and traces, whose metrics nobody reads.
#[derive(Clone, Debug, Default)]
pub struct Process {
    /// Who it is, and whom it believes.
    pub tls: Tls,
    /// Which tokens it asks for, and which it shows.
    pub auth: Auth,
    /// Where its figures are counted.
    pub metrics: Metrics,
    /// Where its spans go.
    pub traces: Traces,
    /// Which services are in it, and how they are.
    pub services: Services,
    /// What may be wrong with it although it is ready.
    pub warnings: Warnings,
    /// What can be read again while it runs.
    pub reloads: Reloads,
}
