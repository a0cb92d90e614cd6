//! The binary as its users run it.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

fn outrider(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_outrider"));
    command.args(args).env_remove("OUTRIDER__LOG__FILTER");
    command
}

fn run(args: &[&str]) -> Output {
    outrider(args).output().expect("the binary runs")
}

fn json(args: &[&str]) -> Value {
    let output = run(&[&["generate", "--json"], args].concat());
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {stderr}");
    serde_json::from_slice(&output.stdout).expect("stdout holds one JSON object and nothing else")
}

/// What a command that must fail says.
fn refused(args: &[&str]) -> String {
    let output = run(args);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && output.status.code() != Some(101),
        "{args:?}: {stderr}"
    );
    assert!(!stderr.contains("panicked"), "{stderr}");
    stderr
}

/// A served role, killed when dropped.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(args: &[&str]) -> Self {
        let mut child = outrider(&[&["serve"], args].concat())
            .env("OUTRIDER__DRAFTER__LISTEN", ANY)
            .env("OUTRIDER__VERIFIER__LISTEN", ANY)
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let stderr = BufReader::new(child.stderr.take().expect("piped"));
        let mut lines = stderr.lines().map_while(Result::ok);
        let serving = lines.find(|line| line.contains("serving address="));
        let serving = serving.unwrap_or_else(|| panic!("{args:?} never served"));
        let address = serving
            .split("address=")
            .nth(1)
            .expect("an address")
            .trim()
            .to_owned();
        // What comes later is read and dropped, or the pipe would fill up.
        std::thread::spawn(move || lines.for_each(drop));
        Self {
            child,
            url: format!("http://{address}"),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const ANY: &str = "127.0.0.1:0";

#[test]
fn generate_prints_one_json_object_with_everything_in_it() {
    let answer = json(&[
        "--prompt",
        "Once upon a time",
        "--max-tokens",
        "48",
        "--seed",
        "9",
        "--draft-len",
        "3",
        "--ignore-eos",
    ]);
    let count = |key: &str| answer[key].as_array().expect("an array").len();
    assert_eq!((count("token_ids"), count("origins")), (48, 48));
    assert_eq!(answer["usage"]["completion_tokens"], 48);
    assert_eq!(
        (&answer["method"], &answer["seed"]),
        (&"coupled".into(), &9.into())
    );
    assert_eq!(answer["finish_reason"], "length");
    let speculation = &answer["speculation"];
    let number = |key: &str| speculation[key].as_f64().expect("a number");
    let sum = |key: &str| {
        let entries = speculation[key].as_array().expect("an array");
        entries.iter().filter_map(Value::as_f64).sum::<f64>()
    };
    assert!(number("mean_acceptance_length") > 1.3);
    assert_eq!(number("num_draft_tokens"), sum("per_step_drafted"));
    assert_eq!(
        number("num_accepted_draft_tokens"),
        sum("per_step_accepted")
    );
    assert_eq!(number("num_spec_steps"), sum("acceptance_histogram"));
    assert_eq!(number("fallbacks"), 0.0);
    assert!(
        answer["timing"]["tokens_per_second"]
            .as_f64()
            .expect("a number")
            > 0.0
    );
    let again = json(&[
        "--prompt",
        "Once upon a time",
        "--max-tokens",
        "48",
        "--seed",
        "9",
        "--ignore-eos",
        "--method",
        "target-only",
    ]);
    assert_eq!(again["token_ids"], answer["token_ids"]);
}

#[test]
fn generate_streams_text_and_ends_with_a_summary() {
    let output = run(&[
        "generate",
        "--prompt",
        "Once upon a time",
        "--max-tokens",
        "20",
        "--seed",
        "1",
        "--show-rounds",
    ]);
    assert!(output.status.success());
    let stdout = String::from_utf8(output.stdout).expect("text");
    let stderr = String::from_utf8(output.stderr).expect("text");
    assert!(
        !stdout.trim().is_empty() && !stdout.contains('\u{1b}'),
        "no colours in a pipe"
    );
    assert!(
        stderr.contains("round   1") && stderr.contains("method coupled, seed 1"),
        "{stderr}"
    );
}

#[test]
fn three_processes_answer_like_one() {
    let drafter = Server::start(&["drafter", "--listen", ANY]);
    let verifier = Server::start(&["verifier", "--listen", ANY]);
    let peers = ["--drafter", &drafter.url, "--verifier", &verifier.url];
    let coordinator = Server::start(&[&["coordinator", "--listen", ANY][..], &peers[..]].concat());
    let prompt = [
        "--prompt",
        "Once upon a time",
        "--max-tokens",
        "40",
        "--seed",
        "3",
    ];
    let apart = json(&[&prompt[..], &["--coordinator", &coordinator.url]].concat());
    let together = json(&prompt);
    assert_eq!(apart["token_ids"], together["token_ids"]);
    assert!(apart["speculation"]["num_spec_steps"].as_u64() > Some(0));

    // The drafter's process dies, and the answer is still the same.
    drop(drafter);
    let alone = json(&[&prompt[..], &["--coordinator", &coordinator.url]].concat());
    assert_eq!(alone["token_ids"], together["token_ids"]);
    assert_eq!(alone["effective_method"], "target-only");
    assert!(alone["speculation"]["fallbacks"].as_u64() > Some(0));
}

#[cfg(unix)]
#[test]
fn a_signal_ends_a_service_in_order() {
    let mut server = Server::start(&["all", "--listen", ANY]);
    let pid = server.child.id().to_string();
    let killed = Command::new("kill")
        .args(["-TERM", &pid])
        .status()
        .expect("kill runs");
    assert!(killed.success());
    assert_eq!(server.child.wait().expect("it ends").code(), Some(0));
}

#[test]
fn bad_requests_name_the_field_and_the_limit() {
    let generate = |args: &[&str]| refused(&[&["generate", "--prompt", "x"], args].concat());
    for (args, parts) in [
        (
            &["--temperature", "-1"][..],
            &["temperature", "-1", "0 to 100"][..],
        ),
        (&["--temperature", "nan"], &["temperature", "NaN"]),
        (&["--top-p", "0"], &["top_p", "0"]),
        (&["--top-p", "1.5"], &["top_p", "1.5"]),
        (&["--max-tokens", "0"], &["max_tokens", "0"]),
        (&["--max-tokens", "9999"], &["max_tokens", "9999", "512"]),
        (&["--draft-len", "0"], &["draft_len", "0", "1 to 64"]),
        (
            &["--method", "nonsense"],
            &["method", "nonsense", "target-only"],
        ),
        (
            &["--coordinator", "http://127.0.0.1:9"],
            &["127.0.0.1:9", "refused"],
        ),
        (
            &["--coordinator", "nonsense"],
            &["nonsense", "http://HOST:PORT"],
        ),
    ] {
        let said = generate(args);
        assert!(
            parts.iter().all(|part| said.contains(part)),
            "{args:?}: {said}"
        );
    }
    assert!(refused(&["generate", "--prompt", ""]).contains("prompt: empty"));
    assert!(refused(&["generate"]).contains("--prompt"));
    assert!(refused(&["generate", "--prompt-file", "no/such/file"]).contains("no/such/file"));
}

#[test]
fn bad_settings_name_the_key_and_where_it_came_from() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("outrider.toml");
    let path = file.to_str().expect("UTF-8");
    for (text, parts) in [
        (
            "[drafter]\nlissten = \"127.0.0.1:1\"",
            &["drafter.lissten", "outrider.toml"][..],
        ),
        (
            "[coordinator]\ndraft_len = \"many\"",
            &["coordinator.draft_len", "outrider.toml"],
        ),
        ("[drafter", &["outrider.toml", "1"]),
        (
            "[verifier.model]\ndtype = \"int3\"",
            &["verifier.model", "int3", "q8_0"],
        ),
        (
            "[verifier.model]\npath = \"no/such\"",
            &["verifier.model", "no/such", "config.json"],
        ),
        (
            "[verifier]\nlisten = \"everywhere\"",
            &["verifier.listen", "everywhere"],
        ),
    ] {
        std::fs::write(&file, text).expect("written");
        let said = refused(&["serve", "verifier", "--config", path]);
        assert!(
            parts.iter().all(|part| said.contains(part)),
            "{text:?}: {said}"
        );
    }
    let output = outrider(&["config", "print"])
        .env("OUTRIDER__DRAFTER__NONSENSE", "1")
        .output();
    let stderr = String::from_utf8(output.expect("runs").stderr).expect("text");
    assert!(stderr.contains("OUTRIDER__DRAFTER__NONSENSE"), "{stderr}");
}

