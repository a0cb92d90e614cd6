//! Grammars that an output must follow (structured output), compiled for a model's vocabulary.
//!
//! Whoever computes distributions of a model follows the same grammar in the same way, so that drafts fit and what is drawn
//! is exact for the masked distribution: the verifier, which decides, and the drafter. The coordinator compiles a grammar to
//! refuse what cannot be followed before anything is asked of the peers. This crate alone knows at the peers what bytes a
//! token stands for, and logs none of them.
//!
//! | module | what it holds |
//! |---|---|
//! | `vocabulary` | a model's tokens as the bytes they stand for |
//! | `compile` | from a request's grammar to one that is followed, within bounds |
//! | `state` | a position in an output under a grammar |

mod compile;
mod state;
mod vocabulary;

use std::sync::{Arc, OnceLock};

use derive_more::Debug;
use llguidance::ParserFactory;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use speculation::TokenId;
use speculation::constraint::GrammarSpec;
use text::ServedText;
use wire::v1::TokenizerPart;

pub use compile::GrammarError;
pub use state::Grammar;

/// Returns a model's text, which may take a while.
type TextSource = Box<dyn Fn() -> Result<Arc<ServedText>, String> + Send + Sync>;

/// Most bytes of memory that grammars kept compiled take in all, about, and how many of usual size that is.
const KEPT_BYTES: u64 = 16 << 20;
const KEPT: usize = 64;

/// Estimates what a compiled grammar takes: measured were 42 to 50 kB of short ones, and 40 to 55 times the text of schemas of
/// 4 and 43 kB.
#[derive(Clone)]
struct CompiledBytes;

impl Weighter<GrammarSpec, Grammar> for CompiledBytes {
    fn weight(&self, spec: &GrammarSpec, _: &Grammar) -> u64 {
        (48 << 10) + 55 * spec.bytes() as u64
    }
}

/// Compiles grammars for one model. What that takes of its vocabulary is made when the first grammar comes.
#[derive(Debug)]
pub struct Grammars {
    #[debug(skip)]
    text: TextSource,
    vocab_size: u32,
    /// Tokens that end the output, where the grammar may end.
    ends: Vec<TokenId>,
    #[debug(skip)]
    factory: OnceLock<Result<ParserFactory, String>>,
    /// The grammars of late: clients send the same one with each request.
    #[debug(skip)]
    kept: Cache<GrammarSpec, Grammar, CompiledBytes>,
}

impl Grammars {
    /// Returns the compiler for a model with the text that `text` returns, whose token ids are below `vocab_size`, and which
    /// ends its output with one of `ends`.
    pub fn new(
        text: impl Fn() -> Result<Arc<ServedText>, String> + Send + Sync + 'static,
        vocab_size: u32,
        ends: Vec<TokenId>,
    ) -> Self {
        Self {
            text: Box::new(text),
            vocab_size,
            ends,
            factory: OnceLock::new(),
            kept: Cache::with_weighter(KEPT, KEPT_BYTES, CompiledBytes),
        }
    }

    /// Returns the same for a model whose `tokenizer.json` is what `json` returns.
    pub fn of_json(
        json: impl Fn() -> Vec<u8> + Send + Sync + 'static,
        vocab_size: u32,
        ends: Vec<TokenId>,
    ) -> Self {
        let read = move || ServedText::new(&json(), TokenizerPart::default()).map(Arc::new);
        Self::new(read, vocab_size, ends)
    }

    /// Compiles `spec`, which takes up to a tenth of a second, if it is not kept. The first call also builds the vocabulary's
    /// trie, which takes longer.
    ///
    /// # Errors
    /// The reason why the grammar cannot be followed.
    pub fn compile(&self, spec: &GrammarSpec) -> Result<Grammar, GrammarError> {
        let compiled = || self.compile_anew(spec);
        self.kept.get_or_insert_with(spec, compiled)
    }

    fn compile_anew(&self, spec: &GrammarSpec) -> Result<Grammar, GrammarError> {
        let top = compile::top_level(spec)?;
        let factory = self
            .factory
            .get_or_init(|| vocabulary::factory((self.text)()?, self.vocab_size, &self.ends));
        let factory = factory
            .as_ref()
            .map_err(|error| GrammarError::Vocabulary(error.clone()))?;
        compile::compiled(factory, top)
    }
}

#[cfg(test)]
mod tests;
