//! The models and their peers: what each says of itself, its tokenizer, what requests measured of it.

mod clients;
mod estimates;
mod fit;
mod likeness;
mod meeting;
mod model;
mod models;
mod texts;
mod wanted;

use wire::v1::PeerDescription;

/// One address of a peer.
pub(crate) type Endpoint = server::replicas::Endpoint<PeerDescription>;

/// All replicas of one kind of peer.
type Replicas = server::replicas::Replicas<PeerDescription>;

pub(crate) use clients::{drafter_client, failed, verifier_client};
pub(crate) use estimates::EstimateKind;
pub(crate) use model::{ServedModel, Target, described};
pub(crate) use models::Models;
pub use texts::{MAX_TEMPLATE_BYTES, MAX_TOKENIZER_BYTES};
pub(crate) use wanted::{Requirements, Wanted};
