//! Commands and flags.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use serde_json::{Value, json};
use server::config::{self as layers, Loaded};

use crate::config::Config;
use crate::model_args::ModelArgs;
use crate::{
    bench, bigram, chat, completions, failure, generate, health, man, methods, models,
    print_config, quantize, record, replay, score, serve, sweep, train_head,
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
///
/// A command that fails ends with a code other than 0 and says why on stderr; with --json it prints
/// {"error": {"message": ...}} on stdout besides, as its last line.
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
    #[command(flatten)]
    security: SecurityArgs,
}

/// Settings of the sections `tls` and `auth`.
#[derive(Debug, Args)]
#[command(next_help_heading = "Security")]
struct SecurityArgs {
    /// File with the token that is shown to the coordinator; of several lines the first.
    #[arg(long, global = true, value_name = "FILE", env = "OUTRIDER_TOKEN_FILE")]
    token_file: Option<PathBuf>,
    /// Certificates in PEM of the CAs by which servers are believed, for URLs that begin with https://; in
    /// tls.mode mutual clients too.
    #[arg(long, global = true, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// Certificate chain in PEM to show: by a service, and by a client that is asked for one.
    #[arg(long, global = true, value_name = "FILE")]
    cert_file: Option<PathBuf>,
    /// Private key of the certificate, in PEM.
    #[arg(long, global = true, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// Serves in clear on addresses that other machines can reach, and shows tokens over http:// to other
    /// machines.
    #[arg(long, global = true)]
    insecure: bool,
}

impl SecurityArgs {
    /// The flags given, as settings.
    fn apply(&self, flags: &mut Value) {
        flags["auth"] = json!({ "token_file": self.token_file });
        flags["tls"] = json!({
            "ca_file": self.ca_file,
            "cert_file": self.cert_file,
            "key_file": self.key_file,
        });
        if self.insecure {
            flags["insecure"] = json!(true);
        }
    }
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs a service, or all three in one process, until SIGTERM or SIGINT.
    Serve(serve::ServeArgs),
    /// Generates text. Without --coordinator it runs the three services in this process, on
    /// loopback ports, and goes through the same gRPC.
    Generate(Box<generate::GenerateArgs>),
    /// Talks with the model, turn by turn, by its chat template. Each line is what the user says; the
    /// answers are kept in the conversation. Its oldest turns are forgotten, with a word about it, where it
    /// leaves no room for --max-tokens in the model's context. Ends with Ctrl-D.
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
    #[command(
        after_help = "Examples:\n  outrider score --text \"Once upon a time\"\n  outrider score --model ./my-model --token-ids 1,20,300 --top 10 --json"
    )]
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
    /// into the file. Nothing is left behind when it fails or is told to stop (Ctrl-C, SIGTERM, SIGHUP), and
    /// DST is never half written. Only a process that is killed leaves an unfinished .DST.part, which the next
    /// run to the same DST overwrites.
    #[command(after_help = "Example:\n  outrider quantize embedded:target target.gguf --to q8_0")]
    Quantize(quantize::QuantizeArgs),
    /// Lists the methods a request can choose.
    Methods(methods::MethodsArgs),
    /// Shows the configuration.
    Config(print_config::ConfigArgs),
    /// Asks a serving process whether it is ready, at its admin port: one line, and exit code 0 if it is.
    ///
    /// For the health checks of containers and orchestrators, which have no other program to ask with.
    Health(health::HealthArgs),
    /// Prints a shell's completions for this program.
    ///
    ///   outrider completions bash > /etc/bash_completion.d/outrider
    ///   outrider completions zsh > ~/.zfunc/_outrider
    ///   outrider completions fish > ~/.config/fish/completions/outrider.fish
    #[command(verbatim_doc_comment)]
    Completions(completions::CompletionsArgs),
    /// Prints the manual page of this program or of one of its commands, or writes all of them.
    ///
    ///   outrider man serve drafter | man -l -
    ///   outrider man --out /usr/local/share/man/man1
    #[command(verbatim_doc_comment)]
    Man(man::ManArgs),
}

/// Whom a command asks.
#[derive(Clone, Copy)]
pub(crate) struct Services<'a> {
    /// Models of its own services.
    pub(crate) models: &'a ModelArgs,
    /// A coordinator that runs already, which is asked instead.
    pub(crate) coordinator: Option<&'a str>,
}

/// What is logged by commands whose output is what matters: errors, and how far the loading of a large
/// model is.
const QUIET_LOG: &str = "error,model::load_progress=info";

