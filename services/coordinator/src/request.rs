//! A client's request, checked against the model that it asks for.

mod calls;
pub(crate) mod limits;
mod method;
mod prompt;

use std::sync::Arc;
use std::time::Duration;

use fleet::{
    Beginning, DrafterRequirements, Requirements, ServedModel, Target, VerifierRequirements,
};
use speculation::drafting::Drafting;
use speculation::noise::Noise;
use wire::bounds::MAX_STOP_TOKENS;
use wire::open::{MAX_SALT_BYTES, MAX_TENANT_BYTES, reuse_scope};
use wire::status::BadField;
use wire::{logprobs, sampling, settings, v1};

use crate::admitted::AdmittedRequest;
use crate::config::CoordinatorConfig;
use crate::limits::MAX_PREDICTION_BYTES;
use limits::{check_stops, max_tokens, timeout};

pub(crate) use calls::Calls;
pub(crate) use limits::distribution_bytes;
pub(crate) use method::UsualSettings;
pub(crate) use prompt::{PromptInput, check_bytes};

/// What holds where a request does not say.
#[derive(Clone, Debug)]
pub(crate) struct Unasked {
    /// Most tokens of its output.
    pub(crate) max_tokens: u32,
    /// Settings of drafting, used where the request does not give them.
    pub(crate) settings: UsualSettings,
    /// Whether it is left open who drafts, so that several may at once.
    pub(crate) leaves_drafting_open: bool,
    /// Whether the request says who drafts, and so is drafted for whether that pays or not.
    pub(crate) names_drafting: bool,
}

/// Checks `request`, of which `prompt` and `calls` were taken, against `model`, whose target describes itself so.
///
/// # Errors
/// Names the first field that is missing, out of range, or not carried out by this version.
pub(crate) fn check(
    mut request: v1::GenerateRequest,
    prompt: PromptInput,
    mut calls: Calls,
    model: &ServedModel,
    target: &Target,
    config: &CoordinatorConfig,
    unasked: &Unasked,
) -> Result<AdmittedRequest, BadField> {
    if request.method.is_empty() {
        request.method.clone_from(&config.method);
    }
    // A longer name would be refused by the peers.
    BadField::at_most("tenant", request.tenant.len(), MAX_TENANT_BYTES, "bytes")?;
    let salt = request.cache_salt.len();
    BadField::at_most("cache_salt", salt, MAX_SALT_BYTES, "bytes")?;
    let description = &target.description;
    let vocab_size = description.vocab_size;
    let predicted = request.prediction.len();
    BadField::at_most("prediction", predicted, MAX_PREDICTION_BYTES, "bytes")?;
    let prompt = prompt.tokens(target)?;
    let least = u32::from(!request.prompt_logprobs);
    let requested = request.max_tokens;
    let max_tokens = max_tokens(
        requested,
        prompt.len(),
        least,
        unasked.max_tokens,
        description,
    )?;
    let max_tokens = limits::allowed_tokens(max_tokens, requested.is_some(), config)?;
    let spec = settings::from_wire(&request)?;
    let limits = description.limits.unwrap_or_default();
    let most_drafts = limits.max_draft_tokens.max(1);
    BadField::in_range("choice", request.choice, 0..=Noise::MAX_CHOICE)?;
    check_stops(&request.stop)?;
    let stop_tokens = request.stop_token_ids.len();
    BadField::at_most("stop_token_ids", stop_tokens, MAX_STOP_TOKENS, "tokens")?;
    let mut end_tokens = request.stop_token_ids.clone();
    if !request.ignore_eos {
        end_tokens.extend_from_slice(&description.eos_token_ids);
    }
    let params = sampling::from_wire(request.sampling.clone(), end_tokens, vocab_size);
    let mut params = params.map_err(as_clients_name_it)?;
    limits::check_min_tokens(params.min_tokens, max_tokens)?;
    limits::check_grammar(&params, request.ignore_eos, target)?;
    calls.constrain(&mut params, request.ignore_eos, target)?;
    let reports = request.report_distributions;
    let method = method::choose(&spec, reports, &params, model, config, &unasked.settings)?;
    let logprobs = logprobs::wanted(request.logprobs, request.top_logprobs)?;
    limits::check_logprobs(&method, logprobs)?;
    limits::check_prompt_logprobs(request.prompt_logprobs, logprobs, description)?;
    let draft_len = method::draft_levels(&method, most_drafts, config)?;
    limits::check_window(&method, most_drafts)?;
    limits::check_message(&method, draft_len, vocab_size, request.report_distributions)?;
    let copies = unasked.leaves_drafting_open || method.drafting == Drafting::MaxGram;
    let prediction = if method.streams() {
        prompt::predicted(&request.prediction, target)?
    } else {
        if !request.prediction.is_empty() {
            (calls.warnings).push(prompt::not_streamed(&method));
        }
        Arc::default()
    };
    let scope = match request.cache_prompt {
        Some(false) => String::new(),
        _ => reuse_scope(request.tenant, &request.cache_salt),
    };
    Ok(AdmittedRequest {
        model: model.name().to_owned(),
        has_drafters: model.has_drafters(),
        requirements: Requirements {
            drafter: DrafterRequirements::of(&method),
            verifier: VerifierRequirements::of(&method, &params),
        },
        draft_model: None,
        is_reproducible: method.is_reproducible() && !description.rows_vary,
        method,
        beginning: Beginning::of(&scope, &prompt),
        prompt,
        decoder_start_token_id: description.decoder_start_token_id,
        sampling: params,
        seed: request.seed.unwrap_or_else(random_seed),
        choice: request.choice,
        max_tokens,
        draft_len,
        reading: calls.reading(!request.messages.is_empty()),
        warnings: calls.warnings,
        stops: request.stop,
        ignore_eos: request.ignore_eos,
        timeout: timeout(request.timeout_ms, config)?,
        draft_timeout: Duration::from_millis(config.draft_timeout_ms.get()),
        tokens_ahead: match logprobs {
            Some(_) => config.decode_ahead_logprobs.get(),
            None => config.decode_ahead.get(),
        },
        scores_ahead: config.decode_ahead.get(),
        logprobs,
        prompt_logprobs: request.prompt_logprobs,
        prediction,
        copies,
        drafts_always: unasked.names_drafting,
        report_rounds: request.report_rounds || request.report_distributions,
        report_distributions: request.report_distributions,
        lease_ms: config.lease_ms.get(),
        vocab_size,
        vocab_fingerprint: description.vocab_fingerprint.clone(),
        reuse_scope: scope,
    })
}

/// Peers are told all tokens that end the output in one list, clients ask for theirs in another.
fn as_clients_name_it(mut bad: BadField) -> BadField {
    if bad.field == "end_token_ids" {
        "stop_token_ids".clone_into(&mut bad.field);
    }
    bad
}

/// Returns a seed nobody chose, below 2^53. It is reported, so that the request can be repeated; readers of JSON that
/// take numbers for doubles do not change it.
pub(crate) fn random_seed() -> u64 {
    // Without a source of entropy the time still tells requests apart.
    let drawn = getrandom::u64().unwrap_or_else(|_| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.map_or(0, |since| (since.as_nanos() as u64).rotate_left(32))
    });
    drawn >> 11
}
