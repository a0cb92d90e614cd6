//! Text that the default pair was not trained on, cut into prompts and what follows.

use anyhow::Context;
use outrider::prompts::Example;
use serde::Deserialize;

/// Texts of all kinds.
const HELD_OUT: &str = include_str!("../../../../models/default/corpus/heldout.jsonl");

/// Words of a story that are its prompt.
const OPENING_WORDS: usize = 40;
/// Lines of a program that are its prompt.
const OPENING_LINES: usize = 6;

#[derive(Deserialize)]
struct Text {
    kind: String,
    text: String,
}

/// Returns the texts of a kind, each with what follows its prompt as reference: what follows the question in maths, the opening
/// in stories and programs.
///
/// # Errors
/// If what is built in cannot be read, which is a slip of ours.
pub(super) fn held_out(kind: &str) -> anyhow::Result<Vec<Example>> {
    let texts = HELD_OUT.lines().map(serde_json::from_str);
    let texts: Vec<Text> = texts.collect::<Result<_, _>>().context("held-out texts")?;
    let of_kind = texts.iter().filter(|text| text.kind == kind);
    Ok(of_kind.filter_map(|text| cut(kind, &text.text)).collect())
}

/// Cuts a text; none where nothing follows.
fn cut(kind: &str, text: &str) -> Option<Example> {
    let at = match kind {
        "maths" => text.find("Answer:")? + "Answer:".len(),
        "python" => text.match_indices('\n').nth(OPENING_LINES)?.0,
        _ => text.match_indices(' ').nth(OPENING_WORDS)?.0,
    };
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
    fn every_kind_has_prompts_with_what_follows() {
        for (kind, least) in [("story", 90), ("maths", 140), ("python", 45)] {
            let examples = held_out(kind).expect("texts");
            assert!(examples.len() >= least, "{kind}: {}", examples.len());
            for example in &examples {
                assert_eq!(example.kind, kind);
                assert!(!example.text.trim().is_empty());
                assert!(!example.references[0].trim().is_empty());
            }
        }
        assert!(held_out("poems").expect("texts").is_empty());
        assert!(cut("maths", "Question: 1+1? Answer:").is_none());
        let cut = cut("maths", "Question: 1+1? Answer: 2").expect("an answer");
        assert_eq!(
            (&*cut.text, &*cut.references[0]),
            ("Question: 1+1? Answer:", " 2")
        );
    }
}