#[test]
fn missing_and_truncated_weights_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("UTF-8");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/default");
    let copy = |from: &str, to: &str| {
        std::fs::copy(format!("{source}/{from}"), folder.path().join(to)).expect("copied");
    };
    copy("draft/config.json", "config.json");
    copy("tokenizer/tokenizer.json", "tokenizer.json");
    let serve = ["serve", "verifier", "--listen", ANY, "--model", path];
    assert!(refused(&serve).contains("model.safetensors"));
    copy("draft/model.safetensors", "model.safetensors");
    let weights = folder.path().join("model.safetensors");
    let bytes = std::fs::read(&weights).expect("read");
    std::fs::write(&weights, &bytes[..bytes.len() / 2]).expect("written");
    assert!(refused(&serve).contains("model.safetensors"));
}

#[test]
fn the_configuration_says_where_each_value_came_from() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("outrider.json");
    std::fs::write(&file, r#"{"coordinator": {"draft_len": 6}}"#).expect("written");
    let output = outrider(&["config", "print", "--config", file.to_str().expect("UTF-8")])
        .env("OUTRIDER__DRAFTER__MAX_BATCH", "7")
        .args(["--log", "debug"])
        .output()
        .expect("runs");
    let stdout = String::from_utf8(output.stdout).expect("text");
    let line = |key: &str| {
        stdout
            .lines()
            .find(|line| line.starts_with(key))
            .expect(key)
    };
    assert!(
        line("coordinator.draft_len").contains('6')
            && line("coordinator.draft_len").contains("outrider.json")
    );
    assert!(line("drafter.max_batch").contains("environment OUTRIDER__DRAFTER__MAX_BATCH"));
    assert!(line("log.filter").contains("flag"));
    assert!(line("verifier.max_batch").contains("default"));
}

