//! Prompts, few by default and more in a full sweep.

use serde_json::Value;

/// Whether the environment asks for the large counts.
pub(crate) fn full_sweep() -> bool {
    std::env::var("OUTRIDER_SWEEP").is_ok_and(|sweep| sweep == "full")
}

/// GSM8K questions and beginnings of stories in turn: `few`, or five times as many in a full sweep.
pub(crate) fn mixed(few: usize) -> Vec<String> {
    let gsm8k = read(include_str!("../prompts/gsm8k.jsonl"));
    let stories = read(include_str!("../prompts/stories.jsonl"));
    let count = if full_sweep() { 5 * few } else { few };
    gsm8k
        .into_iter()
        .zip(stories)
        .flat_map(|(a, b)| [a, b])
        .take(count)
        .collect()
}

fn read(lines: &str) -> Vec<String> {
    let prompt = |line: &str| {
        let row: Value = serde_json::from_str(line).expect("a JSON line");
        row["prompt"].as_str().expect("a prompt").to_owned()
    };
    lines.lines().map(prompt).collect()
}
