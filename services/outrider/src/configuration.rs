//! `outrider config`.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anstream::stdout;
use clap::{Args, Subcommand};
use ops::config::LoadedConfig;
use serde_json::json;

use crate::check::{Check, Problem, Refused, Role};
use crate::config::{Config, schema};
use crate::failure;
use crate::global::Global;

/// Arguments of `outrider config`.
#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Says whether `serve` would take the configuration: one line if it would, otherwise one on stderr for each
    /// setting that it would refuse, with what to do, and an exit code other than 0.
    ///
    /// No model is loaded, downloaded or computed with, and no port is opened. Of models' files the headers are read,
    /// so that damage within the weights comes out only when they are loaded; a model of the hub that is not here
    /// yet is taken to be there, unless HF_HUB_OFFLINE is set.
    #[command(
        after_help = "Examples:\n  outrider config check outrider.toml\n  outrider config check --role drafter /etc/outrider/drafter.json --json"
    )]
    Check {
        #[command(flatten)]
        scope: Scope,
        /// Prints {"ok": ..., "problems": [{"key": ..., "problem": ...}]}.
        #[arg(long)]
        json: bool,
    },
    /// Prints every setting with its value and where it came from: default, file, environment or
    /// flag. Secrets are masked: settings named so, and what stands before the @ of a URL.
    ///
    /// Of a configuration that `serve` would refuse, stderr then says why, and the exit code is not 0.
    Print {
        #[command(flatten)]
        scope: Scope,
        /// Prints one JSON array. A failure is {"error": {"message": ...}}, in the last line.
        #[arg(long)]
        json: bool,
    },
    /// Prints the JSON schema of a configuration file, by which editors complete and check one.
    ///
    ///   outrider config schema > outrider.schema.json
    #[command(verbatim_doc_comment)]
    Schema,
}

/// What of a configuration is checked.
#[derive(Debug, Args)]
struct Scope {
    /// The configuration file; the same as --config.
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// The process that the configuration is for, as in `outrider serve ROLE`.
    #[arg(long, value_name = "ROLE", value_enum, default_value = "all")]
    role: Role,
    /// Checks the settings alone, for files that are on another machine: models, certificates, tokens.
    #[arg(long)]
    without_files: bool,
}

/// Prints or checks the configuration.
pub(crate) fn run(args: &ConfigArgs, global: &Global) -> anyhow::Result<ExitCode> {
    match &args.action {
        Action::Check { scope, json } => {
            check(&global.of_file(scope.file.as_deref())?, scope, *json)
        }
        Action::Print { scope, json } => {
            let loaded = global.of_file(scope.file.as_deref())?.load(json!({}))?;
            print_checked(&loaded, scope, *json)
        }
        Action::Schema => {
            writeln!(stdout(), "{}", serde_json::to_string_pretty(&schema())?)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Says on stderr what is wrong, one line for each problem.
fn tell(problems: &[Problem]) {
    for Problem { problem, .. } in problems {
        anstream::eprintln!("error: {problem}");
    }
}

/// Says what is wrong with the configuration, if anything is.
fn check(global: &Global, scope: &Scope, as_json: bool) -> anyhow::Result<ExitCode> {
    let (loaded, unread) = global.survey(json!({}));
    let unread = unread.iter();
    let mut problems: Vec<_> = unread
        .map(|error| Problem::new(error.key(), error))
        .collect();
    if let Some(loaded) = &loaded {
        problems.extend(Check::of(loaded, scope.role, !scope.without_files).all());
    }
    tell(&problems);
    let is_good = problems.is_empty();
    let mut out = stdout().lock();
    if as_json {
        writeln!(out, "{}", json!({ "ok": is_good, "problems": problems }))?;
    } else if is_good {
        let given = loaded.as_ref().map_or(0, number_given);
        let plural = if given == 1 { "" } else { "s" };
        writeln!(
            out,
            "the configuration is good: {given} setting{plural} given"
        )?;
    }
    Ok(ExitCode::from(u8::from(!is_good)))
}

/// How many settings are not the defaults.
fn number_given(loaded: &LoadedConfig<Config>) -> usize {
    let settings = loaded.provenance().iter();
    settings
        .filter(|setting| setting.source != "default")
        .count()
}

/// Prints the configuration, and says if it would be refused.
fn print_checked(
    loaded: &LoadedConfig<Config>,
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

fn print(loaded: &LoadedConfig<Config>, as_json: bool) -> anyhow::Result<()> {
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
