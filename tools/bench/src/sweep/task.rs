//! Prompts with known answers.

use std::path::Path;

use anyhow::{Context, ensure};
use net::bounded::{self, MAX_LIST_BYTES};
use serde::Deserialize;

/// English sentences to be translated into German; the default pair was not trained on them.
const GERMAN: &str = include_str!("../../../../models/default/tasks/german.jsonl");

/// A task whose outputs can be checked.
#[derive(Clone, Debug)]
pub(super) struct CheckedTask {
    /// What reports call it.
    pub(super) name: String,
    /// At least one.
    pub(super) items: Vec<TaskItem>,
}

/// A prompt and its answer.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct TaskItem {
    pub(super) prompt: String,
    answer: String,
}

impl TaskItem {
    /// Whether the first line of `output` is the answer, white space around them aside. A first line
    /// that is empty answers nothing: what comes after it does not count.
    pub(super) fn is_answered_by(&self, output: &str) -> bool {
        output.lines().next().unwrap_or_default().trim() == self.answer.trim()
    }
}

impl CheckedTask {
    /// Reads the first `most` items of `file`, or of the built-in task.
    ///
    /// # Errors
    /// Names the file and the line that is wrong.
    pub(super) fn load(file: Option<&Path>, most: usize) -> anyhow::Result<Self> {
        let (name, lines) = match file {
            None => ("german".to_owned(), GERMAN.to_owned()),
            Some(file) => {
                let stem = file.file_stem().unwrap_or(file.as_os_str());
                let lines = bounded::text_file(file, MAX_LIST_BYTES)
                    .with_context(|| format!("--task: {} cannot be read", file.display()))?;
                (stem.to_string_lossy().into_owned(), lines)
            }
        };
        let lines = lines.lines().enumerate();
        let items = lines
            .filter(|(_, line)| !line.trim().is_empty())
            .take(most)
            .map(|(index, line)| {
                serde_json::from_str(line)
                    .with_context(|| format!("--task: {name}, line {}", index + 1))
            })
            .collect::<anyhow::Result<Vec<_>>>()?;
        ensure!(
            !items.is_empty(),
            "--task: {name} holds no prompt, or --prompts is 0"
        );
        Ok(Self { name, items })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_is_compared_as_a_whole() {
        let item = TaskItem {
            prompt: String::new(),
            answer: " Der Hund.".to_owned(),
        };
        let more = "Der Hund.\nQuestion: what?";
        for right in [" Der Hund.", "Der Hund.  ", more, "Der Hund.\r\n"] {
            assert!(item.is_answered_by(right), "{right:?}");
        }
        let [late, spaced, longer] = ["\nDer Hund.", "Der  Hund.", "Der Hund. Ja."];
        for wrong in ["", late, "Der Hund", "Der hund.", spaced, longer] {
            assert!(!item.is_answered_by(wrong), "{wrong:?}");
        }
    }

    #[test]
    fn the_built_in_task_is_whole() {
        let whole = CheckedTask::load(None, usize::MAX).expect("a task");
        assert_eq!(whole.items.len(), 200);
        let task = CheckedTask::load(None, 3).expect("a task");
        assert_eq!(task.items.len(), 3);
        for item in task.items {
            assert!(item.prompt.ends_with("Answer:"), "{}", item.prompt);
            assert!(item.is_answered_by(&item.answer));
            assert!(!item.is_answered_by(&item.prompt));
        }
        assert!(CheckedTask::load(None, 0).is_err());
    }

    #[test]
    fn a_bad_line_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("sums.jsonl");
        let lines = "{\"prompt\": \"1+1=\", \"answer\": \"2\"}\n\n{\"prompt\": \"2+2=\"}\n";
        std::fs::write(&file, lines).expect("written");
        let error = format!(
            "{:#}",
            CheckedTask::load(Some(&file), 9).expect_err("refused")
        );
        assert!(error.contains("line 3"), "{error}");
        assert!(error.contains("answer"), "{error}");
        assert_eq!(
            CheckedTask::load(Some(&file), 1).expect("a task").name,
            "sums"
        );
    }
}
