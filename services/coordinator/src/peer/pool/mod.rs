//! The peers that serve a model: found by name, picked by hash, skipped when dead.

mod clients;
mod estimates;
mod model;
mod models;
mod texts;

use wire::v1::PeerDescription;

/// One address of a peer.
pub(crate) type Endpoint = server::replicas::Endpoint<PeerDescription>;

/// All replicas of one kind of peer.
type Replicas = server::replicas::Replicas<PeerDescription>;

pub(crate) use clients::{drafter_client, failed, verifier_client};
pub(crate) use estimates::EstimateKind;
pub(crate) use model::{ServedModel, Target, Wanted, described};
pub(crate) use models::Models;
