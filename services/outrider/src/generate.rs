//! `outrider generate`.

mod args;
mod check;
mod json;
mod reading;
pub(crate) mod terminal;

pub(crate) use args::{GenerateArgs, turn};
pub(crate) use reading::{TooLong, begin, explain, is_begun, read};

use std::process::ExitCode;

use client::{Answer, Client, Policy};
use server::telemetry;
use tonic::Code;
use wire::v1;

use crate::config::Config;
use crate::{connect, interrupt};

/// Shows an answer as it comes.
pub(crate) trait Printer {
    /// A part of its text.
    fn chunk(&mut self, chunk: &v1::Chunk) -> anyhow::Result<()>;
    /// Something that happens on the way, in one line.
    fn note(&mut self, line: &str);
    /// The answer has ended: complete, or early because of `fault`.
    fn ended(&mut self, answer: &Answer, fault: Option<&Fault>) -> anyhow::Result<()>;
}

/// The failure or signal that ended an answer early.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) message: String,
    pub(crate) code: Code,
}

/// Generates and prints.
pub(crate) async fn run(args: GenerateArgs, config: Config) -> anyhow::Result<ExitCode> {
    telemetry::init(&config.log)?;
    let request = args.request()?;
    let coordinator = args.common.services.coordinator.as_deref();
    let ask =
        async |client, url: &str| Box::pin(until_interrupted(client, url, request, &args)).await;
    connect::ask(coordinator, config, ask).await
}

/// Generates and prints; on a signal that ends the process, what came until then.
async fn until_interrupted(
    client: Client,
    url: &str,
    request: v1::GenerateRequest,
    args: &GenerateArgs,
) -> anyhow::Result<ExitCode> {
    let interrupted = interrupt::first()?;
    let mut printer: Box<dyn Printer> = if args.json {
        Box::new(json::Json)
    } else {
        Box::new(terminal::Terminal::new(args.shown_prompt(), true))
    };
    let policy = Policy {
        resume: !args.no_resume,
        ..client.policy()
    };
    let client = client.with_policy(policy);
    let mut answer = Answer::default();
    let signal = tokio::select! {
        generated = generate(&client, url, request, args, &mut answer, &mut *printer) => {
            return generated.map(|()| ExitCode::SUCCESS);
        }
        signal = interrupted => signal,
    };
    // The answer is printed already where what comes after it was interrupted.
    if is_begun(&answer) && !answer.is_whole() {
        let fault = Fault {
            message: format!("interrupted by {}", signal.name),
            code: Code::Cancelled,
        };
        printer.ended(&answer, Some(&fault))?;
    }
    Ok(ExitCode::from(signal.exit_code))
}

/// Asks, prints, and where another method is given to check against, compares with what that generates.
async fn generate(
    client: &Client,
    url: &str,
    request: v1::GenerateRequest,
    args: &GenerateArgs,
    answer: &mut Answer,
    printer: &mut dyn Printer,
) -> anyhow::Result<()> {
    let generation = begin(client, url, request.clone()).await?;
    read(generation, url, answer, printer).await?;
    match &args.check_against {
        Some(method) => check::compare(client, url, request, answer, method).await,
        None => Ok(()),
    }
}
