//! `outrider-bench turns`: what the turns of a conversation, and requests that begin alike, take with and without what was
//! computed before.

use std::time::Instant;

use anyhow::{Context, ensure};
use clap::Args;
use client::{Client, CollectedAnswer};
use futures_util::future::try_join_all;
use outrider::args::ServicesArgs;
use outrider::config::Config;
use outrider::{connect, measure, progress};
use wire::v1::{GenerateRequest, Usage};

use crate::ranges;
use crate::report::{BenchReport, Row, number, text};
use crate::timing::median;

#[derive(Debug, Args)]
pub(crate) struct TurnsArgs {
    #[command(flatten)]
    pub(crate) services: ServicesArgs,
    /// Turns of a conversation.
    #[arg(long, value_name = "N", default_value_t = 3)]
    turns: usize,
    /// Lines of about 20 tokens that a conversation begins with; fewer where the model's context is short.
    #[arg(long, value_name = "N", default_value_t = 230)]
    lines: usize,
    /// Clients at once whose prompts have one beginning, of half as many lines.
    #[arg(long, value_name = "N", default_value_t = 32)]
    clients: usize,
    /// Output tokens of a request.
    #[arg(long, value_name = "N", default_value_t = 16)]
    max_tokens: u32,
    /// Times that all is measured; what is printed are medians.
    #[arg(long, value_name = "N", default_value_t = 3)]
    repeats: usize,
}

/// Tokens that a line takes at most.
const LINE: usize = 24;

/// Whether beginnings that were computed are reused, and what that is called.
const SIDES: [(bool, &str); 2] = [(true, "reused"), (false, "computed anew")];

/// What a request took.
#[derive(Clone, Copy, Debug)]
struct Taken {
    usage: Usage,
    first_token_ms: f64,
}

/// Measures.
pub(crate) async fn run(
    args: TurnsArgs,
    config: Config,
    report: &mut BenchReport,
) -> anyhow::Result<()> {
    ranges::at_least_one([
        ("turns", args.turns),
        ("lines", args.lines),
        ("clients", args.clients),
        ("max-tokens", args.max_tokens as usize),
        ("repeats", args.repeats),
    ])?;
    report.title("Turns of a conversation, and requests that begin alike");
    let coordinator = args.services.coordinator.as_deref();
    let ask = async |client: Client, _: &str| {
        let context = context_len(&client).await?;
        let room = context.saturating_sub(args.turns * (args.max_tokens as usize + LINE));
        let lines = args.lines.min(room / LINE);
        ensure!(
            lines > 0,
            "the model's context of {context} tokens has no room for so many turns"
        );
        conversations(&args, &client, lines, report).await?;
        together(&args, &client, lines / 2, report).await
    };
    connect::ask(coordinator, config, ask).await?;
    report.note(format!(
        "medians of {} times; {} tokens an answer; computed anew: cache_prompt is false",
        args.repeats, args.max_tokens
    ));
    Ok(())
}

async fn context_len(client: &Client) -> anyhow::Result<usize> {
    let models = client.models().await?;
    let verifier = models.into_iter().next().and_then(|model| model.verifier);
    Ok(verifier.context("no verifier answers")?.context_len as usize)
}

/// Lines that nobody began with before: `first` is the number of the first.
fn lines(first: usize, count: usize) -> String {
    let line = |at: usize| {
        format!(
            "Line {at}: the quick brown fox number {} jumps.\n",
            at * 7 % 101
        )
    };
    (first..first + count).map(line).collect()
}

async fn ask(
    client: &Client,
    prompt: &str,
    max_tokens: u32,
    reuse: bool,
) -> anyhow::Result<(CollectedAnswer, Taken)> {
    let request = GenerateRequest {
        cache_prompt: Some(reuse),
        ignore_eos: true,
        ..measure::request(prompt, max_tokens, 0.0, 0)
    };
    let answer = measure::measure(client, &"coupled", request).await?;
    let timing = answer.finished.timing.unwrap_or_default();
    let taken = Taken {
        usage: answer.finished.usage.unwrap_or_default(),
        first_token_ms: timing.time_to_first_token_ms,
    };
    Ok((answer, taken))
}

