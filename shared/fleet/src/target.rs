//! A target model: what its verifier says of itself, its text, and grammars over its vocabulary.

use std::sync::Arc;

use grammar::Grammars;
use text::ServedText;
use wire::v1::PeerDescription;

/// The target model, as the verifier says that a session is to run at.
#[derive(Clone, Debug)]
pub struct Target {
    /// What that verifier says of itself.
    pub description: Arc<PeerDescription>,
    /// Its tokenizer and its chat template.
    pub text: Arc<ServedText>,
    /// What compiles grammars for its vocabulary.
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
