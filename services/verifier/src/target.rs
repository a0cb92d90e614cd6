//! What a verifier knows of its target model beside the engine.

use std::sync::Arc;

use model::source::SpecialTokens;
use peer::{Peer, Session};

use crate::remote::Remote;

/// A verifier with its model loaded and its engine running.
pub type Verifier = Peer<Target>;

/// A session of a verifier.
pub(crate) type VerifySession = Session<Target>;

/// What a verifier tells of its target model's text, which the coordinator asks it for.
pub struct Target {
    pub(crate) tokenizer_json: Vec<u8>,
    pub(crate) chat_template: String,
    pub(crate) special_tokens: SpecialTokens,
    /// The engine elsewhere that computes it, if there is one.
    pub(crate) remote: Option<Arc<Remote>>,
}

impl Target {
    /// Returns the fingerprint of tokenizer, chat template and special tokens, in hexadecimal. A coordinator fetches them
    /// again when it changes.
    pub(crate) fn text_fingerprint(&self) -> String {
        let SpecialTokens { bos, eos } = &self.special_tokens;
        let texts = [Some(&self.chat_template), bos.as_ref(), eos.as_ref()];
        let mut bytes = self.tokenizer_json.clone();
        for text in texts {
            let text = text.map_or("", String::as_str);
            bytes.extend_from_slice(&(text.len() as u64).to_le_bytes());
            bytes.extend_from_slice(text.as_bytes());
        }
        format!("{:016x}", wire::digest::short(&bytes))
    }
}
