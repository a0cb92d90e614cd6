//! The peers that serve a model: found by name, picked by hash, skipped when dead.

mod breaker;
mod budget;
mod clients;
mod endpoint;
mod estimates;
mod model;
mod models;
mod replicas;
mod texts;

pub(crate) use clients::{drafter_client, failed, verifier_client};
pub(crate) use endpoint::Endpoint;
pub(crate) use estimates::EstimateKind;
pub(crate) use model::{ServedModel, Target, described};
pub(crate) use models::Models;
