//! Speculative decoding as mathematics: distributions, noise, verification, and the session that runs them.
//!
//! Nothing here does I/O, awaits, reads a clock or knows a model. Every function is generic over
//! `f32` (served) and `f64` (proved by exact enumeration), and everything random is a pure function
//! of the seed, so that retry, migration and replay give the same tokens.
//!
//! | module | what it holds |
//! |---|---|
//! | [`sampling`], [`history`], [`pipeline`] | from a logits row to the distribution a token is drawn from |
//! | [`philox`], [`noise`], [`chance`] | the only source of randomness, and who may draw from it |
//! | [`coupled`], [`verification`], [`round`] | how a draft block is accepted, and by which distributions |
//! | [`certificate`] | the same decisions proved from a part of a row, where an engine returns no more |
//! | [`drafting`], [`draft_tree`], [`tree_paths`], [`proposal`] | how tokens are drafted, and what the verifier is told of them |
//! | [`max_gram`], [`cascade`] | drafting without a model, and by several that review each other |
//! | [`pending`] | drafts on their way to a target that decodes meanwhile |
//! | [`goodput`] | how long to draft, from what was measured |
//! | [`methods`] | the one registry of methods |
//! | [`bad_value`] | why a value of a request or of the configuration will not do |
//! | [`session`] | the state machine of a request, without I/O |
//! | [`committed`] | a peer's record of the output |
//! | [`simd`], [`exp`] | loops compiled for wide instructions, with the same bits; portable exponential and logarithm |
//! | [`logprobs`] | log probabilities of tokens, from a row of logits |
//! | [`target`], [`confidence`] | what a request aims at: π(q, p), and how sure each model is |
//! | [`ports`] | what a model must offer |

// A new value of an axis is to be missed wherever axes are told apart.
#![warn(clippy::wildcard_enum_match_arm)]

pub mod ahead;
pub mod bad_value;
pub mod cascade;
pub mod certificate;
pub mod chance;
pub mod committed;
pub mod confidence;
pub mod constraint;
pub mod coupled;
pub mod draft_tree;
pub mod drafting;
pub mod exp;
pub mod goodput;
pub mod history;
pub mod logprobs;
pub mod max_gram;
pub mod methods;
pub mod noise;
pub mod pending;
pub mod philox;
pub mod pipeline;
pub mod ports;
pub mod proposal;
pub mod real;
pub mod round;
pub mod sampling;
pub mod session;
pub mod simd;
pub mod target;
pub mod tree_paths;
pub mod verification;

/// A token's index in the vocabulary.
pub type TokenId = u32;
