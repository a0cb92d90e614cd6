//! `/tokenize` and `/detokenize`: text into a model's tokens and back; `/tokenizer_info`: what its files call things.

use axum::body::Bytes;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::{Extension, Json};
use serde::Deserialize;
use serde_json::{Value, json};
use wire::status::BadField;

use super::error::ApiError;
use super::fields::Fields;
use super::guard::Caller;
use super::state::Front;
use crate::front::prepare::target;

/// The query of `/tokenizer_info`.
#[derive(Deserialize)]
pub(super) struct Of {
    /// The first model served if it is left out.
    #[serde(default)]
    model: String,
}

/// The chat template and the names of special tokens; null for what the tokenizer does not have.
pub(super) async fn info(
    State(front): State<Front>,
    of: Result<Query<Of>, QueryRejection>,
) -> Result<Json<Value>, ApiError> {
    let rejected = |error: QueryRejection| ApiError::http(error.status(), error.body_text());
    let Query(of) = of.map_err(rejected)?;
    let text = target(front.shared.model(&of.model)?, &[0; 16]).await?.text;
    let names = text.names();
    let known = |name: &str| (!name.is_empty()).then(|| name.to_owned());
    Ok(Json(json!({
        "tokenizer_class": "outrider",
        "chat_template": known(&names.chat_template),
        "bos_token": known(&names.bos_token),
        "eos_token": known(&names.eos_token),
    })))
}

/// The tokens of `prompt`.
pub(super) async fn tokenize(
    State(front): State<Front>,
    caller: Extension<Caller>,
    body: Bytes,
) -> Result<Json<Value>, ApiError> {
    let mut fields = Fields::of_body(&body)?;
    let model: String = fields.take("model")?.unwrap_or_default();
    let prompt: Option<String> = fields.take("prompt")?;
    let with_special = fields.take("add_special_tokens")?.unwrap_or(true);
    fields.finish()?;
    let prompt = prompt.ok_or_else(|| BadField::new("prompt", "missing"))?;
    let model = front.shared.model(&model)?;
    let target = target(model, &[0; 16]).await?;
    let text = target.text;
    // It takes a place among the requests: a long text keeps a processor busy for seconds.
    let _permit = front.shared.admission.admit(caller.client.as_ref())?;
    // A long text would hold up every stream of an async thread.
    let encoding = tokio::task::spawn_blocking(move || text.tokens(prompt, with_special));
    let encoded = encoding
        .await
        .unwrap_or_else(|error| Err(error.to_string()));
    let tokens = encoded.map_err(|problem| BadField::new("prompt", problem))?;
    Ok(Json(json!({
        "tokens": tokens,
        "count": tokens.len(),
        "max_model_len": target.description.context_len,
    })))
}

/// The text of `tokens`.
pub(super) async fn detokenize(
    State(front): State<Front>,
    caller: Extension<Caller>,
    body: Bytes,
) -> Result<Json<Value>, ApiError> {
    let mut fields = Fields::of_body(&body)?;
    let model: String = fields.take("model")?.unwrap_or_default();
    let tokens: Option<Vec<u32>> = fields.take("tokens")?;
    fields.finish()?;
    let tokens = tokens.ok_or_else(|| BadField::new("tokens", "missing"))?;
    let model = front.shared.model(&model)?;
    let text = target(model, &[0; 16]).await?.text;
    let _permit = front.shared.admission.admit(caller.client.as_ref())?;
    let decoding = tokio::task::spawn_blocking(move || text.text_of(&tokens));
    let text = decoding.await.unwrap_or_default();
    Ok(Json(json!({ "prompt": text })))
}
