//! A served model: its drafters, its verifiers, its text.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use server::channel::PeerChannel;
use server::deadline::within;
use server::process::Process;
use server::transport::MAX_MESSAGE_BYTES;
use tonic::{Code, Status};
use wire::describe::{check_encoders, check_protocol, check_vocabularies};
use wire::status::{self, BadField, PeerFailure, classify};
use wire::v1::drafter_client::DrafterClient;
use wire::v1::verifier_client::VerifierClient;
use wire::v1::{DescribeRequest, PeerDescription};

use super::Endpoint;
use super::estimates::Estimates;
use super::replicas::Replicas;
use crate::config::{CoordinatorConfig, ModelGroup};
use crate::demand::Demand;
use crate::error::{CoordinatorError, PeerError};
use crate::figures::ModelFigures;
use crate::text::ServedText;

/// How long a peer may take to describe itself or to send its tokenizer.
const DESCRIBE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a request that needs more than a draft model waits to hear what drafters can do. If they do
/// not say by then, they say when they are asked to draft.
const ABILITY_TIMEOUT: Duration = Duration::from_secs(2);

/// Why a peer is left alone that did not answer in time.
pub(crate) const SILENT: &str = "no answer in time";

/// A served model with its peers.
#[derive(Debug)]
pub(crate) struct Group {
    name: String,
    drafters: Replicas,
    verifiers: Replicas,
    text: Mutex<Option<Arc<ServedText>>>,
    /// What requests measured, for draft lengths that follow it.
    pub(crate) estimates: Estimates,
    /// What is counted of it.
    pub(crate) figures: Arc<ModelFigures>,
}

/// Which of a model's peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Drafter,
    Verifier,
}

impl Group {
    /// # Errors
    /// Names the setting that cannot be used.
    pub(super) fn new(
        model: &ModelGroup,
        config: &CoordinatorConfig,
        process: &Process,
    ) -> Result<Self, CoordinatorError> {
        let believed_for = Duration::from_millis(config.resolve_every_ms.get());
        let replicas =
            |urls: &[String]| Replicas::new(urls, &config.channel, process, believed_for);
        Ok(Self {
            name: model.name.clone(),
            drafters: replicas(&model.drafters)?,
            verifiers: replicas(&model.verifiers)?,
            text: Mutex::default(),
            estimates: Estimates::default(),
            figures: Arc::new(ModelFigures::new(&process.metrics, &model.name)),
        })
    }

    /// Name clients ask for.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Addresses known of these peers: those alive, and those left alone for a while.
    pub(crate) fn counts(&self, kind: Kind) -> (usize, usize) {
        match kind {
            Kind::Drafter => self.drafters.counts(),
            Kind::Verifier => self.verifiers.counts(),
        }
    }

    /// Whether any drafter is configured.
    pub(crate) fn has_drafters(&self) -> bool {
        !self.drafters.is_empty()
    }

    /// The tokenizer and the target's description, asked of a verifier and then kept. One that does not
    /// send it is passed over for another.
    ///
    /// # Errors
    /// Of the verifier asked last, if none sent a tokenizer.
    pub(crate) async fn text(&self) -> Result<Arc<ServedText>, PeerError> {
        if let Some(text) = self.with_text(|text| text.clone()) {
            return Ok(text);
        }
        // Each once, and not as they rank by then: one that failed slowly may count as alive again.
        let mut asked: Vec<String> = Vec::new();
        let mut failure = PeerError::NoneAlive { who: "verifier" };
        loop {
            let is_new = |endpoint: &Endpoint| !asked.iter().any(|it| it == endpoint.address());
            let found = self.verifiers.pick(&[0; 16], asked.is_empty(), is_new);
            let Some(endpoint) = found.await else {
                return Err(failure);
            };
            failure = match self.fetch_text(&endpoint).await {
                Ok(text) => return Ok(text),
                Err(error) => error,
            };
            tracing::debug!(model = self.name, error = %failure, "no tokenizer from this verifier");
            asked.push(endpoint.address().to_owned());
        }
    }

