//! Prompts by kind.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, anyhow, ensure};
use coordinator::limits::MAX_REQUEST_BYTES;
use net::bounded::{self, MAX_LIST_BYTES};
use serde::Deserialize;

/// Twenty prompts of each kind of text the default pair was trained on, none of them seen then.
const DEFAULT: &str = include_str!("../../../models/default/prompts.jsonl");

/// A prompt and what kind of text it asks for.
#[derive(Clone, Debug, Deserialize)]
pub struct KindPrompt {
    /// What kind of text it asks for; may be empty.
    #[serde(default)]
    pub kind: String,
    /// The prompt.
    #[serde(rename = "prompt")]
    pub text: String,
}

/// Reads prompts, at most `per_kind` of each kind.
///
/// # Errors
/// Names the file and the line that is wrong; and if there is no prompt at all.
pub fn load(file: Option<&Path>, per_kind: usize) -> anyhow::Result<Vec<KindPrompt>> {
    let (name, lines) = match file {
        None => ("the built-in prompts".to_owned(), DEFAULT.to_owned()),
        Some(file) => {
            let name = file.display().to_string();
            let lines = bounded::text_file(file, MAX_LIST_BYTES)
                .with_context(|| format!("--prompts: {name} cannot be read"))?;
            (name, lines)
        }
    };
    let mut counts: HashMap<String, usize> = HashMap::new();
    let mut prompts = Vec::new();
    for (index, line) in lines
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
    {
        let prompt: KindPrompt = serde_json::from_str(line).map_err(|error| {
            // It counts lines of its own: this one is all it saw.
            let reported = error.to_string();
            let problem = reported
                .rsplit_once(" at line ")
                .map_or(reported.as_str(), |(problem, _)| problem);
            let (line, column) = (index + 1, error.column());
            anyhow!("--prompts: {name}, line {line}, column {column}: {problem}")
        })?;
        let found = prompt.text.len();
        ensure!(
            found <= MAX_REQUEST_BYTES,
            "--prompts: {name}, line {}: a prompt of {found} bytes, a coordinator takes {MAX_REQUEST_BYTES}",
            index + 1
        );
        let count = counts.entry(prompt.kind.clone()).or_default();
        if *count < per_kind {
            *count += 1;
            prompts.push(prompt);
        }
    }
    ensure!(per_kind > 0, "--per-kind: 0 leaves no prompt");
    ensure!(!prompts.is_empty(), "--prompts: there is none in {name}");
    Ok(prompts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_prompts_are_twenty_of_five_kinds() {
        assert_eq!(load(None, usize::MAX).expect("prompts").len(), 100);
        assert_eq!(load(None, 3).expect("prompts").len(), 15);
    }

    #[test]
    fn a_bad_line_is_named() {
        let file = std::env::temp_dir().join(format!("prompts-{}.jsonl", std::process::id()));
        std::fs::write(&file, "{\"prompt\": \"a\"}\nnonsense\n").expect("written");
        let error = load(Some(&file), 9).expect_err("refused").to_string();
        std::fs::remove_file(&file).expect("removed");
        assert!(error.contains("line 2, column 2: expected"), "{error}");
        assert_eq!(error.matches("line").count(), 1, "{error}");
    }

    #[test]
    fn a_prompt_that_no_request_holds_and_a_file_without_an_end_are_named() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let prompt = "y".repeat(MAX_REQUEST_BYTES + 1);
        let lines = format!("{{\"prompt\": \"a\"}}\n{{\"prompt\": \"{prompt}\"}}\n");
        std::fs::write(file.path(), lines).expect("written");
        let error = load(Some(file.path()), 9).expect_err("refused").to_string();
        assert!(error.ends_with("line 2: a prompt of 4194305 bytes, a coordinator takes 4194304"));
        let endless = Path::new("/dev/zero");
        if endless.exists() {
            let error = load(Some(endless), 9).expect_err("refused");
            let error = format!("{error:#}");
            let said = "--prompts: /dev/zero cannot be read: more than 64 MiB";
            assert!(error.starts_with(said), "{error}");
        }
    }
}
