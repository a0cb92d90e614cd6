//! `outrider config check`: what `serve` would refuse, without serving.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{ANY, fails, outrider, refused, run, says, shown, succeeds};

pub(crate) const DEFAULT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/default");

/// `config check` of a file with this text, in which `;` ends a line.
fn checking(folder: &Path, text: &str) -> Command {
    let file = folder.join("outrider.toml");
    std::fs::write(&file, text.replace(';', "\n")).expect("written");
    let mut command = outrider(&["config", "check", "--config"]);
    command.arg(file);
    command
}

#[test]
fn the_defaults_are_good() {
    let folder = tempfile::tempdir().expect("a folder");
    for role in ["all", "coordinator", "drafter", "verifier"] {
        let mut checking = outrider(&["config", "check", "--role", role]);
        let (stdout, stderr) = succeeds(checking.current_dir(&folder));
        assert_eq!(stdout, "the configuration is good: 0 settings given\n");
        assert_eq!(stderr, "");
    }
    let (stdout, _) = succeeds(&mut outrider(&["config", "check", "--json"]));
    assert_eq!(stdout, "{\"ok\":true,\"problems\":[]}\n");
    let (stdout, _) = succeeds(&mut checking(
        folder.path(),
        "[verifier.engine];max_batch = 3",
    ));
    assert_eq!(stdout, "the configuration is good: 1 setting given\n");
}

#[test]
fn each_thing_that_serve_would_refuse_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("empty")).expect("made");
    let empty = folder.path().join("empty").display().to_string();
    let secret = folder.path().join("secret").display().to_string();
    std::fs::write(&secret, "key").expect("written");
    let mut transcript = Vec::new();
    for line in [
        "[coordinator];draft_len = 65",
        "[coordinator];method = 'nonsense'",
        "[coordinator];method = 'lossy';lossless_only = true",
        "[coordinator];models = []",
        "[[coordinator.models]];name = 'a';verifiers = []",
        "[[coordinator.models]];name = 'a';verifiers = ['ftp://v:1']",
        "[[coordinator.models]];name = 'a';verifiers = ['https://v:1']",
        "[coordinator];max_requests = 0",
        "[drafter];max_draft_tokens = 65536",
        "[drafter.engine];kv_tokens = 1",
        "[verifier.model];path = 'embedded:target';device = 'cuda:1'",
        "[drafter.cascade];k = [[1]]",
        "[drafter.cascade];lenience = 0.5",
        "[drafter];heads = ['no/such/head']",
        "[drafter];bigram = 'no/such/table'",
        "[verifier.model];path = 'embedded:other'",
        "[verifier.model];path = 'no/such/folder'",
        "[verifier.model];path = 'EMPTY'",
        "[verifier.model];path = 'embedded:target';dtype = 'int3'",
        "[verifier.model];path = 'embedded:target';device = 'tpu'",
        "[drafter.model];path = 'embedded:draft';kv_dtype = 'q4_0'",
        "[verifier.remote];url = 'sglang:30000'",
        "[verifier.remote];url = 'https://e';key_file = 'no/such/key'",
        "[verifier.remote];url = 'http://e';key_file = 'SECRET'",
        "[telemetry];endpoint = 'collector'",
        "[telemetry];sample_ratio = 2",
        "[telemetry];endpoint = 'https://c:1';ca_file = 'no/such/ca'",
        "[log];filter = 'loud'",
        "[tls];mode = 'server'",
        "[tls];cert_file = 'no/such/cert'",
        "[tls];ca_file = 'no/such/ca'",
        "[auth];peer_token_file = 'no/such/token'",
        "[auth];client_tokens_file = 'no/such/tokens'",
        "[coordinator];listen = '0.0.0.0:7001'",
        "[drafter];listen = '0.0.0.0:7101'",
        "[admin];listen = '0.0.0.0:9464'",
        "[verifier];listen = '127.0.0.1:7001'",
    ] {
        let text = line.replace("EMPTY", &empty).replace("SECRET", &secret);
        let said = fails(&mut checking(folder.path(), &text));
        assert_eq!(said.lines().count(), 1, "{text}: {said}");
        assert!(said.starts_with("error: "), "{said}");
        transcript.push(format!("{}\n{said}\n", line.replace(';', "\n")));
    }
    shown("refused-configurations", &transcript.concat());
}

