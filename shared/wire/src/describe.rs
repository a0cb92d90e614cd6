//! Whether peers fit each other, from what they say of themselves.

use prost::bytes::Buf;
use sha2::{Digest, Sha256};
use speculation::verification::VERIFICATIONS;

use crate::PROTOCOL_VERSION;
use crate::v1::{Drafting, PeerDescription, ProposalForm};

/// Name of the feature of a verifier that decides trees by token verification, in [`PeerDescription::features`].
pub const TOKEN_TREES: &str = "token_trees";

/// Name of the feature of a verifier that ends residual layers where a stop rule ended the block.
pub const STOPPED_LAYERS: &str = "stopped_layers";

/// Name of the feature of a drafter that drafts ahead of what the target chooses.
pub const AHEAD: &str = "ahead";

/// Name of the feature of a drafter that learns the vocabulary of a target which is not its draft model's.
pub const TRANSLATES: &str = "translates";

/// Name of the feature of a drafter that tells no probabilities of its tokens, since it reads a text in another vocabulary.
pub const TRANSLATED: &str = "translated";

/// Name of the feature of a drafter that takes a request's settings of its cascade.
pub const CASCADE_SETTINGS: &str = "cascade_settings";

/// Most bytes of a `tokenizer.json`: several times those of the largest vocabularies.
pub const MAX_TOKENIZER_BYTES: usize = 128 << 20;

/// Returns the first 8 bytes of the SHA-256 of `bytes`, as a little-endian number. Weights, processors and prefixes that may
/// be shared are told apart by it.
pub fn fingerprint(bytes: &[u8]) -> u64 {
    Sha256::digest(bytes).as_slice().get_u64_le()
}

/// Returns what a peer of this version can do, whatever its model; the rest is to be filled in.
pub fn capabilities() -> PeerDescription {
    let proposal_forms = [
        ProposalForm::None,
        ProposalForm::Point,
        ProposalForm::Sparse,
        ProposalForm::DenseF32,
        ProposalForm::DenseF16,
    ];
    PeerDescription {
        protocol_version: PROTOCOL_VERSION,
        min_protocol_version: PROTOCOL_VERSION,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        verifications: VERIFICATIONS.iter().map(|known| known.wire).collect(),
        proposal_forms: proposal_forms.map(i32::from).to_vec(),
        features: [
            TOKEN_TREES,
            STOPPED_LAYERS,
            AHEAD,
            TRANSLATES,
            CASCADE_SETTINGS,
        ]
        .map(str::to_owned)
        .into(),
        ..Default::default()
    }
}

/// Peers that cannot work together, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Mismatch(pub String);

/// Whether the peer's model has an encoder; none where no model drafts, and the prompt is text to look things
/// up in.
pub fn has_encoder(peer: &PeerDescription) -> Option<bool> {
    has_model(peer).then_some(peer.decoder_start_token_id.is_some())
}

/// Returns whether the peer has a model: a drafter without one copies from the text. Verifiers name no ways to draft.
pub fn has_model(peer: &PeerDescription) -> bool {
    let max_gram = i32::from(Drafting::MaxGram);
    peer.draftings.is_empty() || peer.draftings.iter().any(|way| *way != max_gram)
}

/// Checks that both models read the prompt with an encoder, or neither.
///
/// # Errors
/// Names the model that does.
pub fn check_encoders(draft: &PeerDescription, target: &PeerDescription) -> Result<(), Mismatch> {
    let (with, without) = match (has_encoder(draft), has_encoder(target)) {
        (Some(true), Some(false)) => (draft, target),
        (Some(false), Some(true)) => (target, draft),
        _ => return Ok(()),
    };
    Err(Mismatch(format!(
        "{} is an encoder-decoder model and {} is not; draft and target model must both be, or neither",
        with.model, without.model
    )))
}

/// How a drafter that can serve a target reads its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// Token ids mean the same to both.
    SameVocabulary,
    /// In tokens of its own.
    Translates,
}

