//! Commands that are in another program now.

use anyhow::{bail, ensure};
use clap::{Args, Subcommand};

/// Whatever such a command was given.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct MovedArgs {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    arguments: Vec<String>,
}

/// Commands that `outrider bench` had.
const OF_BENCH: [&str; 8] = [
    "batch",
    "decode",
    "drafting",
    "kernels",
    "laws",
    "parts",
    "speedup",
    "telemetry",
];

/// A command of `outrider bench`, with what it was given.
#[derive(Debug, Subcommand)]
pub(crate) enum MovedCommand {
    /// Whatever it is.
    #[command(external_subcommand)]
    Any(Vec<String>),
}

/// Says where `command` is.
///
/// # Errors
/// Always: it does nothing here.
pub(crate) fn refuse(command: &str, args: &MovedArgs) -> anyhow::Result<()> {
    is_at(command, command, &args.arguments)
}

/// The same for a command of `outrider bench`.
///
/// # Errors
/// Always; if it never was one, that is what is said.
pub(crate) fn of_bench(MovedCommand::Any(words): &MovedCommand) -> anyhow::Result<()> {
    let (command, arguments) = words
        .split_first()
        .map_or(("", &[][..]), |(first, rest)| (first, rest));
    ensure!(
        OF_BENCH.contains(&command),
        "unexpected argument '{command}', see outrider bench --help"
    );
    is_at(&format!("bench {command}"), command, arguments)
}

/// The same for a flag that `outrider bench` had, with its value.
///
/// # Errors
/// Always.
pub(crate) fn flag_of_bench(flag: &str, value: &str) -> anyhow::Result<()> {
    bail!(
        "{flag} is a flag of outrider-bench compare now: `outrider-bench compare {flag} {value}`, or in the sources \
         `cargo run --release -p outrider-bench -- compare {flag} {value}`"
    )
}

fn is_at(before: &str, command: &str, arguments: &[String]) -> anyhow::Result<()> {
    let mut words = vec![command];
    words.extend(arguments.iter().map(String::as_str));
    bail!(
        "`outrider {before}` is a command of outrider-bench now: `outrider-bench {line}`, or in the sources \
         `cargo run --release -p outrider-bench -- {line}`",
        line = words.join(" ")
    )
}
