//! Conversations at a terminal.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::health::{get, value};
use crate::losses::{Deployment, NO_WHOLE_OUTPUT};
use crate::pty::Terminal;
use crate::{outrider, says, words};

const CTRL_C: &str = "\x03";
const CTRL_D: &str = "\x04";
const UP: &str = "\x1b[A";
const LEFT: &str = "\x1b[D";
const PROMPT: &str = ">";

/// A conversation whose lines are kept in a folder of its own, in which it runs.
struct Chat {
    terminal: Terminal,
    folder: TempDir,
}

impl Chat {
    fn start(flags: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        Self::start_in(folder, flags)
    }

    fn start_in(folder: TempDir, flags: &str) -> Self {
        let mut command = outrider(&words(&format!("chat {flags}")));
        command.current_dir(folder.path());
        command.env("XDG_STATE_HOME", folder.path().join("state"));
        let mut terminal = Terminal::run(command);
        terminal.has_line(PROMPT);
        Self { terminal, folder }
    }

    /// Types a line, and waits for the next prompt.
    #[track_caller]
    fn enter(&mut self, line: &str) {
        let prompts = |contents: &str| {
            contents
                .lines()
                .filter(|row| row.starts_with(PROMPT))
                .count()
        };
        let before = prompts(&self.terminal.contents());
        self.terminal.types(line);
        self.terminal.types("\r");
        self.terminal
            .until(line, |screen| prompts(&screen.contents()) > before);
        self.terminal.has_line(PROMPT);
    }

    /// Saves the conversation in a file of this name, and gives its messages.
    #[track_caller]
    fn saved(&mut self, name: &str) -> Vec<Value> {
        self.enter(&format!("/save {name}"));
        self.terminal.shows(&format!("saved: {name}"));
        self.messages(name)
    }

    fn messages(&self, name: &str) -> Vec<Value> {
        let saved = std::fs::read_to_string(self.folder.path().join(name)).expect("a file");
        let saved: Value = serde_json::from_str(&saved).expect("JSON");
        saved["messages"].as_array().expect("messages").clone()
    }

    /// Ends it by what is typed; gives back its folder.
    #[track_caller]
    fn ends_by(self, keys: &str) -> TempDir {
        self.terminal.types(keys);
        let (status, screen) = self.terminal.ends();
        assert!(status.success(), "{screen}");
        self.folder
    }
}

fn history(folder: &Path) -> PathBuf {
    folder.join("state/outrider/chat_history")
}

fn said(messages: &[Value]) -> Vec<&str> {
    let of_user = messages.iter().filter(|message| message["role"] == "user");
    of_user
        .map(|message| message["content"].as_str().expect("text"))
        .collect()
}

#[test]
fn lines_are_edited_and_kept_for_the_next_time() {
    let mut chat = Chat::start("--max-tokens 2");
    chat.enter(&format!(
        "Hell there\x7f\x7f\x7f\x7f\x7fo{LEFT}{LEFT}a{LEFT}\x7f"
    ));
    let messages = chat.saved("said.json");
    assert_eq!(said(&messages), ["Hela o"]);
    let folder = chat.ends_by("/bye\r");
    let kept = std::fs::metadata(history(folder.path())).expect("a history");
    assert_eq!(kept.permissions().mode() & 0o777, 0o600);

    let mut chat = Chat::start_in(folder, "--max-tokens 2");
    for line in ["> /bye", "> /save said.json"] {
        chat.terminal.types(UP);
        chat.terminal.has_line(line);
    }
    // What cannot be kept is said, once, and the conversation goes on.
    let folder = chat.ends_by(&format!("{CTRL_C}{CTRL_D}"));
    std::fs::remove_dir_all(folder.path().join("state")).expect("removed");
    std::fs::write(folder.path().join("state"), "no folder").expect("written");
    let mut chat = Chat::start_in(folder, "--max-tokens 2");
    for name in ["one.json", "two.json"] {
        chat.saved(name);
    }
    let screen = chat.terminal.contents();
    assert_eq!(
        screen.matches("lines typed are not kept").count(),
        1,
        "{screen}"
    );
}

#[test]
fn lines_that_go_on_and_pasted_ones_are_one_message() {
    let mut chat = Chat::start("--max-tokens 2");
    chat.enter("one\\\rtwo");
    chat.enter("\"\"\"\r/one\\\r\rtwo\r\"\"\"");
    chat.enter("\x1b[200~a\nb\n\x1b[201~");
    chat.enter("//etc");
    let messages = chat.saved("said.json");
    assert_eq!(
        said(&messages),
        ["one\ntwo", "/one\\\n\ntwo", "a\nb", "/etc"]
    );
}

