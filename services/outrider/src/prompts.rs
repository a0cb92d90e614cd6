//! Prompts, and what is known of their answers, from files as they lie about.

mod conversation;
mod example;
mod fields;
mod record;
mod source;

pub use example::{Example, Form};
pub use record::FieldNames;
pub use source::PromptSource;

use std::collections::HashMap;
use std::path::Path;

use anyhow::ensure;

/// Twenty prompts of each kind of text the default pair was trained on, none of them seen then.
const DEFAULT: &str = include_str!("../../../models/default/prompts.jsonl");

/// Reads the prompts of the file of `--prompts`, at most `per_kind` of each kind; without a file the built-in ones.
///
/// # Errors
/// As [`PromptSource::examples`]; and if `per_kind` is 0.
pub fn load(file: Option<&Path>, per_kind: usize) -> anyhow::Result<Vec<Example>> {
    let source = match file {
        None => built_in(),
        Some(file) => PromptSource::of_file("--prompts", file)?,
    };
    few_of_each(&source, per_kind, &FieldNames::default())
}

/// Returns the built-in prompts: twenty of each kind of text that the default pair was trained on.
pub fn built_in() -> PromptSource<'static> {
    PromptSource::built_in("--prompts", "the built-in prompts", DEFAULT)
}

/// Returns the first examples of `source`, at most `per_kind` of each kind.
///
/// # Errors
/// Those of [`load`].
pub fn few_of_each(
    source: &PromptSource<'_>,
    per_kind: usize,
    names: &FieldNames,
) -> anyhow::Result<Vec<Example>> {
    ensure!(per_kind > 0, "--per-kind: 0 leaves no prompt");
    let mut counts: HashMap<String, usize> = HashMap::new();
    let mut examples = source.examples(names)?;
    examples.retain(|example| {
        let count = counts.entry(example.kind.clone()).or_default();
        *count += 1;
        *count <= per_kind
    });
    Ok(examples)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_prompts_are_twenty_of_five_kinds() {
        assert_eq!(load(None, usize::MAX).expect("prompts").len(), 100);
        assert_eq!(load(None, 3).expect("prompts").len(), 15);
        let error = load(None, 0).expect_err("refused").to_string();
        assert_eq!(error, "--per-kind: 0 leaves no prompt");
    }
}