    async fn fetch_text(&self, endpoint: &Endpoint) -> Result<Arc<ServedText>, PeerError> {
        let description = describe(endpoint, Kind::Verifier).await?;
        let fetching = ServedText::fetch(endpoint, description);
        let Ok(fetched) = within(DESCRIBE_TIMEOUT, "fetching the tokenizer", fetching).await else {
            endpoint.unreachable(SILENT);
            return Err(late(endpoint));
        };
        let fetched = Arc::new(fetched?);
        // Whoever was first is kept, so that all requests under way share one.
        Ok(self.with_text(|text| Arc::clone(text.get_or_insert(fetched))))
    }

    fn with_text<T>(&self, action: impl FnOnce(&mut Option<Arc<ServedText>>) -> T) -> T {
        // Nothing here panics half-way, so what is behind a poisoned lock is whole.
        action(&mut self.text.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The peer for `session`; one that is not known to fall short of `demand`, if there is one.
    ///
    /// # Errors
    /// If none is configured, or no drafter is alive; a verifier is tried even so, for there is
    /// nothing to fall back to.
    pub(crate) async fn pick(
        &self,
        kind: Kind,
        session: &[u8; 16],
        demand: Option<Demand>,
    ) -> Result<Arc<Endpoint>, PeerError> {
        let (replicas, who) = self.replicas(kind);
        let even_dead = kind == Kind::Verifier;
        let suits = |endpoint: &Endpoint| may_suit(endpoint, demand);
        if let Some(endpoint) = replicas.pick(session, even_dead, suits).await {
            return Ok(endpoint);
        }
        // One that fell short is asked anew: it may have been restarted, and if not it says what it lacks.
        let endpoint = replicas.pick(session, even_dead, |_| true).await;
        let endpoint = endpoint.ok_or(PeerError::NoneAlive { who })?;
        endpoint.forget();
        Ok(endpoint)
    }

    /// Where `session` can go from a peer that is about to stop; none if no other is alive and stays.
    pub(crate) async fn another(
        &self,
        kind: Kind,
        session: &[u8; 16],
        demand: Option<Demand>,
        leaving: &Endpoint,
    ) -> Option<Arc<Endpoint>> {
        let suits = |endpoint: &Endpoint| {
            let stays = endpoint.address() != leaving.address() && !endpoint.is_draining();
            stays && may_suit(endpoint, demand)
        };
        let (replicas, _) = self.replicas(kind);
        replicas.pick(session, false, suits).await
    }

    fn replicas(&self, kind: Kind) -> (&Replicas, &'static str) {
        match kind {
            Kind::Drafter => (&self.drafters, "drafter"),
            Kind::Verifier => (&self.verifiers, "verifier"),
        }
    }

    /// Refuses at once what none of the drafters can do, as far as all of them say so in time. What every
    /// draft model can do is never refused: without one the target goes on alone, and the answer says why.
    ///
    /// # Errors
    /// What the first of them lacks.
    pub(crate) async fn check_demand(
        &self,
        demand: Demand,
        text: &ServedText,
    ) -> Result<(), BadField> {
        if !demand.needs_asking() {
            return Ok(());
        }
        if !self.has_drafters() && demand.is_special() {
            return Err(demand.without_drafters(&self.name));
        }
        let mut refusal = None;
        for endpoint in self.drafters.all().await {
            if !endpoint.is_alive() {
                // It might be able to, and is done without like any that is lost.
                return Ok(());
            }
            let known = endpoint.description();
            if known.is_some_and(|known| demand.check(&known).is_ok()) {
                return Ok(());
            }
            // It may have been started anew with what it lacked.
            let asked = self.ask(&endpoint, Kind::Drafter, text);
            let Ok(Ok(described)) = tokio::time::timeout(ABILITY_TIMEOUT, asked).await else {
                return Ok(());
            };
            match demand.check(&described) {
                Ok(()) => return Ok(()),
                Err(bad) => refusal = refusal.or(Some(bad)),
            }
        }
        refusal.map_or(Ok(()), Err)
    }

    /// What a peer says of itself, asked once until it fails.
    ///
    /// # Errors
    /// If it does not answer, or its vocabulary is not that of `text`.
    pub(crate) async fn described(
        &self,
        endpoint: &Endpoint,
        kind: Kind,
        text: &ServedText,
    ) -> Result<Arc<PeerDescription>, PeerError> {
        match endpoint.description() {
            Some(description) => self.checked(endpoint, kind, text, description),
            None => self.ask(endpoint, kind, text).await,
        }
    }

    /// What a peer says of itself now.
    async fn ask(
        &self,
        endpoint: &Endpoint,
        kind: Kind,
        text: &ServedText,
    ) -> Result<Arc<PeerDescription>, PeerError> {
        let description = describe(endpoint, kind).await?;
        self.checked(endpoint, kind, text, description)
    }

    fn checked(
        &self,
        endpoint: &Endpoint,
        kind: Kind,
        text: &ServedText,
        description: Arc<PeerDescription>,
    ) -> Result<Arc<PeerDescription>, PeerError> {
        let vocabularies = check_vocabularies(&description, &text.target);
        if let Err(mismatch) =
            vocabularies.and_then(|()| check_encoders(&description, &text.target))
        {
            if kind == Kind::Verifier {
                // The model behind the name was replaced: the next request asks for its tokenizer.
                self.with_text(|text| *text = None);
            }
            let address = endpoint.address().to_owned();
            tracing::warn!(peer = address, %mismatch, "peer cannot be used");
            let mismatch = Box::new(mismatch);
            return Err(PeerError::Mismatch { address, mismatch });
        }
        endpoint.described(Arc::clone(&description));
        Ok(description)
    }
}

/// Whether an endpoint is not known to fall short of `demand`.
fn may_suit(endpoint: &Endpoint, demand: Option<Demand>) -> bool {
    let known = endpoint.description();
    demand
        .zip(known)
        .is_none_or(|(demand, known)| demand.check(&known).is_ok())
}

async fn describe(endpoint: &Endpoint, kind: Kind) -> Result<Arc<PeerDescription>, PeerError> {
    let asked = async {
        match kind {
            Kind::Drafter => drafter_client(endpoint).describe(DescribeRequest {}).await,
            Kind::Verifier => verifier_client(endpoint).describe(DescribeRequest {}).await,
        }
    };
    let Ok(answered) = within(DESCRIBE_TIMEOUT, "describe", asked).await else {
        endpoint.unreachable(SILENT);
        return Err(late(endpoint));
    };
    let description = answered
        .map_err(|status| failed(endpoint, kind, status))?
        .into_inner();
    check_protocol(&description).map_err(|mismatch| PeerError::Mismatch {
        address: endpoint.address().to_owned(),
        mismatch: Box::new(mismatch),
    })?;
    Ok(Arc::new(description))
}

/// Notes a call that failed before any stream was open; an endpoint that cannot even be reached is
/// left alone for a while, and what the request itself is to blame for does not count.
pub(crate) fn failed(endpoint: &Endpoint, kind: Kind, status: Status) -> PeerError {
    // What a peer says has no source; one was made here, of a connection that did not come about or broke.
    let is_of_transport = std::error::Error::source(&status).is_some();
    match (status.code(), classify(&status)) {
        // A token that is refused is refused to every request.
        (Code::Unavailable | Code::Unauthenticated, _) => {
            endpoint.unreachable(&status::describe(&status));
        }
        // A drafter may be back at once, and the target goes on meanwhile; a verifier's work waits for it, and
        // another may take it.
        _ if is_of_transport && kind == Kind::Verifier => {
            endpoint.unreachable(&status::describe(&status));
        }
        (_, PeerFailure::Transient) => endpoint.failed(),
        _ => {}
    }
    PeerError::Status {
        address: endpoint.address().to_owned(),
        status: Box::new(status),
    }
}

fn late(endpoint: &Endpoint) -> PeerError {
    PeerError::Late {
        address: endpoint.address().to_owned(),
        after: DESCRIBE_TIMEOUT,
    }
}

/// A client for a drafter at `endpoint`.
pub(crate) fn drafter_client(endpoint: &Endpoint) -> DrafterClient<PeerChannel> {
    DrafterClient::new(endpoint.channel())
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES)
}

/// A client for a verifier at `endpoint`.
pub(crate) fn verifier_client(endpoint: &Endpoint) -> VerifierClient<PeerChannel> {
    VerifierClient::new(endpoint.channel())
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES)
}