#[test]
fn the_annotated_example_holds_the_defaults() {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/outrider.toml");
    let settings = |args: &[&str]| {
        let output = run(&[&["config", "print", "--json"], args].concat());
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let settings: Vec<Value> = serde_json::from_slice(&output.stdout).expect("JSON");
        settings
            .into_iter()
            .map(|setting| (setting["key"].clone(), setting["value"].clone()))
    };
    let example: Vec<_> = settings(&["--config", example]).collect();
    assert_eq!(example, settings(&[]).collect::<Vec<_>>());
}

#[test]
fn methods_are_listed_for_people_and_programs() {
    let text = String::from_utf8(run(&["methods"]).stdout).expect("text");
    let list: Value = serde_json::from_slice(&run(&["methods", "--json"]).stdout).expect("JSON");
    for method in ["coupled", "rejection", "target-only", "draft-only"] {
        assert!(text.contains(method));
        assert!(
            list.as_array()
                .expect("an array")
                .iter()
                .any(|entry| entry["name"] == method)
        );
    }
}

#[test]
fn a_benchmark_prints_ratios_for_every_kind() {
    let output = run(&[
        "bench",
        "--per-kind",
        "1",
        "--max-tokens",
        "16",
        "--json",
        "--temperatures",
        "1",
    ]);
    let stdout = String::from_utf8(output.stdout).expect("text");
    let rows: Vec<Value> = stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("a JSON line"))
        .collect();
    assert_eq!(rows.len(), 6);
    assert!(
        rows.iter()
            .all(|row| row["ratio"].as_f64().expect("a number") > 0.0)
    );
}
