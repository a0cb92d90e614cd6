//! How a round fails whose engine does.

use engines::EngineError;
use peer::RoundError;
use speculation::certificate::Refusal;
use speculation::pipeline::DistributionError;
use wire::failure::Failure;

/// Returns what a round is told of an engine that gave no rows: another verifier may do better.
pub(super) fn of_engine(error: &EngineError) -> RoundError {
    if let EngineError::Late(allowed) = error {
        return RoundError::Late(*allowed);
    }
    RoundError::Other(Failure::Unavailable.status(error.to_string()))
}

/// Returns what a round is told that parts of rows cannot decide.
pub(super) fn of_refusal(refusal: Refusal) -> RoundError {
    match refusal {
        Refusal::NoSupport => DistributionError::NoSupport.into(),
        // The engine left out what it was asked for.
        Refusal::NotKnown(_) => {
            let why = "the engine left out a token that it was asked for";
            RoundError::Other(Failure::Unavailable.status(why))
        }
        // Such sessions are not opened.
        Refusal::RepetitionPenalty | Refusal::Verification(_) | Refusal::TargetDistribution => {
            RoundError::Other(Failure::NotOffered.status(refusal.to_string()))
        }
    }
}
