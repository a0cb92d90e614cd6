//! What was said so far.

use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, bail};
use serde_json::{Value, json};
use tempfile::NamedTempFile;
use wire::v1;

use crate::generate::turn;

/// All turns, the oldest first, and which of them are still in the model's prompt.
#[derive(Debug, Default)]
pub(super) struct Conversation {
    turns: Vec<ChatTurn>,
    /// How many of the oldest the model has no room for any more.
    forgotten: usize,
}

/// What the user said, and what came of it: calls, what they came to, and in the end the model's answer.
pub(super) type ChatTurn = Vec<v1::ChatMessage>;

impl Conversation {
    /// Returns the number of turns in the model's prompt.
    pub(super) fn len(&self) -> usize {
        self.turns.len() - self.forgotten
    }

    pub(super) fn add(&mut self, turn: ChatTurn) {
        self.turns.push(turn);
    }

    /// Leaves the oldest `count` turns out of the model's prompt from now on.
    pub(super) fn forget(&mut self, count: usize) {
        self.forgotten += count;
    }

    /// Returns the messages of the next request: the system message, the turns but for the oldest `forgotten`, and those of
    /// the turn that is under way.
    pub(super) fn messages(
        &self,
        system: Option<&str>,
        forgotten: usize,
        next: &[v1::ChatMessage],
    ) -> Vec<v1::ChatMessage> {
        let said = self.said(system, self.forgotten + forgotten);
        said.chain(next.iter().cloned()).collect()
    }

    /// Returns the system message and the turns but for the oldest `left_out`.
    fn said(&self, system: Option<&str>, left_out: usize) -> impl Iterator<Item = v1::ChatMessage> {
        let system = system.map(|text| turn("system", text));
        let turns = self.turns[left_out..].iter().flatten().cloned();
        system.into_iter().chain(turns)
    }

    /// Writes all turns, those that left the model's prompt included, to `file` as an object of messages, as the OpenAI API
    /// takes them.
    ///
    /// # Errors
    /// If the file is there, unless it is to be replaced, or cannot be written; it is then as it was.
    pub(super) fn save(
        &self,
        system: Option<&str>,
        file: &Path,
        replace: bool,
    ) -> anyhow::Result<()> {
        let said = self.said(system, 0);
        let messages: Vec<_> = said.map(|said| as_saved(&said)).collect();
        let place = file.display();
        if file.exists() && !replace {
            bail!("'{place}' is there already, /save! {place} replaces it");
        }
        let folder = match file.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        if !folder.is_dir() {
            bail!(
                "'{place}' cannot be written: there is no folder '{}'",
                folder.display()
            );
        }
        let unwritten = || format!("'{place}' cannot be written");
        // Only the kind of the error: its text has the temporary file's name, which means nothing to the user.
        let begun = NamedTempFile::new_in(folder).map_err(|error| io::Error::from(error.kind()));
        let mut begun = begun.with_context(unwritten)?;
        serde_json::to_writer_pretty(&mut begun, &json!({ "messages": messages }))
            .with_context(unwritten)?;
        writeln!(begun).with_context(unwritten)?;
        let kept = if replace {
            begun.persist(file)
        } else {
            begun.persist_noclobber(file)
        };
        kept.map(drop).with_context(unwritten)
    }
}

/// Returns a message as the OpenAI API takes it.
fn as_saved(said: &v1::ChatMessage) -> Value {
    let mut message = json!({ "role": said.role, "content": said.content });
    if !said.tool_calls.is_empty() {
        let calls = said.tool_calls.iter().map(|call| {
            let function = json!({ "name": call.name, "arguments": call.arguments });
            json!({ "id": call.id, "type": "function", "function": function })
        });
        message["tool_calls"] = calls.collect();
    }
    if !said.tool_call_id.is_empty() {
        message["tool_call_id"] = json!(said.tool_call_id);
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conversation() -> Conversation {
        let mut conversation = Conversation::default();
        for number in ["1", "2"] {
            let user = turn("user", &format!("user {number}"));
            conversation.add(vec![user, turn("assistant", &format!("model {number}"))]);
        }
        conversation
    }

    #[test]
    fn what_is_said_comes_after_what_was() {
        let said = conversation().messages(Some("Be brief."), 1, &[turn("user", "next")]);
        let said: Vec<_> = said.iter().map(|message| &*message.content).collect();
        assert_eq!(said, ["Be brief.", "user 2", "model 2", "next"]);
        let mut conversation = conversation();
        conversation.forget(2);
        assert_eq!(
            conversation
                .messages(None, 0, &[turn("user", "next")])
                .len(),
            1
        );
        assert_eq!(conversation.len(), 0);
    }

    #[test]
    fn a_file_that_is_there_is_replaced_only_if_that_is_said() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("said.json");
        let saved = || std::fs::read_to_string(&file).expect("a file");
        std::fs::write(&file, "precious").expect("written");
        let refused = conversation().save(None, &file, false);
        let refused = refused.expect_err("it is there").to_string();
        assert!(refused.contains("said.json replaces it"), "{refused}");
        assert_eq!(saved(), "precious");
        // Turns that left the prompt are saved as well.
        let mut conversation = conversation();
        conversation.forget(1);
        let replaced = conversation.save(Some("Be brief."), &file, true);
        replaced.expect("saved");
        let value: serde_json::Value = serde_json::from_str(&saved()).expect("JSON");
        assert_eq!(
            value["messages"][0],
            json!({ "role": "system", "content": "Be brief." })
        );
        assert_eq!(
            value["messages"][4],
            json!({ "role": "assistant", "content": "model 2" })
        );
        let nowhere = folder.path().join("no/such.json");
        let failed = conversation.save(None, &nowhere, false);
        let failed = failed.expect_err("no folder").to_string();
        assert!(
            failed.contains("such.json' cannot be written: there is no folder"),
            "{failed}"
        );
    }
}
