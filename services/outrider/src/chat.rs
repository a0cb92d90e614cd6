//! `outrider chat`.

mod answering;
mod commands;
mod conversation;
mod editor;
mod pipe;
mod settings;
mod terminal;
mod tools;

pub(crate) use commands::HELP;

use std::io::IsTerminal;

use clap::Args;
use ops::telemetry;

use crate::args::ServicesArgs;
use crate::config::Config;
use crate::connect;
use answering::Dialogue;
use settings::{Changeable, ChatSettings, GivenFlags};

/// Arguments of `outrider chat`.
#[derive(Debug, Args)]
pub(crate) struct ChatArgs {
    // Before the others, which take their values out of what was parsed.
    #[command(flatten)]
    given: GivenFlags,
    #[command(flatten)]
    flags: Changeable,
}

impl ChatArgs {
    /// Whom it asks.
    pub(crate) fn services(&self) -> &ServicesArgs {
        &self.flags.common.services
    }
}

/// Talks until the input ends.
pub(crate) async fn run(args: ChatArgs, config: Config) -> anyhow::Result<()> {
    telemetry::init(&config.log)?;
    let coordinator = args.services().coordinator.clone();
    let settings = ChatSettings::new(args.given)?;
    let ask = async |client, url: &str| {
        let dialogue = Dialogue::new(client, url, settings);
        if std::io::stdin().is_terminal() {
            Box::pin(terminal::talk(dialogue)).await
        } else {
            Box::pin(pipe::talk(dialogue)).await
        }
    };
    connect::ask(coordinator.as_deref(), config, ask).await
}
