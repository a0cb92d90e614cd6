//! What SGLang says of itself and its model.

use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::{ROUTE, Sglang};
use crate::engine::{self, Engine, Identity, ServedModel};
use crate::error::EngineError;
use crate::http::{Call, Connection};
use crate::sglang::body::{GREEDY, SamplingParams};

/// A token that no vocabulary has. The refusal tells how many there are.
const NO_TOKEN: u32 = i32::MAX as u32;

#[derive(Debug, Deserialize)]
struct ServerInfo {
    version: String,
    #[serde(default)]
    model_path: String,
    #[serde(default)]
    served_model_name: String,
    #[serde(default)]
    weight_version: Option<String>,
    #[serde(default)]
    dtype: Option<String>,
    #[serde(default)]
    quantization: Option<String>,
    #[serde(default)]
    kv_cache_dtype: Option<String>,
    /// Tokens of an input are fewer.
    max_req_input_len: usize,
}

/// A valid request, except that `extra_key` is no text: only a server that knows the field refuses it.
#[derive(Debug, Serialize)]
struct NoKey {
    input_ids: [u32; 1],
    sampling_params: SamplingParams,
    return_logprob: bool,
    logprob_start_len: usize,
    top_logprobs_num: usize,
    extra_key: [[u32; 1]; 1],
}

#[derive(Debug, Serialize)]
struct Refused {
    input_ids: [u32; 1],
    sampling_params: SamplingParams,
    return_logprob: bool,
    token_ids_logprob: [u32; 1],
}

/// The server at the other end of `connection`.
///
/// # Errors
/// If it does not say what is needed, or has rows of another length than `row_len`: a token beyond its own would end
/// it.
pub(crate) fn probe(
    connection: Connection,
    row_len: usize,
    deadline: Instant,
) -> Result<Engine, EngineError> {
    let identity = identity(&connection, deadline)?;
    let refused = Refused {
        input_ids: [0],
        sampling_params: GREEDY,
        return_logprob: true,
        token_ids_logprob: [NO_TOKEN],
    };
    let call = Call {
        path: ROUTE,
        ..engine::call("", deadline)
    };
    let words = connection.refused(call, &refused)?;
    let found = length_in(&words).ok_or(EngineError::Answer(
        "does not tell the length of its rows: it is of a version that is not known here",
    ))?;
    if found != row_len {
        return Err(EngineError::Rows {
            found,
            expected: row_len,
        });
    }
    let model = ServedModel {
        vocab_size: row_len,
        context_len: identity.longest + 1,
    };
    let no_key = NoKey {
        input_ids: [0],
        sampling_params: GREEDY,
        return_logprob: true,
        logprob_start_len: 0,
        top_logprobs_num: 1,
        extra_key: [[0]],
    };
    let knows_keys = connection.refuses(call, &no_key)?;
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
    connection: &Connection,
    deadline: Instant,
) -> Result<Identity, EngineError> {
    let info: ServerInfo = connection.get(engine::call("/server_info", deadline))?;
    let parts = [
        &info.weight_version,
        &info.quantization,
        &info.kv_cache_dtype,
    ];
    let details = parts.map(|part| part.as_deref().unwrap_or("none"));
    Ok(Identity {
        version: format!("sglang {}", info.version),
        model: info.served_model_name,
        fingerprint: format!("{} {}", info.model_path, details.join(" ")),
        dtype: info.dtype.unwrap_or_default(),
        longest: info.max_req_input_len.saturating_sub(1),
    })
}

/// N of "valid range is [0, N)".
fn length_in(words: &str) -> Option<usize> {
    let (_, rest) = words.split_once("valid range is [0, ")?;
    rest.split_once(')')?.0.trim().parse().ok()
}
