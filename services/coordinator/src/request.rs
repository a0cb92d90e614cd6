//! A client's request, checked: what the rest of the coordinator works with.

use std::sync::Arc;
use std::time::Duration;

use speculation::TokenId;
use speculation::methods::{self, Method};
use speculation::noise::Noise;
use speculation::sampling::SamplingParams;
use speculation::session::{Plan, SessionConfig};
use wire::status::BadField;
use wire::v1::generate_request::Prompt;
use wire::{open, proposal, sampling, v1};

use crate::config::{CoordinatorConfig, MAX_DRAFT_LEN};
use crate::peers::Group;
use crate::text::ServedText;

/// Output tokens where a request does not say.
const DEFAULT_MAX_TOKENS: u32 = 256;
/// Most stop strings.
const MAX_STOPS: usize = 16;
/// Longest stop string, in bytes.
const MAX_STOP_BYTES: usize = 256;
/// Most further end tokens; the model's own come on top.
const MAX_STOP_TOKENS: usize = 62;

/// More than any token stands for on average.
const MAX_BYTES_PER_TOKEN: usize = 256;

/// A request in range.
pub(crate) struct CheckedRequest {
    pub(crate) group: Arc<Group>,
    pub(crate) text: Arc<ServedText>,
    pub(crate) method: &'static Method,
    pub(crate) prompt: Vec<TokenId>,
    pub(crate) sampling: SamplingParams,
    pub(crate) seed: u64,
    pub(crate) choice: u32,
    pub(crate) max_tokens: u32,
    pub(crate) draft_len: u32,
    pub(crate) stops: Vec<String>,
    pub(crate) ignore_eos: bool,
    /// From when the request came in.
    pub(crate) timeout: Duration,
    pub(crate) report_rounds: bool,
    pub(crate) lease_ms: u32,
    pub(crate) vocab_size: u32,
}

impl CheckedRequest {
    /// Checks `request` against the model it asks for.
    ///
    /// # Errors
    /// Names the first field that is missing, out of range, or not carried out by this version.
    pub(crate) fn new(
        request: v1::GenerateRequest,
        group: Arc<Group>,
        text: Arc<ServedText>,
        config: &CoordinatorConfig,
    ) -> Result<Self, BadField> {
        refuse_what_is_reserved(&request)?;
        let method = methods::find(&request.method)
            .map_err(|error| BadField::new("method", after_colon(&error.to_string())))?;
        if method.plan == Plan::DraftOnly && !group.has_drafters() {
            let problem = format!(
                "'{}' needs a drafter, model '{}' has none",
                method.name,
                group.name()
            );
            return Err(BadField::new("method", problem));
        }
        let vocab_size = text.target.vocab_size;
        let prompt = prompt_tokens(request.prompt, &text)?;
        let max_tokens = max_tokens(request.max_tokens, prompt.len(), text.target.context_len)?;
        let draft_len = request.draft_len.unwrap_or(config.draft_len.get());
        in_range("draft_len", draft_len, 1, MAX_DRAFT_LEN)?;
        // What the verifier takes is a matter of its configuration, and shorter drafts change nothing
        // but speed.
        let limits = text.target.limits.unwrap_or_default();
        let draft_len = draft_len.min(limits.max_draft_tokens.max(1));
        in_range("choice", request.choice, 0, Noise::MAX_CHOICE)?;
        check_stops(&request.stop)?;
        if request.stop_token_ids.len() > MAX_STOP_TOKENS {
            let found = request.stop_token_ids.len();
            let problem = format!("{found} tokens, expected at most {MAX_STOP_TOKENS}");
            return Err(BadField::new("stop_token_ids", problem));
        }
        let mut end_tokens = request.stop_token_ids;
        if !request.ignore_eos {
            end_tokens.extend_from_slice(&text.target.eos_token_ids);
        }
        Ok(Self {
            method,
            prompt,
            sampling: sampling::from_wire(request.sampling, end_tokens, vocab_size)?,
            seed: request.seed.unwrap_or_else(random_seed),
            choice: request.choice,
            max_tokens,
            draft_len,
            stops: request.stop,
            ignore_eos: request.ignore_eos,
            timeout: timeout(request.timeout_ms, config)?,
            report_rounds: request.report_rounds,
            lease_ms: config.lease_ms.get(),
            vocab_size,
            group,
            text,
        })
    }

