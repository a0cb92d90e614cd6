//! Fields whose names over HTTP and over gRPC differ. Errors from behind the front name the latter.

use super::error::Names;

/// Names that all forms of requests share. Settings of a method, `settings.*` over gRPC, stand in `speculation`.
macro_rules! names {
    ($($grpc:literal => $http:literal),* $(,)?) => {
        &[
            ("tenant", "user"),
            ("method", "speculation.method"),
            ("settings.", "speculation."),
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
