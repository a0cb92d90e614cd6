//! What SGLang says of itself and its model.

use std::time::Instant;

use serde::Deserialize;
use serde_json::json;

use super::{ROUTE, Sglang};
use crate::engine::{Engine, EngineIdentity, ModelSizes};
use crate::error::ScoringError;
use crate::http::{EngineConnection, HttpCall};
use crate::sglang::body::GREEDY;

/// A token that no vocabulary has. The refusal tells how many there are.
const NO_TOKEN: u32 = i32::MAX as u32;

#[derive(Debug, Deserialize)]
struct ServerInfo {
    version: String,
    #[serde(default)]
    model_path: String,
    #[serde(default)]
    served_model_name: String,
    weight_version: Option<String>,
    dtype: Option<String>,
    quantization: Option<String>,
    kv_cache_dtype: Option<String>,
    /// Tokens of an input are fewer.
    max_req_input_len: usize,
}

/// Asks the server at the other end of `connection` what it is, and returns it.
///
/// # Errors
/// If it does not say what is needed, or has rows of another length than `row_len`: a token beyond its own would end
/// it.
pub(crate) fn probe(
    connection: EngineConnection,
    row_len: usize,
    deadline: Instant,
) -> Result<Engine, ScoringError> {
    let identity = identity(&connection, deadline)?;
    let call = HttpCall::to_ask(ROUTE, deadline);
    let no_token = json!({
        "input_ids": [0],
        "sampling_params": GREEDY,
        "return_logprob": true,
        "token_ids_logprob": [NO_TOKEN],
    });
    let words = connection.refusal(call, &no_token)?;
    let words = words.ok_or(ScoringError::Answer("was expected to be a refusal"))?;
    let found = length_in(&words).ok_or(ScoringError::Answer(
        "does not tell the length of its rows: it is of a version that is not known here",
    ))?;
    if found != row_len {
        return Err(ScoringError::Rows {
            found,
            expected: row_len,
        });
    }
    let model = ModelSizes {
        vocab_size: row_len,
        context_len: identity.longest + 1,
    };
    // A valid request, except that `extra_key` is no text: only a server that knows the field refuses it.
    let no_key = json!({
        "input_ids": [0],
        "sampling_params": GREEDY,
        "return_logprob": true,
        "logprob_start_len": 0,
        "top_logprobs_num": 1,
        "extra_key": [[0]],
    });
    let knows_keys = connection.refusal(call, &no_key)?.is_some();
    Ok(Engine {
        scoring: Box::new(Sglang::new(connection, model, knows_keys)),
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
    let info: ServerInfo = connection.get(HttpCall::to_ask("/server_info", deadline))?;
    let parts = [
        &info.weight_version,
        &info.quantization,
        &info.kv_cache_dtype,
    ];
    let details = parts.map(|part| part.as_deref().unwrap_or("none"));
    Ok(EngineIdentity {
        version: format!("sglang {}", info.version),
        model: info.served_model_name,
        fingerprint: format!("{} {}", info.model_path, details.join(" ")),
        dtype: info.dtype.unwrap_or_default(),
        longest: info.max_req_input_len.saturating_sub(1),
    })
}

/// Returns N of "valid range is [0, N)".
fn length_in(words: &str) -> Option<usize> {
    let (_, rest) = words.split_once("valid range is [0, ")?;
    rest.split_once(')')?.0.trim().parse().ok()
}
