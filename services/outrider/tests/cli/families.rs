//! Families that engine candle computes, and who computes which.

use std::path::Path;

use model::candle::{CandleConfig, random};
use outrider_tests::candle::config;
use serde_json::Value;

use super::checking::DEFAULT;
use super::{fails, json, outrider, says, succeeds, words};

/// Files of a small mixture of experts whose vocabulary is that of the built-in pair, with a chat template and a second
/// end token.
pub(crate) fn mixture() -> Vec<(&'static str, Vec<u8>)> {
    let tokenizer = Path::new(DEFAULT).join("tokenizer/tokenizer.json");
    let json = config("qwen3_moe", 4096);
    let config = CandleConfig::from_json(json.as_bytes()).expect("a config");
    let template = "{% for message in messages %}{{ message.content }} {% endfor %}";
    vec![
        ("config.json", json.into_bytes()),
        ("model.safetensors", random(&config, 7).expect("weights")),
        ("tokenizer.json", std::fs::read(tokenizer).expect("read")),
        ("chat_template.jinja", template.as_bytes().to_vec()),
        (
            "generation_config.json",
            br#"{"eos_token_id": [2, 3]}"#.to_vec(),
        ),
    ]
}

#[test]
fn families_are_listed_with_who_computes_them() {
    let (listed, _) = succeeds(&mut outrider(&["models", "families"]));
    for line in ["qwen3_moe | candle", "llama | outrider"] {
        let (family, engine) = line.split_once(" | ").expect("two");
        let line = listed.lines().find(|line| line.starts_with(family));
        says(line.expect(family), &format!("{engine} | llama-cpp"));
    }
    let line = listed.lines().find(|line| line.starts_with("falcon"));
    says(line.expect("falcon"), "candle, drafters only");
    says(&listed, "docs/llama-cpp.md | docs/engines.md");
    let (printed, _) = succeeds(&mut outrider(&["models", "families", "--json"]));
    let families: Vec<Value> = serde_json::from_str(&printed).expect("JSON");
    let of = |family: &str| {
        let mut families = families.iter();
        let types = |it: &&Value| {
            it["model_types"]
                .as_array()
                .is_some_and(|types| types.contains(&family.into()))
        };
        families.find(types).expect("a family")
    };
    for (family, engine) in [
        ("glm4", "outrider"),
        ("qwen3_moe", "candle"),
        ("t5", "outrider"),
        ("gemma3_text", "outrider"),
    ] {
        assert_eq!(of(family)["engine"], engine);
    }
    for (family, drafts_only) in [("phi", true), ("glm4", false), ("llama", false)] {
        assert_eq!(of(family)["drafts_only"], drafts_only, "{family}");
    }
}

#[test]
fn a_mixture_of_experts_is_served_from_its_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, bytes) in mixture() {
        std::fs::write(folder.path().join(name), bytes).expect("written");
    }
    let model = folder.path().to_str().expect("UTF-8");
    let asked = |flags: &str| {
        let request = words("--prompt 'Once upon a time' --max-tokens 24 --seed 5 --ignore-eos");
        let models = ["--target-model", model];
        json(&[&request[..], &models, &words(flags)].concat())
    };
    let alone = asked("--method target-only");
    assert_eq!(alone["token_ids"].as_array().map(Vec::len), Some(24));
    for flags in [
        "--draft-model embedded:draft --draft-len 4",
        "--drafting max-gram",
    ] {
        let answer = asked(flags);
        assert_eq!(answer["token_ids"], alone["token_ids"], "{flags}");
        assert_eq!(answer["speculation"]["fallbacks"], 0, "{flags}");
    }
    let itself = asked(&format!("--draft-model {model} --draft-len 4"));
    assert_eq!(itself["token_ids"], alone["token_ids"]);
    // By its own template.
    let chat = words("--chat Hello --max-tokens 4 --method target-only --target-model");
    assert!(json(&[&chat[..], &[model]].concat())["token_ids"].is_array());

    let (said, _) = succeeds(&mut outrider(&[
        "doctor",
        "--target-model",
        model,
        "--draft-model",
        "none",
    ]));
    says(
        &said,
        "computed by candle-transformers in f32, context of 640 tokens | weights take",
    );
    std::fs::remove_file(folder.path().join("model.safetensors")).expect("removed");
    says(
        &fails(&mut outrider(&["generate", "x", "--target-model", model])),
        "engine candle | model.safetensors",
    );
}
