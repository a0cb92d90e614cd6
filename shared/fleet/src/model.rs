//! A served model: its drafters and its verifiers, and what is known of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use speculation::methods::Choice;
use speculation::session::Peer;
use wire::v1::PeerDescription;

use crate::clients::known_or_asked;
use crate::error::CallError;
use crate::estimates::{EstimateKind, Estimates};
use crate::likeness::Likeness;
use crate::pairs::{DraftModel, Measured};
use crate::places::{Beginning, Places, has_room};
use crate::requirements::Requirements;
use crate::target::Target;
use crate::texts::Texts;
use crate::{ModelGroup, PeerEndpoint, PeerReplicas};

/// A served model with its peers.
#[derive(Debug)]
pub struct ServedModel {
    name: String,
    aliases: Vec<String>,
    drafters: PeerReplicas,
    verifiers: PeerReplicas,
    texts: Texts,
    /// What the last check of the drafters found; none until one has ended, or was given up.
    pub(crate) drafter_check: Mutex<Option<DrafterCheck>>,
    pub(crate) likeness: Likeness,
    /// What the target said last: what requests begin with while no verifier answers.
    last_target: Mutex<Option<Target>>,
    estimates: Estimates,
    /// Where beginnings lie.
    places: Places,
    /// What each draft model brought last.
    pub(crate) gains: Mutex<BTreeMap<Arc<str>, f64>>,
}

/// What a check of the drafters found.
#[derive(Debug, Default)]
pub(crate) struct DrafterCheck {
    /// The mismatch because of which no drafter can be used. None while a drafter fits, or none has answered yet.
    pub(crate) problem: Option<Arc<str>>,
    pub(crate) drafters: Drafters,
}

/// What drafters that fit are, all together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Drafters {
    /// None is known to fit.
    #[default]
    Unknown,
    /// None of them has a draft model.
    Copy,
    /// They draft with a model, some of them on the verifier's processors, or only in rounds.
    Model,
    /// They draft with a model, ahead of what the target chooses, and take no time from the verifier.
    Apart,
}

/// Which peer a session needs.
#[derive(Clone, Debug)]
pub struct PeerQuery {
    /// The kind of peer.
    pub peer: Peer,
    /// The session's name, by which one of several replicas is chosen.
    pub session: [u8; 16],
    /// What it must be able to do; none where it is only asked who it is.
    pub requirements: Option<Requirements>,
    /// The draft model that a drafter should have; one of another is taken where none with it is well.
    pub draft_model: Option<DraftModel>,
    /// What its text begins with, which one of several replicas may have computed.
    pub beginning: Beginning,
}

impl ServedModel {
    /// Returns the model of `group` with its peers.
    pub(crate) fn new(group: ModelGroup, drafters: PeerReplicas, verifiers: PeerReplicas) -> Self {
        Self {
            name: group.name,
            aliases: group.aliases,
            drafters,
            verifiers,
            texts: Texts::default(),
            drafter_check: Mutex::default(),
            likeness: Likeness::new(group.mixed_weights),
            last_target: Mutex::default(),
            estimates: Estimates::default(),
            places: Places::default(),
            gains: Mutex::default(),
        }
    }

