//! One model is enough: without a draft model of its vocabulary the target decodes, and drafts are copied from the text.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::checking::other_vocabulary;
use super::health::get;
use super::{ANY, Server, fails, free_address, json, outrider, run, says, succeeds, words};

/// A folder, and in it a model whose vocabulary is not that of the built-in pair.
fn model() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let model = other_vocabulary(folder.path());
    (folder, model.to_str().expect("UTF-8").to_owned())
}

#[test]
fn a_target_model_alone_gives_its_own_tokens_however_drafts_are_asked_for() {
    let (_folder, model) = model();
    let asked = |flags: &str| {
        let request = words("--prompt 'one two one two one two one' --max-tokens 24 --seed 5");
        json(&[&request[..], &["--target-model", &model], &words(flags)].concat())
    };
    let alone = asked("--method target-only");
    for flags in [
        "",
        "--draft-model none",
        "--drafting max-gram",
        "--drafting lookup --draft-cap 4",
    ] {
        let answer = asked(flags);
        assert_eq!(answer["token_ids"], alone["token_ids"], "{flags}");
        assert_eq!(answer["settings"]["schedule"], "stream", "{flags}");
        assert_eq!(answer["settings"]["drafting"], "max-gram", "{flags}");
        assert_eq!(answer["speculation"]["fallbacks"], 0, "{flags}");
    }
    // There is no drafter for rounds.
    let rounds = asked("--draft-len 4");
    assert_eq!(rounds["token_ids"], alone["token_ids"]);
    assert_eq!(rounds["effective_method"], "target-only");
}

#[test]
fn it_is_told_that_no_draft_model_is_named() {
    let (folder, model) = model();
    let generate = [
        "generate",
        "x",
        "--max-tokens",
        "1",
        "--target-model",
        &model,
    ];
    let told = |more: &[&str]| {
        let output = run(&[&generate[..], more].concat());
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stderr).expect("UTF-8")
    };
    let note = "'other' decodes without a draft model";
    assert_eq!(told(&[]).matches(note).count(), 1);
    assert!(!told(&["--draft-model", "none"]).contains(note));
    // One that is named drafts, whatever its vocabulary.
    for named in ["embedded:small", "embedded:draft"] {
        assert!(!told(&["--draft-model", named]).contains(note), "{named}");
    }
    let file = folder.path().join("outrider.toml");
    std::fs::write(&file, format!("[verifier.model]\npath = '{model}'")).expect("written");
    let file = file.to_str().expect("UTF-8");
    succeeds(&mut outrider(&["config", "check", file]));
}

#[test]
fn who_drafts_and_how_much_by_default_are_flags_of_a_coordinator() {
    for (flags, said) in [
        (
            "all --drafting guess",
            "coordinator.drafting from flag | 'guess' | max-gram",
        ),
        (
            "coordinator --drafting guess",
            "coordinator.drafting from flag | 'guess' | max-gram",
        ),
        (
            "all --drafting ngram --draft-len 65",
            "coordinator.draft_len | 65 | 1 to 64",
        ),
    ] {
        let served = [&words("serve --admin off")[..], &words(flags)].concat();
        says(&fails(&mut outrider(&served)), said);
    }
}

#[test]
fn a_file_where_a_served_models_name_is_expected_is_told_from_one() {
    let (_folder, model) = model();
    let mut given = outrider(&["generate", "x", "--model", &model]);
    says(&fails(&mut given), "--served-model | --target-model loads");
}

/// The names under which a process serves, once it does.
fn names(http: &str) -> Vec<String> {
    let until = Instant::now() + Duration::from_secs(60);
    while TcpStream::connect(http).is_err() {
        assert!(Instant::now() < until, "nobody serves at {http}");
        std::thread::sleep(Duration::from_millis(20));
    }
    let listed: Value =
        serde_json::from_str(&get(&format!("http://{http}"), "/v1/models")).expect("JSON");
    let models = listed["data"].as_array().expect("models").iter();
    models
        .map(|model| model["id"].as_str().expect("a name").to_owned())
        .collect()
}

#[test]
fn a_model_is_served_by_its_own_name_and_two_deployments_go_beside_each_other() {
    let (_folder, model) = model();
    let (own, other) = (free_address(), free_address());
    let all = |http: &str, more: &[&str]| {
        let served = ["serve", "all", "--target-model", &model, "--listen", ANY];
        // The ports of drafter and verifier are those of the default.
        let mut command =
            outrider(&[&served[..], &["--http", http, "--admin", "off"], more].concat());
        command.stderr(std::process::Stdio::null());
        Server::of(command.spawn().expect("the binary runs"))
    };
    let _first = all(&own, &[]);
    assert_eq!(names(&own), ["other"]);
    let _second = all(
        &other,
        &words("--served-model-name a --served-model-name b"),
    );
    assert_eq!(names(&other), ["a"]);
    for (http, name) in [
        (&own, "other"),
        (&own, "default"),
        (&other, "a"),
        (&other, "b"),
    ] {
        let found = get(&format!("http://{http}"), &format!("/v1/models/{name}"));
        let expected = if http == &own { "other" } else { "a" };
        assert!(found.contains(&format!("\"id\":\"{expected}\"")), "{found}");
    }
}
