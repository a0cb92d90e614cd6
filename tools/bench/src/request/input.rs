//! What prompts are read from, and what is put before them.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use coordinator::limits::MAX_REQUEST_BYTES;
use net::bounded;
use outrider::prompts::{self, Example, FieldNames, PromptSource};

use super::parquet;

/// How files of prompts are read.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct InputArgs {
    /// Field of JSON objects that holds the prompt, for files of none of the forms that are recognised.
    #[arg(long, value_name = "NAME")]
    pub(crate) prompt_field: Option<String>,
    /// File whose text stands before each prompt as it is, such as some solved examples.
    #[arg(long, value_name = "FILE")]
    prefix_file: Option<PathBuf>,
    /// Text behind each prompt as it is, such as `Answer:` on a line of its own.
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    suffix: String,
    /// Most tokens of a prompt as the model reads it, special tokens and chat template included; of a longer one the
    /// beginning is cut off, that of --prefix-file first. Tokens are counted before anything is measured.
    #[arg(long, value_name = "N")]
    pub(crate) max_input: Option<NonZeroU32>,
}

impl InputArgs {
    /// Returns the prompts of `--prompts`, at most `per_kind` of each kind, with what stands around them; without a file
    /// the built-in ones.
    ///
    /// # Errors
    /// As [`prompts::few_of_each`]; and if that text cannot be read.
    pub(crate) fn load(
        &self,
        file: Option<&Path>,
        per_kind: usize,
    ) -> anyhow::Result<Vec<Example>> {
        let source = match file {
            None => prompts::built_in(),
            Some(file) => source("--prompts", file)?,
        };
        let mut examples = prompts::few_of_each(&source, per_kind, &self.names(None))?;
        self.surround(&mut examples)?;
        Ok(examples)
    }

    /// Returns the names of the fields that are read, with that of the known answer.
    pub(crate) fn names(&self, reference: Option<String>) -> FieldNames {
        FieldNames {
            prompt: self.prompt_field.clone(),
            reference,
        }
    }

    /// Puts the text of `--prefix-file` before each prompt, and that of `--suffix` behind it.
    ///
    /// # Errors
    /// If the file cannot be read, or has more bytes than a request.
    pub(crate) fn surround(&self, examples: &mut [Example]) -> anyhow::Result<()> {
        let prefix = match &self.prefix_file {
            None => String::new(),
            Some(file) => bounded::text_file(file, MAX_REQUEST_BYTES as u64)
                .with_context(|| format!("--prefix-file: {} cannot be read", file.display()))?,
        };
        for example in examples {
            example.text = format!("{prefix}{}{}", example.text, self.suffix);
        }
        Ok(())
    }
}

/// Returns the prompts of the file that `flag` names: of Parquet where it ends with `.parquet`.
///
/// # Errors
/// As [`PromptSource::of_file`].
pub(crate) fn source<'a>(flag: &'a str, file: &Path) -> anyhow::Result<PromptSource<'a>> {
    if file.extension().is_none_or(|ending| ending != "parquet") {
        return PromptSource::of_file(flag, file);
    }
    let name = file.display().to_string();
    let rows = parquet::rows(file).with_context(|| format!("{flag}: {name} cannot be read"))?;
    Ok(PromptSource::of_objects(flag, name, rows))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::parsed;

    #[test]
    fn texts_stand_around_each_prompt_as_they_are() {
        let folder = tempfile::tempdir().expect("a folder");
        let [shots, tasks] = ["shots.txt", "tasks.jsonl"].map(|name| folder.path().join(name));
        std::fs::write(&shots, "Q: 1+1\nA: 2\n\n").expect("written");
        std::fs::write(&tasks, "{\"ask\": \"Q: 2+2\"}\n{\"ask\": \"Q: 3+3\"}\n").expect("written");
        let shots = shots.to_str().expect("a path");
        let around = ["--prefix-file", shots, "--suffix", "\nA:"];
        let args: InputArgs = parsed(&[&["--prompt-field", "ask"], &around[..]].concat());
        let examples = args.load(Some(&tasks), 1).expect("prompts");
        let texts: Vec<_> = examples.iter().map(|example| &example.text).collect();
        assert_eq!(texts, ["Q: 1+1\nA: 2\n\nQ: 2+2\nA:"]);
        let missing: InputArgs = parsed(&["--prefix-file", "no/such/file"]);
        let error = missing.load(None, 1).expect_err("refused").to_string();
        assert_eq!(error, "--prefix-file: no/such/file cannot be read");
    }
}
