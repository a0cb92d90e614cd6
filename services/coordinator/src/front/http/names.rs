//! Fields whose names over HTTP and over gRPC differ. Errors from behind the front name the latter.

use super::error::Names;

/// The table of one form of requests: the pairs that all forms share (the tenant, and the fields of `speculation`), and
/// the form's own.
macro_rules! names {
    ($($grpc:literal => $http:literal),* $(,)?) => {
        &[
            ("tenant", "user"),
            ("method", "speculation.method"),
            ("rule", "speculation.rule"),
            ("target.rule", "speculation.rule"),
            ("alpha", "speculation.alpha"),
            ("beta", "speculation.beta"),
            ("kl_budget", "speculation.kl_budget"),
            ("fallback", "speculation.fallback"),
            ("window", "speculation.window"),
            ("verify_on_finish", "speculation.verify_on_finish"),
            ("code_variant", "speculation.code_variant"),
            ("max_run", "speculation.max_run"),
            ("mean", "speculation.mean"),
            ("plan", "speculation.plan"),
            ("target", "speculation.target"),
            ("verification", "speculation.verification"),
            ("proposal_form", "speculation.proposal"),
            ("proposal_top", "speculation.proposal"),
            ("accept_at", "speculation.accept_at"),
            ("drafting", "speculation.drafting"),
            ("draft_len", "speculation.draft_len"),
            ("draft_length", "speculation.draft_len"),
            ("draft_cap", "speculation.draft_cap"),
            ("tree", "speculation.tree"),
            $(($grpc, $http)),*
        ]
    };
}

pub(super) const OF_COMPLETIONS: Names = names! { "top_logprobs" => "logprobs" };

pub(super) const OF_CHATS: Names = names! { "prompt" => "messages" };

/// The table of chats that set `max_completion_tokens`, the newer name of `max_tokens`.
pub(super) const OF_NEWER_CHATS: Names =
    names! { "prompt" => "messages", "max_tokens" => "max_completion_tokens" };

pub(super) const OF_RESPONSES: Names =
    names! { "prompt" => "input", "max_tokens" => "max_output_tokens" };
