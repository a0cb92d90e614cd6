//! Commands that are in another program now.

use anyhow::bail;
use clap::Args;

/// Whatever such a command was given.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct MovedArgs {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    arguments: Vec<String>,
}

/// Says where `command` is.
///
/// # Errors
/// Always: it does nothing here.
pub(crate) fn tell(command: &str, args: &MovedArgs) -> anyhow::Result<()> {
    is_at(command, command, &args.arguments)
}

/// The same for a command of `outrider bench`, with what it was given.
///
/// # Errors
/// Always.
pub(crate) fn of_bench(command: &str, arguments: &[String]) -> anyhow::Result<()> {
    is_at(&format!("bench {command}"), command, arguments)
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