/// Checks that a drafter can serve a target model: vocabularies and encoders fit, or it translates.
///
/// # Errors
/// The first mismatch.
pub fn check_pair(draft: &PeerDescription, target: &PeerDescription) -> Result<Fit, Mismatch> {
    check_encoders(draft, target)?;
    let Err(differ) = check_vocabularies(draft, target) else {
        return Ok(Fit::SameVocabulary);
    };
    let because = |problem| Err(Mismatch(format!("{differ}; {problem}")));
    match () {
        () if !has_model(draft) => because("max-gram's table knows one vocabulary alone"),
        () if draft.decoder_start_token_id.is_some() => {
            because("text that an encoder reads is not translated")
        }
        () if !draft.features.iter().any(|it| it == TRANSLATES) => {
            because("the drafter does not translate, bring it up to date")
        }
        () => Ok(Fit::Translates),
    }
}

/// Returns what `draft`, the description of a drafter that translates, is in the vocabulary of `target`. It tells no
/// probabilities of its tokens, which are other tokens.
pub fn translated(draft: &PeerDescription, target: &PeerDescription) -> PeerDescription {
    let forms = [ProposalForm::None, ProposalForm::Point];
    let ways = [Drafting::Model, Drafting::MaxGram];
    let features = draft.features.iter().cloned();
    PeerDescription {
        vocab_size: target.vocab_size,
        logits_size: target.logits_size,
        vocab_fingerprint: target.vocab_fingerprint.clone(),
        eos_token_ids: target.eos_token_ids.clone(),
        // It forgets what does not fit.
        context_len: target.context_len,
        proposal_forms: forms.map(i32::from).to_vec(),
        draftings: ways.map(i32::from).to_vec(),
        trees: false,
        heads: Vec::new(),
        cascade: None,
        features: features.chain([TRANSLATED.to_owned()]).collect(),
        ..draft.clone()
    }
}

/// Checks that a peer speaks this version of the protocol.
///
/// # Errors
/// Names the peer and its version.
pub fn check_protocol(peer: &PeerDescription) -> Result<(), Mismatch> {
    if (peer.min_protocol_version..=peer.protocol_version).contains(&PROTOCOL_VERSION) {
        return Ok(());
    }
    let (who, found) = (&peer.model, peer.protocol_version);
    let problem = format!("{who} speaks protocol {found}, expected {PROTOCOL_VERSION}");
    Err(Mismatch(problem))
}

/// Checks that token ids mean the same to both models. Padded tails of the logits do not matter.
///
/// # Errors
/// Names both models with their sizes and fingerprints.
pub fn check_vocabularies(
    draft: &PeerDescription,
    target: &PeerDescription,
) -> Result<(), Mismatch> {
    if draft.vocab_fingerprint == target.vocab_fingerprint && draft.vocab_size == target.vocab_size
    {
        return Ok(());
    }
    let but = if draft.vocab_size == target.vocab_size {
        ", so the same number of other tokens"
    } else {
        ""
    };
    let [of_draft, of_target] = [draft, target].map(|peer| start_of(&peer.vocab_fingerprint));
    Err(Mismatch(format!(
        "vocabularies differ: {} has {} tokens (fingerprint {of_draft}), {} has {} (fingerprint {of_target}){but}",
        draft.model, draft.vocab_size, target.model, target.vocab_size
    )))
}

