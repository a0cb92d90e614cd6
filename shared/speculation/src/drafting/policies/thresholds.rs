//! The policies that compare one number with a threshold.

use super::{Reads, StopPolicy, Stops};

/// Stops before a token whose unscaled distribution has its maximum below the threshold: the fallback policy of Kim et
/// al., "Speculative Decoding with Big Little Decoder" (2023); in cascades Chow's rule.
pub const CONFIDENCE: StopPolicy = StopPolicy {
    name: "confidence",
    form: "confidence:MIN",
    summary: "stop before a token where the draft distribution's maximum is below this",
    threshold: "a probability",
    range: (0.0, 1.0),
    stops: Stops::Before {
        reads: Reads::Max,
        test: |confidence, least| confidence.max < least,
    },
};

/// Stops before a token whose unscaled distribution has an entropy above the threshold, in nats. The largest
/// threshold is beyond the entropy of a distribution over every token id there can be.
pub const ENTROPY: StopPolicy = StopPolicy {
    name: "entropy",
    form: "entropy:MAX",
    summary: "stop before a token where the draft distribution's entropy is above this, in nats",
    threshold: "an entropy in nats",
    range: (0.0, 100.0),
    stops: Stops::Before {
        reads: Reads::Entropy,
        test: |confidence, most| confidence.entropy > most,
    },
};

/// Stops after a token where the predicted probability that one of the tokens before it is refused exceeds the
/// threshold h: Huang et al., "SpecDec++: Boosting Speculative Decoding via Adaptive Candidate Lengths" (2024),
/// Algorithm 2.
pub const LEARNED: StopPolicy = StopPolicy {
    name: "specdec++",
    form: "specdec++:H",
    summary: "stop where a trained head says that a refusal is likelier than this",
    threshold: "a threshold",
    range: (0.0, 1.0),
    stops: Stops::After(|all_accepted, threshold| 1.0 - all_accepted > threshold),
};