/// Conversations, one turn after the other.
async fn conversations(
    args: &TurnsArgs,
    client: &Client,
    count: usize,
    report: &mut BenchReport,
) -> anyhow::Result<()> {
    let mut taken = SIDES.map(|_| vec![Vec::new(); args.turns]);
    for repeat in 0..args.repeats {
        for (side, (reuse, name)) in SIDES.into_iter().enumerate() {
            progress::show(&format!("a conversation, {name}"))?;
            let mut prompt = lines((2 * repeat + side) * 10_000, count);
            for turn in &mut taken[side] {
                let (answer, took) = ask(client, &prompt, args.max_tokens, reuse).await?;
                turn.push(took);
                prompt.push_str(&answer.text);
                prompt.push_str("\nShorter, please.\n");
            }
        }
    }
    for ((_, name), turns) in SIDES.into_iter().zip(&taken) {
        let first = first_token(&turns[0]);
        for (turn, took) in turns.iter().enumerate() {
            report.row("turns", row(name, turn + 1, took, first))?;
        }
    }
    Ok(())
}

fn first_token(taken: &[Taken]) -> f64 {
    median(taken.iter().map(|it| it.first_token_ms).collect())
}

fn row(name: &str, turn: usize, taken: &[Taken], first: f64) -> Row {
    let tokens =
        |of: fn(&Usage) -> u32| median(taken.iter().map(|it| of(&it.usage).into()).collect());
    vec![
        text("beginnings", name),
        number("turn", turn as f64, 0),
        number("prompt_tokens", tokens(|usage| usage.prompt_tokens), 0),
        number(
            "cached_tokens",
            tokens(|usage| usage.cached_prompt_tokens),
            0,
        ),
        number("first_token_ms", first_token(taken), 0).called("first token, ms"),
        number("over_first", first_token(taken) / first, 2).called("over the first turn's"),
    ]
}

/// Clients at once whose prompts begin alike.
async fn together(
    args: &TurnsArgs,
    client: &Client,
    count: usize,
    report: &mut BenchReport,
) -> anyhow::Result<()> {
    for (side, (reuse, name)) in SIDES.into_iter().enumerate() {
        let mut rows = Vec::new();
        for repeat in 0..args.repeats {
            progress::show(&format!("{} clients, {name}", args.clients))?;
            let common = lines((2 * repeat + side + 1) * 1_000_000, count);
            let began = Instant::now();
            let asking = (0..args.clients).map(|own| {
                let prompt = format!("{common}Question {own}:");
                async move { anyhow::Ok(ask(client, &prompt, args.max_tokens, reuse).await?.1) }
            });
            let taken = try_join_all(asking).await?;
            let sum = |of: fn(&Usage) -> u32| -> f64 {
                taken.iter().map(|it| f64::from(of(&it.usage))).sum()
            };
            let prompts = sum(|usage| usage.prompt_tokens);
            let computed = prompts - sum(|usage| usage.cached_prompt_tokens);
            rows.push((
                prompts,
                computed,
                began.elapsed().as_secs_f64(),
                first_token(&taken),
            ));
        }
        let of = |of: fn(&(f64, f64, f64, f64)) -> f64| median(rows.iter().map(of).collect());
        report.row(
            "together",
            vec![
                text("beginnings", name),
                number("clients", args.clients as f64, 0),
                number("prompt_tokens", of(|row| row.0), 0),
                number("computed_tokens", of(|row| row.1), 0).called("of them computed"),
                number("first_token_ms", of(|row| row.3), 0).called("first token, ms (median)"),
                number("seconds", of(|row| row.2), 2).called("all answered, s"),
            ],
        )?;
    }
    Ok(())
}
