//! A target model: its verifier's description, its tokenizer, and the compiler of grammars for its vocabulary.

use std::sync::Arc;

use grammar::Grammars;
use text::ServedText;
use wire::v1::PeerDescription;

/// The target model of a session, as the session's verifier describes it.
#[derive(Clone, Debug)]
pub struct Target {
    /// The verifier's description.
    pub description: Arc<PeerDescription>,
    /// Its tokenizer and its chat template.
    pub text: Arc<ServedText>,
    /// The compiler of grammars for its vocabulary.
    pub grammars: Arc<Grammars>,
}

impl Target {
    /// Returns a target that says `description` of itself and has this `text`.
    pub fn new(description: Arc<PeerDescription>, text: Arc<ServedText>) -> Self {
        let of_grammars = Arc::clone(&text);
        let ends = description.eos_token_ids.clone();
        let read = move || Ok(Arc::clone(&of_grammars));
        let grammars = Grammars::new(read, description.vocab_size, ends);
        Self {
            description,
            text,
            grammars: Arc::new(grammars),
        }
    }
}
