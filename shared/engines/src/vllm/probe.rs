//! What vLLM says of itself and its model, and which of its routes can be used.

use std::time::Instant;

use serde::Deserialize;

use super::{Vllm, VllmRoute};
use crate::engine::{Engine, EngineIdentity, ModelSizes, ScoringEngine};
use crate::error::ScoringError;
use crate::http::{EngineConnection, HttpCall};

/// Tokens that a request needs room for after its sequence: the one that is appended, and the one that is generated.
const BEHIND: usize = 2;

#[derive(Debug, Deserialize)]
struct Version {
    version: String,
}

#[derive(Debug, Deserialize)]
struct ModelList {
    data: Vec<ModelCard>,
}

#[derive(Debug, Deserialize)]
struct ModelCard {
    id: String,
    root: Option<String>,
    max_model_len: usize,
}

/// Asks the server at the other end of `connection` what it is, and returns it with the best of its routes.
///
/// # Errors
/// If it does not say what is needed, or gives no whole rows of `row_len` tokens.
pub(crate) fn probe(
    connection: EngineConnection,
    row_len: usize,
    deadline: Instant,
) -> Result<Engine, ScoringError> {
    let identity = identity(&connection, deadline)?;
    let model = ModelSizes {
        vocab_size: row_len,
        context_len: identity.longest + BEHIND,
    };
    let name = identity.model.clone();
    let mut engine = Vllm::new(connection, name, model, VllmRoute::Generate);
    match engine.row_after(&[0], 1, &[0], deadline) {
        Ok(_) => {}
        Err(ScoringError::NotOffered(_) | ScoringError::Status(404)) => {
            engine.route = VllmRoute::Completions;
        }
        Err(error) => return Err(error),
    }
    // A row of another length, or fewer entries than were asked for, is an error.
    engine.row_after(&[0], row_len, &[], deadline)?;
    Ok(Engine {
        scoring: Box::new(engine),
        identity,
    })
}

/// Asks the server what it serves.
///
/// # Errors
/// If it does not before `deadline`.
pub(super) fn identity(
    connection: &EngineConnection,
    deadline: Instant,
) -> Result<EngineIdentity, ScoringError> {
    let said: Version = connection.get(HttpCall::to_ask("/version", deadline))?;
    let models: ModelList = connection.get(HttpCall::to_ask("/v1/models", deadline))?;
    // The first is the model itself, those after it are adapters.
    let card = models.data.into_iter().next();
    let card = card.ok_or(ScoringError::Answer("names no model"))?;
    Ok(EngineIdentity {
        version: format!("vllm {}", said.version),
        fingerprint: card.root.unwrap_or_default(),
        model: card.id,
        dtype: String::new(),
        longest: card.max_model_len.saturating_sub(BEHIND),
    })
}
