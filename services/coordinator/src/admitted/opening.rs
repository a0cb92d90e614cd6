//! What opens the session of a request at a peer.

use speculation::session::Peer;
use wire::{proposal, sampling, target, v1};

use super::AdmittedRequest;

/// The message that opens session `session_id` of `request` at a peer that describes itself as `described`, for the
/// `epoch`th time.
pub(crate) fn open(
    request: &AdmittedRequest,
    session_id: [u8; 16],
    epoch: u32,
    kind: Peer,
    described: &v1::PeerDescription,
) -> v1::Open {
    let method = &request.method;
    let (proposal_form, proposal_top) = proposal::form_to_wire(method.proposal);
    let fields = request.proposal_fields();
    let accept_at = if method.accept_at_coordinator {
        v1::AcceptAt::Coordinator
    } else {
        v1::AcceptAt::Verifier
    };
    let logprobs = request.logprobs.filter(|_| kind == Peer::Verifier);
    v1::Open {
        session_id: session_id.to_vec(),
        epoch,
        model: described.model.clone(),
        numerics: described.numerics.clone().unwrap_or_default().weights,
        prompt_token_ids: request.prompt.clone(),
        decoder_start_token_id: request.decoder_start_token_id,
        sampling: Some(sampling::to_wire(&request.sampling)),
        seed: request.seed,
        choice: request.choice,
        end_token_ids: request.sampling.end_tokens.clone(),
        ignore_eos: request.ignore_eos,
        vocab_size: request.vocab_size,
        vocab_fingerprint: request.vocab_fingerprint.clone(),
        lease_ms: request.lease_ms,
        verification: method.verification.wire,
        proposal_form: proposal_form.into(),
        proposal_top,
        accept_at: accept_at.into(),
        target: Some(target::to_wire(method.target)),
        confidences: fields.confidences,
        entropies: fields.entropies,
        unscaled: fields.unscaled,
        tenant: request.tenant.clone(),
        draft_logprobs: fields.logprobs,
        logprobs: logprobs.is_some(),
        top_logprobs: logprobs.unwrap_or(0),
        regenerates: kind == Peer::Verifier && method.regenerates(),
        rollback: method.verification.rollback(),
        ..Default::default()
    }
}
