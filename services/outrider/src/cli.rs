//! Commands and flags.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use serde_json::{Value, json};
use server::config::{self as layers, Loaded};

use crate::config::Config;
use crate::{
    bench, bigram, chat, generate, methods, models, print_config, quantize, record, replay, score,
    serve, sweep, train_head,
};

/// Distributed speculative decoding: a drafter proposes tokens, a verifier decides them, a
/// coordinator talks to clients.
///
/// Try it at once, on the small pair of models that is built in:
///
///   outrider generate --prompt "Once upon a time"
///
/// Or as three services:
///
///   outrider serve drafter & outrider serve verifier & outrider serve coordinator &
///   outrider generate --coordinator http://127.0.0.1:7001 --prompt "Once upon a time"
#[derive(Debug, Parser)]
#[command(name = "outrider", version, verbatim_doc_comment, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    global: Global,
}

#[derive(Debug, Args)]
struct Global {
    /// Configuration file, TOML or JSON. Overridden by OUTRIDER__SECTION__KEY variables, and those
    /// by flags; `outrider config print` shows the outcome.
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Which events are logged on stderr, in the syntax of RUST_LOG: `info`, `warn,drafter=debug`.
    #[arg(long, global = true, value_name = "FILTER")]
    log: Option<String>,
    /// Model that the verifier serves in this process: as in `serve verifier --model`.
    #[arg(long, global = true, value_name = "MODEL")]
    target_model: Option<String>,
    /// Model that the drafter serves in this process: as in `serve drafter --model`.
    #[arg(long, global = true, value_name = "MODEL")]
    draft_model: Option<String>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs a service, or all three in one process, until SIGTERM or SIGINT.
    Serve(serve::ServeArgs),
    /// Generates text. Without --coordinator it runs the three services in this process, on
    /// loopback ports, and goes through the same gRPC.
    Generate(Box<generate::GenerateArgs>),
    /// Talks with the model, turn by turn, by its chat template. Each line is what the user says; the
    /// answers are kept in the conversation. Ends with Ctrl-D.
    Chat(Box<chat::ChatArgs>),
    /// Downloads models from the hub, and lists those that are here.
    Models(models::ModelsArgs),
    /// Compares methods with the target alone, on the same prompts, in the same run. `bench laws`
    /// times acceptance by itself, `bench parts` single parts of a round.
    Bench(bench::BenchArgs),
    /// Measures what quality each method keeps at which cost, on a task whose answers are known.
    Sweep(sweep::SweepArgs),
    /// Generates, and records both models' laws at every draft token in a file.
    Record(record::RecordArgs),
    /// Evaluates methods on recorded laws, without any model.
    Replay(replay::ReplayArgs),
    /// Tells how likely a model finds a text: log probabilities position by position, and the perplexity.
    ///
    /// Each position shows its token, ln of the token's probability given those before it, and the most
    /// likely tokens after it. The perplexity is e to the mean negative log probability of all tokens but
    /// the first.
    ///
    ///   outrider score --text "Once upon a time"
    ///   outrider score --model ./my-model --token-ids 1,20,300 --top 10 --json
    #[command(verbatim_doc_comment)]
    Score(score::ScoreArgs),
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
    /// Writes a model as a GGUF file, quantised or not, which llama.cpp loads too.
    ///
    /// SRC is any model: a checkpoint folder, a GGUF file, a built-in one. Tokenizer and chat template go
    /// into the file. Nothing is left behind when it fails, and DST is never half written.
    ///
    ///   outrider quantize embedded:target target.gguf --to q8_0
    #[command(verbatim_doc_comment)]
    Quantize(quantize::QuantizeArgs),
    /// Lists the methods a request can choose.
    Methods(methods::MethodsArgs),
    /// Shows the configuration.
    Config(print_config::ConfigArgs),
}

/// What is logged by commands whose output is what matters: errors, and how far the loading of a large
/// model is.
const QUIET_LOG: &str = "error,model::load_progress=info";

