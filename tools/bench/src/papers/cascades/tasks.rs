//! Tasks of paper A's kind, of text that the default pair was not trained on.

use outrider::prompts::{Example, FieldNames};

use crate::papers::{Extent, texts};
use crate::quality::Metric;
use crate::sweep::CheckedTask;

/// Most texts of a kind.
const MOST: usize = 60;

/// Prompts with known answers.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) name: &'static str,
    pub(super) metric: Metric,
    /// Where outputs end.
    pub(super) stop: Option<&'static str>,
    pub(super) examples: Vec<Example>,
    pub(super) temperatures: &'static [f32],
}

/// Returns the translation of English sentences into German.
///
/// # Errors
/// If what is built in cannot be read, which is a slip of ours.
pub(super) fn german() -> anyhow::Result<Task> {
    Ok(Task {
        name: "German",
        metric: Metric::Bleu,
        stop: Some("\n"),
        examples: CheckedTask::load(None, &FieldNames::default(), usize::MAX)?.items,
        temperatures: &[0.0, 0.5, 1.0],
    })
}

/// Returns the tasks.
///
/// # Errors
/// If what is built in cannot be read, which is a slip of ours.
pub(super) fn tasks(extent: Extent) -> anyhow::Result<Vec<Task>> {
    let task = |name, mut examples: Vec<Example>| {
        examples.truncate(MOST);
        Task {
            name,
            metric: Metric::Rouge2,
            stop: None,
            examples,
            temperatures: &[0.0, 1.0],
        }
    };
    let mut tasks = vec![
        german()?,
        task("maths", texts::held_out("maths")?),
        task("stories", texts::held_out("story")?),
    ];
    for task in &mut tasks {
        task.examples.truncate(extent.prompts(task.examples.len()));
    }
    if extent.quick {
        for task in &mut tasks {
            task.temperatures = &[1.0];
        }
    }
    Ok(tasks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_prompt_has_an_answer_that_is_not_in_it() {
        let whole = Extent {
            quick: false,
            seed: 0,
        };
        let counts: Vec<_> = tasks(whole)
            .expect("tasks")
            .iter()
            .map(|task| task.examples.len())
            .collect();
        assert_eq!(counts[0], 200);
        assert!(counts[1..].iter().all(|&count| count == MOST), "{counts:?}");
        for task in tasks(whole).expect("tasks") {
            for example in &task.examples {
                assert!(!example.references[0].trim().is_empty());
                assert!(!example.text.contains(&example.references[0]));
            }
        }
        let quick = Extent {
            quick: true,
            ..whole
        };
        assert_eq!(tasks(quick).expect("tasks")[0].examples.len(), 50);
    }
}