#[test]
fn an_engine_that_cannot_serve_the_model_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "[verifier.model];path = 'embedded:target';engine = 'llama-cpp'";
    let said = fails(&mut checking(folder.path(), text));
    let problem = if cfg!(feature = "llama-cpp") {
        "GGUF files only"
    } else {
        "built without llama.cpp"
    };
    says(&said, &format!("verifier.model | {problem}"));
}

#[test]
fn what_is_in_the_way_of_one_role_is_not_of_another() {
    let folder = tempfile::tempdir().expect("a folder");
    let check = |text: &str, role: &str| {
        let mut checking = checking(folder.path(), text);
        checking
            .args(["--role", role])
            .output()
            .expect("it runs")
            .status
            .success()
    };
    let ports = "[verifier];listen = '127.0.0.1:7001'";
    assert!(!check(ports, "all") && check(ports, "verifier") && check(ports, "coordinator"));
    let model = "[drafter.model];path = 'no/such/folder'";
    assert!(!check(model, "drafter") && check(model, "verifier") && check(model, "coordinator"));
    // Beside a target model its vocabulary is known.
    let no_table = "[drafter.model];path = 'none';[drafter];bigram = 'none'";
    assert!(!check(no_table, "drafter") && check(no_table, "all"));
    // A default address of the OpenAI API is done without.
    assert!(check("[verifier];listen = '127.0.0.1:8000'", "all"));
}

#[test]
fn all_that_is_wrong_is_told_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "[coordinator];draft_len = 65;draft_cap = 'many';lissten = 'x';[verifier.model];path = 'no/such/folder'";
    let output = checking(folder.path(), text)
        .arg("--json")
        .output()
        .expect("it runs");
    assert!(!output.status.success());
    shown("check", std::str::from_utf8(&output.stderr).expect("text"));
    let printed: Value = serde_json::from_slice(&output.stdout).expect("one object");
    let printed = serde_json::to_string_pretty(&printed).expect("JSON");
    shown("check-json", &printed);
    // What serve says of the same is in one line.
    let file = folder.path().join("outrider.toml");
    std::fs::write(
        &file,
        "[coordinator]\ndraft_len = 65\nmethod = 'nonsense'\n",
    )
    .expect("written");
    let file = file.to_str().expect("UTF-8");
    let said = refused(&["serve", "coordinator", "--listen", ANY, "--config", file]);
    says(
        &said,
        "coordinator.draft_len: 65 | ; besides: coordinator.method",
    );
    // A file that is none.
    let (missing, output) = (
        "no-such.toml",
        run(&["config", "check", "--json", "--config", "no-such.toml"]),
    );
    let printed: Value = serde_json::from_slice(&output.stdout).expect("one object");
    says(&printed["problems"][0]["problem"].to_string(), missing);
}

#[test]
fn files_of_another_machine_can_be_passed_over() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "[verifier.model];path = '/models/target';[tls];mode = 'mutual';ca_file = '/ca';cert_file = '/cert';\
                key_file = '/key';[auth];peer_token_file = '/token';[[coordinator.models]];name = 'm';\
                verifiers = ['https://verifier:7201']";
    let said = fails(&mut checking(folder.path(), text));
    says(
        &said,
        "/models/target | tls.cert_file: /cert | tls.ca_file: /ca | auth.peer_token_file: /token",
    );
    succeeds(checking(folder.path(), text).arg("--without-files"));
    // What can be told without them is told.
    let text = text.replace("ca_file = '/ca';", "");
    let said = fails(checking(folder.path(), &text).arg("--without-files"));
    says(&said, "tls.ca_file is not set | coordinator.models");
}

