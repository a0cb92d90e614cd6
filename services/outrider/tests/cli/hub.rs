//! Models by their names on a hub, which runs on loopback in this process.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use super::hub_server::{COMMIT, HubServer};
use super::{fails, json, outrider, says, succeeds, words};

const DEFAULT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/default");

/// A hub with the default pair, and an empty cache.
struct Setup {
    server: HubServer,
    home: TempDir,
}

impl Setup {
    fn new() -> Self {
        let server = HubServer::start();
        let home = tempfile::tempdir().expect("a folder");
        let setup = Self { server, home };
        for role in ["target", "draft"] {
            setup.add(&format!("outrider/default-{role}"), role);
        }
        let head = "head-coupled.safetensors";
        let contents = read(&format!("draft/{head}"));
        setup.server.add("outrider/default-draft", head, contents);
        setup
    }

    /// Puts the model of the default pair in this role into `repo`.
    fn add(&self, repo: &str, role: &str) {
        for file in ["config.json", "model.safetensors"] {
            self.server.add(repo, file, read(&format!("{role}/{file}")));
        }
        for file in ["tokenizer.json", "tokenizer_config.json"] {
            self.server
                .add(repo, file, read(&format!("tokenizer/{file}")));
        }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = outrider(args);
        command
            .env("HF_ENDPOINT", &self.server.url)
            .env("HF_HOME", self.home.path());
        for other in words("HF_HUB_CACHE HF_TOKEN HF_TOKEN_PATH HF_HUB_OFFLINE") {
            command.env_remove(other);
        }
        command
    }
}

fn read(file: &str) -> Vec<u8> {
    std::fs::read(Path::new(DEFAULT).join(file)).expect(file)
}

#[test]
fn a_pair_is_served_by_its_names_on_the_hub() {
    let setup = Setup::new();
    let prompt =
        words("--prompt 'Once upon a time' --max-tokens 24 --seed 5 --draft-len specdec++:0.7");
    let models = "--target-model outrider/default-target --draft-model outrider/default-draft@main";
    let args = [vec!["generate", "--json"], prompt.clone(), words(models)].concat();
    let (printed, reported) = succeeds(&mut setup.command(&args));
    let answer: Value = serde_json::from_str(&printed).expect("JSON");
    assert_eq!(answer["token_ids"], json(&prompt)["token_ids"]);
    assert_eq!(answer["speculation"]["fallbacks"], 0);
    says(&reported, COMMIT);
    says(
        &reported,
        "model.safetensors | head-coupled.safetensors | sha256:",
    );

    // From the cache, without a network.
    let requested = setup.server.seen().len();
    let (printed, _) = succeeds(setup.command(&args).env("HF_HUB_OFFLINE", "1"));
    let again: Value = serde_json::from_str(&printed).expect("JSON");
    assert_eq!(again["token_ids"], answer["token_ids"]);
    assert_eq!(setup.server.seen().len(), requested);
}

/// Of a family that another engine computes.
#[test]
fn a_mixture_of_experts_is_served_by_its_name_on_the_hub() {
    let setup = Setup::new();
    for (name, bytes) in super::families::mixture() {
        setup.server.add("org/mixture", name, bytes);
    }
    let args =
        words("generate --json --prompt Once --max-tokens 8 --seed 5 --target-model org/mixture");
    let (printed, reported) = succeeds(&mut setup.command(&args));
    let answer: Value = serde_json::from_str(&printed).expect("JSON");
    assert!(
        answer["token_ids"]
            .as_array()
            .is_some_and(|ids| !ids.is_empty())
    );
    says(&reported, COMMIT);
}

