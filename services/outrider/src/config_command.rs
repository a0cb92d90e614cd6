//! `outrider config`.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anstream::stdout;
use clap::{Args, Subcommand};
use ops::config::LoadedConfig;
use serde_json::json;

use crate::check::{self, ConfigProblem, ServeRole};
use crate::config::{Config, schema};
use crate::failure;
use crate::global::Global;

/// Arguments of `outrider config`.
#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    action: ConfigAction,
}

#[derive(Debug, Subcommand)]
enum ConfigAction {
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
        scope: CheckScope,
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
        scope: CheckScope,
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
struct CheckScope {
    /// The configuration file; the same as --config.
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// The process that the configuration is for, as in `outrider serve ROLE`.
    #[arg(long, value_name = "ROLE", value_enum, default_value = "all")]
    role: ServeRole,
    /// Checks the settings alone, for files that are on another machine: models, certificates, tokens.
    #[arg(long)]
    without_files: bool,
}

/// Prints or checks the configuration.
pub(crate) fn run(args: &ConfigArgs, global: &Global) -> anyhow::Result<ExitCode> {
    match &args.action {
        ConfigAction::Check { scope, json } => {
            check(&global.of_file(scope.file.as_deref())?, scope, *json)
        }
        ConfigAction::Print { scope, json } => {
            let loaded = global.of_file(scope.file.as_deref())?.load(json!({}))?;
            print(&loaded, scope, *json)
        }
        ConfigAction::Schema => {
            writeln!(stdout(), "{}", serde_json::to_string_pretty(&schema())?)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Says on stderr what is wrong, one line for each problem.
fn tell(problems: &[ConfigProblem]) {
    for ConfigProblem { problem, .. } in problems {
        anstream::eprintln!("error: {problem}");
    }
}

/// Says what is wrong with the configuration, if anything is.
fn check(global: &Global, scope: &CheckScope, as_json: bool) -> anyhow::Result<ExitCode> {
    let (loaded, unread) = global.survey(json!({}));
    let unread = unread.iter();
    let mut problems: Vec<_> = unread
        .map(|error| ConfigProblem::new(error.key(), error))
        .collect();
    if let Some(loaded) = &loaded {
        problems.extend(check::all(loaded, scope.role, !scope.without_files));
    }
    tell(&problems);
    let is_good = problems.is_empty();
    let mut out = stdout().lock();
    if as_json {
        writeln!(out, "{}", json!({ "ok": is_good, "problems": problems }))?;
    } else if is_good {
        let settings = loaded.iter().flat_map(|loaded| &loaded.provenance);
        let given = settings.filter(|it| it.source != "default").count();
        let plural = if given == 1 { "" } else { "s" };
        writeln!(
            out,
            "the configuration is good: {given} setting{plural} given"
        )?;
    }
    Ok(ExitCode::from(u8::from(!is_good)))
}

/// Prints the configuration, and says if it would be refused.
fn print(
    loaded: &LoadedConfig<Config>,
    scope: &CheckScope,
    as_json: bool,
) -> anyhow::Result<ExitCode> {
    let mut out = stdout().lock();
    let settings = &loaded.provenance;
    if as_json {
        writeln!(out, "{}", serde_json::to_string_pretty(settings)?)?;
    } else {
        let widths = settings.iter().map(|setting| setting.key.len());
        let width = widths.max().unwrap_or(0);
        for setting in settings {
            let (key, value, source) = (&setting.key, &setting.value, &setting.source);
            writeln!(out, "{key:width$} = {value}  # {source}")?;
        }
    }
    let problems = check::all(loaded, scope.role, !scope.without_files);
    tell(&problems);
    let refused = check::refuse(&problems).err();
    if let Some(error) = refused.as_ref().filter(|_| as_json) {
        writeln!(out, "{}", failure::object(&error.to_string()))?;
    }
    Ok(ExitCode::from(u8::from(refused.is_some())))
}
