//! vLLM, by two routes.
//!
//! [`Vllm`] takes `/inference/v1/generate`, which scores a list of tokens for each row; only the V2 model runner does.
//! [`VllmCompletions`] takes `/v1/completions`, which any version has and which gives the most likely tokens alone.
//! Both read the whole sequence in each round, and answer with a row for each of its tokens where most likely tokens
//! are asked for: use them where nothing else is at hand.
//!
//! What their answers are like, and what must not be asked of them:
//!
//! - The row after the last token is in no answer to a prompt, so each sequence ends with one token more. Which does
//!   not matter: no row is after it.
//! - `prompt_logprobs: k` gives k entries a row, or k + 1 where the token that follows is none of the k most likely.
//!   The ranks that come along are not read: equals share one.
//! - `logprobs` of the completions route is keyed by text, and different tokens have the same: it is not asked for.
//! - `skip_reading_prefix_cache: false` with `prompt_logprobs` makes the V1 runner answer with uninitialised memory,
//!   and can end the server. It is in no request of ours; the server leaves its cache alone by itself.
//! - Log probabilities of -infinity are -9999.

mod completions;
mod generate;
mod npy;
mod prompt_logprobs;

pub use completions::VllmCompletions;
pub use generate::Vllm;
