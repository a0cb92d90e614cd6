//! Learned stopping: Huang et al., "SpecDec++: Boosting Speculative Decoding via Adaptive Candidate Lengths" (2024),
//! Algorithm 2.

use super::{StopPolicy, Stops};

/// Stops after a token where the predicted probability that one of the tokens before it is refused exceeds the
/// threshold h.
pub const LEARNED: StopPolicy = StopPolicy {
    name: "specdec++",
    form: "specdec++:H",
    summary: "stop where a trained head says that a refusal is likelier than this",
    threshold: "a threshold",
    range: (0.0, 1.0),
    stops: Stops::After(|all_accepted, threshold| 1.0 - all_accepted > threshold),
};