    /// What the session needs to know.
    pub(crate) fn session_config(&self, config: &CoordinatorConfig) -> SessionConfig {
        // Without drafters there is nothing to speculate with, and nothing to report as lost.
        let plan = match self.method.plan {
            Plan::Speculative if !self.group.has_drafters() => Plan::TargetOnly,
            plan => plan,
        };
        SessionConfig {
            end_tokens: self.sampling.end_tokens.clone(),
            round_timeout: config.round_timeout(),
            draft_timeout: config.draft_timeout(),
            retries: config.retries,
            last_resort_retries: config.verifier_retries,
            deadline: Some(self.timeout),
            ..SessionConfig::new(plan, self.draft_len, self.max_tokens, self.vocab_size)
        }
    }

    /// What a session at a peer is opened with.
    pub(crate) fn open(&self, session_id: [u8; 16], epoch: u32, model: &str) -> v1::Open {
        let form = self.method.proposal_form(self.sampling.temperature);
        let (proposal_form, proposal_top) = proposal::form_to_wire(form);
        v1::Open {
            session_id: session_id.to_vec(),
            epoch,
            model: model.to_owned(),
            prompt_token_ids: self.prompt.clone(),
            sampling: Some(sampling::to_wire(&self.sampling)),
            seed: self.seed,
            choice: self.choice,
            end_token_ids: self.sampling.end_tokens.clone(),
            ignore_eos: self.ignore_eos,
            vocab_size: self.vocab_size,
            vocab_fingerprint: self.text.target.vocab_fingerprint.clone(),
            lease_ms: self.lease_ms,
            verification: open::verification_to_wire(self.method.verification).into(),
            proposal_form: proposal_form.into(),
            proposal_top,
            accept_at: v1::AcceptAt::Verifier.into(),
            ..Default::default()
        }
    }
}

fn refuse_what_is_reserved(request: &v1::GenerateRequest) -> Result<(), BadField> {
    let refused = |field| Err(BadField::new(field, "not carried out by this version"));
    if request.logprobs || request.top_logprobs > 0 {
        return refused("logprobs");
    }
    if open::accepts_at_coordinator(request.accept_at)? {
        return refused("accept_at");
    }
    if request.target.is_some() {
        return refused("target");
    }
    if request.verification != 0 {
        return Err(BadField::new(
            "verification",
            "not carried out by this version, choose a method",
        ));
    }
    Ok(())
}

/// An error's text without the field name it begins with.
fn after_colon(message: &str) -> &str {
    message.split_once(": ").map_or(message, |(_, rest)| rest)
}

fn in_range(field: &str, value: u32, least: u32, most: u32) -> Result<(), BadField> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(BadField::new(
        field,
        format!("{value} is out of range, expected {least} to {most}"),
    ))
}

fn prompt_tokens(prompt: Option<Prompt>, text: &ServedText) -> Result<Vec<TokenId>, BadField> {
    let empty = || BadField::new("prompt", "empty, expected at least one token");
    let tokens = match prompt {
        None => return Err(empty()),
        Some(Prompt::Text(prompt)) if prompt.is_empty() => return Err(empty()),
        Some(Prompt::Text(prompt)) => {
            check_bytes(prompt.len(), text.target.context_len)?;
            let encoded = text.tokenizer.encode_fast(prompt, true);
            encoded
                .map_err(|error| BadField::new("prompt", error.to_string()))?
                .get_ids()
                .to_vec()
        }
        Some(Prompt::TokenIds(tokens)) => tokens.ids,
    };
    if tokens.is_empty() {
        return Err(empty());
    }
    let vocab_size = text.target.vocab_size;
    if let Some(token) = tokens.iter().find(|&&token| token >= vocab_size) {
        let problem = format!("token id {token} is out of range, the vocabulary has {vocab_size}");
        return Err(BadField::new("prompt", problem));
    }
    Ok(tokens)
}

