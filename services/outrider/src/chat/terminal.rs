//! A conversation at a terminal, with commands.

use std::ops::ControlFlow;
use std::path::Path;

use futures_util::FutureExt;
use ops::shutdown::{Signals, StopSignal};

use super::answering::Dialogue;
use super::commands::{self, ChatCommand, ChatInput, HELP};
use super::editor::Editor;
use crate::failure;
use crate::generate::is_begun;
use crate::generate::terminal::stats;

/// Talks until the user has enough. What fails is told, and the conversation goes on.
pub(super) async fn talk(mut dialogue: Dialogue) -> anyhow::Result<()> {
    let mut editor = Editor::open()?;
    // From now on Ctrl-C does not end the process.
    let mut interrupts = Signals::listen(&[StopSignal::INTERRUPT])?;
    anstream::eprintln!("/help lists the commands, Ctrl-D ends");
    loop {
        if let Some(call) = dialogue.call() {
            anstream::eprintln!("what does {} come to?", call.name);
        }
        // One that came when an answer had ended already is forgotten.
        let _forgotten = interrupts.next().now_or_never();
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
            Ok(ControlFlow::Continue(())) => {}
            Ok(ControlFlow::Break(())) => return Ok(()),
            Err(error) => anstream::eprintln!("{}", failure::one_line(&error)),
        }
    }
}

/// Does what was typed; breaks if that is the wish to end.
async fn respond(
    dialogue: &mut Dialogue,
    interrupts: &mut Signals,
    text: &str,
) -> anyhow::Result<ControlFlow<()>> {
    let command = match commands::read(text)? {
        ChatInput::Blank => return Ok(ControlFlow::Continue(())),
        ChatInput::Message(said) => {
            until_interrupted(dialogue, interrupts, &said).await?;
            return Ok(ControlFlow::Continue(()));
        }
        ChatInput::Command(command) => command,
    };
    match command {
        ChatCommand::Help => anstream::eprintln!("{HELP}"),
        ChatCommand::ShowSettings => anstream::eprintln!("{}", dialogue.settings),
        ChatCommand::Set { name, value } => dialogue.settings.set(&name, &value)?,
        ChatCommand::Stats if is_begun(&dialogue.answer) => {
            anstream::eprintln!("{}", stats(&dialogue.answer));
        }
        ChatCommand::Stats => anstream::eprintln!("there is no answer yet"),
        ChatCommand::Save { file, replace } => {
            let system = dialogue.settings.system.as_deref();
            let (said, path) = (&dialogue.conversation, Path::new(&file));
            said.save(system, path, replace)?;
            anstream::eprintln!("saved: {file}");
        }
        ChatCommand::Clear => dialogue.clear(),
        ChatCommand::Bye => return Ok(ControlFlow::Break(())),
    }
    Ok(ControlFlow::Continue(()))
}

/// Prints the answer to `said`. Ctrl-C ends it, and what came until then is the model's turn.
async fn until_interrupted(
    dialogue: &mut Dialogue,
    interrupts: &mut Signals,
    said: &str,
) -> anyhow::Result<()> {
    tokio::select! {
        // Begun in any case, so that what is kept is of this answer.
        biased;
        answered = dialogue.say(said) => return answered,
        _ = interrupts.next() => {}
    }
    anstream::println!();
    if dialogue.answer.text.is_empty() {
        dialogue.drop_turn();
        anstream::eprintln!("stopped before anything came: the line is not in the conversation");
        return Ok(());
    }
    dialogue.keep();
    anstream::eprintln!("stopped");
    Ok(())
}
