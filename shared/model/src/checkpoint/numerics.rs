//! Fingerprints of a model and of what it computes.

use speculation::pipeline;

use super::{Checkpoint, fingerprint};
use crate::computation::Computation;
use crate::weights::digest::WeightsDigest;

impl Checkpoint {
    /// Fingerprint of everything that determines the bits of a logit and what token is drawn for it: weights,
    /// constants, weight format, kernel family and that of the distributions; 16 hexadecimal digits. Reads every
    /// byte of the weights.
    ///
    /// Two engines on CPUs with the same fingerprint compute the same bits, whatever the CPUs; two on
    /// devices, the same numbers up to rounding.
    pub fn numerics(&self, computation: impl Into<Computation>) -> String {
        let kernels = computation.into().kernel_family();
        self.digest(&format!("{kernels} {}", pipeline::FAMILY))
    }

    /// Fingerprint of the model itself, its weights and constants, whatever format it is computed in; 16
    /// hexadecimal digits. Reads every byte of the weights.
    pub fn fingerprint(&self) -> String {
        self.digest("model")
    }

    /// A digest of weights, constants and `what`.
    fn digest(&self, what: &str) -> String {
        // Every byte is read once, however many digests begin with them.
        let weights = self
            .weights_digest
            .get_or_init(|| WeightsDigest::of(&self.weights));
        let constants = fingerprint::constants(&self.config);
        weights.fingerprint(&format!("{what} {constants}"))
    }
}
