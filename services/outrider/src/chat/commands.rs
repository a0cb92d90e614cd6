//! What is typed at the prompt: something to say, or a command.

use anyhow::{anyhow, bail};

/// The commands, as `outrider chat --help` and `/help` teach them.
pub(crate) const HELP: &str = "\
Commands, at a terminal:
  /set NAME VALUE   changes a setting for the answers to come: temperature, top_p, top_k, min_p,
                    seed, max_tokens, stop, method, draft_len, and what other flags set;
                    system TEXT, stats on|off. `none` takes a setting back: after /set seed none
                    each answer has a seed of its own. Chats have temperature 0.7 if none is set
  /set              shows what is set
  /stats            tells of the last answer: tokens, speed, method, seed
  /save FILE        writes the conversation as JSON, {\"messages\": [{\"role\", \"content\"}]};
                    /save! replaces a file that is there
  /clear            forgets the conversation
  /help             shows this
  /bye              ends, as /exit, /quit and Ctrl-D do

A line that begins with // is said, with one slash. A line that ends with a backslash goes on in
the next one. Lines between two lines of \"\"\" are said together, as they are.
Ctrl-C stops an answer, and what came of it stays in the conversation; at the prompt it clears the
line, and twice at an empty prompt it ends. Lines typed are kept for the next time, readable by
the user alone, in outrider/chat_history of $XDG_STATE_HOME (~/.local/state).

Where standard input is no terminal, each of its lines is said as it is, and none is a command.";

/// What opens and closes lines that are said together.
const FENCE: &str = "\"\"\"";

/// What was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ChatInput {
    /// Nothing but blanks.
    Blank,
    /// What the user says.
    Message(String),
    /// What is to be done.
    Command(ChatCommand),
}

/// What a line that begins with a slash asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ChatCommand {
    Help,
    ShowSettings,
    Set { name: String, value: String },
    Stats,
    Save { file: String, replace: bool },
    Clear,
    Bye,
}

/// Returns whether nothing more belongs to `text`: no backslash at its end, and no lines that are still to be closed.
pub(super) fn is_whole(text: &str) -> bool {
    match fenced(text) {
        Some(mut rest) => rest.any(is_fence),
        None => !text.ends_with('\\'),
    }
}

/// Reads what was typed, which is whole.
///
/// # Errors
/// If it is a command that is unknown, or lacks a word.
pub(super) fn read(text: &str) -> anyhow::Result<ChatInput> {
    if let Some(lines) = fenced(text) {
        let lines: Vec<_> = lines.filter(|line| !is_fence(line)).collect();
        return Ok(message(&lines.join("\n")));
    }
    match text.strip_prefix('/') {
        Some(said) if said.starts_with('/') => Ok(message(said)),
        Some(command) => self::command(command).map(ChatInput::Command),
        None => Ok(message(&text.replace("\\\n", "\n"))),
    }
}

/// Returns the lines after the one that opens a block; none if `text` is no block.
fn fenced(text: &str) -> Option<impl Iterator<Item = &str>> {
    let mut lines = text.lines();
    lines.next().filter(|line| is_fence(line)).map(|_| lines)
}

fn is_fence(line: &str) -> bool {
    line.trim_end() == FENCE
}

fn message(text: &str) -> ChatInput {
    // What is pasted often ends with a newline.
    let text = text.trim_end_matches('\n');
    if text.trim().is_empty() {
        return ChatInput::Blank;
    }
    ChatInput::Message(text.to_owned())
}

/// Returns the command of a line without its slash.
fn command(line: &str) -> anyhow::Result<ChatCommand> {
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    let alone = |command| match rest {
        "" => Ok(command),
        _ => Err(anyhow!("/{name} takes nothing after it, and got '{rest}'")),
    };
    match name {
        "help" => alone(ChatCommand::Help),
        "stats" => alone(ChatCommand::Stats),
        "clear" => alone(ChatCommand::Clear),
        "bye" | "exit" | "quit" => alone(ChatCommand::Bye),
        "set" if rest.is_empty() => Ok(ChatCommand::ShowSettings),
        "set" => match rest.split_once(char::is_whitespace) {
            Some((name, value)) => Ok(ChatCommand::Set {
                name: name.to_owned(),
                value: value.trim().to_owned(),
            }),
            None => bail!("/set {rest}: the value is missing; /set alone shows what is set"),
        },
        "save" | "save!" if rest.is_empty() => bail!("/{name}: the file's name is missing"),
        "save" | "save!" => Ok(ChatCommand::Save {
            file: rest.to_owned(),
            replace: name == "save!",
        }),
        _ => bail!("/{name} is no command, /help lists them; a line that begins with // is said"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> ChatInput {
        read(text).expect("no command")
    }

    fn done(text: &str) -> ChatCommand {
        match read(text) {
            Ok(ChatInput::Command(command)) => command,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn lines_are_said_and_slashes_are_commands() {
        let message = |text: &str| ChatInput::Message(text.to_owned());
        assert_eq!(said("Hello /help"), message("Hello /help"));
        assert_eq!(said("//usr/bin"), message("/usr/bin"));
        assert_eq!(said("  "), ChatInput::Blank);
        assert_eq!(done("/help"), ChatCommand::Help);
        assert_eq!(done("/set"), ChatCommand::ShowSettings);
        for bye in ["/bye", "/exit", "/quit "] {
            assert_eq!(done(bye), ChatCommand::Bye);
        }
        let set = |name: &str, value: &str| ChatCommand::Set {
            name: name.to_owned(),
            value: value.to_owned(),
        };
        assert_eq!(done("/set top_p 0.9"), set("top_p", "0.9"));
        let system = set("system", "You are  brief.");
        assert_eq!(done("/set  system  You are  brief. "), system);
        let save = |replace| ChatCommand::Save {
            file: "a b.json".to_owned(),
            replace,
        };
        assert_eq!(done("/save a b.json"), save(false));
        assert_eq!(done("/save! a b.json"), save(true));
    }

    #[test]
    fn what_is_no_command_names_the_help_and_what_lacks_is_named() {
        for (text, words) in [
            ("/usr/bin", "/usr/bin is no command, /help"),
            ("/Set top_p 1", "/help"),
            ("/", "/help"),
            ("/set top_p", "value is missing"),
            ("/save", "name is missing"),
            ("/clear all", "takes nothing after it, and got 'all'"),
        ] {
            let error = read(text).expect_err(words).to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn a_backslash_and_a_block_go_on() {
        for (text, whole) in [
            ("one", true),
            ("one\\", false),
            ("one\\\ntwo", true),
            ("\"\"\"", false),
            ("\"\"\"\none\\", false),
            ("\"\"\"\none\\\n\"\"\"", true),
            ("\"\"\"\none\n\"\"\"\n", true),
            ("\"\"\"one", true),
        ] {
            assert_eq!(is_whole(text), whole, "{text}");
        }
        let message = |text: &str| ChatInput::Message(text.to_owned());
        assert_eq!(said("one\\\ntwo\n"), message("one\ntwo"));
        let block = "\"\"\"\n  /one\\\n\ntwo\n\"\"\"\n";
        assert_eq!(said(block), message("  /one\\\n\ntwo"));
        assert_eq!(said("\"\"\"\n\n\"\"\""), ChatInput::Blank);
    }
}
