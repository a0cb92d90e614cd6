//! A conversation at a terminal, with commands.

use std::path::Path;

use super::answering::Dialogue;
use super::commands::{self, Command, Entry, HELP};
use super::conversation::Conversation;
use super::editor::Editor;
use crate::failure;
use crate::generate::is_begun;
use crate::generate::terminal::stats;
use crate::interrupt::CtrlC;

/// Whether it goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Prompt,
    End,
}

/// Talks until the user has enough. What fails is told, and the conversation goes on.
pub(super) async fn talk(mut dialogue: Dialogue) -> anyhow::Result<()> {
    let mut editor = Editor::open()?;
    let mut interrupts = CtrlC::listen()?;
    anstream::eprintln!("/help lists the commands, Ctrl-D ends");
    loop {
        // Of an answer that had ended already.
        interrupts.forget().await;
        // Reading blocks, and the services run in this process.
        let reading = tokio::task::spawn_blocking(move || {
            let read = editor.read();
            (editor, read)
        });
        let (returned, read) = reading.await?;
        editor = returned;
        let Some(text) = read? else {
            return Ok(());
        };
        match respond(&mut dialogue, &mut interrupts, &text).await {
            Ok(Next::Prompt) => {}
            Ok(Next::End) => return Ok(()),
            Err(error) => anstream::eprintln!("{}", failure::one_line(&error)),
        }
    }
}

/// Does what was typed.
async fn respond(
    dialogue: &mut Dialogue,
    interrupts: &mut CtrlC,
    text: &str,
) -> anyhow::Result<Next> {
    let command = match commands::read(text)? {
        Entry::Blank => return Ok(Next::Prompt),
        Entry::Message(said) => {
            until_interrupted(dialogue, interrupts, &said).await?;
            return Ok(Next::Prompt);
        }
        Entry::Command(command) => command,
    };
    match command {
        Command::Help => anstream::eprintln!("{HELP}"),
        Command::ShowSettings => anstream::eprintln!("{}", dialogue.settings),
        Command::Set { name, value } => dialogue.settings.set(&name, &value)?,
        Command::Stats if is_begun(&dialogue.answer) => {
            anstream::eprintln!("{}", stats(&dialogue.answer));
        }
        Command::Stats => anstream::eprintln!("there is no answer yet"),
        Command::Save { file, replace } => {
            let system = dialogue.settings.system.as_deref();
            let (said, path) = (&dialogue.conversation, Path::new(&file));
            said.save(system, path, replace)?;
            anstream::eprintln!("saved: {file}");
        }
        Command::Clear => dialogue.conversation = Conversation::default(),
        Command::Bye => return Ok(Next::End),
    }
    Ok(Next::Prompt)
}

/// Prints the answer to `said`. Ctrl-C ends it, and what came until then is the model's turn.
async fn until_interrupted(
    dialogue: &mut Dialogue,
    interrupts: &mut CtrlC,
    said: &str,
) -> anyhow::Result<()> {
    tokio::select! {
        // Begun in any case, so that what is kept is of this answer.
        biased;
        answered = dialogue.say(said) => return answered,
        () = interrupts.next() => {}
    }
    anstream::println!();
    if dialogue.answer.text.is_empty() {
        anstream::eprintln!("stopped before anything came: the line is not in the conversation");
        return Ok(());
    }
    dialogue.keep(said);
    anstream::eprintln!("stopped");
    Ok(())
}
