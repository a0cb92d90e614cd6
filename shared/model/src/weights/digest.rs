//! The digest of a model's weights, which its fingerprints begin with.

use blake3::Hasher;

use super::Weights;
use super::file::TensorFile;

/// Hexadecimal digits of a fingerprint.
const DIGITS: usize = 16;

/// Digest of a model's weights: of the names, formats, shapes and contents of all tensors, in the order of their names: the same weights give
/// the same digest however they are sharded.
#[derive(Clone, Debug)]
pub(crate) struct WeightsDigest(Hasher);

impl WeightsDigest {
    /// Reads every byte of `weights`, on all cores.
    pub(crate) fn of(weights: &Weights) -> Self {
        let mut tensors: Vec<_> = weights.files.iter().flat_map(TensorFile::iter).collect();
        tensors.sort_by_key(|(name, ..)| *name);
        let mut hasher = Hasher::new();
        for (name, info, bytes) in tensors {
            let described = format!("{name} {} {:?}\n", info.format_name, info.shape);
            hasher.update(described.as_bytes());
            hasher.update_rayon(bytes);
        }
        Self(hasher)
    }

    /// Digest of all bytes of `files`, whatever they mean.
    #[cfg(feature = "llama-cpp")]
    pub(crate) fn of_files(files: &[TensorFile]) -> Self {
        let mut hasher = Hasher::new();
        for file in files {
            hasher.update_rayon(&file.bytes);
        }
        Self(hasher)
    }

    /// Fingerprint of the weights together with `what`, in hexadecimal digits.
    pub(crate) fn fingerprint(&self, what: &str) -> String {
        let mut hasher = self.0.clone();
        hasher.update(what.as_bytes());
        let mut hex = hasher.finalize().to_hex().to_string();
        hex.truncate(DIGITS);
        hex
    }
}
