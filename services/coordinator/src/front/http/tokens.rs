//! `/tokenize` and `/detokenize`: text into a model's tokens and back; `/tokenizer_info`: what its files call things.

use axum::body::Bytes;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::{Extension, Json};
use fleet::Target;
use serde::Deserialize;
use serde_json::{Value, json};
use tonic::Status;
use wire::status::BadField;

use super::error::ApiError;
use super::fields::JsonFields;
use super::guard::Caller;
use super::state::HttpState;
use crate::front::memory::off_async_threads;
use crate::limits::{MAX_REQUEST_BYTES, MAX_TOKENIZED};
use crate::request::check_bytes;

/// The query of `/tokenizer_info`.
#[derive(Deserialize)]
pub(super) struct ModelQuery {
    /// The first model served if it is left out.
    #[serde(default)]
    model: String,
}

/// Returns the chat template and the names of special tokens; null for what the tokenizer does not have.
pub(super) async fn info(
    State(state): State<HttpState>,
    query: Result<Query<ModelQuery>, QueryRejection>,
) -> Result<Json<Value>, ApiError> {
    let rejected = |error: QueryRejection| ApiError::http(error.status(), error.body_text());
    let Query(query) = query.map_err(rejected)?;
    let text = state
        .shared
        .target_in_time(state.model(&query.model)?)
        .await?
        .text;
    let part = text.part();
    let known = |name: &str| (!name.is_empty()).then(|| name.to_owned());
    Ok(Json(json!({
        "tokenizer_class": "outrider",
        "chat_template": known(&part.chat_template),
        "bos_token": known(&part.bos_token),
        "eos_token": known(&part.eos_token),
    })))
}

/// Returns the tokens of `prompt`, also where they are more than the model's context holds.
pub(super) async fn tokenize(
    State(state): State<HttpState>,
    caller: Extension<Caller>,
    body: Bytes,
) -> Result<Json<Value>, ApiError> {
    let read = |body: &[u8]| {
        let mut fields = JsonFields::of_body(body)?;
        let model: String = fields.take("model")?.unwrap_or_default();
        let prompt: Option<String> = fields.take("prompt")?;
        let with_special = fields.take("add_special_tokens")?.unwrap_or(true);
        fields.finish()?;
        let prompt = prompt.ok_or_else(|| BadField::new("prompt", "missing"))?;
        Ok((model, prompt, with_special))
    };
    let ((model, prompt, with_special), reading) = state.read(body, read).await?;
    let model = state.model(&model)?;
    // It takes a place among the requests: a long text keeps a processor busy for seconds. The work has the place, as
    // it goes on if the client leaves.
    let place = state.shared.admission.admit(caller.as_ref(), 1)?;
    let Target {
        description, text, ..
    } = state.shared.target_in_time(model).await?;
    let context_len = description.context_len;
    check_bytes(prompt.len(), context_len)?;
    let most = most_tokens(context_len);
    let tokenizing = state.shared.tokenizing.clone();
    let encode = move || -> Result<Vec<u32>, Status> {
        let _places = (place, reading);
        let _room = tokenizing.room(text.encoding_bytes(&prompt))?;
        let tokens = text.tokens(&prompt, with_special, most);
        let tokens = tokens.map_err(|problem| BadField::new("prompt", problem))?;
        if tokens.len() > most {
            let problem = format!("more than {most} tokens, expected at most {most}");
            return Err(BadField::new("prompt", problem).into());
        }
        Ok(tokens)
    };
    let tokens = off_async_threads(encode).await?;
    let count = tokens.len();
    Ok(Json(
        json!({ "tokens": tokens, "count": count, "max_model_len": context_len }),
    ))
}

/// Returns the text of `tokens`.
pub(super) async fn detokenize(
    State(state): State<HttpState>,
    caller: Extension<Caller>,
    body: Bytes,
) -> Result<Json<Value>, ApiError> {
    let read = |body: &[u8]| {
        let mut fields = JsonFields::of_body(body)?;
        let model: String = fields.take("model")?.unwrap_or_default();
        let tokens: Option<Vec<u32>> = fields.take("tokens")?;
        fields.finish()?;
        let tokens = tokens.ok_or_else(|| BadField::new("tokens", "missing"))?;
        Ok((model, tokens))
    };
    let ((model, tokens), reading) = state.read(body, read).await?;
    let model = state.model(&model)?;
    let place = state.shared.admission.admit(caller.as_ref(), 1)?;
    let Target {
        description, text, ..
    } = state.shared.target_in_time(model).await?;
    let most = most_tokens(description.context_len);
    BadField::at_most("tokens", tokens.len(), most, "tokens")?;
    BadField::in_vocabulary("tokens", &tokens, description.vocab_size)?;
    let decode = move || -> Result<String, Status> {
        let _places = (place, reading);
        text.text_within(&tokens, MAX_REQUEST_BYTES).ok_or_else(|| {
            let problem = format!("their text has more than {MAX_REQUEST_BYTES} bytes");
            BadField::new("tokens", problem).into()
        })
    };
    let text = off_async_threads(decode).await?;
    Ok(Json(json!({ "prompt": text })))
}

/// Returns the most tokens of one call: what can be sent as a prompt, and more for a model whose context is short.
fn most_tokens(context_len: u32) -> usize {
    MAX_TOKENIZED.max(context_len as usize)
}
