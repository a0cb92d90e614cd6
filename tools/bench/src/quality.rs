//! How good outputs are: pure functions of an output and its references, each with the source it follows.

mod answers;
mod bleu;
mod f1;
mod last_number;
mod metric;
mod resampled;
mod rouge;
mod score;
#[cfg(test)]
mod tests;

pub(crate) use metric::{Metric, Scale};
pub(crate) use resampled::Resampled;
pub(crate) use score::{LogLikelihood, Score};
