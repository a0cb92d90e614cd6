//! The models and their peers: what each says of itself, its tokenizer, what requests measured of it.

mod clients;
mod estimates;
mod likeness;
mod meeting;
mod model;
mod texts;

use std::sync::Arc;

use ops::process::Process;
use speculation::session::Peer;
use wire::v1::PeerDescription;

use crate::admitted::{DrafterRequirements, VerifierRequirements};
use crate::config::CoordinatorConfig;
use crate::error::CoordinatorError;

/// One address of a peer.
pub(crate) type Endpoint = net::replicas::Replica<PeerDescription>;

/// All replicas of one kind of peer.
type Replicas = net::replicas::ReplicaSet<PeerDescription>;

pub(crate) use clients::{drafter_client, failed, verifier_client};
pub(crate) use estimates::EstimateKind;
pub(crate) use model::{ServedModel, Target, described};
pub use texts::{MAX_TEMPLATE_BYTES, MAX_TOKENIZER_BYTES};

/// The default one first; names differ.
#[derive(Debug)]
pub(crate) struct Models(Vec<Arc<ServedModel>>);

impl Models {
    /// # Errors
    /// Names the setting that cannot be used.
    pub(crate) fn new(
        config: &CoordinatorConfig,
        process: &Process,
    ) -> Result<Self, CoordinatorError> {
        let groups = config.groups();
        let models = groups
            .iter()
            .map(|model| ServedModel::new(model, config, process).map(Arc::new));
        Ok(Self(models.collect::<Result<_, _>>()?))
    }

    /// The model called `name`; the first one if `name` is empty.
    pub(crate) fn find(&self, name: &str) -> Option<&Arc<ServedModel>> {
        if name.is_empty() {
            return self.0.first();
        }
        self.0.iter().find(|model| model.is_called(name))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<ServedModel>> {
        self.0.iter()
    }

    pub(crate) fn names(&self) -> Vec<&str> {
        self.0.iter().map(|model| model.name()).collect()
    }
}

/// The peer that a session wants.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) peer: Peer,
    /// The session's name, which says which of several.
    pub(crate) session: [u8; 16],
    /// What it must be able to do; none where it is only asked who it is.
    pub(crate) requirements: Option<Requirements>,
}

/// What a peer must be able to do for a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Requirements {
    Drafter(DrafterRequirements),
    Verifier(VerifierRequirements),
}

impl Requirements {
    fn are_met_by(self, peer: &PeerDescription) -> bool {
        let checked = match self {
            Self::Drafter(required) => required.check(peer),
            Self::Verifier(required) => required.check(peer),
        };
        checked.is_ok()
    }
}

impl Wanted {
    /// Whether `endpoint` is not known to fall short.
    fn may_be(&self, endpoint: &Endpoint) -> bool {
        let known = self.requirements.zip(endpoint.description());
        known.is_none_or(|(requirements, known)| requirements.are_met_by(&known))
    }
}
