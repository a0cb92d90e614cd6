//! `outrider chat`.

mod input;

use std::io::{IsTerminal, Write};

use anyhow::{Context, ensure};
use clap::Args;
use client::{Answer, Client};
use server::telemetry;
use wire::v1;

use crate::args::RequestArgs;
use crate::config::Config;
use crate::connect;
use crate::generate::terminal::Terminal;
use crate::generate::{self, TooLong, turn};
use input::Line;

/// Tokens of an answer that a conversation leaves room for, where --max-tokens does not say.
const ANSWER_TOKENS: u32 = 256;

/// Arguments of `outrider chat`.
#[derive(Debug, Args)]
pub(crate) struct ChatArgs {
    /// What the model is told before the conversation.
    #[arg(long, value_name = "TEXT")]
    system: Option<String>,
    #[command(flatten)]
    pub(crate) common: RequestArgs,
}

/// What the user said, and what the model answered.
type Turn = (String, String);

/// Talks until the input ends.
pub(crate) async fn run(args: ChatArgs, config: Config) -> anyhow::Result<()> {
    telemetry::init(&config.log)?;
    let request = args.common.request()?;
    let coordinator = args.common.services.coordinator.as_deref();
    let ask = async |client, url: &str| talk(client, url, &request, &args).await;
    connect::ask(coordinator, config, ask).await
}

async fn talk(
    client: Client,
    url: &str,
    request: &v1::GenerateRequest,
    args: &ChatArgs,
) -> anyhow::Result<()> {
    let mut turns = Vec::new();
    let is_terminal = std::io::stdin().is_terminal();
    let mut unanswered = 0;
    loop {
        if is_terminal {
            let mut out = anstream::stderr().lock();
            write!(out, "> ")?;
            out.flush()?;
        }
        // Reading blocks, and the services run in this process.
        let next = tokio::task::spawn_blocking(|| Line::read(&mut std::io::stdin().lock()));
        let line = match next.await?.context("standard input cannot be read")? {
            Line::Text(line) if line.trim().is_empty() => continue,
            Line::Text(line) => line,
            Line::NoText => {
                anstream::eprintln!("a line that is not UTF-8 was left out");
                continue;
            }
            Line::End => {
                if is_terminal {
                    anstream::eprintln!();
                    return Ok(());
                }
                ensure!(
                    unanswered == 0,
                    "lines that were too long, and were not answered: {unanswered}"
                );
                return Ok(());
            }
        };
        match say(&client, url, (request, args), &mut turns, &line).await {
            Ok(answer) => turns.push((line, answer)),
            // The conversation goes on without a line that is too long, and on a terminal without whatever
            // could not be answered.
            Err(error) if is_terminal || is_of_line(&error) => {
                unanswered += 1;
                anstream::eprintln!("{}", crate::failure::one_line(&error));
            }
            Err(error) => return Err(error),
        }
    }
}

/// Whether a shorter line would do.
fn is_of_line(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<TooLong>()
        .is_some_and(|problem| problem.to_string().starts_with("prompt:"))
}

/// Prints the answer to `line`. The oldest turns are forgotten where the conversation and an answer have no
/// room in the model's context.
async fn say(
    client: &Client,
    url: &str,
    (request, args): (&v1::GenerateRequest, &ChatArgs),
    turns: &mut Vec<Turn>,
    line: &str,
) -> anyhow::Result<String> {
    let mut forgotten = 0;
    let generation = loop {
        let is_last = forgotten == turns.len();
        let request = v1::GenerateRequest {
            messages: messages(args.system.as_deref(), &turns[forgotten..], line),
            // Room for a whole answer, as long as there are turns that could make it.
            max_tokens: request.max_tokens.or((!is_last).then_some(ANSWER_TOKENS)),
            ..request.clone()
        };
        let generation = client.generate(request).await;
        match generation.map_err(|error| generate::explain(url, error)) {
            Err(error) if error.is::<TooLong>() && !is_last => forgotten += 1,
            started => break started?,
        }
    };
    if forgotten > 0 {
        turns.drain(..forgotten);
        let gone = if forgotten == 1 {
            "turn is"
        } else {
            "turns are"
        };
        anstream::eprintln!(
            "the conversation is longer than the model's context: its {forgotten} oldest {gone} forgotten"
        );
    }
    let mut answer = Answer::default();
    generate::read(generation, url, &mut answer, &mut Terminal::new()).await?;
    Ok(answer.text)
}

/// What the model was told before, the turns that are not forgotten, and what the user says next.
fn messages(system: Option<&str>, turns: &[Turn], next: &str) -> Vec<v1::ChatMessage> {
    let system = system.map(|text| turn("system", text));
    let turns = turns.iter();
    let turns = turns.flat_map(|(user, model)| [turn("user", user), turn("assistant", model)]);
    let said = system.into_iter().chain(turns);
    said.chain([turn("user", next)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_comes_after_what_was() {
        let turns = ["1", "2"].map(|turn| (format!("user {turn}"), format!("model {turn}")));
        let said = messages(Some("Be brief."), &turns[1..], "next");
        let said: Vec<_> = said.iter().map(|message| &*message.content).collect();
        assert_eq!(said, ["Be brief.", "user 2", "model 2", "next"]);
    }
}
