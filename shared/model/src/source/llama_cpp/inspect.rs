//! A GGUF file for llama.cpp, looked at before it is loaded.

use std::collections::BTreeMap;
use std::path::Path;

use super::{Opened, Problem};
use crate::gguf::GgufError;
use crate::source::located::Located;
use crate::source::{Inspected, InspectedText, ModelSource, Outline, SourceError};
use crate::tokenizer::{self, TokenizerError, token_bound, vocabulary_fingerprint};

impl ModelSource {
    /// Checks the settings that llama.cpp would refuse.
    ///
    /// # Errors
    /// Names the setting.
    pub(in crate::source) fn check_for_llama_cpp(&self) -> Result<(), SourceError> {
        let checked = self.kv_of_llama_cpp().and_then(|_| self.threads());
        checked.map(drop).map_err(|error| self.named(error.into()))
    }

    /// Looks at the file's metadata; none if the tokenizer is of a kind that llama.cpp alone reads.
    ///
    /// # Errors
    /// As loading, but for what llama.cpp says of the file.
    pub(in crate::source) fn inspect_for_llama_cpp(
        &self,
        located: &Located,
    ) -> Result<Option<Inspected>, SourceError> {
        self.check_for_llama_cpp()?;
        let inspected = located.gguf().and_then(|path| self.inspect_gguf(path));
        inspected.map_err(|problem| self.named(problem))
    }

    fn inspect_gguf(&self, path: &Path) -> Result<Option<Inspected>, Problem> {
        let opened = Opened::of(path)?;
        let json = match opened.tokenizer {
            Err(refused) if refused.is_of_the_tokenizers_kind() => return Ok(None),
            read => read.map_err(|error: GgufError| Problem::Engine(error.into()))?,
        };
        let json = json.ok_or(TokenizerError::Missing)?;
        let tokenizer = tokenizer::from_bytes(&json)?;
        let tensors = &opened.file.tensors;
        let format = tensors.main_format().to_owned();
        Ok(Some(Inspected {
            own: None,
            stored: BTreeMap::from([(format, tensors.bytes.len() as u64)]),
            outline: Outline {
                name: self.served_name(),
                vocab_size: token_bound(&tokenizer) as u32,
                vocab_fingerprint: vocabulary_fingerprint(&tokenizer),
                decoder_start_token_id: None,
            },
            text: InspectedText {
                special_tokens: opened.special.of(&tokenizer),
                tokenizer_json: json,
                chat_template: opened.chat_template,
            },
        }))
    }
}
