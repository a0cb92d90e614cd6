//! What vLLM says of itself and its model, and which of its routes can be used.

use std::time::Instant;

use serde::{Deserialize, Serialize};
use speculation::TokenId;

use super::{Vllm, VllmCompletions};
use crate::engine::{self, Engine, Identity, ScoringEngine, ServedModel};
use crate::error::EngineError;
use crate::http::{Call, Connection};
use crate::request::{Scoring, Sequence};

/// Tokens that a request needs room for after its sequence: the one that is appended, and the one that is generated.
const BEHIND: usize = 2;

#[derive(Debug, Deserialize)]
struct Version {
    version: String,
}

#[derive(Debug, Deserialize)]
struct Models {
    data: Vec<Card>,
}

#[derive(Debug, Deserialize)]
struct Card {
    id: String,
    #[serde(default)]
    root: Option<String>,
    max_model_len: usize,
}

#[derive(Debug, Serialize)]
struct Text<'a> {
    model: &'a str,
    prompt: &'a str,
}

#[derive(Debug, Deserialize)]
struct Tokens {
    tokens: Vec<TokenId>,
}

/// The server at the other end of `connection`, by the best of its routes.
///
/// # Errors
/// If it does not say what is needed, or gives no whole rows of `row_len` tokens.
pub(crate) fn probe(
    connection: Connection,
    row_len: usize,
    deadline: Instant,
) -> Result<Engine, EngineError> {
    let identity = identity(&connection, deadline)?;
    let model = ServedModel {
        vocab_size: row_len,
        context_len: identity.longest + BEHIND,
    };
    let name = identity.model.clone();
    let given = Vllm::new(connection, name.clone(), model);
    let scoring: Box<dyn ScoringEngine> = match try_rows(&given, 1, &[0], deadline) {
        Ok(()) => Box::new(given),
        Err(EngineError::NotOffered(_) | EngineError::Status(404)) => {
            Box::new(VllmCompletions::new(given.into_connection(), name, model))
        }
        Err(error) => return Err(error),
    };
    // A row of another length, or fewer entries than were asked for, is an error.
    try_rows(&*scoring, row_len, &[], deadline)?;
    Ok(Engine { scoring, identity })
}

/// Asks the server what it serves.
///
/// # Errors
/// If it does not before `deadline`.
pub(super) fn identity(
    connection: &Connection,
    deadline: Instant,
) -> Result<Identity, EngineError> {
    let said: Version = connection.get(engine::call("/version", deadline))?;
    let models: Models = connection.get(engine::call("/v1/models", deadline))?;
    // The first is the model itself, those after it are adapters.
    let card = models.data.into_iter().next();
    let card = card.ok_or(EngineError::Answer("names no model"))?;
    Ok(Identity {
        version: format!("vllm {}", said.version),
        fingerprint: card.root.unwrap_or_default(),
        model: card.id,
        dtype: String::new(),
        longest: card.max_model_len.saturating_sub(BEHIND),
    })
}

/// Asks for the row after one token.
fn try_rows(
    engine: &dyn ScoringEngine,
    top: usize,
    asked: &[TokenId],
    deadline: Instant,
) -> Result<(), EngineError> {
    let sequence = Sequence {
        tokens: &[0],
        committed: 1,
        asked: &[asked.to_vec()],
        salt: "",
    };
    let scoring = Scoring {
        sequences: &[sequence],
        top,
    };
    engine.score(&scoring, deadline).map(drop)
}

pub(super) fn tokens_of(
    connection: &Connection,
    model: &str,
    text: &str,
    deadline: Instant,
) -> Result<Vec<TokenId>, EngineError> {
    let text = Text {
        model,
        prompt: text,
    };
    let answer: Tokens = connection.post(engine::call("/tokenize", deadline), &text)?;
    Ok(answer.tokens)
}

pub(super) fn is_well(connection: &Connection, deadline: Instant) -> Result<(), EngineError> {
    connection.is_answered(Call {
        path: "/health",
        longest: 0,
        deadline,
        not_offered: &[],
    })
}