    /// Returns the name that clients ask for.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether `name` is one of its names.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.iter().any(|alias| alias == name)
    }

    /// Returns how many addresses of these peers can be used, are left alone for a while, and are alive but do not fit the
    /// target or are not like most others; each with its name in metrics.
    pub fn counts(&self, kind: Peer) -> [(&'static str, usize); 3] {
        let (alive, resting) = self.replicas(kind).counts();
        let misfit = match kind {
            Peer::Drafter if self.drafter_misfit().is_some() => alive,
            Peer::Drafter => 0,
            Peer::Verifier => self.likeness.refused().min(alive),
        };
        [
            ("alive", alive - misfit),
            ("resting", resting),
            ("misfit", misfit),
        ]
    }

    /// Returns the addresses of these peers that are known by now.
    pub fn known_replicas(&self, kind: Peer) -> Vec<Arc<PeerEndpoint>> {
        self.replicas(kind).known()
    }

    /// Tells operators why no drafter fits, and how verifiers are not alike.
    pub(crate) fn misfits(&self) -> Vec<String> {
        let name = &self.name;
        let misfit = self.drafter_misfit();
        let misfit = misfit.map(|it| format!("no drafter of model '{name}' fits: {it}"));
        let unlike = self.likeness.problems().into_iter();
        let unlike = unlike.map(|problem| format!("model '{name}': {problem}"));
        misfit.into_iter().chain(unlike).collect()
    }

    /// Returns whether two verifiers that are used compute other bits, or make other prompts of the same messages.
    pub fn verifiers_vary(&self) -> bool {
        self.likeness.vary()
    }

    /// Returns what requests of `method` at `temperature` measured with `draft_model`.
    pub fn measured(
        &self,
        method: &Choice,
        temperature: f32,
        draft_model: Option<&DraftModel>,
    ) -> Measured {
        self.estimates
            .find(EstimateKind::of(method, temperature, draft_model))
    }

    /// Returns the mismatch between the drafters and the target, if none of them fits.
    fn drafter_misfit(&self) -> Option<Arc<str>> {
        self.drafter_check.lock().as_ref()?.problem.clone()
    }

    /// Returns whether drafters are configured.
    pub fn names_drafters(&self) -> bool {
        !self.drafters.is_empty()
    }

    /// Returns whether drafters are configured, and are not known not to fit the target.
    pub fn has_drafters(&self) -> bool {
        self.names_drafters() && self.drafter_misfit().is_none()
    }

    /// Returns the reason why no drafter can be used, for errors.
    pub fn why_no_drafter(&self) -> String {
        match self.drafter_misfit() {
            Some(problem) => format!("those of model '{}' do not fit: {problem}", self.name),
            None => format!("model '{}' has none", self.name),
        }
    }

    /// Returns all known addresses of these peers.
    pub async fn endpoints(&self, kind: Peer) -> Vec<Arc<PeerEndpoint>> {
        self.replicas(kind).all().await
    }

    /// Returns for how long all its verifiers are overloaded, by their own words; none if one is not.
    pub fn overloaded_for(&self) -> Option<Duration> {
        self.verifiers.overloaded_for()
    }

    /// Returns the target model of `session`, as the verifier that it is to run at says; a verifier that fails is
    /// passed over for another. While none answers, what one said last holds: a request that begins then waits for its
    /// verifier as one under way does.
    ///
    /// # Errors
    /// Of the verifier asked last, if none ever said.
    pub async fn target(&self, session: &[u8; 16]) -> Result<Target, CallError> {
        // Each once, and not as they rank by then: one that failed slowly may count as alive again.
        let mut requested: Vec<String> = Vec::new();
        let mut failure = CallError::NoneAlive(Peer::Verifier, None);
        loop {
            let is_new = |endpoint: &PeerEndpoint| {
                !requested.iter().any(|it| it == endpoint.address())
                    && !self.likeness.refuses(endpoint.address())
            };
            let found = self.verifiers.pick(session, requested.is_empty(), is_new);
            let Some(endpoint) = found.await else {
                return self.last_target(None).ok_or(failure);
            };
            failure = match self.target_at(&endpoint).await {
                Ok(target) => {
                    self.last_target(Some(target.clone()));
                    return Ok(target);
                }
                Err(error) => error,
            };
            let (peer, error) = (endpoint.address(), failure.details());
            tracing::debug!(
                model = self.name,
                peer,
                error,
                "no tokenizer from this verifier"
            );
            requested.push(peer.to_owned());
        }
    }

    /// Keeps `now` if there is one, and returns what the target said last.
    pub(crate) fn last_target(&self, now: Option<Target>) -> Option<Target> {
        let mut last = self.last_target.lock();
        *last = now.or_else(|| last.take());
        last.clone()
    }

    async fn target_at(&self, endpoint: &PeerEndpoint) -> Result<Target, CallError> {
        let description = known_or_asked(endpoint, Peer::Verifier).await?;
        self.check_weights(endpoint, &description)?;
        let target = self.texts.of(endpoint, &description).await?;
        endpoint.described(Arc::clone(&description));
        Ok(Target {
            description,
            ..target
        })
    }

    /// Checks that a verifier has the weights that are used.
    ///
    /// # Errors
    /// If it has others.
    pub fn check_weights(
        &self,
        endpoint: &PeerEndpoint,
        description: &PeerDescription,
    ) -> Result<(), CallError> {
        let met = self.likeness.met(endpoint.address(), description);
        met.map_err(|mismatch| CallError::Mismatch(Box::new(mismatch)))
    }

    /// Returns whether a session may go to this peer, as far as is known.
    fn suits(&self, query: &PeerQuery, endpoint: &PeerEndpoint) -> bool {
        let is_refused = query.peer == Peer::Verifier && self.likeness.refuses(endpoint.address());
        let known = query.requirements.zip(endpoint.description());
        let falls_short = known.is_some_and(|(it, known)| it.check(query.peer, &known).is_err());
        !is_refused && !falls_short
    }

    /// Returns the peer that `query` asks for; one that is not known to fall short of its requirements, if there is
    /// one, with the draft model that it asks for, and where its text lies. From now on the text lies there.
    ///
    /// # Errors
    /// If none is configured, or no drafter is alive; a verifier is tried even so, for there is
    /// nothing to fall back to.
    pub async fn pick(&self, query: &PeerQuery) -> Result<Arc<PeerEndpoint>, CallError> {
        let found = match self.preferred(query).await {
            Some(endpoint) => endpoint,
            None => self.any(query).await?,
        };
        self.places
            .keep(query.peer, &query.beginning, found.address());
        Ok(found)
    }

    /// Returns a replica that is well, and has what a session would like best; none if there is no such.
    async fn preferred(&self, query: &PeerQuery) -> Option<Arc<PeerEndpoint>> {
        let replicas = self.replicas(query.peer);
        let all = replicas.all().await;
        if all.len() < 2 {
            return None;
        }
        let suits = |endpoint: &PeerEndpoint| {
            endpoint.is_well() && has_model(query, endpoint) && self.suits(query, endpoint)
        };
        if let Some(place) = self.places.find(query.peer, &query.beginning) {
            let lies_there = |endpoint: &PeerEndpoint| {
                endpoint.address() == &*place && suits(endpoint) && has_room(endpoint, &all)
            };
            let found = replicas.pick(&query.session, false, lies_there).await;
            if found.is_some() {
                return found;
            }
        }
        query.draft_model.as_ref()?;
        replicas.pick(&query.session, false, suits).await
    }

    /// Returns any replica, best one that is not known to fall short.
    async fn any(&self, query: &PeerQuery) -> Result<Arc<PeerEndpoint>, CallError> {
        let replicas = self.replicas(query.peer);
        let even_dead = query.peer == Peer::Verifier;
        let suits = |endpoint: &PeerEndpoint| self.suits(query, endpoint);
        if let Some(endpoint) = replicas.pick(&query.session, even_dead, suits).await {
            return Ok(endpoint);
        }
        // One that fell short is asked anew: it may have been restarted, and if not it says what it lacks.
        let endpoint = replicas.pick(&query.session, even_dead, |_| true).await;
        let Some(endpoint) = endpoint else {
            let all = replicas.all().await;
            let last = all.iter().find_map(|endpoint| endpoint.last_failure());
            return Err(CallError::NoneAlive(query.peer, last));
        };
        endpoint.forget();
        Ok(endpoint)
    }

    /// Returns where a session can go from `leaving`; none if no other is alive and stays.
    pub async fn another(
        &self,
        query: &PeerQuery,
        leaving: &PeerEndpoint,
    ) -> Option<Arc<PeerEndpoint>> {
        let suits = |endpoint: &PeerEndpoint| {
            let stays = endpoint.address() != leaving.address() && !endpoint.is_draining();
            stays && self.suits(query, endpoint)
        };
        let replicas = self.replicas(query.peer);
        replicas.pick(&query.session, false, suits).await
    }

    fn replicas(&self, kind: Peer) -> &PeerReplicas {
        match kind {
            Peer::Drafter => &self.drafters,
            Peer::Verifier => &self.verifiers,
        }
    }
}

/// Returns whether a peer has the draft model that `query` asks for, if it asks for one.
fn has_model(query: &PeerQuery, peer: &PeerEndpoint) -> bool {
    query.draft_model.as_ref().is_none_or(|wanted| {
        let known = peer.description();
        known.is_some_and(|known| wanted.is_of(&known))
    })
}
