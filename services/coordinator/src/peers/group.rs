//! A served model: its drafters, its verifiers, its text.

use std::sync::Arc;
use std::time::Duration;

use server::deadline::within;
use server::transport::MAX_MESSAGE_BYTES;
use tokio::sync::OnceCell;
use tonic::{Code, Status};
use wire::describe::{check_protocol, check_vocabularies};
use wire::v1::drafter_client::DrafterClient;
use wire::v1::verifier_client::VerifierClient;
use wire::v1::{DescribeRequest, PeerDescription};

use super::Endpoint;
use super::replicas::Replicas;
use crate::config::{CoordinatorConfig, ModelGroup};
use crate::error::{CoordinatorError, PeerError};
use crate::text::ServedText;

/// How long a peer may take to describe itself or to send its tokenizer.
const DESCRIBE_TIMEOUT: Duration = Duration::from_secs(10);

/// A served model with its peers.
#[derive(Debug)]
pub(crate) struct Group {
    name: String,
    drafters: Replicas,
    verifiers: Replicas,
    text: OnceCell<Arc<ServedText>>,
}

/// All served models, the default one first.
#[derive(Debug)]
pub(crate) struct Groups(Vec<Arc<Group>>);

impl Groups {
    /// # Errors
    /// Names the setting that cannot be used.
    pub(crate) fn new(config: &CoordinatorConfig) -> Result<Self, CoordinatorError> {
        let setting = |key: String, problem: &str| CoordinatorError::Setting {
            key,
            problem: problem.to_owned(),
        };
        if config.models.is_empty() {
            return Err(setting(
                "models".to_owned(),
                "empty, expected at least one model",
            ));
        }
        for (index, model) in config.models.iter().enumerate() {
            if config.models[..index]
                .iter()
                .any(|other| other.name == model.name)
            {
                return Err(setting(format!("models.{index}.name"), "stands twice"));
            }
            if model.verifiers.is_empty() {
                let key = format!("models.{index}.verifiers");
                return Err(setting(key, "empty, expected at least one URL"));
            }
        }
        let groups = config
            .models
            .iter()
            .map(|model| Group::new(model, config).map(Arc::new));
        Ok(Self(groups.collect::<Result<_, _>>()?))
    }

    /// The group called `name`; the first one if `name` is empty.
    pub(crate) fn find(&self, name: &str) -> Option<&Arc<Group>> {
        if name.is_empty() {
            return self.0.first();
        }
        self.0.iter().find(|group| group.name == name)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Group>> {
        self.0.iter()
    }

    pub(crate) fn names(&self) -> Vec<&str> {
        self.0.iter().map(|group| group.name.as_str()).collect()
    }
}

/// A peer picked for a session, and what it says of itself.
pub(crate) type Picked = (Arc<Endpoint>, Arc<PeerDescription>);

impl Group {
    fn new(model: &ModelGroup, config: &CoordinatorConfig) -> Result<Self, CoordinatorError> {
        let believed_for = Duration::from_millis(config.resolve_every_ms.get());
        let replicas = |urls: &[String]| Replicas::new(urls, &config.channel, believed_for);
        Ok(Self {
            name: model.name.clone(),
            drafters: replicas(&model.drafters)?,
            verifiers: replicas(&model.verifiers)?,
            text: OnceCell::new(),
        })
    }

    /// Name clients ask for.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Whether any drafter is configured.
    pub(crate) fn has_drafters(&self) -> bool {
        !self.drafters.is_empty()
    }

    /// The tokenizer and the target's description, asked of a verifier once.
    ///
    /// # Errors
    /// If no verifier can be reached, or what it sends is no tokenizer.
    pub(crate) async fn text(&self) -> Result<Arc<ServedText>, PeerError> {
        let text = self.text.get_or_try_init(|| async {
            let endpoint = self
                .pick(&self.verifiers, &[0; 16], "verifier", true)
                .await?;
            let description = describe(&endpoint, Kind::Verifier).await?;
            let text = ServedText::fetch(&endpoint, description);
            let fetched = within(DESCRIBE_TIMEOUT, "fetching the tokenizer", text).await;
            let late = |_| late(&endpoint);
            Ok(Arc::new(fetched.map_err(late)??))
        });
        text.await.cloned()
    }

    /// The verifier for `session`.
    ///
    /// # Errors
    /// If none can be reached, or it does not fit the tokenizer in use.
    pub(crate) async fn verifier(&self, session: &[u8; 16]) -> Result<Picked, PeerError> {
        let endpoint = self
            .pick(&self.verifiers, session, "verifier", true)
            .await?;
        self.checked(endpoint, Kind::Verifier).await
    }

    /// The drafter for `session`.
    ///
    /// # Errors
    /// If none is alive, or its vocabulary is not the target's.
    pub(crate) async fn drafter(&self, session: &[u8; 16]) -> Result<Picked, PeerError> {
        let endpoint = self.pick(&self.drafters, session, "drafter", false).await?;
        self.checked(endpoint, Kind::Drafter).await
    }

    async fn pick(
        &self,
        replicas: &Replicas,
        session: &[u8; 16],
        who: &'static str,
        even_dead: bool,
    ) -> Result<Arc<Endpoint>, PeerError> {
        replicas
            .pick(session, even_dead)
            .await
            .ok_or(PeerError::NoneAlive { who })
    }

    async fn checked(&self, endpoint: Arc<Endpoint>, kind: Kind) -> Result<Picked, PeerError> {
        let text = self.text().await?;
        let description = match endpoint.description() {
            Some(description) => description,
            None => describe(&endpoint, kind).await?,
        };
        check_vocabularies(&description, &text.target).map_err(|mismatch| PeerError::Mismatch {
            address: endpoint.address().to_owned(),
            mismatch,
        })?;
        endpoint.described(Arc::clone(&description));
        Ok((endpoint, description))
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Drafter,
    Verifier,
}

async fn describe(endpoint: &Endpoint, kind: Kind) -> Result<Arc<PeerDescription>, PeerError> {
    let asked = async {
        match kind {
            Kind::Drafter => drafter_client(endpoint).describe(DescribeRequest {}).await,
            Kind::Verifier => verifier_client(endpoint).describe(DescribeRequest {}).await,
        }
    };
    let Ok(answered) = within(DESCRIBE_TIMEOUT, "describe", asked).await else {
        endpoint.unreachable();
        return Err(late(endpoint));
    };
    let description = answered
        .map_err(|status| failed(endpoint, status))?
        .into_inner();
    check_protocol(&description).map_err(|mismatch| PeerError::Mismatch {
        address: endpoint.address().to_owned(),
        mismatch,
    })?;
    Ok(Arc::new(description))
}

/// Notes a call that failed before any stream was open; an endpoint that cannot even be reached is
/// left alone for a while.
pub(crate) fn failed(endpoint: &Endpoint, status: Status) -> PeerError {
    match status.code() {
        Code::Unavailable => endpoint.unreachable(),
        _ => endpoint.failed(),
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
pub(crate) fn drafter_client(endpoint: &Endpoint) -> DrafterClient<tonic::transport::Channel> {
    DrafterClient::new(endpoint.channel())
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES)
}

/// A client for a verifier at `endpoint`.
pub(crate) fn verifier_client(endpoint: &Endpoint) -> VerifierClient<tonic::transport::Channel> {
    VerifierClient::new(endpoint.channel())
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES)
}