#[test]
fn models_are_pulled_and_listed() {
    let setup = Setup::new();
    let pull = |model: &str| setup.command(&["models", "pull", model]);
    let (pulled, _) = succeeds(&mut pull("outrider/default-draft"));
    says(&pulled, COMMIT);
    says(
        &pulled,
        "outrider/default-draft@main | sha256: | config.json",
    );
    let list = |args: &[&str]| {
        let args = [&["models", "list"], args].concat();
        succeeds(&mut setup.command(&args)).0
    };
    let models: Vec<Value> = serde_json::from_str(&list(&["--json"])).expect("JSON");
    let named = |name: &str| models.iter().find(|model| model["name"] == name);
    assert!(named("embedded:target").is_some(), "{models:?}");
    let model = named("outrider/default-draft").expect("the pulled model");
    assert_eq!(model["commit"], COMMIT);
    assert_eq!(model["revisions"][0], "main");
    assert_eq!(model["files"].as_array().map(Vec::len), Some(5));
    assert!(model["bytes"].as_u64() > Some(2_000_000));
    assert!(list(&[]).contains("outrider/default-draft"));

    assert_eq!(
        (&model["complete"], &model["missing"]),
        (&true.into(), &Value::Null)
    );

    // What does not come is told of.
    setup.server.cut_after(&[70_000, 0, 0, 0, 0, 0]);
    fails(&mut pull("outrider/default-target"));
    setup.server.cut_after(&[]);
    let parts =
        "incomplete: its weights are missing | 70000 bytes | models pull outrider/default-target";
    says(&list(&[]), parts);
}

/// Answers break off, and are asked for again after a pause: longer than a bar waits before it is shown.
#[cfg(unix)]
#[test]
fn bars_show_downloads_at_a_terminal_and_are_gone_at_the_end() {
    use crate::pty::{Terminal, rows};

    let setup = Setup::new();
    setup.server.cut_after(&[300_000; 5]);
    let pull = setup.command(&["models", "pull", "outrider/default-draft"]);
    let mut terminal = Terminal::run(pull);
    terminal.shows("downloading outrider/default-draft/model.safetensors");
    terminal.shows("of 2.06 MiB, ");
    let (status, screen) = terminal.ends();
    assert!(status.success(), "{screen}");
    let told: Vec<_> = screen.lines().take(1).collect();
    assert_eq!(
        told,
        [format!("outrider/default-draft at commit {COMMIT}:")]
    );
    assert!(
        !screen.contains("downloading") && !screen.contains(" left"),
        "{screen}"
    );

    // Two at a time have a bar each.
    let setup = Setup::new();
    setup.add("outrider/twin", "draft");
    setup.server.cut_after(&[150_000; 28]);
    let line = "generate --prompt Once --max-tokens 2 --target-model outrider/twin \
                --draft-model outrider/default-draft";
    let mut terminal = Terminal::run(setup.command(&words(line)));
    terminal.until("two bars", |screen| {
        let has_bar = |name: &str| {
            let bar = format!("downloading outrider/{name}/model.safetensors ");
            rows(screen).any(|row| row.starts_with(&bar))
        };
        has_bar("twin") && has_bar("default-draft")
    });
    let (status, screen) = terminal.ends();
    assert!(status.success(), "{screen}");
    assert!(
        !screen.contains("ing outrider") && !screen.contains(" left"),
        "{screen}"
    );
}

#[test]
fn a_pipe_gets_lines_and_no_bars() {
    let setup = Setup::new();
    setup.server.cut_after(&[300_000; 5]);
    let mut pull = setup.command(&["models", "pull", "outrider/default-draft"]);
    let (_, reported) = succeeds(&mut pull);
    let (downloaded, listed): (Vec<_>, Vec<_>) = reported
        .lines()
        .partition(|line| line.starts_with("downloaded outrider/default-draft/"));
    assert_eq!((downloaded.len(), listed.len()), (5, 6), "{reported}");
    assert!(
        listed[0].ends_with(&format!("at commit {COMMIT}:")),
        "{reported}"
    );
    assert!(!reported.contains(['\r', '\u{1b}']), "{reported}");
}

#[test]
fn the_hubs_token_is_sent_and_never_logged() {
    let setup = Setup::new();
    let token = "hf_0123456789abcdef";
    let mut pulling = setup.command(&["models", "pull", "outrider/default-draft"]);
    let pulled = succeeds(pulling.env("HF_TOKEN", token));
    let line = "generate --log trace,h2=trace,ureq=trace,rustls=trace --prompt Once --max-tokens 2 \
                --target-model outrider/default-target";
    let generated = succeeds(setup.command(&words(line)).env("HF_TOKEN", token));
    assert!(generated.1.contains("TRACE"), "{}", generated.1);
    let seen = setup.server.seen();
    let header = format!("Bearer {token}");
    let was_sent = seen
        .iter()
        .any(|requested| requested.token.as_ref() == Some(&header));
    assert!(was_sent, "{seen:?}");
    for said in [pulled.0, pulled.1, generated.0, generated.1] {
        assert!(!said.contains(token));
    }
}
