//! `outrider-bench train-head`.

use std::fs;
use std::path::Path;

use crate::{each_refused, program, says, succeeds, words};

const PROMPTS: [&str; 5] = [
    "Once upon a time, there was a",
    "Question: What is 12 + 34?\\nAnswer:",
    "Tom and Lily went to the",
    "def main() -> None:",
    "Question: Translate to German: The bird sleeps.\\nAnswer:",
];

fn prompts(folder: &Path, count: usize) -> String {
    let file = folder.join(format!("prompts-{count}.jsonl"));
    let lines = (0..count).map(|index| format!("{{\"prompt\": \"{}\"}}\n", PROMPTS[index % 5]));
    fs::write(&file, lines.collect::<String>()).expect("written");
    file.display().to_string()
}

/// Trains with small settings; the head's bytes and what was printed.
fn train(folder: &Path, cache: &str, more: &[&str]) -> (Vec<u8>, String) {
    let small = words("--max-tokens 12 --epochs 1 --batch 16");
    let prompts = prompts(folder, 12);
    train_on(&prompts, folder, cache, &[&small[..], more].concat())
}

/// Trains on these prompts; the head's bytes and what was printed.
fn train_on(prompts: &str, folder: &Path, cache: &str, more: &[&str]) -> (Vec<u8>, String) {
    let at = |name: &str| folder.join(name).display().to_string();
    let (out, cache) = (at("head.safetensors"), at(cache));
    let paths = [
        "--prompts",
        prompts,
        "--out",
        &out,
        "--cache",
        &cache,
        "--force",
    ];
    let (printed, _) = succeeds(program(&["train-head"]).args(paths).args(more));
    (fs::read(&out).expect("a head"), printed)
}

fn cached(folder: &Path, cache: &str) -> Vec<(String, String)> {
    let files = fs::read_dir(folder.join(cache)).expect("a cache");
    let files = files.map(|file| file.expect("a file").path());
    let read = |file: std::path::PathBuf| {
        let text = fs::read_to_string(&file).expect("read");
        (file.display().to_string(), text)
    };
    files.map(read).collect()
}

#[test]
fn the_same_inputs_and_seed_give_the_same_head_also_after_an_interruption() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let (head, printed) = train(folder, "a", &[]);
    let printed = printed.replace('\n', " ");
    says(
        &printed,
        "held out | best constant | accepted | rounds replayed | wrote",
    );
    // Responses of twelve tokens are shorter than the rounds that are compared.
    says(&printed, "none: no response held out has 20 tokens");
    let samples = cached(folder, "a");
    assert_eq!(samples.len(), 1);
    let (file, text) = &samples[0];
    assert_eq!(text.lines().count(), 12);
    // As an interruption leaves it; what was sampled is not sampled again.
    let first = text.lines().next().expect("a line");
    fs::write(file, &text[..first.len() + 20]).expect("cut");
    assert_eq!(train(folder, "a", &[]).0, head);
    assert_eq!(cached(folder, "a"), samples);
    // Elsewhere, from nothing.
    assert_eq!(train(folder, "b", &[]).0, head);
    // Another label learns something else from the same samples; another seed samples anew.
    let rejection = train(folder, "a", &["--label", "rejection"]).0;
    assert_ne!(rejection, head);
    assert_eq!(cached(folder, "a"), samples);
    assert_ne!(train(folder, "a", &["--seed", "1"]).0, head);
    assert_eq!(cached(folder, "a").len(), 2);
    for more in [
        "--mix 1",
        "--mix 0.5",
        "--w-rej 6",
        "--depth 0",
        "--depth 3",
    ] {
        assert_ne!(train(folder, "a", &words(more)).0, head, "{more}");
    }
    let untied = train(folder, "a", &["--depth", "2"]).0;
    assert!(train(folder, "a", &["--depth", "2", "--tied"]).0.len() < untied.len());
    assert_eq!(cached(folder, "a").len(), 2);
}

/// The line of what was held out: positions, divergence of the head and of the best constant.
fn held_out(printed: &str) -> [f64; 3] {
    let mut lines = printed.lines();
    let cells = lines.find_map(|line| line.strip_prefix("| held out"));
    let mut cells = cells.expect("a line").split('|').map(str::trim).skip(1);
    std::array::from_fn(|_| {
        let cell = cells.next().expect("three numbers");
        cell.parse().expect("a number")
    })
}

/// The constant is the best of all constants on the very labels; the head has not seen their responses.
#[test]
fn a_head_of_the_embedded_pair_predicts_what_was_held_out_better_than_any_constant() {
    let folder = tempfile::tempdir().expect("a folder");
    let pair = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/default");
    let prompts = format!("{pair}/prompts.jsonl");
    for label in ["coupled", "rejection"] {
        let settings = "--max-tokens 64 --mix 1 --depth 1 --epochs 4 --batch 32 --label";
        let settings = [words(settings), vec![label]].concat();
        let (_, printed) = train_on(&prompts, folder.path(), "cache", &settings);
        let [positions, head, constant] = held_out(&printed);
        assert!(positions > 200.0 && constant > 0.1, "{printed}");
        says(&printed, "best h | best fixed");
        assert!(
            head < 0.9 * constant,
            "{label}: {head}, constant {constant}"
        );
    }
}

#[test]
fn bad_input_is_named_before_any_work() {
    let folder = tempfile::tempdir().expect("a folder");
    let (twelve, nine) = (prompts(folder.path(), 12), prompts(folder.path(), 9));
    let out = folder.path().join("head.safetensors").display().to_string();
    let cache = folder.path().join("cache").display().to_string();
    let with = |prompts: &str, out: &str| -> Vec<String> {
        let words = [
            "train-head",
            "--prompts",
            prompts,
            "--out",
            out,
            "--cache",
            &cache,
        ];
        words.map(str::to_owned).into()
    };
    for (command, table) in [
        (
            with(&twelve, &out),
            &[
                "--depth 5 | depth is 5, expected 0 to 4",
                "--w-rej 0 | w_rej is 0, expected above 0",
                "--mix -0.5 | mix is -0.5, expected 0 to 1",
                "--lr -1 | lr is -1, expected above 0",
                "--epochs 0 | epochs is 0, expected 1 to 1000",
                "--batch 0 | batch is 0, expected 1 to",
                "--temperature -1 | temperature",
                "--max-tokens 0 | --max-tokens: 0 is out of range",
                "--max-tokens 510 | prompt 1 has",
                "--draft-ms 0 | --draft-ms: expected a number above 0",
                "--label block | no label 'block', expected coupled or rejection",
                "--draft no/such/folder | no/such/folder",
                "--target embedded:other | embedded:other",
                "--verifier http://127.0.0.1:9 | verifier http://127.0.0.1:9",
                "--verifier nonsense | --verifier",
            ][..],
        ),
        (with(&nine, &out), &[" | 9 prompts, expected at least 10"]),
        (
            with("no/such/prompts", &out),
            &[" | --prompts: no/such/prompts cannot be read"],
        ),
        (
            with(&twelve, "no/such/folder/head"),
            &[" | --out: no/such/folder is no folder"],
        ),
        (with(&twelve, &nine), &[" | is there already, --force"]),
    ] {
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        each_refused(&command, table);
    }
    assert!(!Path::new(&cache).exists() || fs::read_dir(&cache).expect("listed").count() == 0);
}
