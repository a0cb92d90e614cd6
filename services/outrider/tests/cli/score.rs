//! Scoring: what is printed, and what is refused.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{each_refused, outrider, refused, shown, succeeds, words};

/// One of the tiny checkpoints, which have no tokenizer.
fn tiny(name: &str) -> String {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/models");
    let folder: PathBuf = tests.join(name);
    folder.display().to_string()
}

fn score(args: &[&str]) -> String {
    succeeds(outrider(&["score"]).args(args)).0
}

fn json(args: &[&str]) -> Value {
    let stdout = score(&[args, &["--json"]].concat());
    serde_json::from_str(&stdout).expect("stdout holds one JSON object and nothing else")
}

#[test]
fn token_ids_need_no_tokenizer() {
    let model = tiny("gemma3");
    let args = ["--model", &model, "--token-ids", "5,6,7,300"];
    let reported = |more: &str| json(&[&args[..], &words(more)].concat());
    let answer = reported("--top 384 --dtype f32");
    let positions = answer["positions"].as_array().expect("an array");
    assert_eq!(positions.len(), 4);
    let probs = positions[0]["top"].as_array();
    assert_eq!(probs.map(Vec::len), Some(384));
    let perplexity = answer["perplexity"].as_f64().expect("a number");
    for (format, tolerance) in [("f16", 1e-2), ("q8_0", 1e-1)] {
        let rounded = reported(&format!("--top 384 --dtype f32 --kv-dtype {format}"));
        let near = rounded["perplexity"].as_f64().expect("a number") / perplexity;
        let is_near = near != 1.0 && (near - 1.0).abs() < tolerance;
        assert!(is_near, "{format}: {near}");
    }
    // For people, too, and in the default format.
    let table = score(&args);
    assert_eq!(table.lines().count(), 6, "{table}");
    assert!(table.contains("perplexity "), "{table}");
}

#[test]
fn text_is_told_token_by_token() {
    let answer = json(&["--text", "Once upon a time there was a dog.", "--top", "1"]);
    let positions = answer["positions"].as_array().expect("an array");
    assert_eq!(positions[0]["token_id"], 1, "texts begin with <s>");
    let perplexity = answer["perplexity"].as_f64().expect("a number");
    assert!(perplexity > 1.0 && perplexity < 40.0, "{perplexity}");
    let nonsense = json(&["--text", "dog time. a was Once there upon a", "--top", "0"]);
    assert!(nonsense["perplexity"].as_f64().expect("a number") > 3.0 * perplexity);
    shown(
        "score",
        &score(&["--text", "Once upon a time", "--top", "2"]),
    );
    // A text of one token has nothing to be likely.
    let one = json(&["--token-ids", "1"]);
    assert!(one["perplexity"].is_null() && one["positions"][0]["top"].is_array());
}

#[test]
fn bad_requests_name_the_flag_and_the_limit() {
    let model = tiny("qwen3");
    let long = vec!["7"; 513].join(",");
    each_refused(
        &["score", "--model", &model],
        &[
            "--token-ids 1,384 | --token-ids | 384",
            &format!("--token-ids {long} | --token-ids | 513 | 512"),
            "--token-ids 1 --top 385 | --top | 385 | 384",
            "--token-ids 1 --kv-dtype q4_0 | kv_dtype | q4_0 | auto, q8_0, f16 and f32",
            "--text x | --text | tokenizer.json | --token-ids",
            " | --text | --token-ids",
        ],
    );
}

/// A tokenizer with more tokens than the model has rows.
#[test]
fn a_tokenizer_of_another_model_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    for file in ["config.json", "model.safetensors"] {
        let from = Path::new(&tiny("llama")).join(file);
        std::fs::copy(from, folder.path().join(file)).expect("copied");
    }
    let tokenizer =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/default/tokenizer/tokenizer.json");
    std::fs::copy(tokenizer, folder.path().join("tokenizer.json")).expect("copied");
    let model = folder.path().display().to_string();
    let said = refused(&["score", "--model", &model, "--text", "Once upon"]);
    assert!(said.contains("4096") && said.contains("384"), "{said}");
}
