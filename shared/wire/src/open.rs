//! What a session is opened with, checked.

use std::sync::Arc;

use prost::bytes::Buf as _;
use sha2::{Digest, Sha256};
use speculation::TokenId;
use speculation::bad_value::BadValue;
use speculation::certificate::refusal::{self, RowRefusal};
use speculation::noise::Noise;
use speculation::proposal::ProposalForm;
use speculation::sampling::SamplingParams;
use speculation::target::TargetDistribution;
use speculation::verification::Verification;

pub use crate::proposal::ProposalFields;
use crate::status::BadField;
use crate::{describe, logprobs, proposal, sampling, target, v1};

/// Everything a peer must know of a session to rebuild it from nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionSpec {
    /// Name of the session.
    pub id: [u8; 16],
    /// The prompt, never empty.
    pub prompt: Vec<TokenId>,
    /// First token of the decoder's input, of an encoder-decoder model.
    pub decoder_start_token_id: Option<TokenId>,
    /// How tokens are drawn.
    pub sampling: Arc<SamplingParams>,
    /// The noise of the request.
    pub noise: Noise,
    /// Token ids are below this.
    pub vocab_size: u32,
    /// Fingerprint of the vocabulary; empty if it was not said.
    pub vocab_fingerprint: Vec<u8>,
    /// How blocks are verified.
    pub verification: Verification,
    /// What is sent of the draft distribution.
    pub proposal_form: ProposalForm,
    /// What a drafter sends beside the draft distribution.
    pub proposal_fields: ProposalFields,
    /// The distribution aimed at.
    pub target: TargetDistribution,
    /// Whether the coordinator decides acceptance.
    pub accept_at_coordinator: bool,
    /// How many alternatives with their log probabilities come with the log probability of each emitted token; none
    /// if no log probabilities are wanted. Verifiers only.
    pub logprobs: Option<u32>,
    /// How long the session outlives a broken stream, in milliseconds.
    pub lease_ms: u32,
    /// For whom the session is; may be empty.
    pub tenant: String,
}

impl SessionSpec {
    /// Returns what stands before the output in the model's sequence, never empty: the prompt, or the start token of a
    /// decoder, whose prompt goes to the encoder.
    pub fn lead(&self) -> &[TokenId] {
        match &self.decoder_start_token_id {
            Some(start) => std::slice::from_ref(start),
            None => &self.prompt,
        }
    }

    /// Returns what goes to the encoder; empty of a model without one.
    pub fn source(&self) -> &[TokenId] {
        match self.decoder_start_token_id {
            Some(_) => &self.prompt,
            None => &[],
        }
    }
}

/// The tenant of clients that show no token, where none is wanted, and that choose no tenant themselves. It is one for all
/// of them.
pub const EVERYONE: &str = "everyone";
/// Longest name of a tenant, in bytes.
pub const MAX_TENANT_BYTES: usize = 256;
/// Longest salt of a request, in bytes.
pub const MAX_SALT_BYTES: usize = 256;

/// Returns among whose sessions equal beginnings are computed once, as peers are told: those of `tenant`, and with a `salt`
/// those of them that give the same.
pub fn reuse_scope(tenant: String, salt: &str) -> String {
    if salt.is_empty() {
        return tenant;
    }
    // With its length before it no tenant's name goes on as a salt does.
    let length = (tenant.len() as u64).to_le_bytes();
    let parts = [&length[..], tenant.as_bytes(), salt.as_bytes()];
    let digest = Sha256::digest(parts.concat());
    let mut digest = digest.as_slice();
    format!("{:032x}{:032x}", digest.get_u128(), digest.get_u128())
}
/// Longest lease granted, in milliseconds.
pub const MAX_LEASE_MS: u32 = 600_000;
/// Largest rollback threshold of BiLD, in nats: beyond it nothing is ever refused.
const MAX_ROLLBACK: f64 = 100.0;
/// The lease where none is asked for, in milliseconds.
pub const DEFAULT_LEASE_MS: u32 = 10_000;

/// The fault of a stream that does not begin with an Open.
pub fn missing() -> BadField {
    BadField::new("request", "the first message of a stream must be an open")
}

/// The fault of a second Open on one stream.
pub fn repeated() -> BadField {
    BadField::new("request", "the stream is open already")
}

