//! Commands and flags.

mod names;

use std::process::ExitCode;

use anyhow::ensure;
use clap::{Parser, Subcommand};
use outrider::config::Config;
use outrider::global::Global;
use serde_json::json;

#[cfg(feature = "device")]
use crate::device;
#[cfg(feature = "llama-cpp")]
use crate::port;
use crate::report::{BenchReport, ReportArgs};
use crate::{
    batch, bigram, capacity, compare, contexts, decode, distance, drafting, http, kernels, load,
    loading, papers, parts, record, replay, results, serve, speedup, structured, sweep, telemetry,
    train_head, turns, verification,
};

/// Measures what outrider does: its methods, its kernels, its models; and makes what drafting learns from
/// data.
///
/// Every figure printed was measured in this run, and stands beside what it is compared with.
#[derive(Debug, Parser)]
#[command(
    name = "outrider-bench",
    version,
    verbatim_doc_comment,
    max_term_width = 100
)]
pub(crate) struct BenchCli {
    #[command(subcommand)]
    command: BenchCommand,
    #[command(flatten)]
    global: Global,
    #[command(flatten)]
    report: ReportArgs,
}

#[derive(Debug, Subcommand)]
enum BenchCommand {
    /// Compares methods with the target alone, on the same prompts, in the same run.
    Compare(compare::CompareArgs),
    /// Times acceptance alone, without a model: every target distribution under every verification,
    /// as a multiple of one softmax over a row of the same size.
    Verification(verification::VerificationArgs),
    /// Times products with one matrix at 1 to 256 rows, as multiples of one row and against the
    /// bandwidth of the memory they read, candle's beside.
    Kernels(kernels::KernelsArgs),
    /// Compares who drafts and how far: discard rate, verification rate, and the speedup modelled
    /// from what forwards cost, the best of each family beside the best fixed draft length.
    Drafting(drafting::DraftingBenchArgs),
    /// Times single parts of a round, as multiples of one another: forwards of token trees, Max-Gram,
    /// acceptance heads, forwards of several positions.
    Parts(parts::PartsArgs),
    /// Times decoding: a step and what of it is no matrix product, tokens a second against what memory
    /// allows, forwards of several positions; llama.cpp beside it on request.
    ///
    /// A decoding step reads every weight once, so memory bounds it: the bound printed is the time in
    /// which all cores read as many bytes, measured in this process. What a step spends outside of
    /// matrix products is found by computing the products alone, on the same shapes. Everything is
    /// measured in turn, and ratios are medians over turns, so that a machine in another mood changes
    /// both sides alike.
    Decode(decode::DecodeArgs),
    /// Times what a long context costs: a step against what memory allows, a block against a step, the context's
    /// share of a prompt, sessions together.
    Contexts(contexts::ContextsArgs),
    /// Compares what a GPU computes with the CPU and with Hugging Face's numbers, then times synthetic models on it.
    ///
    /// Ends with an error, before anything is timed, where the GPU computes something else.
    #[cfg(feature = "device")]
    Device(device::DeviceArgs),
    /// Times llama.cpp behind the engine port, as multiples of its crate alone on the same file: a block of one
    /// session, and steps of many.
    #[cfg(feature = "llama-cpp")]
    Port(port::PortArgs),
    /// Times sessions that decode together on one engine, as multiples of the tokens of one.
    ///
    /// A step of several sessions reads the weights once for all of them, so together they make more
    /// tokens in the same time than one alone, and each waits little longer for its own. The sessions go
    /// through the engine that services use, each with a sequence of its own.
    Batch(batch::BatchArgs),
    /// Measures what coupled drafts bring from a request's start to its end, through the three services in
    /// this process, against the target alone.
    ///
    /// The target alone is the verifier's own decode stream in q8_0, the fastest there is without drafts.
    /// Draft lengths are tried on some prompts, and the best is measured on others. Beside the built-in pair
    /// a synthetic one is measured, and called so: a larger target of random weights whose draft is its own
    /// first layers. What its deeper layers add is scaled down until as many drafts are accepted as of
    /// a good draft model; the scale is searched anew for each temperature, and printed.
    Speedup(speedup::SpeedupArgs),
    /// Measures the default under load: as many clients as are named, each with one request after another,
    /// against the same clients with target-only.
    ///
    /// Both are measured in turn on the same services, so that a machine in another mood changes both alike; the
    /// ratio is the median over turns. What counts are the tokens that reach clients within a window of time, after
    /// requests have got under way. Speculation that rests under load makes as many tokens as target-only; more
    /// than that are what it brings.
    Load(load::LoadArgs),
    /// Times loading a model, as a multiple of reading its files from the page cache.
    Loading(loading::LoadingArgs),
    /// Measures what a drafter brings that is far away: ms a token by round trip, in rounds and while the target decodes.
    ///
    /// Three services in this process, the drafter at the end of a link that delays what passes. The models take as long as
    /// they are told, so that the figures are those of hosts of their own: what counts is who waits for whom.
    Distance(distance::DistanceArgs),
    /// Measures how many clients a verifier holds at a fixed rate each, by where its drafters are and how many.
    ///
    /// The models take as long as they are told; those of one host compute one forward at a time.
    Capacity(capacity::CapacityArgs),
    /// Measures output under a grammar beside free output, by clients that ask one request after another.
    ///
    /// Two kinds of answers are asked for: a list of strings, where every token is the model's own and its mask is what
    /// a grammar costs; and an object of many properties, most of which the schema forces. All sides are measured in
    /// turn on the same services.
    Structured(structured::StructuredArgs),
    /// Measures what the turns of a conversation, and requests that begin alike, take with what was computed before, and
    /// without.
    ///
    /// Time to the first token, tokens of prompts, and how many of them the verifier did not compute. Name a model with a long
    /// context: --target-model.
    Turns(turns::TurnsArgs),
    /// Measures streams over HTTP beside gRPC: the same requests of the same services, in turn.
    ///
    /// Then many streams at once over HTTP, each of which must have the text that gRPC gives; and as many again, whose
    /// clients leave, with the time until their places are free.
    Http(http::HttpArgs),
    /// Measures any server of the OpenAI API under load, as its clients see it: outrider, llama.cpp's, vLLM, SGLang.
    ///
    /// Streams answers to prompts, for each of the rates and numbers of requests at once that you name, and tells:
    /// requests and tokens a second; the time to the first token, of each token after it, between events, and of whole
    /// requests (mean, median, p90, p99); requests a second that keep your limits (goodput); draft tokens accepted, where
    /// the server tells them; what failed, and why. Figures are defined as those of `vllm bench serve`, and in words below
    /// the tables.
    ///
    /// Compare servers on the same machine, one at a time, with the same flags. Run this program on another machine, or
    /// see that it leaves the server its cores. Ctrl-C ends it with what was measured by then.
    #[command(after_long_help = serve::EXAMPLES)]
    Serve(Box<serve::ServeArgs>),
    /// One service of a pair, for `load`.
    #[command(hide = true)]
    LoadService(load::ServiceArgs),
    /// Measures what traces cost: the same requests through the three services in this process, with traces
    /// sent to a collector that throws them away, and without any.
    ///
    /// Every prompt is asked of all in turn, and who comes first changes from one to the next. Two ratios are
    /// printed: of all time, and of the medians of each prompt, which other work of the machine changes less. A
    /// share of 0 in `--sample-ratios` shows how far equal things differ.
    Telemetry(telemetry::TelemetryArgs),
    /// Measures what quality each method keeps at which cost, on a task whose answers are known.
    Sweep(sweep::SweepArgs),
    /// Measures what the five papers claim, on this pair, beside what they print: quality against calls and time, how far to
    /// draft, cascades of drafters, block verification.
    Papers(papers::PapersArgs),
    /// Generates, and records both models' distributions at every draft token in a file.
    Record(record::RecordArgs),
    /// Evaluates methods on recorded distributions, without any model.
    Replay(replay::ReplayArgs),
    /// Makes the table that Max-Gram drafts from where it has nothing to copy.
    Bigram(bigram::BigramArgs),
    /// Trains an acceptance head, which stops drafting where a refusal is likely (SpecDec++).
    ///
    /// Learnt stopping (SpecDec++) needs an acceptance head: a small network that tells from the draft model's
    /// hidden state how likely a draft token is to be accepted. This command trains one. It lets the target
    /// model answer prompts, through its verifier service; draws at each position what the draft model would
    /// have drafted; labels it with the probability of acceptance under the verification the head is meant
    /// for; and learns. Sampling takes most of the time; what was sampled is kept in --cache, so an
    /// interrupted run goes on where it stopped, and a second head from the same samples costs little.
    ///
    /// The head belongs to the draft model's weights and to the label: serve it as head-coupled.safetensors or
    /// head-rejection.safetensors beside the draft model's weights. Same inputs and seed, same file.
    ///
    /// At the end it prints how far predictions are from labels (mean divergence in nats) beside the best
    /// constant prediction, on responses not learnt from; how predictions agree with labels; and which
    /// threshold h of the stopping loop would have emitted most tokens by time, approximated by products of
    /// labels along the response: a round's second token would follow the first one drafted instead.
    TrainHead(Box<train_head::TrainHeadArgs>),
    /// Runs the commands that a page names, and puts what they print into it.
    ///
    /// A section stands between two lines of comments:
    /// `<!-- outrider-bench verification --repeats 41; takes 2 min -->` and `<!-- end -->`. The program runs
    /// itself with the command's flags and replaces what stands between with what it prints: where and when it was
    /// measured, tables and notes. Nothing else changes; the page is written after each section. A section that
    /// names what it needs (`; needs python llama_cpp`, `; needs file distributions.rec`, `; needs gpu`) is left as
    /// it is where that is missing.
    Results(results::ResultsArgs),
}

