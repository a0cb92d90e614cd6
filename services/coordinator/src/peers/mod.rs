//! The peers that serve a model: found by name, picked by hash, skipped when dead.

mod breaker;
mod endpoint;
mod estimates;
mod group;
mod groups;
mod replicas;

pub(crate) use endpoint::Endpoint;
pub(crate) use estimates::Kind as EstimateKind;
pub(crate) use group::{Group, Kind, SILENT, drafter_client, failed, verifier_client};
pub(crate) use groups::Groups;
