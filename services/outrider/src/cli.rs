//! Commands and flags, and what the smallest commands do.

use std::io::Write;
use std::process::ExitCode;

use anstream::stdout;
use anyhow::bail;
use clap::{Command, CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use net::listen::OptionalListen;
use ops::admin::{self, AdminConfig};
use ops::telemetry::LogFormat;
use serde_json::json;

use crate::cluster::reachable;
use crate::global::Global;
use crate::{
    bench, calibrate, chat, config_command, doctor, failure, generate, man, methods, models,
    program, quantize, score, serve,
};

/// Distributed speculative decoding: a drafter proposes tokens, a verifier decides them, a
/// coordinator talks to clients.
///
/// Try it at once, on the small pair of models that is built in:
///
///   outrider generate "Once upon a time"
///
/// Or as three services:
///
///   outrider serve drafter & outrider serve verifier & outrider serve coordinator &
///   outrider generate --coordinator localhost:7001 "Once upon a time"
///
/// A command that fails ends with a code other than 0 and says why on stderr; with --json it prints
/// {"error": {"message": ...}} on stdout besides, as its last line.
#[derive(Debug, Parser)]
#[command(name = "outrider", version, verbatim_doc_comment, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: CliCommand,
    #[command(flatten)]
    global: Global,
}

#[derive(Debug, Subcommand)]
enum CliCommand {
    /// Runs a service, or all three in one process, until SIGTERM, SIGQUIT or SIGINT.
    ///
    /// Requests under way are then finished first; SIGINT (Ctrl-C) once more ends it at once. On SIGHUP it reads
    /// certificates, tokens and log.filter again, and goes on.
    Serve(serve::ServeArgs),
    /// Generates text that goes on from a prompt, or answers it with --chat.
    ///
    /// Without --coordinator it runs the three services in this process, on loopback ports, and goes through the same
    /// gRPC. On a terminal the prompt is shown dimmed, and tokens have the colour of where they came from: green are
    /// accepted draft tokens, yellow what the target model put in place of a refused one, cyan what it added after a
    /// block, magenta what a cascade left to it; plain ones the target model decoded alone.
    #[command(
        after_long_help = "Examples:\n  outrider generate \"Once upon a time\"\n  outrider generate --chat \"What is a lake?\" --temperature 0\n  outrider generate \"Once upon a time\" --method spec-cascade --alpha 0.3 --json\n  outrider generate --coordinator https://models.example:7001 --ca-file ca.pem --prompt-file story.txt"
    )]
    Generate(Box<generate::GenerateArgs>),
    /// Talks with the model, turn by turn, by its chat template. Each line is what the user says; the
    /// answers are kept in the conversation. Its oldest turns are forgotten, with a word about it, where it
    /// leaves no room for --max-tokens in the model's context. Ends with Ctrl-D.
    #[command(after_help = chat::HELP)]
    Chat(Box<chat::ChatArgs>),
    /// Downloads models from the hub, and lists those that are here.
    Models(models::ModelsArgs),
    /// Measures a running deployment, or the built-in pair: a method beside the target alone, on the same
    /// prompts, in turn.
    ///
    /// More of this kind (several methods, kernels, models by themselves, quality against cost) is in a program
    /// of its own, outrider-bench.
    Bench(Box<bench::BenchArgs>),
    /// Tells beforehand whether speculation pays with a pair of models: measures both and how often drafts are accepted, and
    /// forecasts the speed by draft length.
    ///
    /// Also against a running coordinator (--coordinator). Forecasts are of rounds, one request at a time; drafts that
    /// are made ahead on another machine cost less.
    #[command(
        after_help = "Examples:\n  outrider calibrate --target-model ./target.gguf --draft-model ./draft.gguf\n  outrider calibrate --coordinator http://host:7100 --prompts mine.jsonl --check"
    )]
    Calibrate(Box<calibrate::CalibrateArgs>),
    /// Tells how likely a model finds a text: log probabilities position by position, and the perplexity.
    ///
    /// Each position shows its token, ln of the token's probability given those before it, and the most
    /// likely tokens after it. The perplexity is e to the mean negative log probability of all tokens but
    /// the first.
    #[command(
        after_help = "Examples:\n  outrider score --text \"Once upon a time\"\n  outrider score --model ./my-model --token-ids 1,20,300 --top 10 --json"
    )]
    Score(score::ScoreArgs),
    /// Writes a model as a GGUF file, quantised or not, which llama.cpp loads too.
    ///
    /// SRC is any model: a checkpoint folder, a GGUF file, a built-in one. Tokenizer and chat template go
    /// into the file. Nothing is left behind when it fails or is told to stop (Ctrl-C, SIGTERM, SIGHUP), and
    /// DST is never half written. Only a process that is killed leaves an unfinished .DST.part, which the next
    /// run to the same DST overwrites.
    #[command(after_help = "Example:\n  outrider quantize embedded:target target.gguf --to q8_0")]
    Quantize(quantize::QuantizeArgs),
    /// Lists the methods a request can choose.
    Methods(methods::MethodsArgs),
    /// Shows the configuration, or says what is wrong with it.
    Config(config_command::ConfigArgs),
    /// Looks at everything that may be in the way, and says what to do about it: for when something does not work.
    ///
    /// Configuration, models, tokenizer and chat template, memory, ports, peers, certificates, clock, CPU and GPU.
    /// Each line is ok, info, warning or error; with an error the exit code is not 0. That nothing runs is no error,
    /// unless it was named. Nothing is loaded or changed, and whoever does not answer within 2 s is given up.
    #[command(
        after_help = "Examples:\n  outrider doctor\n  outrider doctor --config outrider.toml --coordinator http://127.0.0.1:7001"
    )]
    Doctor(doctor::DoctorArgs),
    /// Asks a serving process whether it is ready, at its admin port: one line, and exit code 0 if it is.
    ///
    /// For the health checks of containers and orchestrators, which have no other program to ask with.
    Health {
        /// The admin port to ask, http://HOST:PORT; that of the configuration (admin.listen) if left out.
        #[arg(long, value_name = "URL")]
        url: Option<String>,
    },
    /// Prints a shell's completions for this program.
    ///
    ///   outrider completions bash > /etc/bash_completion.d/outrider
    ///   outrider completions zsh > ~/.zfunc/_outrider
    ///   outrider completions fish > ~/.config/fish/completions/outrider.fish
    #[command(verbatim_doc_comment)]
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Prints the manual page of this program or of one of its commands, or writes all of them.
    ///
    ///   outrider man serve drafter | man -l -
    ///   outrider man --out /usr/local/share/man/man1
    #[command(verbatim_doc_comment)]
    Man(man::ManArgs),
}

