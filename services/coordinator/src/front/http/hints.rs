//! Fields that hint at something and change no output: clients send them to every server, so they are taken and ignored,
//! whatever they hold.

use super::fields::Fields;

/// Hints in all requests: to a provider's bookkeeping and billing, to caches, and to models that reason.
const OF_ALL: [&str; 11] = [
    "cache_prompt",
    "client_metadata",
    "metadata",
    "prediction",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "reasoning_effort",
    "safety_identifier",
    "service_tier",
    "store",
];

/// Takes the hints that a request has.
pub(super) fn ignore(fields: &mut Fields<'_>) {
    for name in OF_ALL {
        fields.has(name);
    }
}
