//! How a verification is called through the table.

use super::{DraftChain, PositionDistributions, RoundDistributions, Verdict};
use crate::chance::Chance;
use crate::noise::Noise;
use crate::proposal::BadProposal;
use crate::real::Real;

/// Decides draft blocks in numbers of the type `F`.
pub trait Procedure<F: Real>: Sync {
    /// Decides `block`.
    ///
    /// # Errors
    /// As [`super::verify`].
    fn verify(
        &self,
        block: &DraftChain<'_>,
        draws: Randomness<'_, F>,
        distributions: &mut RowSource<'_, F>,
    ) -> Result<Verdict, Stopped>;

    /// P(accepted length = i) for i = 0..=L of the draft tokens of `block` (L), which ends nowhere.
    ///
    /// # Errors
    /// As [`super::expected::length_distribution`].
    fn length_distribution(
        &self,
        block: &DraftChain<'_>,
        rollback: f64,
        distributions: &mut RowSource<'_, F>,
    ) -> Result<Vec<f64>, Stopped>;
}

/// The distributions of a round, whatever makes them.
pub(super) type RowSource<'a, F> = dyn RoundDistributions<F, Error = Stopped> + 'a;

/// What the random decisions of a round come from.
pub struct Randomness<'a, F> {
    /// For choices under the noise that drafter and verifier share.
    pub noise: &'a Noise,
    /// For accept tests and draws of the verifier's own.
    pub chance: &'a mut dyn Chance<F>,
    /// BiLD's rollback threshold.
    pub rollback: f64,
}

/// Why a procedure gave no result.
#[derive(Debug)]
pub enum Stopped {
    /// A proposal is malformed or missing.
    BadProposal(BadProposal),
    /// The distributions have failed, and keep the reason.
    Failed,
}

impl From<BadProposal> for Stopped {
    fn from(bad: BadProposal) -> Self {
        Self::BadProposal(bad)
    }
}

/// The same procedure in single and in double precision.
pub struct Procedures {
    single: &'static dyn Procedure<f32>,
    double: &'static dyn Procedure<f64>,
}

impl Procedures {
    pub const fn of<P: Procedure<f32> + Procedure<f64>>(procedure: &'static P) -> Self {
        Self {
            single: procedure,
            double: procedure,
        }
    }
}

/// A precision in which blocks can be decided.
pub trait Precision: Real {
    /// The procedure in this precision.
    fn procedure(of: &Procedures) -> &'static dyn Procedure<Self>;
}

impl Precision for f32 {
    fn procedure(of: &Procedures) -> &'static dyn Procedure<Self> {
        of.single
    }
}

impl Precision for f64 {
    fn procedure(of: &Procedures) -> &'static dyn Procedure<Self> {
        of.double
    }
}

/// Distributions whose error is kept aside, so that procedures need not know of it.
pub(super) struct KeptError<'a, F, L: RoundDistributions<F>> {
    distributions: &'a mut L,
    error: Option<L::Error>,
}

impl<'a, F: Real, L: RoundDistributions<F>> KeptError<'a, F, L> {
    pub(super) fn new(distributions: &'a mut L) -> Self {
        Self {
            distributions,
            error: None,
        }
    }

    /// Returns what came out, with the error that was kept.
    pub(super) fn result<T>(self, found: Result<T, Stopped>) -> Result<T, L::Error> {
        found.map_err(|stopped| match (self.error, stopped) {
            (Some(error), _) => error,
            (None, Stopped::BadProposal(bad)) => bad.into(),
            (None, Stopped::Failed) => BadProposal::Missing.into(),
        })
    }
}

impl<F: Real, L: RoundDistributions<F>> RoundDistributions<F> for KeptError<'_, F, L> {
    type Error = Stopped;

    fn at(&mut self, offset: usize) -> Result<PositionDistributions<'_, F>, Stopped> {
        let (distributions, kept) = (&mut *self.distributions, &mut self.error);
        distributions.at(offset).map_err(|error| {
            *kept = Some(error);
            Stopped::Failed
        })
    }
}