/// Exit code after Ctrl-C, as a shell would have it: 128 and the signal's number.
pub(crate) const INTERRUPTED: u8 = 130;

/// Reads the command line, carries it out, and tells what went wrong.
pub(crate) async fn main() -> ExitCode {
    let as_json = failure::wants_json(std::env::args_os());
    let cli = Cli::try_parse().unwrap_or_else(|error| failure::refuse(&error, as_json));
    match Box::pin(run(cli)).await {
        Ok(code) => code,
        // Whoever reads the output has had enough of it.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            failure::tell(&error, as_json);
            ExitCode::FAILURE
        }
    }
}

/// Runs a command to its end.
async fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    let Cli { command, global } = cli;
    match command {
        Command::Serve(args) => {
            let loaded = global.load(args.settings())?;
            let admin_is_chosen = !is_default(&loaded, "admin.listen");
            Box::pin(serve::run(args, loaded.value, admin_is_chosen))
                .await
                .map(|()| ExitCode::SUCCESS)
        }
        Command::Generate(args) => {
            let config = global.load_for(args.common.services())?;
            Box::pin(generate::run(*args, config)).await
        }
        Command::Chat(args) => {
            let config = global.load_for(args.common.services())?;
            let talked = Box::pin(chat::run(*args, config)).await;
            talked.map(|()| ExitCode::SUCCESS)
        }
        Command::Models(args) => models::run(args).await.map(|()| ExitCode::SUCCESS),
        Command::Bench(args) => {
            let config = match args.services() {
                Some(services) => global.load_for(services)?,
                None => global.load_quietly(json!({}))?,
            };
            let measured = Box::pin(bench::run(args, config)).await;
            measured.map(|()| ExitCode::SUCCESS)
        }
        Command::Sweep(args) => {
            let config = global.load_for(args.services())?;
            Box::pin(sweep::run(args, config)).await
        }
        Command::Record(args) => {
            let config = global.load_for(args.services())?;
            Box::pin(record::run(args, config)).await
        }
        Command::Replay(args) => replay::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Score(args) => score::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Bigram(args) => bigram::run(&args).map(|()| ExitCode::SUCCESS),
        Command::TrainHead(args) => train_head::run(*args, global.load_quietly(json!({}))?).await,
        Command::Quantize(args) => quantize::run(args).await,
        Command::Methods(args) => methods::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Health(args) => health::run(args, &global.load(json!({}))?.value.admin).await,
        Command::Config(args) => {
            let loaded = global.load(json!({}))?;
            print_config::run(&args, &loaded).map(|()| ExitCode::SUCCESS)
        }
        Command::Completions(args) => completions::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Man(args) => man::run(&args).map(|()| ExitCode::SUCCESS),
    }
}

impl Global {
    /// Loads the configuration with the settings of a command's flags on top.
    fn load(&self, mut flags: Value) -> anyhow::Result<Loaded<Config>> {
        self.security.apply(&mut flags);
        if let Some(filter) = &self.log {
            flags["log"] = json!({ "filter": filter });
        }
        Ok(layers::load(self.config.as_deref(), &flags)?)
    }
}

impl Global {
    /// Loads the configuration for a command that asks a coordinator, its own or another.
    fn load_for(&self, services: Services<'_>) -> anyhow::Result<Config> {
        let Services {
            models,
            coordinator,
        } = services;
        models.refuse_beside(coordinator)?;
        self.load_quietly(models.settings())
    }

    /// Loads the configuration for a command whose output is what matters: services in this
    /// process tell only of what goes wrong, unless asked for more.
    fn load_quietly(&self, flags: Value) -> anyhow::Result<Config> {
        let mut loaded = self.load(flags)?;
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
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_flags_are_consistent() {
        Cli::command().debug_assert();
    }

    /// How a failure is told as JSON stands wherever JSON can be asked for.
    #[test]
    fn every_json_flag_says_what_a_failure_is() {
        let mut commands = vec![Cli::command()];
        let mut found = 0;
        while let Some(command) = commands.pop() {
            commands.extend(command.get_subcommands().cloned());
            let name = command.get_name();
            for flag in command
                .get_arguments()
                .filter(|flag| flag.get_id() == "json")
            {
                let help = flag.get_long_help().or(flag.get_help());
                let help = help.map(ToString::to_string).unwrap_or_default();
                let words: Vec<&str> = help.split_whitespace().collect();
                let says = r#"A failure is {"error": {"message": ...}}"#;
                assert!(words.join(" ").contains(says), "{name}: {help}");
                found += 1;
            }
        }
        assert!(found >= 15, "{found}");
    }
}
