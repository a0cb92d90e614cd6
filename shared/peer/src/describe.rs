//! What is told of a model that is served.

use model::source::{Outline, ServedModel};
use speculation::ports::LanguageModel;
use wire::v1;

use crate::processors;

/// Returns what a peer will say of a model before its weights are loaded: enough to see whether two models fit.
pub fn outline(outline: &Outline) -> v1::PeerDescription {
    v1::PeerDescription {
        model: outline.name.clone(),
        vocab_size: outline.vocab_size,
        vocab_fingerprint: outline.vocab_fingerprint.to_vec(),
        decoder_start_token_id: outline.decoder_start_token_id,
        ..wire::describe::capabilities()
    }
}

/// The description of a peer that serves this model.
pub fn describe<M: LanguageModel>(served: &ServedModel<M>) -> v1::PeerDescription {
    let shape = served.model.shape();
    v1::PeerDescription {
        logits_size: shape.vocab_size as u32,
        context_len: match shape.source_len {
            0 => shape.context_len as u32,
            source_len => shape.context_len.min(source_len) as u32,
        },
        numerics: Some(v1::Numerics {
            weights: served.numerics.weights.clone(),
            dtype: served.numerics.dtype.clone(),
            kernels: served.numerics.kernels.clone(),
        }),
        model_fingerprint: served.weights_fingerprint.clone(),
        eos_token_ids: served.eos_token_ids.clone(),
        rows_vary: !served.model.caps().bit_invariant,
        processors: if served.is_on_processors {
            processors::name()
        } else {
            Vec::new()
        },
        ..self::outline(&served.outline())
    }
}
