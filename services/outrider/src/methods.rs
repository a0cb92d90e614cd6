//! `outrider methods`.

use std::io::Write;

use anstream::stdout;
use clap::Args;
use serde_json::{Value, json};
use speculation::methods::METHODS;

/// Arguments of `outrider methods`.
#[derive(Debug, Args)]
pub(crate) struct MethodsArgs {
    /// Prints one JSON array.
    #[arg(long)]
    json: bool,
}

/// Prints the registry.
pub(crate) fn run(args: &MethodsArgs) -> anyhow::Result<()> {
    let mut out = stdout().lock();
    if args.json {
        let methods: Vec<Value> = METHODS
            .iter()
            .map(|method| {
                json!({
                    "name": method.name,
                    "aliases": method.aliases,
                    "summary": method.summary,
                    "lossless": method.lossless,
                    "reproducible": method.reproducible,
                    "source": method.source,
                })
            })
            .collect();
        writeln!(out, "{}", serde_json::to_string_pretty(&methods)?)?;
        return Ok(());
    }
    let yes_no = |yes| if yes { "yes" } else { "no" };
    writeln!(
        out,
        "{:<12} {:<9} {:<13} summary",
        "method", "lossless", "reproducible"
    )?;
    for method in METHODS {
        writeln!(
            out,
            "{:<12} {:<9} {:<13} {}",
            method.name,
            yes_no(method.lossless),
            yes_no(method.reproducible),
            method.summary
        )?;
    }
    writeln!(out)?;
    writeln!(
        out,
        "lossless:     every token is an exact sample of the target model"
    )?;
    writeln!(
        out,
        "reproducible: a seed gives the same tokens whatever was drafted, retried or moved"
    )?;
    Ok(())
}
