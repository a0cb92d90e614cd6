//! A GGUF file for llama.cpp, looked at before it is loaded.

use std::collections::BTreeMap;

use super::OpenedGguf;
use crate::source::located::Located;
use crate::source::{EngineKind, Inspected, ModelSource, SourceError, SpecialTokens};
use crate::weights::file::main_format;

impl ModelSource {
    /// Checks the settings that llama.cpp would refuse.
    ///
    /// # Errors
    /// Names the setting.
    pub(in crate::source) fn check_for_llama_cpp(&self) -> Result<(), SourceError> {
        let checked = self.kv_of_llama_cpp().and_then(|_| self.threads());
        checked.map(drop).map_err(|error| self.refused(error))
    }

    /// Looks at the file's metadata; none if the tokenizer is of a kind that llama.cpp alone reads.
    ///
    /// # Errors
    /// As loading, but for what llama.cpp says of the file.
    pub(in crate::source) fn inspect_for_llama_cpp(
        &self,
        located: &Located,
    ) -> Result<Option<Inspected>, SourceError> {
        let path = located.gguf().map_err(|error| self.refused(error))?;
        let opened = OpenedGguf::of(path).map_err(|error| self.refused(error))?;
        if matches!(&opened.tokenizer, Err(refused) if refused.is_of_the_tokenizers_kind()) {
            return Ok(None);
        }
        // llama.cpp alone says how long its rows are.
        let tokenizer = self.tokenizer(opened.tokenizer, usize::MAX)?;
        let files = &opened.model.files;
        let format = main_format(files).to_owned();
        let bytes = files.iter().map(|file| file.bytes.len() as u64).sum();
        let special = SpecialTokens::by_id(
            opened.bos,
            opened.ends.first().copied(),
            &tokenizer.tokenizer,
        );
        Ok(Some(Inspected {
            own: None,
            engine: EngineKind::LlamaCpp,
            by_candle: None,
            hidden_size: 0,
            stored: BTreeMap::from([(format, bytes)]),
            outline: tokenizer.outline(self.served_name()),
            text: tokenizer.encoding(special, opened.chat_template).1,
        }))
    }
}
