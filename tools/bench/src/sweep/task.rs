//! The prompts of a sweep, with what is known of their answers.

use std::path::Path;

use anyhow::ensure;
use outrider::prompts::{Example, FieldNames, Form, PromptSource};

use crate::quality::Metric;
use crate::request::source;

/// English sentences to be translated into German; the default pair was not trained on them.
const GERMAN: &str = include_str!("../../../../models/default/tasks/german.jsonl");

/// A task whose outputs can be judged.
#[derive(Clone, Debug)]
pub(crate) struct CheckedTask {
    /// What reports call it.
    pub(super) name: String,
    /// At least one.
    pub(crate) items: Vec<Example>,
    /// Texts that end an output unless others are named.
    pub(super) stop: Vec<String>,
}

impl CheckedTask {
    /// Reads the first `most` items of `file`, or of the built-in task.
    ///
    /// # Errors
    /// As [`PromptSource::examples`]; and if `most` is 0.
    pub(crate) fn load(
        file: Option<&Path>,
        names: &FieldNames,
        most: usize,
    ) -> anyhow::Result<Self> {
        ensure!(most > 0, "--prompts: 0 leaves no prompt");
        let (name, source, stop) = match file {
            None => {
                let source = PromptSource::built_in("--task", "the built-in task", GERMAN);
                ("german".to_owned(), source, vec!["\n".to_owned()])
            }
            Some(file) => {
                let stem = file.file_stem().unwrap_or(file.as_os_str());
                let name = stem.to_string_lossy().into_owned();
                (name, source("--task", file)?, Vec::new())
            }
        };
        let mut items = source.examples(names)?;
        items.truncate(most);
        Ok(Self { name, items, stop })
    }

    /// Returns the metric that outputs are measured by unless another one is named: that of the first item.
    pub(super) fn metric(&self) -> Metric {
        let first = self.items.first().map_or(Form::Own, |item| item.form);
        Metric::of(first)
    }

    /// Leaves out the items of whose answers nothing is known, and returns how many they were.
    ///
    /// # Errors
    /// If that are all.
    pub(super) fn leave_out_unknown(&mut self) -> anyhow::Result<usize> {
        let count = self.items.len();
        self.items.retain(|item| !item.references.is_empty());
        ensure!(
            !self.items.is_empty(),
            "--task: none of {count} prompts of {} has a known answer to compare with; name its field with \
             --reference-field, or choose --metric likelihood or a --scorer, which need none",
            self.name
        );
        Ok(count - self.items.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(file: Option<&Path>, most: usize) -> anyhow::Result<CheckedTask> {
        CheckedTask::load(file, &FieldNames::default(), most)
    }

    #[test]
    fn the_built_in_task_is_whole() {
        assert_eq!(load(None, usize::MAX).expect("a task").items.len(), 200);
        let mut task = load(None, 3).expect("a task");
        assert_eq!((task.items.len(), task.metric()), (3, Metric::Exact));
        assert_eq!(task.stop, ["\n"]);
        assert_eq!(task.leave_out_unknown().expect("answers"), 0);
        for item in &task.items {
            assert!(item.text.ends_with("Answer:"), "{}", item.text);
            let score = |output: &str| {
                let score = Metric::Exact.score(&[(output, &item.references)]);
                score.expect("a score").value
            };
            assert_eq!((score(&item.references[0]), score(&item.text)), (1.0, 0.0));
        }
        let error = load(None, 0).expect_err("refused").to_string();
        assert_eq!(error, "--prompts: 0 leaves no prompt");
    }

    #[test]
    fn what_has_no_answer_is_left_out_and_a_task_without_any_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("sums.jsonl");
        let lines = "{\"prompt\": \"1+1=\", \"answer\": \"2\"}\n\n{\"prompt\": \"2+2=\"}\n";
        std::fs::write(&file, lines).expect("written");
        let mut task = load(Some(&file), 9).expect("a task");
        assert_eq!((&task.name[..], task.items.len()), ("sums", 2));
        assert_eq!(task.stop, Vec::<String>::new());
        assert_eq!(task.leave_out_unknown().expect("an answer"), 1);
        assert_eq!(task.items[0].text, "1+1=");
        std::fs::write(&file, "{\"prompt\": \"2+2=\"}\n").expect("written");
        let mut task = load(Some(&file), 9).expect("a task");
        let error = task.leave_out_unknown().expect_err("refused").to_string();
        for part in ["--task: none of 1", "sums", "--reference-field", "--scorer"] {
            assert!(error.contains(part), "{error}");
        }
    }
}
