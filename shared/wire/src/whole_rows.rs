//! What needs whole rows, and so is refused where a verifier has parts of them.

use speculation::certificate::Refusal;
use speculation::certificate::refusal;
use speculation::sampling::SamplingParams;
use speculation::target::TargetDistribution;
use speculation::verification::Verification;

use crate::status::BadField;

/// What of a session needs whole rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NeedsWholeRows {
    /// Something that is decided.
    #[error(transparent)]
    Decision(#[from] Refusal),
    /// Where it is decided.
    #[error("the coordinator decides by whole rows, and the engine returns parts of them")]
    AtCoordinator,
}

impl NeedsWholeRows {
    /// Returns what of a session needs whole rows, if anything does.
    pub fn of(
        params: &SamplingParams,
        target: &TargetDistribution,
        verification: Verification,
        accept_at_coordinator: bool,
    ) -> Option<Self> {
        if accept_at_coordinator {
            return Some(Self::AtCoordinator);
        }
        let checked = refusal::check(params, target, verification);
        checked.err().map(Self::Decision)
    }

    /// The fault of a request to the verifier called `model`.
    pub fn refused_by(self, model: &str) -> BadField {
        let field = match self {
            Self::AtCoordinator => "accept_at",
            Self::Decision(Refusal::RepetitionPenalty) => "sampling.repetition_penalty",
            Self::Decision(Refusal::TargetDistribution) => "target",
            Self::Decision(Refusal::Verification(_)) => "verification",
            Self::Decision(Refusal::NotKnown(_) | Refusal::NoSupport) => "sampling",
        };
        BadField::new(field, format!("verifier '{model}': {self}"))
    }
}
