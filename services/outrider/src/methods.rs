//! `outrider methods`.

mod json;
mod text;

use std::io::Write;

use anstream::stdout;
use clap::Args;
use speculation::methods::{METHODS, find};

/// Arguments of `outrider methods`.
#[derive(Debug, Args)]
pub(crate) struct MethodsArgs {
    /// Shows one method in full; without it, all of them and what they are made of.
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Prints one JSON object. A failure is {"error": {"message": ...}}.
    #[arg(long)]
    json: bool,
}

/// Prints the registry, or a method of it.
pub(crate) fn run(args: &MethodsArgs) -> anyhow::Result<()> {
    let mut out = stdout().lock();
    let method = args.name.as_deref().map(find).transpose()?;
    match (method, args.json) {
        (Some(method), true) => {
            let method = serde_json::to_string_pretty(&json::method(method))?;
            writeln!(out, "{method}")?;
        }
        (None, true) => {
            let registry = serde_json::to_string_pretty(&json::registry())?;
            writeln!(out, "{registry}")?;
        }
        (Some(method), false) => text::method(&mut out, method)?,
        (None, false) => text::registry(&mut out, METHODS)?,
    }
    Ok(())
}