#[test]
fn models_that_do_not_fit_are_told_before_they_are_loaded() {
    let folder = tempfile::tempdir().expect("a folder");
    let draft = other_vocabulary(folder.path());
    let target = format!("[verifier.model];path = '{}'", draft.display());
    let table = format!("{target};[drafter];bigram = 'embedded';[drafter.model];path = 'none'");
    let said = fails(&mut checking(folder.path(), &table));
    says(
        &said,
        "drafter.model: the draft model does not fit the target model | vocabularies differ | one vocabulary alone",
    );
    succeeds(checking(folder.path(), &table).args(["--role", "drafter"]));
    // A model reads any text.
    let text = format!("[drafter.model];path = '{}'", draft.display());
    succeeds(&mut checking(folder.path(), &text));
    // A layer more than there are tensors for.
    let config = draft.join("config.json");
    let mut changed: Value =
        serde_json::from_slice(&std::fs::read(&config).expect("read")).expect("JSON");
    let layers = changed["num_hidden_layers"].as_u64().expect("a number");
    changed["num_hidden_layers"] = (layers + 1).into();
    std::fs::write(&config, changed.to_string()).expect("written");
    says(
        &fails(&mut checking(folder.path(), &text)),
        "drafter.model | is missing",
    );
    std::fs::remove_file(draft.join("tokenizer.json")).expect("removed");
    says(
        &fails(&mut checking(folder.path(), &text)),
        "drafter.model | no tokenizer.json",
    );
    std::fs::remove_file(draft.join("model.safetensors")).expect("removed");
    says(
        &fails(&mut checking(folder.path(), &text)),
        "holds neither model.safetensors",
    );
}

/// A copy of the default draft model in `folder`, in whose tokenizer two tokens have changed places.
pub(crate) fn other_vocabulary(folder: &Path) -> std::path::PathBuf {
    let draft = folder.join("other");
    std::fs::create_dir(&draft).expect("made");
    for file in [
        "draft/config.json",
        "draft/model.safetensors",
        "tokenizer/tokenizer_config.json",
    ] {
        let from = Path::new(DEFAULT).join(file);
        std::fs::copy(&from, draft.join(from.file_name().expect("a name"))).expect("copied");
    }
    let tokenizer =
        std::fs::read(Path::new(DEFAULT).join("tokenizer/tokenizer.json")).expect("read");
    let mut tokenizer: Value = serde_json::from_slice(&tokenizer).expect("JSON");
    let vocabulary = tokenizer["model"]["vocab"].as_object_mut().expect("tokens");
    let last: Vec<_> = vocabulary.keys().rev().take(2).cloned().collect();
    let ids: Vec<_> = last.iter().map(|token| vocabulary[token].clone()).collect();
    vocabulary[&last[0]] = ids[1].clone();
    vocabulary[&last[1]] = ids[0].clone();
    std::fs::write(draft.join("tokenizer.json"), tokenizer.to_string()).expect("written");
    draft
}

#[cfg(feature = "hub")]
#[test]
fn a_model_of_the_hub_is_refused_where_it_can_not_be_had() {
    let home = tempfile::tempdir().expect("a folder");
    let mut checking = checking(home.path(), "[verifier.model];path = 'org/name'");
    checking
        .args(["--role", "verifier"])
        .env("HF_HOME", home.path());
    checking
        .env_remove("HF_HUB_CACHE")
        .env_remove("HF_HUB_OFFLINE");
    succeeds(&mut checking);
    says(
        &fails(checking.env("HF_HUB_OFFLINE", "1")),
        "verifier.model | org/name | HF_HUB_OFFLINE",
    );
}

#[test]
fn a_configuration_that_is_printed_is_checked() {
    let mut printing = outrider(&["config", "print", "--json"]);
    let output = printing
        .env("OUTRIDER__COORDINATOR__DRAFT_LEN", "65")
        .output()
        .expect("it runs");
    assert!(!output.status.success());
    let mut printed = serde_json::Deserializer::from_slice(&output.stdout).into_iter::<Value>();
    let settings = printed.next().expect("settings").expect("JSON");
    assert!(settings.as_array().expect("a list").len() > 50);
    let failure = printed.next().expect("a failure").expect("JSON");
    says(
        &failure["error"]["message"].to_string(),
        "coordinator.draft_len: 65",
    );
    let said = String::from_utf8(output.stderr).expect("text");
    says(&said, "error: coordinator.draft_len: 65");
}