fn start_of(fingerprint: &[u8]) -> String {
    use std::fmt::Write;
    fingerprint
        .iter()
        .take(4)
        .fold(String::new(), |mut text, byte| {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v1::Verification;

    fn peer(model: &str, size: u32, byte: u8) -> PeerDescription {
        PeerDescription {
            protocol_version: PROTOCOL_VERSION,
            model: model.into(),
            vocab_size: size,
            vocab_fingerprint: vec![byte; 32],
            ..Default::default()
        }
    }

    #[test]
    fn the_wire_and_the_table_have_the_same_verifications() {
        for verification in VERIFICATIONS {
            let wire = Verification::try_from(verification.wire).expect("a value of the enum");
            let name = verification.name.to_uppercase().replace('-', "_");
            assert_eq!(wire.as_str_name(), format!("VERIFICATION_{name}"));
        }
        // Numbers begin with UNSPECIFIED, and have no gaps.
        let after_all = i32::try_from(VERIFICATIONS.len()).expect("few") + 1;
        assert!(Verification::try_from(after_all).is_err());
    }

    #[test]
    fn different_vocabularies_are_named() {
        let target = peer("big", 4096, 1);
        assert_eq!(check_vocabularies(&peer("small", 4096, 1), &target), Ok(()));
        let error = check_vocabularies(&peer("small", 4096, 2), &target).expect_err("differs");
        let message = error.to_string();
        for part in ["small", "big", "02020202"] {
            assert!(message.contains(part), "{message}");
        }
        assert!(check_vocabularies(&peer("small", 4095, 1), &target).is_err());
    }

    #[test]
    fn another_vocabulary_is_translated() {
        let draft = PeerDescription {
            features: vec![TRANSLATES.to_owned()],
            ..peer("small", 10, 1)
        };
        let target = peer("big", 20, 2);
        assert_eq!(check_pair(&draft, &target), Ok(Fit::Translates));
        let translated = translated(&draft, &target);
        assert_eq!(check_pair(&translated, &target), Ok(Fit::SameVocabulary));
        assert_eq!(translated.model, "small");
        let copies = PeerDescription {
            draftings: vec![Drafting::MaxGram.into()],
            ..draft.clone()
        };
        let encodes = |of: &PeerDescription| PeerDescription {
            decoder_start_token_id: Some(0),
            ..of.clone()
        };
        for (draft, target, problem) in [
            (peer("old", 10, 1), target.clone(), "bring it up to date"),
            (copies, target.clone(), "max-gram's table"),
            (encodes(&draft), encodes(&target), "an encoder reads"),
        ] {
            let refused = check_pair(&draft, &target)
                .expect_err("refused")
                .to_string();
            let parts = ["vocabularies differ", problem];
            assert!(parts.iter().all(|it| refused.contains(it)), "{refused}");
        }
    }

    #[test]
    fn both_models_have_an_encoder_or_neither() {
        let encoding = |model: &str| PeerDescription {
            decoder_start_token_id: Some(0),
            ..peer(model, 10, 1)
        };
        let max_gram = PeerDescription {
            draftings: vec![Drafting::MaxGram.into()],
            ..peer("grams", 10, 1)
        };
        for (draft, target) in [
            (encoding("small"), encoding("big")),
            (peer("small", 10, 1), peer("big", 10, 1)),
            (max_gram.clone(), encoding("big")),
            (max_gram, peer("big", 10, 1)),
        ] {
            assert_eq!(check_encoders(&draft, &target), Ok(()));
        }
        for (draft, target, with, without) in [
            (encoding("small"), peer("big", 10, 1), "small", "big"),
            (peer("small", 10, 1), encoding("big"), "big", "small"),
        ] {
            let refused = check_encoders(&draft, &target).expect_err("refused");
            let reported = format!("{with} is an encoder-decoder model and {without} is not");
            assert!(refused.to_string().starts_with(&reported), "{refused}");
        }
    }

    #[test]
    fn another_protocol_is_refused() {
        let other = PeerDescription {
            protocol_version: 2,
            min_protocol_version: 2,
            ..peer("m", 1, 1)
        };
        let message = check_protocol(&other).expect_err("refused").to_string();
        assert_eq!(message, "m speaks protocol 2, expected 1");
        let both = PeerDescription {
            min_protocol_version: 1,
            ..other
        };
        assert_eq!(check_protocol(&both), Ok(()));
    }
}
