//! `outrider completions`.

use std::io::Write;

use clap::{Args, Command};
use clap_complete::Shell;

/// Arguments of `outrider completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    shell: Shell,
}

/// Prints the completions of `program`.
pub(crate) fn run(args: &CompletionsArgs, mut program: Command) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut program, "outrider", &mut script);
    std::io::stdout().write_all(&script)?;
    Ok(())
}
