//! A served model: its drafters and its verifiers, and what is known of them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ops::process::Process;
use speculation::drafting::Drafting;
use speculation::session::Peer;
use text::ServedText;
use wire::describe::check_pair;
use wire::status::BadField;
use wire::v1::PeerDescription;

use super::clients::describe;
use super::estimates::Estimates;
use super::likeness::{Fit, Likeness};
use super::texts::Texts;
use super::{Endpoint, Replicas, Wanted};
use crate::admitted::{DrafterRequirements, VerifierRequirements};
use crate::config::{CoordinatorConfig, ModelGroup};
use crate::error::CoordinatorError;
use crate::peer::error::PeerError;

/// How long a request that needs more than a draft model waits to hear what drafters can do. If they do
/// not say by then, they say when they are asked to draft.
const ABILITY_TIMEOUT: Duration = Duration::from_secs(2);

/// A served model with its peers.
#[derive(Debug)]
pub(crate) struct ServedModel {
    name: String,
    aliases: Vec<String>,
    drafters: Replicas,
    verifiers: Replicas,
    texts: Texts,
    pub(super) fit: Fit,
    pub(super) likeness: Likeness,
    /// What the target said last: what requests begin with while no verifier answers.
    last_target: Mutex<Option<Target>>,
    /// What requests measured, for draft lengths that follow it.
    pub(crate) estimates: Estimates,
}

/// The target model, as the verifier says that a session is to run at.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) description: Arc<PeerDescription>,
    pub(crate) text: Arc<ServedText>,
}

impl ServedModel {
    /// # Errors
    /// Names the setting that cannot be used.
    pub(super) fn new(
        model: &ModelGroup,
        config: &CoordinatorConfig,
        process: &Process,
    ) -> Result<Self, CoordinatorError> {
        let believed_for = Duration::from_millis(config.resolve_every_ms.get());
        let replicas = |urls: &[String]| {
            Replicas::new(urls, &config.channel, &process.credentials, believed_for)
        };
        Ok(Self {
            name: model.name.clone(),
            aliases: model.aliases.clone(),
            drafters: replicas(&model.drafters)?,
            verifiers: replicas(&model.verifiers)?,
            texts: Texts::default(),
            fit: Fit::default(),
            likeness: Likeness::new(model.mixed_weights),
            last_target: Mutex::default(),
            estimates: Estimates::default(),
        })
    }

