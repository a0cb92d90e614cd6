//! Whether a peer fits a target. A drafter of another vocabulary is told that of the target.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream;
use speculation::session::Peer;
use wire::describe::{Fit, check_pair, check_vocabularies};
use wire::v1::{LearnRequest, PeerDescription};

use crate::PeerEndpoint;
use crate::clients::{answer_within, drafter_client, failed, known_or_asked};
use crate::error::CallError;
use crate::target::Target;

/// How long a drafter may take to read a tokenizer.
const LEARN_TIMEOUT: Duration = Duration::from_secs(60);

/// Bytes of a message.
const PART: usize = 1 << 20;

/// Returns a peer's description, which is asked for once until the peer fails or its connection breaks.
///
/// # Errors
/// If it does not answer, or its vocabulary is not that of `target` and it cannot learn it.
pub async fn described(
    endpoint: &PeerEndpoint,
    kind: Peer,
    target: &Target,
) -> Result<Arc<PeerDescription>, CallError> {
    let description = known_or_asked(endpoint, kind).await?;
    checked(endpoint, kind, target, description).await
}

/// Returns the description of a peer, which is known from now on. A drafter of another vocabulary is told that of `target`.
///
/// # Errors
/// If its vocabulary is not that of `target`, and it cannot learn it.
pub(crate) async fn checked(
    endpoint: &PeerEndpoint,
    kind: Peer,
    target: &Target,
    description: Arc<PeerDescription>,
) -> Result<Arc<PeerDescription>, CallError> {
    let fit = match kind {
        Peer::Drafter => check_pair(&description, &target.description),
        Peer::Verifier => {
            check_vocabularies(&description, &target.description).map(|()| Fit::SameVocabulary)
        }
    };
    let description = match fit {
        Ok(Fit::SameVocabulary) => description,
        Ok(Fit::Translates) => tell(endpoint, target).await?,
        Err(mismatch) => {
            let peer = endpoint.address();
            // A warning is logged once, when no drafter fits. This line comes for every session that meets the peer.
            tracing::debug!(peer, %mismatch, "peer cannot be used");
            endpoint.forget();
            return Err(CallError::Mismatch(Box::new(mismatch)));
        }
    };
    endpoint.described(Arc::clone(&description));
    Ok(description)
}

/// Tells the drafter at `endpoint` the vocabulary of `target`, unless it knows it. Returns what it is to sessions in it.
///
/// # Errors
/// If it does not answer, or finds that the tokenizer is none.
async fn tell(endpoint: &PeerEndpoint, target: &Target) -> Result<Arc<PeerDescription>, CallError> {
    if let Some(known) = learn(endpoint, target, Vec::new()).await? {
        return Ok(known);
    }
    let text = Arc::clone(&target.text);
    // Tens of megabytes would hold up every stream of an async thread.
    let writing = tokio::task::spawn_blocking(move || text.tokenizer_json());
    let written = writing.await.unwrap_or_else(|error| Err(error.to_string()));
    let json = written.map_err(CallError::Malformed)?;
    let (peer, model) = (endpoint.address(), &target.description.model);
    tracing::info!(
        peer,
        model,
        "a drafter of another vocabulary is told the target's"
    );
    let learned = learn(endpoint, target, json.into_bytes()).await?;
    learned.ok_or_else(|| CallError::Malformed("it did not learn the vocabulary".to_owned()))
}

async fn learn(
    endpoint: &PeerEndpoint,
    target: &Target,
    json: Vec<u8>,
) -> Result<Option<Arc<PeerDescription>>, CallError> {
    let head = LearnRequest {
        target: Some((*target.description).clone()),
        tokenizer_json: Vec::new(),
    };
    let parts = json.chunks(PART).map(|part| LearnRequest {
        target: None,
        tokenizer_json: part.to_vec(),
    });
    let parts: Vec<_> = std::iter::once(head).chain(parts).collect();
    let mut client = drafter_client(endpoint);
    let learning = client.learn(stream::iter(parts));
    let learned = answer_within(LEARN_TIMEOUT, "learn", endpoint, learning).await?;
    let learned = learned.map_err(|status| failed(endpoint, Peer::Drafter, status))?;
    Ok(learned.into_inner().description.map(Arc::new))
}
