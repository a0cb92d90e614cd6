//! What the decoder of an encoder-decoder model sees of the source.

use std::sync::Arc;

use speculation::ports::KvCache;

use super::SequenceCache;

/// Keys and values of the source in every decoder layer, made once and shared by the copies of a
/// sequence.
#[derive(Clone, Debug)]
pub(crate) struct CrossCache(Arc<SequenceCache>);

impl CrossCache {
    /// Takes a cache whose slots are the positions of the source.
    pub(crate) fn new(source: SequenceCache) -> Self {
        Self(Arc::new(source))
    }

    /// Keys and values of decoder layer `index`, and the number of positions.
    pub(crate) fn layer(&self, index: usize) -> (&super::LayerCache, usize) {
        (&self.0.layers[index], self.0.len)
    }
}

impl SequenceCache {
    /// The source that the sequence's tokens are written from, if it was encoded.
    pub(crate) fn cross(&self) -> Option<&CrossCache> {
        self.cross.as_ref()
    }

    /// Forgets every token, and takes another source.
    pub(crate) fn set_cross(&mut self, cross: CrossCache) {
        self.truncate(0);
        self.cross = Some(cross);
    }
}