    /// Name clients ask for.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether `name` is one of its names.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.iter().any(|alias| alias == name)
    }

    /// Addresses known of these peers: those alive, and those left alone for a while.
    pub(crate) fn counts(&self, kind: Peer) -> (usize, usize) {
        self.replicas(kind).counts()
    }

    /// Whether drafters are configured, and are not known not to fit the target.
    pub(crate) fn has_drafters(&self) -> bool {
        !self.drafters.is_empty() && self.fit.problem().is_none()
    }

    /// The reason why no drafter can be used, for errors.
    pub(crate) fn why_no_drafter(&self) -> String {
        match self.fit.problem() {
            Some(problem) => format!("those of model '{}' do not fit: {problem}", self.name),
            None => format!("model '{}' has none", self.name),
        }
    }

    /// The mismatch between its drafters and its target, if none of them fits.
    pub(crate) fn misfit(&self) -> Option<Arc<str>> {
        self.fit.problem()
    }

    /// Number of verifiers that are refused for their weights.
    pub(crate) fn refused_verifiers(&self) -> usize {
        self.likeness.refused()
    }

    /// Describes the differences between its verifiers to operators.
    pub(crate) fn unlike(&self) -> Vec<String> {
        self.likeness.problems()
    }

    /// Whether two of its verifiers, as far as they are known, compute other bits.
    pub(crate) fn verifiers_vary(&self) -> bool {
        self.likeness.vary()
    }

    /// All known addresses of these peers.
    pub(in crate::peer) async fn endpoints(&self, kind: Peer) -> Vec<Arc<Endpoint>> {
        self.replicas(kind).all().await
    }

    /// The target as a verifier last described it.
    pub(super) fn known_target(&self) -> Option<Target> {
        self.last_target(None)
    }

    /// For how long all its verifiers are overloaded, by their own words; none if one is not.
    pub(crate) fn overloaded_for(&self) -> Option<Duration> {
        self.verifiers.overloaded_for()
    }

    /// The target model of `session`, as the verifier that it is to run at says; a verifier that fails is passed
    /// over for another. While none answers, what one said last holds: a request that begins then waits for its
    /// verifier as one under way does.
    ///
    /// # Errors
    /// Of the verifier asked last, if none ever said.
    pub(crate) async fn target(&self, session: &[u8; 16]) -> Result<Target, PeerError> {
        // Each once, and not as they rank by then: one that failed slowly may count as alive again.
        let mut requested: Vec<String> = Vec::new();
        let mut failure = PeerError::NoneAlive(Peer::Verifier, None);
        loop {
            let is_new = |endpoint: &Endpoint| {
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
    fn last_target(&self, now: Option<Target>) -> Option<Target> {
        // Nothing here panics half-way, so what is behind a poisoned lock is whole.
        let mut last = self
            .last_target
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *last = now.or_else(|| last.take());
        last.clone()
    }

    async fn target_at(&self, endpoint: &Endpoint) -> Result<Target, PeerError> {
        let description = match endpoint.description() {
            Some(description) => description,
            None => describe(endpoint, Peer::Verifier).await?,
        };
        self.check_weights(endpoint, &description)?;
        let text = self.texts.of(endpoint, &description).await?;
        endpoint.described(Arc::clone(&description));
        Ok(Target { description, text })
    }

    /// Checks that a verifier has the weights that are used.
    ///
    /// # Errors
    /// If it has others.
    pub(crate) fn check_weights(
        &self,
        endpoint: &Endpoint,
        description: &PeerDescription,
    ) -> Result<(), PeerError> {
        let met = self.likeness.met(endpoint.address(), description);
        met.map_err(|mismatch| PeerError::Mismatch(Box::new(mismatch)))
    }

    /// Whether a session may go to this peer, as far as is known.
    fn suits(&self, wanted: &Wanted, endpoint: &Endpoint) -> bool {
        let is_refused = wanted.peer == Peer::Verifier && self.likeness.refuses(endpoint.address());
        !is_refused && wanted.may_be(endpoint)
    }

    /// The peer that is `wanted`; one that is not known to fall short of its requirements, if there is one.
    ///
    /// # Errors
    /// If none is configured, or no drafter is alive; a verifier is tried even so, for there is
    /// nothing to fall back to.
    pub(crate) async fn pick(&self, wanted: &Wanted) -> Result<Arc<Endpoint>, PeerError> {
        let replicas = self.replicas(wanted.peer);
        let even_dead = wanted.peer == Peer::Verifier;
        let suits = |endpoint: &Endpoint| self.suits(wanted, endpoint);
        if let Some(endpoint) = replicas.pick(&wanted.session, even_dead, suits).await {
            return Ok(endpoint);
        }
        // One that fell short is asked anew: it may have been restarted, and if not it says what it lacks.
        let endpoint = replicas.pick(&wanted.session, even_dead, |_| true).await;
        let Some(endpoint) = endpoint else {
            let all = replicas.all().await;
            let last = all.iter().find_map(|endpoint| endpoint.last_failure());
            return Err(PeerError::NoneAlive(wanted.peer, last));
        };
        endpoint.forget();
        Ok(endpoint)
    }

    /// Where a session can go from `leaving`; none if no other is alive and stays.
    pub(crate) async fn another(
        &self,
        wanted: &Wanted,
        leaving: &Endpoint,
    ) -> Option<Arc<Endpoint>> {
        let suits = |endpoint: &Endpoint| {
            let stays = endpoint.address() != leaving.address() && !endpoint.is_draining();
            stays && self.suits(wanted, endpoint)
        };
        let replicas = self.replicas(wanted.peer);
        replicas.pick(&wanted.session, false, suits).await
    }

    fn replicas(&self, kind: Peer) -> &Replicas {
        match kind {
            Peer::Drafter => &self.drafters,
            Peer::Verifier => &self.verifiers,
        }
    }

    /// Fails fast when every verifier is known to fall short; others are found when a stream is opened.
    ///
    /// # Errors
    /// What `target` lacks, which the request was checked by.
    pub(crate) async fn check_verifiers(
        &self,
        required: VerifierRequirements,
        target: &PeerDescription,
    ) -> Result<(), BadField> {
        let Err(lacking) = required.check(target) else {
            return Ok(());
        };
        let may_be = |verifier: &Arc<Endpoint>| {
            let known = verifier.description();
            known.is_none_or(|known| required.check(&known).is_ok())
        };
        if self.verifiers.all().await.iter().any(may_be) {
            return Ok(());
        }
        Err(lacking)
    }

    /// Whether the rows of drafters may differ, as far as drafters are known: because a drafter's rows are the same up to
    /// rounding only, or because two drafters have different numerics.
    pub(crate) async fn drafters_vary(&self) -> bool {
        let drafters = self.drafters.all().await;
        let known = drafters.iter().filter_map(|it| it.description());
        let mut known = known.peekable();
        let first = known.peek().map(|drafter| drafter.numerics.clone());
        known.any(|drafter| drafter.rows_vary || Some(&drafter.numerics) != first.as_ref())
    }

    /// Returns who proposes where nobody says: the draft model, or Max-Gram where no drafter that fits has one. The first
    /// requests wait until drafters have said what they can do, for a short time.
    pub(crate) async fn usual_drafting(&self) -> Drafting {
        if self.fit.only_copies().is_none() {
            self.meet_drafters().await;
        }
        match self.fit.only_copies() {
            Some(true) => Drafting::MaxGram,
            Some(false) | None => Drafting::Model,
        }
    }

    /// Fails fast when every live drafter reports that it cannot meet the requirements. What every draft model
    /// can do is never refused: without one the target goes on alone, and the answer says why.
    ///
    /// # Errors
    /// What the first of them lacks.
    pub(crate) async fn check_drafters(
        &self,
        requirements: DrafterRequirements,
        target: &PeerDescription,
    ) -> Result<(), BadField> {
        if !requirements.needs_asking() {
            return Ok(());
        }
        if !self.has_drafters() && requirements.is_special() {
            return Err(requirements.without_drafters(&self.why_no_drafter()));
        }
        let mut refusal = None;
        for endpoint in self.drafters.all().await {
            if !endpoint.is_alive() {
                // It might be able to, and is done without like any that is lost.
                return Ok(());
            }
            let known = endpoint.description();
            if known.is_some_and(|known| requirements.check(&known).is_ok()) {
                return Ok(());
            }
            // It may have been started anew with what it lacked.
            let requested = ask(&endpoint, Peer::Drafter, target);
            let Ok(Ok(described)) = tokio::time::timeout(ABILITY_TIMEOUT, requested).await else {
                return Ok(());
            };
            match requirements.check(&described) {
                Ok(()) => return Ok(()),
                Err(bad) => refusal = refusal.or(Some(bad)),
            }
        }
        refusal.map_or(Ok(()), Err)
    }
}

/// Returns a peer's description, which is asked for once until the peer fails or its connection breaks.
///
/// # Errors
/// If it does not answer, or its vocabulary is not that of `target`.
pub(crate) async fn described(
    endpoint: &Endpoint,
    kind: Peer,
    target: &PeerDescription,
) -> Result<Arc<PeerDescription>, PeerError> {
    match endpoint.description() {
        Some(description) => checked(endpoint, target, description),
        None => ask(endpoint, kind, target).await,
    }
}

/// Asks a peer for its description, and checks it.
async fn ask(
    endpoint: &Endpoint,
    kind: Peer,
    target: &PeerDescription,
) -> Result<Arc<PeerDescription>, PeerError> {
    let description = describe(endpoint, kind).await?;
    checked(endpoint, target, description)
}

fn checked(
    endpoint: &Endpoint,
    target: &PeerDescription,
    description: Arc<PeerDescription>,
) -> Result<Arc<PeerDescription>, PeerError> {
    if let Err(mismatch) = check_pair(&description, target) {
        let peer = endpoint.address();
        // A warning is logged once, when no drafter fits. This line comes for every session that meets the peer.
        tracing::debug!(peer, %mismatch, "peer cannot be used");
        endpoint.forget();
        return Err(PeerError::Mismatch(Box::new(mismatch)));
    }
    endpoint.described(Arc::clone(&description));
    Ok(description)
}
