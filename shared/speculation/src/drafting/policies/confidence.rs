//! Stopping by the largest probability: Kim et al., "Speculative Decoding with Big Little Decoder" (2023), the
//! fallback policy; in cascades Chow's rule.

use super::{Reads, StopPolicy, Stops};

/// Stops before a token whose unscaled distribution has its maximum below the threshold.
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
