//! `outrider config print`.

use std::io::Write;
use std::process::ExitCode;

use anstream::stdout;
use server::config::Loaded;

use super::{Scope, tell};
use crate::check::{Check, Refused};
use crate::config::Config;
use crate::failure;

/// Prints the configuration, and says if it would be refused.
pub(super) fn run(
    loaded: &Loaded<Config>,
    scope: &Scope,
    as_json: bool,
) -> anyhow::Result<ExitCode> {
    print(loaded, as_json)?;
    let problems = Check::of(loaded, scope.role, !scope.without_files).all();
    tell(&problems);
    match Refused::if_any(problems) {
        Ok(()) => return Ok(ExitCode::SUCCESS),
        Err(refused) if as_json => {
            writeln!(stdout(), "{}", failure::object(&refused.to_string()))?;
        }
        Err(_) => {}
    }
    Ok(ExitCode::FAILURE)
}

fn print(loaded: &Loaded<Config>, as_json: bool) -> anyhow::Result<()> {
    let mut out = stdout().lock();
    let settings = loaded.provenance();
    if as_json {
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
