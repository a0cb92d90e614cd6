//! Models by their names on a hub, which runs on loopback in this process.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use super::hub_server::{COMMIT, HubServer};
use super::{json, outrider};

const DEFAULT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/default");

/// A hub with the default pair, and an empty cache.
struct Setup {
    server: HubServer,
    home: TempDir,
}

impl Setup {
    fn new() -> Self {
        let server = HubServer::start();
        let read = |file: &str| std::fs::read(Path::new(DEFAULT).join(file)).expect(file);
        for role in ["target", "draft"] {
            let repo = format!("outrider/default-{role}");
            for file in ["config.json", "model.safetensors"] {
                server.add(&repo, file, read(&format!("{role}/{file}")));
            }
            for file in ["tokenizer.json", "tokenizer_config.json"] {
                server.add(&repo, file, read(&format!("tokenizer/{file}")));
            }
        }
        let head = "head-coupled.safetensors";
        server.add(
            "outrider/default-draft",
            head,
            read(&format!("draft/{head}")),
        );
        let home = tempfile::tempdir().expect("a folder");
        Self { server, home }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = outrider(args);
        command
            .env("HF_ENDPOINT", &self.server.url)
            .env("HF_HOME", self.home.path());
        for other in [
            "HF_HUB_CACHE",
            "HF_TOKEN",
            "HF_TOKEN_PATH",
            "HF_HUB_OFFLINE",
        ] {
            command.env_remove(other);
        }
        command
    }
}

fn stdout(output: Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn a_pair_is_served_by_its_names_on_the_hub() {
    let setup = Setup::new();
    let prompt = [
        "--prompt",
        "Once upon a time",
        "--max-tokens",
        "24",
        "--seed",
        "5",
        "--draft-len",
        "specdec++:0.7",
    ];
    let models = [
        "--target-model",
        "outrider/default-target",
        "--draft-model",
        "outrider/default-draft@main",
    ];
    let args = [&["generate", "--json"][..], &prompt, &models].concat();
    let output = setup.command(&args).output().expect("runs");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let answer: Value = serde_json::from_str(&stdout(output)).expect("JSON");
    assert_eq!(answer["token_ids"], json(&prompt)["token_ids"]);
    assert_eq!(answer["speculation"]["fallbacks"], 0);
    for part in [
        COMMIT,
        "model.safetensors",
        "head-coupled.safetensors",
        "sha256:",
    ] {
        assert!(told.contains(part), "{told}");
    }

    // From the cache, without a network.
    let asked = setup.server.seen().len();
    let output = setup.command(&args).env("HF_HUB_OFFLINE", "1").output();
    let again: Value = serde_json::from_str(&stdout(output.expect("runs"))).expect("JSON");
    assert_eq!(again["token_ids"], answer["token_ids"]);
    assert_eq!(setup.server.seen().len(), asked);
}

#[test]
fn models_are_pulled_and_listed() {
    let setup = Setup::new();
    let pulled = stdout(
        setup
            .command(&["models", "pull", "outrider/default-draft"])
            .output()
            .expect("runs"),
    );
    for part in [
        "outrider/default-draft@main",
        COMMIT,
        "sha256:",
        "config.json",
    ] {
        assert!(pulled.contains(part), "{pulled}");
    }
    let list = |args: &[&str]| {
        let args = [&["models", "list"], args].concat();
        stdout(setup.command(&args).output().expect("runs"))
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

    // A file that was damaged meanwhile is downloaded again, and one that does not come is told of.
    let weights = Path::new(model["path"].as_str().expect("a path")).join("model.safetensors");
    let bytes = std::fs::read(&weights).expect("weights");
    std::fs::write(&weights, &bytes[1..]).expect("written");
    let again = setup
        .command(&["models", "pull", "outrider/default-draft"])
        .output();
    let told = String::from_utf8(again.expect("runs").stderr).expect("text");
    assert!(told.contains("model.safetensors: sha256 is"), "{told}");
    assert!(std::fs::read(&weights).expect("weights") == bytes);
    setup.server.cut_after(&[70_000, 0, 0, 0, 0, 0]);
    let half = setup
        .command(&["models", "pull", "outrider/default-target"])
        .output();
    assert!(!half.expect("runs").status.success());
    setup.server.cut_after(&[]);
    let listed = list(&[]);
    for part in [
        "incomplete: its weights are missing",
        "70000 bytes",
        "models pull outrider/default-target",
    ] {
        assert!(listed.contains(part), "{listed}");
    }

    let pull = |model: &str| {
        let output = setup
            .command(&["models", "pull", model])
            .output()
            .expect("runs");
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(pull("outrider/other").contains("no model outrider/other"));
    assert!(pull("outrider/../x").contains("no model of the hub"));
    assert!(pull("outrider/..").contains("\"..\""));
}

#[test]
fn the_hubs_token_is_sent_and_never_logged() {
    let setup = Setup::new();
    let token = "hf_0123456789abcdef";
    let pulled = setup
        .command(&["models", "pull", "outrider/default-draft"])
        .env("HF_TOKEN", token)
        .output()
        .expect("runs");
    let generated = setup
        .command(&["generate", "--log", "trace", "--prompt", "Once"])
        .args(["--max-tokens", "2"])
        .args(["--target-model", "outrider/default-target"])
        .env("HF_TOKEN", token)
        .output()
        .expect("runs");
    let log = String::from_utf8_lossy(&generated.stderr);
    assert!(generated.status.success() && log.contains("TRACE"), "{log}");
    let seen = setup.server.seen();
    let header = format!("Bearer {token}");
    let was_sent = seen
        .iter()
        .any(|asked| asked.token.as_ref() == Some(&header));
    assert!(was_sent, "{seen:?}");
    for output in [pulled, generated] {
        for said in [output.stdout, output.stderr] {
            assert!(!String::from_utf8_lossy(&said).contains(token));
        }
    }
}
