//! What the fields of requests are called here, where gRPC has other names for them.

use super::error::Names;

/// What all requests have in common: the tenant, and what stands within `speculation`; then what `$more` adds.
macro_rules! names {
    ($($grpc:literal => $http:literal),* $(,)?) => {
        &[
            ("tenant", "user"),
            ("method", "speculation.method"),
            ("rule", "speculation.rule"),
            ("target.rule", "speculation.rule"),
            ("alpha", "speculation.alpha"),
            ("beta", "speculation.beta"),
            ("fallback", "speculation.fallback"),
            ("window", "speculation.window"),
            ("verify_on_finish", "speculation.verify_on_finish"),
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

/// Of chats that give the newer name of the most output tokens.
pub(super) const OF_NEWER_CHATS: Names =
    names! { "prompt" => "messages", "max_tokens" => "max_completion_tokens" };

pub(super) const OF_RESPONSES: Names =
    names! { "prompt" => "input", "max_tokens" => "max_output_tokens" };
