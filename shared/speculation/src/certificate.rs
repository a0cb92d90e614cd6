//! Exact decisions from a part of a row: certificates.
//!
//! An engine that serves a model to others returns the K most likely tokens of a row and those that were asked for,
//! not the row. Often that is enough to prove which token a choice over the whole vocabulary takes. What is not
//! proved is asked for again, with four times K and N and then in full ([`RowQuery::grown`]); a whole row leaves
//! nothing unproved and is decided by the same arithmetic, so the token does not depend on what was asked.
//!
//! | module | what it holds |
//! |---|---|
//! | [`partial_row`] | a part of a row, checked |
//! | [`noise_ranking`] | the tokens of most noise at a position, known before the engine is asked |
//! | [`refusal`] | what a part of a row can never answer; which tokens must be asked for |
//! | [`distribution`] | the choice |
//! | [`rejection`] | the test of a draft token, and the residual's choice |
//! | [`row_query`] | how much to ask for |
//! | [`chain`] | a chain of draft tokens, decided by all of these |
//!
//! # The choice
//!
//! Let ℓ be the log probabilities of a row, G the noise of its position, S the known tokens: the K most likely ones
//! and those asked for, all from one response. ℓ_K is the K-th largest log probability, g* the largest noise outside
//! of S. The choice over the vocabulary is the token with the largest score `s_j = (ℓ_j - ℓ_1)/T + G_j`, the lowest
//! id among equals (Gumbel's form of [`crate::coupled`]). Let b be the best of S.
//!
//! **If `s_b > (ℓ_K - ℓ_1)/T + g*`, b is the choice.** For j outside of S, ℓ_j <= ℓ_K, ties included, because j is
//! not among the K most likely; and G_j <= g*. Subtraction, division by T > 0 and addition, each rounded once, never
//! change an order, so the computed s_j is at most the computed bound, and below s_b. At equality nothing is proved:
//! a token with a lower id may hide there. Both sides use the same arithmetic, and ℓ_1, as T, does not depend on K.
//! g* is found by the uniforms, of which it is a computed function that grows with them
//! ([`noise_ranking`] says from where on).
//!
//! The token is exact for the distribution that the engine returned. [`crate::coupled::choice`] on the dense row
//! takes the same token, unless two scores differ in their last bits: it divides exponentials.
//!
//! At T = 0 the choice is the most likely token, the lowest id among equals. It is proved if it is more likely than
//! ℓ_K: all that are as likely are then known.
//!
//! # What changes a row
//!
//! Bans, mask, negative bias, and presence and frequency penalties of at least 0 only lower log probabilities, and
//! the bound stands. Tokens with positive bias or negative penalties must be in S ([`must_ask`]). If all that may be
//! drawn are known, as where all allowed tokens were asked for, nothing is left to prove. The repetition penalty
//! goes by the sign of a logit, and is refused.
//!
//! A cut takes tokens away and changes no ratio between the others, so the bound stands here too. What must be known
//! is whether b is kept. Each known token is kept for sure, or perhaps, or not; b is the best of the first two
//! kinds, and proved only if it is of the first.
//!
//! - top-k: the k largest are known if the k-th is above ℓ_K; the support is then known whole.
//! - top-p keeps a token if those before it weigh less than the fraction p of the total Z. Of Z two bounds are
//!   known: at T = 1 from what is missing from a mass of 1, up to the engine's rounding
//!   (`mass_error` of [`PartialRow::new`]); at other temperatures also from the number of unknown tokens (`support`). A token
//!   is kept for sure if it is at the lower end, and above ℓ_K; it is not if it is not at the upper end.
//! - min-p goes by the largest, which must be known.
//!
//! # Token verification
//!
//! A draft token x, drawn with probability q, stands if `η < π(x)/q`, that is `η q Z < w_x`: proved if both ends of Z
//! say so, unproved if η falls between. The residual `(π - q)_+` is drawn like a choice, by scores
//! `ln (w_j - Z q_j)_+ + G_j`, with the draft distribution's support within S: outside of it the residual is π, and
//! bounded as before. Such noise must be the verifier's own
//! ([`Noise::unshared`](crate::noise::Noise::unshared)), and must draw the residual of whole rows, too: whether a
//! draw is proved depends on its noise, so to draw what was not proved with another noise would be biased.

pub mod chain;
pub mod distribution;
pub mod noise_ranking;
pub mod partial_row;
pub mod refusal;
pub mod rejection;
pub mod row_query;

mod adjusted;
mod support;

pub use chain::{Decided, OpenChain};
pub use distribution::PartialDistribution;
pub use noise_ranking::{KeyedUniforms, NoiseRanking, TokenUniforms};
pub use partial_row::{BadRow, PartialRow};
pub use refusal::{RowRefusal, must_ask};
pub use row_query::RowQuery;