/// Exit code after Ctrl-C, as a shell would have it: 128 and the signal's number.
pub(crate) const INTERRUPTED: u8 = 130;

/// Runs a command to its end.
pub(crate) async fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    let Cli { command, global } = cli;
    match command {
        Command::Serve(args) => {
            let loaded = global.load(args.settings())?;
            serve::run(args, loaded.value)
                .await
                .map(|()| ExitCode::SUCCESS)
        }
        Command::Generate(args) => {
            global.refuse_models_beside(args.common.coordinator.as_deref())?;
            generate::run(*args, global.load_quietly()?).await
        }
        Command::Chat(args) => {
            global.refuse_models_beside(args.common.coordinator.as_deref())?;
            chat::run(*args, global.load_quietly()?)
                .await
                .map(|()| ExitCode::SUCCESS)
        }
        Command::Models(args) => models::run(args).await.map(|()| ExitCode::SUCCESS),
        Command::Bench(args) => bench::run(args, global.load_quietly()?)
            .await
            .map(|()| ExitCode::SUCCESS),
        Command::Sweep(args) => sweep::run(args, global.load_quietly()?).await,
        Command::Record(args) => record::run(args, global.load_quietly()?).await,
        Command::Replay(args) => replay::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Score(args) => score::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Bigram(args) => bigram::run(&args).map(|()| ExitCode::SUCCESS),
        Command::TrainHead(args) => train_head::run(*args, global.load_quietly()?).await,
        Command::Quantize(args) => quantize::run(args).await,
        Command::Methods(args) => methods::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Config(args) => {
            let loaded = global.load(json!({}))?;
            print_config::run(&args, &loaded).map(|()| ExitCode::SUCCESS)
        }
    }
}

impl Global {
    /// Loads the configuration with the settings of a command's flags on top.
    fn load(&self, mut flags: Value) -> anyhow::Result<Loaded<Config>> {
        if let Some(filter) = &self.log {
            flags["log"] = json!({ "filter": filter });
        }
        for (service, model) in [
            ("verifier", &self.target_model),
            ("drafter", &self.draft_model),
        ] {
            if let Some(path) = model {
                flags[service]["model"]["path"] = json!(path);
            }
        }
        Ok(layers::load(self.config.as_deref(), &flags)?)
    }
}

impl Global {
    /// Refuses models for services of this process where another coordinator is asked.
    fn refuse_models_beside(&self, coordinator: Option<&str>) -> anyhow::Result<()> {
        if coordinator.is_none() || self.target_model.is_none() && self.draft_model.is_none() {
            return Ok(());
        }
        anyhow::bail!(
            "--target-model and --draft-model are for services of this process; with --coordinator, the models \
             are its own"
        )
    }

    /// Loads the configuration for a command whose output is what matters: services in this
    /// process tell only of what goes wrong, unless asked for more.
    fn load_quietly(&self) -> anyhow::Result<Config> {
        let mut loaded = self.load(json!({}))?;
        if is_default(&loaded, "log.filter") {
            QUIET_LOG.clone_into(&mut loaded.value.log.filter);
        }
        Ok(loaded.value)
    }
}

fn is_default(loaded: &Loaded<Config>, key: &str) -> bool {
    let found = loaded
        .provenance()
        .iter()
        .find(|setting| setting.key == key);
    found.is_some_and(|setting| setting.source == "default")
}

/// Whether the reader of the output went away.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error
        .chain()
        .find_map(|cause| cause.downcast_ref::<std::io::Error>());
    io.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

/// An error and its causes in one line, without those that the message quotes already.
pub(crate) fn one_line(error: &anyhow::Error) -> String {
    error
        .chain()
        .skip(1)
        .fold(error.to_string(), |line, cause| {
            let cause = cause.to_string();
            if line.contains(&cause) {
                line
            } else {
                format!("{line}: {cause}")
            }
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flags_are_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }
}
