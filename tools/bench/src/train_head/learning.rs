//! How a head is learnt.
//!
//! Huang et al., "SpecDec++" (2024), section 3.3: responses X come from the target model, Y_i from the
//! draft model after X_<i, the label is the probability that Y_i is accepted. What is learnt from are the
//! draft model's states at Y_i after a context [`mix`]ed of X and Y; the loss is the cross-entropy with
//! refusals weighted by w_rej, divided by the weights' sum; AdamW without weight decay, a cosine schedule
//! after a warm-up. The same examples, options and seed give the same head.

mod evaluation;
mod fit;
mod mixing;
mod network;
mod random;
mod stopping;
#[cfg(test)]
mod tests;

pub(crate) use self::evaluation::mean_kl;
pub(super) use self::evaluation::{calibration, constant_kl};
pub(super) use self::fit::Examples;
pub(crate) use self::fit::{FitOptions, fit};
pub(super) use self::mixing::mix;
pub(super) use self::random::Uniforms;
pub(crate) use self::stopping::{LabelledChain, Replayed, StopAt, StopCosts, replay};