#[test]
fn ctrl_c_clears_the_line_and_ends_at_an_empty_one_the_second_time() {
    let mut chat = Chat::start("");
    chat.terminal.types("one two");
    chat.terminal.has_line("> one two");
    chat.terminal.types(CTRL_C);
    chat.terminal.has_line(PROMPT);
    chat.terminal.types(CTRL_C);
    chat.terminal.shows("Ctrl-C once more ends");
    chat.terminal.has_line(PROMPT);
    chat.ends_by(CTRL_C);
}

#[test]
fn settings_are_changed_and_the_conversation_is_saved() {
    let mut chat = Chat::start("--ignore-eos --system 'Be brief.'");
    chat.enter("/set temperature -1");
    chat.enter("/set max_tokens many");
    chat.enter("/nonsense");
    chat.enter("/stats");
    let refusals = "temperature: -1 is out of range, expected 0 to 100 | \
                    invalid value 'many' for '--max-tokens <N>' | \
                    /nonsense is no command, /help | there is no answer yet";
    says(&chat.terminal.contents(), refusals);
    chat.enter("/set max_tokens 5");
    chat.enter("/set seed 9");
    chat.enter("Hello");
    assert!(!chat.terminal.contents().contains("tokens,"));
    chat.enter("/stats");
    chat.enter("/set");
    let set = "[5 tokens, | seed 9] | ignore_eos  on | max_tokens  5 | system      Be brief.";
    says(&chat.terminal.contents(), set);
    let messages = chat.saved("said.json");
    assert_eq!(
        messages[0],
        json!({ "role": "system", "content": "Be brief." })
    );
    assert_eq!(messages[1], json!({ "role": "user", "content": "Hello" }));
    assert_eq!(
        (&messages[2]["role"], messages.len()),
        (&"assistant".into(), 3)
    );

    chat.enter("/clear");
    chat.enter("/set stats on");
    chat.enter("/set seed none");
    chat.enter("/set max_tokens 4");
    chat.enter("And then?");
    assert!(chat.terminal.contents().contains("[4 tokens,"));
    chat.enter("/save said.json");
    says(
        &chat.terminal.contents(),
        "'said.json' is there already, /save! said.json",
    );
    assert_eq!(said(&chat.messages("said.json")), ["Hello"]);
    chat.enter("/save! said.json");
    assert_eq!(said(&chat.messages("said.json")), ["And then?"]);
    chat.ends_by("/quit\r");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_stopped_stays_in_the_conversation() {
    let deployment = Deployment::start().await;
    let flags = format!(
        "--max-tokens 300 --ignore-eos --draft-len 2 --coordinator {}",
        deployment.url
    );
    let mut chat = Chat::start(&flags);
    deployment.relay.hold_after(NO_WHOLE_OUTPUT);
    chat.terminal.types("Hello\r");
    let answer = |contents: &str| {
        let (_, answer) = contents.rsplit_once("> Hello\n").unwrap_or_default();
        answer.trim().chars().take(12).collect::<String>()
    };
    chat.terminal.until("an answer", |screen| {
        answer(&screen.contents()).chars().count() == 12
    });
    let begun = answer(&chat.terminal.contents());
    chat.terminal.types(CTRL_C);
    chat.terminal.shows("stopped");
    chat.terminal.has_line(PROMPT);
    // The coordinator knows of it, and has not come to its end meanwhile.
    let coordinator = deployment.coordinator.as_ref().expect("a coordinator");
    let cancelled = || {
        let metrics = get(&coordinator.admin, "/metrics");
        let stages = words("drafting verifying decoding").into_iter();
        let sample = |stage| format!("outrider_cancellations_total{{stage=\"{stage}\"}}");
        stages
            .map(|stage| value(&metrics, &sample(stage)))
            .sum::<f64>()
    };
    let end = Instant::now() + Duration::from_secs(60);
    while cancelled() < 1.0 {
        assert!(Instant::now() < end, "the call was not cancelled");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }

    // Of one that is stopped before anything came there is nothing to keep.
    deployment.relay.hold_after(0);
    chat.terminal.types("Who are you?\r");
    chat.terminal.until("the line is said", |screen| {
        screen.contents().trim_end().ends_with("> Who are you?") && screen.cursor_position().1 == 0
    });
    chat.terminal.types(CTRL_C);
    chat.terminal.shows("stopped before anything came");
    chat.terminal.has_line(PROMPT);

    deployment.relay.release();
    chat.enter("/set max_tokens 4");
    chat.enter("And then?");
    let messages = chat.saved("said.json");
    assert_eq!(said(&messages), ["Hello", "And then?"]);
    let kept = messages[1]["content"].as_str().expect("text");
    assert!(
        kept.trim()
            .replace('\n', "")
            .starts_with(&begun.replace('\n', "")),
        "{kept}"
    );
    assert_eq!(messages.len(), 4);
    chat.ends_by(CTRL_D);
}
