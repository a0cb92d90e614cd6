//! Stopping by the entropy.

use super::{Reads, StopPolicy, Stops};

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
