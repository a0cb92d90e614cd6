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