/// Reads the command line, carries it out, and tells what went wrong.
pub async fn main() -> ExitCode {
    program::run(run).await
}

/// Runs a command to its end.
async fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    let Cli { command, global } = cli;
    match command {
        CliCommand::Serve(args) => {
            let served = async {
                let (global, settings) = (global.clone(), args.settings());
                let read = move || global.load(settings.clone());
                Box::pin(serve::run(args, read()?, read)).await
            };
            served.await.map_err(|error| match global.log_format() {
                LogFormat::Text => error,
                LogFormat::Json => failure::InLogLine(error).into(),
            })?;
        }
        CliCommand::Generate(args) => {
            let config = global.load_for(&args.common.services)?;
            return Box::pin(generate::run(*args, config)).await;
        }
        CliCommand::Chat(args) => {
            let config = global.load_for(args.services())?;
            Box::pin(chat::run(*args, config)).await?;
        }
        CliCommand::Models(args) => models::run(args).await?,
        CliCommand::Bench(args) => {
            let config = global.load_for(&args.services)?;
            Box::pin(bench::run(*args, config)).await?;
        }
        CliCommand::Calibrate(args) => {
            let config = global.load_for(&args.services)?;
            Box::pin(calibrate::run(*args, config)).await?;
        }
        CliCommand::Score(args) => score::run(&args)?,
        CliCommand::Quantize(args) => return quantize::run(args).await,
        CliCommand::Methods(args) => methods::run(&args)?,
        CliCommand::Health { url } => {
            return health(url, &global.load(json!({}))?.value.admin).await;
        }
        CliCommand::Config(args) => return config_command::run(&args, &global),
        CliCommand::Doctor(args) => return Box::pin(doctor::run(args, &global)).await,
        CliCommand::Completions { shell } => complete(shell, Cli::command())?,
        CliCommand::Man(args) => man::run(&args, Cli::command())?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Asks the process whose admin port is at `url`, or where `config` says, whether it is ready; prints one line.
async fn health(url: Option<String>, config: &AdminConfig) -> anyhow::Result<ExitCode> {
    let url = match (url, config.listen) {
        (Some(url), _) => url,
        (None, OptionalListen::At(listen)) => format!("http://{}", reachable(listen.address())),
        (None, OptionalListen::Off) => {
            bail!("admin.listen is off in this configuration, so nobody can be asked; give --url")
        }
    };
    let requested = admin::readiness(&url).await?;
    writeln!(stdout(), "{}", requested.line)?;
    Ok(ExitCode::from(u8::from(!requested.is_ready)))
}

/// Prints the completions of `program` for `shell`.
fn complete(shell: Shell, mut program: Command) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut program, "outrider", &mut script);
    std::io::stdout().write_all(&script)?;
    Ok(())
}

#[cfg(test)]
mod tests;
