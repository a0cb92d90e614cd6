//! `outrider config check`.

use std::io::Write;
use std::process::ExitCode;

use anstream::stdout;
use serde_json::json;
use server::config::Loaded;

use super::{Scope, tell};
use crate::check::{Check, Problem};
use crate::config::Config;
use crate::global::Global;

/// Says what is wrong with the configuration, if anything is.
pub(super) fn run(global: &Global, scope: &Scope, as_json: bool) -> anyhow::Result<ExitCode> {
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
fn number_given(loaded: &Loaded<Config>) -> usize {
    let settings = loaded.provenance().iter();
    settings
        .filter(|setting| setting.source != "default")
        .count()
}