/// Refuses at sight what cannot fit: turning it into tokens first would take long.
fn check_bytes(bytes: usize, context_len: u32) -> Result<(), BadField> {
    let most = (context_len as usize).saturating_mul(MAX_BYTES_PER_TOKEN);
    if bytes <= most {
        return Ok(());
    }
    let problem = format!("{bytes} bytes cannot fit the model's context of {context_len} tokens");
    Err(BadField::new("prompt", problem))
}

fn max_tokens(asked: Option<u32>, prompt_len: usize, context_len: u32) -> Result<u32, BadField> {
    let left = (context_len as usize).saturating_sub(prompt_len) as u32;
    if left == 0 {
        let problem =
            format!("{prompt_len} tokens, the model's context holds {context_len} with the output");
        return Err(BadField::new("prompt", problem));
    }
    let max_tokens = asked.unwrap_or(DEFAULT_MAX_TOKENS.min(left));
    if max_tokens == 0 || max_tokens > left {
        let problem = format!(
            "{max_tokens} is out of range, expected 1 to {left} \
             (a context of {context_len} less {prompt_len} prompt tokens)"
        );
        return Err(BadField::new("max_tokens", problem));
    }
    Ok(max_tokens)
}

fn check_stops(stops: &[String]) -> Result<(), BadField> {
    if stops.len() > MAX_STOPS {
        let problem = format!("{} texts, expected at most {MAX_STOPS}", stops.len());
        return Err(BadField::new("stop", problem));
    }
    match stops
        .iter()
        .find(|stop| stop.is_empty() || stop.len() > MAX_STOP_BYTES)
    {
        None => Ok(()),
        Some(stop) => {
            let problem = format!(
                "a text of {} bytes, expected 1 to {MAX_STOP_BYTES}",
                stop.len()
            );
            Err(BadField::new("stop", problem))
        }
    }
}

fn timeout(asked_ms: u32, config: &CoordinatorConfig) -> Result<Duration, BadField> {
    let longest = config.request_timeout();
    let asked = Duration::from_millis(asked_ms.into());
    if asked > longest {
        let problem = format!(
            "{asked_ms} is out of range, expected at most {}",
            longest.as_millis()
        );
        return Err(BadField::new("timeout_ms", problem));
    }
    Ok(if asked.is_zero() { longest } else { asked })
}

/// A seed nobody chose. It is reported, so that the request can be repeated.
fn random_seed() -> u64 {
    // Without a source of entropy the time still tells requests apart.
    getrandom::u64().unwrap_or_else(|_| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.map_or(0, |since| since.as_nanos() as u64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn max_tokens_must_fit_the_context() {
        assert_eq!(max_tokens(None, 12, 512), Ok(256));
        assert_eq!(max_tokens(None, 500, 512), Ok(12));
        assert_eq!(max_tokens(Some(500), 12, 512), Ok(500));
        let error = max_tokens(Some(501), 12, 512)
            .expect_err("too many")
            .to_string();
        assert!(
            error.contains("501") && error.contains("1 to 500"),
            "{error}"
        );
        assert_eq!(
            max_tokens(Some(0), 12, 512).expect_err("none").field,
            "max_tokens"
        );
        let error = max_tokens(None, 512, 512).expect_err("no room");
        assert_eq!(error.field, "prompt");
        assert!(error.to_string().contains("512"), "{error}");
    }

    #[test]
    fn what_cannot_fit_is_refused_at_sight() {
        assert!(check_bytes(512 * 256, 512).is_ok());
        assert_eq!(
            check_bytes(512 * 256 + 1, 512).expect_err("too long").field,
            "prompt"
        );
    }

    #[test]
    fn stops_are_bounded() {
        assert!(check_stops(&["a".to_owned()]).is_ok());
        assert!(check_stops(&vec!["a".to_owned(); 17]).is_err());
        assert!(check_stops(&[String::new()]).is_err());
        assert!(check_stops(&["a".repeat(257)]).is_err());
    }
}
