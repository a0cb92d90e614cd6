//! What is told of a model that is served.

use model::source::ServedModel;
use speculation::ports::LanguageModel;
use wire::v1;

use crate::processors;

/// The description of a peer that serves this model.
pub fn describe<M: LanguageModel>(served: &ServedModel<M>) -> v1::PeerDescription {
    let shape = served.model.shape();
    v1::PeerDescription {
        model: served.name.clone(),
        logits_size: shape.vocab_size as u32,
        vocab_size: served.vocab_size,
        vocab_fingerprint: served.vocab_fingerprint.to_vec(),
        context_len: match shape.source_len {
            0 => shape.context_len as u32,
            source_len => shape.context_len.min(source_len) as u32,
        },
        decoder_start_token_id: served.decoder_start_token_id,
        numerics: Some(v1::Numerics {
            weights: served.numerics.weights.clone(),
            dtype: served.numerics.dtype.clone(),
            kernels: served.numerics.kernels.clone(),
        }),
        eos_token_ids: served.eos_token_ids.clone(),
        // A model on a GPU takes no time from other peers' processors.
        processors: if served.numerics.kernels.contains("cuda") {
            Vec::new()
        } else {
            processors::name()
        },
        ..wire::describe::capabilities()
    }
}