/// Runs a command to its end.
pub(crate) async fn run(cli: BenchCli) -> anyhow::Result<ExitCode> {
    let BenchCli {
        command,
        report,
        global,
    } = cli;
    ensure!(
        command.reports() || report == ReportArgs::default(),
        "--json, --tables, --columns: this command prints no report"
    );
    let report = report.checked(command.name())?;
    let config = match &command {
        BenchCommand::Compare(args) => global.load_for(&args.services)?,
        BenchCommand::Drafting(args) => global.load_for(&args.services)?,
        BenchCommand::Papers(args) => global.load_for(&args.services)?,
        BenchCommand::Sweep(args) => global.load_for(&args.services)?,
        BenchCommand::Record(args) => global.load_for(&args.services)?,
        BenchCommand::Structured(args) => global.load_for(&args.services)?,
        BenchCommand::Turns(args) => global.load_for(&args.services)?,
        _ => global.load_quietly(json!({}))?,
    };
    ops::telemetry::init(&config.log)?;
    let mut report = BenchReport::new(report);
    let outcome = Box::pin(carry_out(command, config, &mut report)).await;
    // What was measured is printed also where it ended early.
    let printed = report.finish();
    let code = outcome?;
    printed.map(|()| code)
}

async fn carry_out(
    command: BenchCommand,
    config: Config,
    report: &mut BenchReport,
) -> anyhow::Result<ExitCode> {
    match command {
        BenchCommand::Compare(args) => Box::pin(compare::run(args, config, report)).await?,
        BenchCommand::Drafting(args) => Box::pin(drafting::run(args, config, report)).await?,
        BenchCommand::Speedup(args) => speedup::run(&args, config, report).await?,
        BenchCommand::Load(args) => Box::pin(load::run(&args, config, report)).await?,
        BenchCommand::Distance(args) => Box::pin(distance::run(&args, report)).await?,
        BenchCommand::Capacity(args) => Box::pin(capacity::run(&args, report)).await?,
        BenchCommand::Structured(args) => {
            Box::pin(structured::run(args, config, report)).await?;
        }
        BenchCommand::Turns(args) => Box::pin(turns::run(args, config, report)).await?,
        BenchCommand::Http(args) => Box::pin(http::run(&args, config, report)).await?,
        BenchCommand::Serve(args) => return Box::pin(serve::run(&args, report)).await,
        BenchCommand::LoadService(args) => Box::pin(load::serve(&args, config)).await?,
        BenchCommand::Telemetry(args) => Box::pin(telemetry::run(&args, config, report)).await?,
        BenchCommand::Loading(args) => loading::run(&args, report)?,
        BenchCommand::Kernels(args) => kernels::run(&args, report)?,
        BenchCommand::Verification(args) => verification::run(&args, report)?,
        BenchCommand::Parts(args) => parts::run(&args, report)?,
        BenchCommand::Decode(args) => decode::run(&args, report)?,
        BenchCommand::Contexts(args) => contexts::run(&args, report)?,
        #[cfg(feature = "device")]
        BenchCommand::Device(args) => device::run(&args, report)?,
        #[cfg(feature = "llama-cpp")]
        BenchCommand::Port(args) => port::run(&args, report)?,
        BenchCommand::Batch(args) => batch::run(&args, report)?,
        BenchCommand::Replay(args) => replay::run(&args, report)?,
        BenchCommand::Papers(args) => return Box::pin(papers::run(args, config, report)).await,
        BenchCommand::Sweep(args) => return Box::pin(sweep::run(args, config, report)).await,
        BenchCommand::Record(args) => return Box::pin(record::run(args, config)).await,
        BenchCommand::Bigram(args) => bigram::run(&args)?,
        BenchCommand::TrainHead(args) => {
            return Box::pin(train_head::run(*args, config, report)).await;
        }
        BenchCommand::Results(args) => results::run(&args, is_measurement)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether `line` is the line of a command that measures and prints a report.
///
/// # Errors
/// Says what is wrong with a flag, in a line.
pub(crate) fn is_measurement(line: &[&str]) -> Result<bool, String> {
    let cli = BenchCli::try_parse_from(line).map_err(|error| {
        let text = error.to_string();
        let first = text.lines().next().unwrap_or_default();
        first.trim_start_matches("error: ").to_owned()
    })?;
    let name = cli.command.name();
    cli.report
        .checked(name)
        .map_err(|error| error.to_string())?;
    // What trains writes a file.
    Ok(cli.command.reports() && !matches!(cli.command, BenchCommand::TrainHead(_)))
}

/// What `flags` come to.
#[cfg(test)]
pub(crate) fn parsed<A: clap::Args>(flags: &[&str]) -> A {
    let command = A::augment_args(clap::Command::new("bench").args_override_self(true));
    let flags = [&["bench"], flags].concat();
    let matches = command.try_get_matches_from(flags).expect("flags");
    A::from_arg_matches(&matches).expect("flags")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_flags_are_consistent() {
        BenchCli::command().debug_assert();
    }
}
