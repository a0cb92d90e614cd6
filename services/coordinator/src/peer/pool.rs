//! The models and their peers: what each says of itself, its tokenizer, what requests measured of it.

mod clients;
mod estimates;
mod health_check;
mod likeness;
mod model;
mod texts;

use std::sync::Arc;

use ops::process::Process;
use ops::service_error::ServiceError;
use parking_lot::Mutex;
use speculation::session::Peer;
use wire::v1::PeerDescription;

use crate::admitted::Requirements;
use crate::config::CoordinatorConfig;

/// One address of a peer.
pub(crate) type PeerEndpoint = net::replicas::Replica<PeerDescription>;

/// All replicas of one kind of peer.
type PeerReplicas = net::replicas::ReplicaSet<PeerDescription>;

pub(crate) use clients::{described, drafter_client, failed, verifier_client};
pub(crate) use estimates::EstimateKind;
pub(crate) use model::{ServedModel, Target};
pub use texts::{MAX_TEMPLATE_BYTES, MAX_TOKENIZER_BYTES};

/// The default one first; names differ.
#[derive(Debug)]
pub(crate) struct Models(Vec<Arc<ServedModel>>);

impl Models {
    /// # Errors
    /// Names the setting that cannot be used.
    pub(crate) fn new(config: &CoordinatorConfig, process: &Process) -> Result<Self, ServiceError> {
        let groups = config.groups();
        let models = groups
            .iter()
            .map(|model| ServedModel::new(model, config, process).map(Arc::new));
        Ok(Self(models.collect::<Result<_, _>>()?))
    }

    /// Returns the model called `name`; the first one if `name` is empty.
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

/// The values of the keys that were asked for lately, the latest last; at most `MOST`.
#[derive(Debug)]
pub(crate) struct Recent<K, V, const MOST: usize>(Mutex<Vec<(K, V)>>);

impl<K, V, const MOST: usize> Default for Recent<K, V, MOST> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: PartialEq, V: Clone + Default, const MOST: usize> Recent<K, V, MOST> {
    /// Returns the value of `key`: a new one if it is not known, for which the one asked for the longest time ago makes
    /// room.
    pub(crate) fn find(&self, key: K) -> V {
        let mut known = self.0.lock();
        let found = known.iter().position(|(other, _)| *other == key);
        let value = found.map(|at| known.remove(at).1).unwrap_or_default();
        if known.len() == MOST {
            known.remove(0);
        }
        known.push((key, value.clone()));
        value
    }
}

/// Which peer a session needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerQuery {
    pub(crate) peer: Peer,
    /// The session's name, by which one of several replicas is chosen.
    pub(crate) session: [u8; 16],
    /// What it must be able to do; none where it is only asked who it is.
    pub(crate) requirements: Option<Requirements>,
}
