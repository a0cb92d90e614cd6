//! `outrider config`.

use std::io::Write;

use anstream::stdout;
use clap::{Args, Subcommand};
use server::config::Loaded;

use crate::config::{Config, schema};

/// Arguments of `outrider config`.
#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Prints every setting with its value and where it came from: default, file, environment or
    /// flag. Secrets are masked: settings named so, and what stands before the @ of a URL.
    Print {
        /// Prints one JSON array. A failure is {"error": {"message": ...}}.
        #[arg(long)]
        json: bool,
    },
    /// Prints the JSON schema of a configuration file, by which editors complete and check one.
    ///
    ///   outrider config schema > outrider.schema.json
    #[command(verbatim_doc_comment)]
    Schema,
}

/// Prints the configuration.
pub(crate) fn run(args: &ConfigArgs, loaded: &Loaded<Config>) -> anyhow::Result<()> {
    let mut out = stdout().lock();
    let json = match args.action {
        Action::Print { json } => json,
        Action::Schema => {
            writeln!(out, "{}", serde_json::to_string_pretty(&schema())?)?;
            return Ok(());
        }
    };
    for moved in &loaded.moved {
        anstream::eprintln!("warning: {moved}");
    }
    let settings = loaded.provenance();
    if json {
        writeln!(out, "{}", serde_json::to_string_pretty(settings)?)?;
        return Ok(());
    }
    let width = settings
        .iter()
        .map(|setting| setting.key.len())
        .max()
        .unwrap_or(0);
    for setting in settings {
        writeln!(
            out,
            "{:width$} = {}  # {}",
            setting.key, setting.value, setting.source
        )?;
    }
    Ok(())
}
