//! What a drafter says of itself.

use model::bigram::BigramFile;
use speculation::drafting::Drafting;
use wire::{drafting, v1};

use crate::config::{DrafterConfig, MAX_GRAM, NO_TABLE};
use crate::loaded::Loaded;
use crate::vocabulary::Vocabulary;

/// Longest sequence of Max-Gram alone, which costs it some 100 bytes a token.
const MAX_GRAM_CONTEXT: u32 = 1 << 20;

/// The description of a drafter of what is `loaded`.
pub(crate) fn describe(loaded: &Loaded, config: &DrafterConfig) -> v1::PeerDescription {
    let names = loaded.models.iter().map(|model| model.name.clone());
    let cascade = loaded.cascade.as_ref().map(|cascade| {
        let max_gram = cascade.max_gram().then(|| MAX_GRAM.to_owned());
        v1::DraftCascade {
            models: names.chain(max_gram).collect(),
            lenient: cascade.lenience() > 1.0,
        }
    });
    let heads = loaded.heads.iter().map(|head| v1::AcceptanceHead {
        label: drafting::label_to_wire(head.info().label).into(),
        depth: head.info().depth as u32,
    });
    let draftings = loaded.draftings().into_iter();
    v1::PeerDescription {
        limits: Some(config.bounds().to_wire()),
        trees: true,
        draftings: draftings
            .map(|drafting| drafting::to_wire(drafting).into())
            .collect(),
        heads: heads.collect(),
        cascade,
        ..match loaded.models.first() {
            Some(model) => peer::describe(model),
            None => match &loaded.vocabulary {
                Some(vocabulary) => of_max_gram(vocabulary, loaded.bigram.as_ref(), config),
                None => wire::describe::capabilities(),
            },
        }
    }
}

/// Returns the description of a drafter without a model: Max-Gram with this vocabulary and table.
pub(crate) fn of_max_gram(
    vocabulary: &Vocabulary,
    table: Option<&BigramFile>,
    config: &DrafterConfig,
) -> v1::PeerDescription {
    let name = match config.model.name.as_str() {
        "" => MAX_GRAM.to_owned(),
        name => name.to_owned(),
    };
    v1::PeerDescription {
        model: name,
        logits_size: vocabulary.size,
        vocab_size: vocabulary.size,
        vocab_fingerprint: vocabulary.fingerprint.clone(),
        context_len: MAX_GRAM_CONTEXT,
        numerics: Some(v1::Numerics {
            weights: table.map_or_else(|| NO_TABLE.to_owned(), BigramFile::fingerprint),
            dtype: String::new(),
            kernels: MAX_GRAM.to_owned(),
        }),
        eos_token_ids: vocabulary.eos_token_ids.clone(),
        draftings: vec![drafting::to_wire(Drafting::MaxGram).into()],
        ..wire::describe::capabilities()
    }
}