/// Checks an [`v1::Open`] for the peer that describes itself as `peer`.
///
/// # Errors
/// Names the field that is missing, out of range, or not carried out by this version.
pub fn from_wire(open: v1::Open, peer: &v1::PeerDescription) -> Result<SessionSpec, BadField> {
    refuse_what_is_reserved(&open)?;
    let (model, logits_size) = (peer.model.as_str(), peer.logits_size);
    let id = open.session_id.as_slice().try_into().map_err(|_| {
        let found = open.session_id.len();
        BadField::new("session_id", format!("{found} bytes, expected 16"))
    })?;
    if !open.model.is_empty() && open.model != model {
        let requested = &open.model;
        return Err(BadField::new(
            "model",
            format!("'{requested}' is not served here, '{model}' is"),
        ));
    }
    let fingerprint = &open.vocab_fingerprint;
    if !fingerprint.is_empty() && *fingerprint != peer.vocab_fingerprint {
        let problem = "not that of the model served here; it was replaced";
        return Err(BadField::new("vocab_fingerprint", problem));
    }
    let vocab_size = open.vocab_size;
    BadField::in_range("vocab_size", vocab_size, 1..=logits_size)?;
    let prompt = open.prompt_token_ids;
    if prompt.is_empty() {
        return Err(BadField::new(
            "prompt_token_ids",
            "empty, expected at least one token",
        ));
    }
    BadField::in_vocabulary("prompt_token_ids", &prompt, vocab_size)?;
    if prompt.len() > peer.context_len as usize {
        let (found, most) = (prompt.len(), peer.context_len);
        let problem = format!("{found} tokens, the model's context holds {most}");
        return Err(BadField::new("prompt_token_ids", problem));
    }
    check_start(open.decoder_start_token_id, peer)?;
    let (choice, most) = (open.choice, Noise::MAX_CHOICE);
    let expected = format_args!("at most {most}");
    BadValue::in_range(choice <= most, "choice", choice, expected)?;
    let tenant = open.tenant;
    BadField::at_most("tenant", tenant.len(), MAX_TENANT_BYTES, "bytes")?;
    let accept_at_coordinator = accepts_at_coordinator(open.accept_at)?;
    let logprobs = logprobs::wanted(open.logprobs, open.top_logprobs)?;
    if logprobs.is_some() && accept_at_coordinator {
        let problem = "come with verdicts, and the coordinator decides";
        return Err(BadField::new("logprobs", problem));
    }
    let lease_ms = match open.lease_ms {
        0 => DEFAULT_LEASE_MS,
        requested => requested.min(MAX_LEASE_MS),
    };
    let spec = SessionSpec {
        id,
        prompt,
        decoder_start_token_id: open.decoder_start_token_id,
        sampling: Arc::new(sampling::from_wire(
            open.sampling,
            open.end_token_ids,
            vocab_size,
        )?),
        noise: if open.regenerates {
            Noise::new(open.seed, open.choice).regenerated()
        } else {
            Noise::new(open.seed, open.choice)
        },
        vocab_size,
        vocab_fingerprint: open.vocab_fingerprint,
        verification: verification_from_wire(open.verification, open.rollback)?,
        proposal_fields: ProposalFields {
            confidences: open.confidences,
            entropies: open.entropies,
            unscaled: open.unscaled,
            logprobs: open.draft_logprobs,
        },
        target: target::from_wire(open.target.as_ref())?,
        proposal_form: proposal::form_from_wire(open.proposal_form, open.proposal_top)?,
        accept_at_coordinator,
        logprobs,
        lease_ms,
        tenant,
    };
    let (sampling, verification) = (&spec.sampling, spec.verification);
    match refusal::check(sampling, &spec.target, verification, accept_at_coordinator) {
        Err(refusal) if peer.rows_are_parts => Err(needs_whole_rows(refusal, model)),
        _ => Ok(spec),
    }
}

/// Returns the fault of a request that needs whole rows to the verifier called `model`, which has parts of them.
pub fn needs_whole_rows(refusal: RowRefusal, model: &str) -> BadField {
    BadField::new(refusal.field(), format!("verifier '{model}': {refusal}"))
}

/// Checks that the session is for a model with an encoder if the peer's has one, and only then.
fn check_start(start: Option<TokenId>, peer: &v1::PeerDescription) -> Result<(), BadField> {
    let (model, logits_size) = (&peer.model, peer.logits_size);
    let problem = match (start, describe::has_encoder(peer)) {
        (None, Some(true)) => format!(
            "missing: '{model}' is an encoder-decoder model, whose output begins with a start token"
        ),
        (Some(_), Some(false)) => {
            format!("'{model}' has no encoder, leave it out")
        }
        (Some(start), _) if start >= logits_size => {
            format!("{start} is out of range, expected less than {logits_size}")
        }
        _ => return Ok(()),
    };
    Err(BadField::new("decoder_start_token_id", problem))
}

fn refuse_what_is_reserved(open: &v1::Open) -> Result<(), BadField> {
    let refused = |field, what: &str| {
        Err(BadField::new(
            field,
            format!("{what} not carried out by this version"),
        ))
    };
    if let Some(feature) = open.requires.first() {
        return refused("requires", &format!("'{feature}' is"));
    }
    if open.want_hidden {
        return refused("want_hidden", "hidden states are");
    }
    Ok(())
}

/// Reads where acceptance is decided; whether that is at the coordinator.
///
/// # Errors
/// If it is unknown.
pub fn accepts_at_coordinator(wire: i32) -> Result<bool, BadField> {
    match BadField::enumerated("accept_at", wire, "place to decide at")? {
        v1::AcceptAt::Unspecified | v1::AcceptAt::Verifier => Ok(false),
        v1::AcceptAt::Coordinator => Ok(true),
    }
}

/// Reads a verification.
///
/// # Errors
/// If it is unknown, or `rollback` is out of range for BiLD.
pub fn verification_from_wire(wire: i32, rollback: f64) -> Result<Verification, BadField> {
    if wire == i32::from(v1::Verification::Unspecified) {
        return Ok(Verification::default());
    }
    let known = Verification::of_wire(wire);
    let known = known.ok_or_else(|| {
        BadField::not_in::<v1::Verification>("verification", wire, "verification")
    })?;
    if !known.is_bild() {
        return Ok(known);
    }
    BadField::in_range("rollback", rollback, 0.0..=MAX_ROLLBACK)?;
    Ok(known.with_rollback(rollback))
}

#[cfg(test)]
mod tests;
