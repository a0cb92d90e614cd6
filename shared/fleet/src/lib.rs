//! The peers of the models that a coordinator serves: which replicas each model has, what they say of themselves, whether
//! they are alike and fit each other, what they can do, and what requests measured of them.
//!
//! It asks peers outside of sessions only. Sessions are the coordinator's: it picks a replica here, and tells it how that
//! went.

mod clients;
mod error;
mod estimates;
mod fit;
mod health_check;
mod likeness;
mod model;
mod pairing;
mod pairs;
mod places;
mod requirements;
mod target;
mod texts;

use std::sync::Arc;
use std::time::Duration;

use net::Credentials;
use net::channel::{ChannelConfig, ChannelError};
use net::replicas::{Replica, ReplicaSet};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wire::v1::PeerDescription;

pub use clients::{drafter_client, failed, verifier_client};
pub use error::{CallError, PeerFault};
pub use fit::described;
pub use model::{Drafters, PeerQuery, ServedModel};
pub use pairs::{DraftModel, Measured};
pub use places::Beginning;
pub use requirements::{DrafterRequirements, Requirements, VerifierRequirements, has_head};
pub use target::Target;
pub use texts::MAX_TEMPLATE_BYTES;

/// One address of a peer.
pub type PeerEndpoint = Replica<PeerDescription>;

/// All replicas of one kind of peer.
type PeerReplicas = ReplicaSet<PeerDescription>;

/// A model served, with the peers that serve it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelGroup {
    /// Name clients ask for.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Other names that requests may give it.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// URLs of drafters, `http://HOST:PORT`; a name with several addresses stands for all of them.
    /// None at all is served by the target alone.
    #[serde(default)]
    pub drafters: Vec<String>,
    /// URLs of verifiers, at least one.
    #[schemars(length(min = 1))]
    pub verifiers: Vec<String>,
    /// Whether verifiers of other weights than most of them have are used too. A request and its seed may then give
    /// other tokens each time, and no answer says that it is reproducible.
    #[serde(default)]
    pub mixed_weights: bool,
}

/// The models served, the default one first; names differ.
#[derive(Debug)]
pub struct Models(Vec<Arc<ServedModel>>);

impl Models {
    /// Returns the models of `groups`, whose peers are connected to as `channel` and `credentials` say; their names are
    /// resolved anew after `dns_ttl`.
    ///
    /// # Errors
    /// If a URL is wrong.
    pub fn new(
        groups: Vec<ModelGroup>,
        channel: &ChannelConfig,
        credentials: &Credentials,
        dns_ttl: Duration,
    ) -> Result<Self, ChannelError> {
        let models = groups.into_iter().map(|group| {
            let replicas = |urls: &[String]| PeerReplicas::new(urls, channel, credentials, dns_ttl);
            let (drafters, verifiers) = (replicas(&group.drafters)?, replicas(&group.verifiers)?);
            Ok(Arc::new(ServedModel::new(group, drafters, verifiers)))
        });
        Ok(Self(models.collect::<Result<_, _>>()?))
    }

    /// Returns the model called `name`; the first one if `name` is empty.
    pub fn find(&self, name: &str) -> Option<&Arc<ServedModel>> {
        if name.is_empty() {
            return self.0.first();
        }
        self.0.iter().find(|model| model.is_called(name))
    }

    /// Returns the models, the default one first.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<ServedModel>> {
        self.0.iter()
    }

    /// Returns the name of each model.
    pub fn names(&self) -> Vec<&str> {
        self.0.iter().map(|model| model.name()).collect()
    }

    /// Tells operators which models have drafters that do not fit, or verifiers that are not alike, and why; none if there
    /// is no such model.
    pub fn misfits(&self) -> Option<String> {
        let all: Vec<_> = self.0.iter().flat_map(|model| model.misfits()).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }
}

/// The values of the keys that were asked for lately, the latest last; at most `MOST`.
#[derive(Debug)]
struct Recent<K, V, const MOST: usize>(Mutex<Vec<(K, V)>>);

impl<K, V, const MOST: usize> Default for Recent<K, V, MOST> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: PartialEq, V: Clone + Default, const MOST: usize> Recent<K, V, MOST> {
    /// Returns the value of `key`: a new one if it is not known, for which the one asked for the longest time ago makes
    /// room.
    fn find(&self, key: K) -> V {
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
