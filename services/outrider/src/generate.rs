//! `outrider generate`.

mod args;
mod json;
mod reading;
pub(crate) mod terminal;

pub(crate) use args::{GenerateArgs, turn};
pub(crate) use reading::{TooLong, begin, explain, is_begun, read};

use std::process::ExitCode;

use anyhow::bail;
use client::{Client, CollectedAnswer, Policy};
use ops::telemetry;
use tonic::Code;
use wire::v1;

use crate::config::Config;
use crate::{connect, interrupt};

/// Shows an answer as it comes.
pub(crate) trait Printer {
    /// Shows a part of its text.
    fn chunk(&mut self, chunk: &v1::Chunk) -> anyhow::Result<()>;
    /// Tells something that happens on the way, in one line.
    fn note(&mut self, line: &str);
    /// Ends an answer: complete, or early because of `fault`.
    fn ended(
        &mut self,
        answer: &CollectedAnswer,
        fault: Option<&AnswerFault>,
    ) -> anyhow::Result<()>;
}

/// The failure or signal that ended an answer early.
#[derive(Debug)]
pub(crate) struct AnswerFault {
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
        Box::new(json::AnswerJson)
    } else {
        Box::new(terminal::Terminal::new(args.shown_prompt(), true))
    };
    let policy = Policy {
        resume: !args.no_resume,
        ..client.policy
    };
    let client = client.with_policy(policy);
    let mut answer = CollectedAnswer::default();
    let signal = tokio::select! {
        generated = generate(&client, url, request, args, &mut answer, &mut *printer) => {
            return generated.map(|()| ExitCode::SUCCESS);
        }
        signal = interrupted => signal,
    };
    // The answer is printed already where what comes after it was interrupted.
    if is_begun(&answer) && !answer.is_whole() {
        let fault = AnswerFault {
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
    answer: &mut CollectedAnswer,
    printer: &mut dyn Printer,
) -> anyhow::Result<()> {
    let generation = begin(client, url, request.clone()).await?;
    read(generation, url, answer, printer).await?;
    match &args.check_against {
        Some(method) => compare(client, url, request, answer, method).await,
        None => Ok(()),
    }
}

/// Asks for `request` again with the seed of `answer`, by `method`, and compares the tokens. Of what is asked
/// for, the choice of a method and of its axes does not count.
///
/// # Errors
/// If that cannot be answered, or the tokens are others.
async fn compare(
    client: &Client,
    url: &str,
    request: v1::GenerateRequest,
    answer: &CollectedAnswer,
    method: &str,
) -> anyhow::Result<()> {
    let request = v1::GenerateRequest {
        seed: Some(answer.started.seed),
        method: method.to_owned(),
        settings: None,
        report_rounds: false,
        logprobs: false,
        top_logprobs: 0,
        ..request
    };
    let generated = async { client.generate(request).await?.collect().await };
    let other = generated.await.map_err(|error| explain(url, error))?;
    let tokens = same(&answer.token_ids, &other.token_ids, method)?;
    anstream::eprintln!("{method} generates the same {tokens} tokens");
    Ok(())
}

/// Returns the number of tokens, if they are the same.
fn same(ours: &[u32], theirs: &[u32], method: &str) -> anyhow::Result<usize> {
    let shared = ours.iter().zip(theirs).take_while(|(a, b)| a == b).count();
    if shared == ours.len().max(theirs.len()) {
        return Ok(shared);
    }
    bail!(
        "--check-against: {method} generates other tokens from output position {shared} on: {} instead of {}",
        said(theirs, shared),
        said(ours, shared)
    )
}

fn said(tokens: &[u32], position: usize) -> String {
    tokens
        .get(position)
        .map_or_else(|| "the end".to_owned(), u32::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_the_same_only_if_all_are() {
        assert_eq!(same(&[], &[], "x").ok(), Some(0));
        assert_eq!(same(&[1, 2], &[1, 2], "x").ok(), Some(2));
        let reported = |ours: &[u32], theirs: &[u32]| match same(ours, theirs, "target-only") {
            Ok(tokens) => panic!("{tokens} tokens"),
            Err(error) => error.to_string(),
        };
        let other = reported(&[1, 2, 3], &[1, 7, 3]);
        assert!(other.contains("target-only") && other.contains("position 1"));
        assert!(other.contains("7 instead of 2"), "{other}");
        assert!(reported(&[1, 2], &[1]).contains("the end instead of 2"));
        assert!(reported(&[1], &[1, 2]).contains("2 instead of the end"));
    }
}
