//! Conversations, by the model's chat template.

#[cfg(unix)]
mod terminal;

use std::io::Write;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use super::{json, outrider, says, words};

const DEFAULT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/default");

/// The default target model with another chat template.
fn model(template: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (from, to) in [
        ("target/config.json", "config.json"),
        ("target/model.safetensors", "model.safetensors"),
        ("tokenizer/tokenizer.json", "tokenizer.json"),
    ] {
        let to = folder.path().join(to);
        std::fs::copy(format!("{DEFAULT}/{from}"), to).expect("copied");
    }
    let config = serde_json::json!({
        "bos_token": { "content": "<s>" },
        "eos_token": "</s>",
        "chat_template": template,
    });
    let file = folder.path().join("tokenizer_config.json");
    std::fs::write(file, config.to_string()).expect("written");
    folder
}

const TEMPLATE: &str = "{{ bos_token }}{% for m in messages %}{{ m.role }}: {{ m.content }}
{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}";

/// With these what was said before changes what is said next.
const SAMPLED: &str = "--temperature 1 --seed 3 --max-tokens 12 --stop '\n' --target-model";

/// Runs `chat` with these bytes as its input.
fn chat(model: &TempDir, more: &str, input: &[u8]) -> Output {
    let mut chat = outrider(&words(&format!("chat {more} {SAMPLED}")));
    through(chat.arg(model.path()), input)
}

fn through(command: &mut Command, input: &[u8]) -> Output {
    let mut chat = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("runs");
    let mut stdin = chat.stdin.take().expect("piped");
    stdin.write_all(input).expect("written");
    drop(stdin);
    chat.wait_with_output().expect("ends")
}

/// Returns what `chat` prints and tells where it succeeds.
fn talk(model: &TempDir, more: &str, input: &[u8]) -> (String, String) {
    printed(chat(model, more, input))
}

fn say(command: &mut Command, input: &[u8]) -> (String, String) {
    printed(through(command, input))
}

fn printed(output: Output) -> (String, String) {
    let stderr = String::from_utf8(output.stderr).expect("text");
    assert!(output.status.success(), "{stderr}");
    (String::from_utf8(output.stdout).expect("text"), stderr)
}

#[test]
fn a_conversation_is_the_prompt_its_template_makes_of_it() {
    let folder = model(TEMPLATE);
    let path = folder.path().to_str().expect("UTF-8");
    let text = |args: &[&str]| {
        let answer = json(&[args, &words(SAMPLED)[..], &[path]].concat());
        answer["text"].as_str().expect("text").to_owned()
    };
    let said = text(&words(
        "--chat --system 'Be brief.' --prompt 'Who are you?'",
    ));
    let of_prompt = |prompt: &str| text(&["--prompt", prompt]);
    assert_eq!(
        said,
        of_prompt("system: Be brief.\nuser: Who are you?\nassistant:")
    );

    // Line by line, with what was said before.
    let first = of_prompt("user: Hello\nassistant:");
    let prompt = format!("user: Hello\nassistant: {first}\nuser: And then?\nassistant:");
    let second = of_prompt(&prompt);
    assert_ne!(
        second,
        of_prompt("user: Hello\nuser: And then?\nassistant:")
    );
    let (talked, _) = talk(&folder, "", b"Hello\n\nAnd then?");
    assert_eq!(talked, format!("{first}\n{second}\n"));
}

/// Through a pipe every line is said, and nothing is printed but answers, if not asked for.
#[test]
fn each_turn_has_a_seed_of_its_own_unless_one_is_given() {
    let folder = model(TEMPLATE);
    let seeds = |flags: &str| {
        let line = format!("chat --stats {flags} --max-tokens 2 --target-model");
        let (_, reported) = say(outrider(&words(&line)).arg(folder.path()), b"Hello\n/bye\n");
        let of_line = |line: &str| line.rsplit_once("seed ").map(|(_, seed)| seed.to_owned());
        reported.lines().filter_map(of_line).collect::<Vec<_>>()
    };
    let drawn = seeds("");
    assert_eq!(drawn.len(), 2, "{drawn:?}");
    assert_ne!(drawn[0], drawn[1]);
    assert_eq!(seeds("--seed 7"), ["7]", "7]"]);
    let (_, reported) = talk(&folder, "", b"Hello");
    assert_eq!(reported, "");
}

const BRIEF: &str = "--system Brief.";

#[test]
fn a_conversation_outlives_the_models_context() {
    let folder = model(TEMPLATE);
    let config = folder.path().join("config.json");
    let text = std::fs::read_to_string(&config).expect("a config");
    let mut keys: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    keys["max_position_embeddings"] = 96.into();
    std::fs::write(&config, keys.to_string()).expect("written");
    let (answers, reported) = talk(&folder, BRIEF, "Tell me more.\n".repeat(8).as_bytes());
    assert_eq!(answers.lines().count(), 8, "{reported}");
    assert!(reported.contains("oldest turn"), "{reported}");
    // A line that has no room by itself is refused, by the field; the conversation goes on without it.
    let lines = format!("Hello\n{}\nAnd then?\n", "word ".repeat(200));
    let output = chat(&folder, BRIEF, lines.as_bytes());
    let reported = String::from_utf8_lossy(&output.stderr);
    let expected = talk(&folder, BRIEF, b"Hello\nAnd then?\n").0;
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
    assert!(!output.status.success(), "{reported}");
    says(&reported, "prompt:  | too long");
}

#[test]
fn a_call_is_shown_and_the_next_line_is_what_it_came_to() {
    let folder = model(TEMPLATE);
    let tools = folder.path().join("tools.json");
    let tool = serde_json::json!([{ "name": "pick", "parameters": {
        "type": "object", "properties": { "color": { "enum": ["red"] } }, "required": ["color"],
    } }]);
    std::fs::write(&tools, tool.to_string()).expect("written");
    let flags = |choice: &str| {
        let mut chat = outrider(&words("chat --temperature 0 --max-tokens 60"));
        chat.arg("--target-model").arg(folder.path());
        chat.arg("--tools")
            .arg(&tools)
            .arg("--tool-choice")
            .arg(choice);
        chat
    };
    let (said, _) = say(&mut flags("pick"), b"A color?\n");
    assert_eq!(said, "pick {\"color\": \"red\"}\n");
    // The line behind the call answers it, so that there are two calls and not three.
    let (said, _) = say(&mut flags("required"), b"A color?\nIt is red.\n");
    assert_eq!(said, "pick {\"color\": \"red\"}\n".repeat(2));
    let refused = through(&mut flags("other"), b"A color?\n");
    let refused = String::from_utf8(refused.stderr).expect("text");
    says(&refused, "called_tool: 'other' is none of the tools");
}
