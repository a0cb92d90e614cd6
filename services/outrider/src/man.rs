//! `outrider man`.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::{Args, Command};
use clap_mangen::Man;
use itertools::Itertools;

/// Arguments of `outrider man`.
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// The command whose page is printed, such as `serve drafter`; without it, the program's own.
    #[arg(conflicts_with = "out")]
    command: Vec<String>,
    /// Folder to write all pages to, one file a command (outrider.1, outrider-serve.1, ...); made if it
    /// is not there.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Prints one page of `program`, or writes all.
pub(crate) fn run(args: &ManArgs, program: Command) -> anyhow::Result<()> {
    // With all that its commands inherit filled in.
    let mut program = program.disable_help_subcommand(true);
    program.build();
    if let Some(out) = &args.out {
        let made = std::fs::create_dir_all(out);
        let written = made.and_then(|()| write_all(&program, out));
        return written.with_context(|| format!("--out {}", out.display()));
    }
    let mut command = &program;
    for name in &args.command {
        let Some(found) = command.find_subcommand(name) else {
            let known = command.get_subcommands().map(Command::get_name).join(", ");
            let of = command.get_bin_name().unwrap_or_else(|| command.get_name());
            bail!("'{name}' is no command of {of}, expected one of {known}");
        };
        command = found;
    }
    let mut page = Vec::new();
    man(command).render(&mut page)?;
    std::io::stdout().write_all(&page)?;
    Ok(())
}

/// Writes the page of a command, and those of its own commands.
fn write_all(command: &Command, out: &Path) -> std::io::Result<()> {
    for inner in command
        .get_subcommands()
        .filter(|inner| !inner.is_hide_set())
    {
        write_all(inner, out)?;
    }
    man(command).generate_to(out)?;
    Ok(())
}

/// Returns the page of a command. Only the program has a version; every page tells it.
fn man(command: &Command) -> Man {
    let source = concat!("outrider ", env!("CARGO_PKG_VERSION"));
    Man::new(command.clone()).source(source)
}
