//! Tasks of paper A's kind, of text that the default pair was not trained on.

use anyhow::Context;
use outrider::prompts::{Example, FieldNames};
use serde::Deserialize;

use crate::papers::Extent;
use crate::quality::Metric;
use crate::sweep::CheckedTask;

/// Texts of all kinds.
const HELD_OUT: &str = include_str!("../../../../../models/default/corpus/heldout.jsonl");

/// Most texts of a kind.
const MOST: usize = 60;

/// Words of a story that are its prompt.
const OPENING: usize = 40;

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

#[derive(Deserialize)]
struct Text {
    kind: String,
    text: String,
}

/// Returns the tasks.
///
/// # Errors
/// If what is built in cannot be read, which is a slip of ours.
pub(super) fn tasks(extent: Extent) -> anyhow::Result<Vec<Task>> {
    let german = Task {
        name: "German",
        metric: Metric::Bleu,
        stop: Some("\n"),
        examples: CheckedTask::load(None, &FieldNames::default(), usize::MAX)?.items,
        temperatures: &[0.0, 0.5, 1.0],
    };
    let texts = HELD_OUT.lines().map(serde_json::from_str);
    let texts: Vec<Text> = texts.collect::<Result<_, _>>().context("held-out texts")?;
    let of_kind = |kind: &'static str, part: fn(&str) -> Option<usize>| {
        let of_it = texts.iter().filter(move |text| text.kind == kind);
        of_it.filter_map(move |text| example(kind, &text.text, part(&text.text)?))
    };
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
    let asked = |text: &str| text.find("Answer:").map(|at| at + "Answer:".len());
    let opened = |text: &str| text.match_indices(' ').nth(OPENING).map(|(at, _)| at);
    let mut tasks = vec![
        german,
        task("maths", of_kind("maths", asked).collect()),
        task("stories", of_kind("story", opened).collect()),
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

/// Cuts a text into a prompt and what follows; none where nothing does.
fn example(kind: &str, text: &str, at: usize) -> Option<Example> {
    let (prompt, rest) = text.split_at(at);
    (!rest.trim().is_empty()).then(|| Example {
        references: vec![rest.to_owned()],
        ..Example::new(kind, prompt)
    })
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
