//! Reads tokens, certificates and the log filter again on SIGHUP.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

use anyhow::Context;
use itertools::Itertools;
use net::fault::in_one_line;
use net::reload::Reloads;
use ops::config::LoadedConfig;
use ops::shutdown::{Signals, StopSignal};
use ops::telemetry::LogLevels;

use crate::config::Config;

/// The only setting that can change while the process runs.
const FILTER: &str = "log.filter";

/// Everything that is read again on SIGHUP.
pub(super) struct SighupReload<R> {
    /// Tokens and certificates.
    pub(super) files: Reloads,
    /// The filters of the log.
    pub(super) levels: LogLevels,
    /// The configuration as it was read at the start.
    pub(super) loaded: LoadedConfig<Config>,
    /// Reads the configuration anew.
    pub(super) read: R,
}

impl<R: Fn() -> anyhow::Result<LoadedConfig<Config>> + Send + Sync + 'static> SighupReload<R> {
    /// Starts a task that reads everything again on every SIGHUP, which then no longer ends the process.
    ///
    /// # Errors
    /// The operating system's, if it refuses a handler.
    ///
    /// # Panics
    /// Outside a Tokio runtime.
    pub(super) fn on_hang_up(self) -> io::Result<()> {
        let mut signals = Signals::listen(&[StopSignal::HANG_UP])?;
        let reloading = Arc::new(self);
        tokio::spawn(async move {
            loop {
                signals.next().await;
                let reloading = Arc::clone(&reloading);
                // Files may lie on a disk that does not answer.
                let _ = tokio::task::spawn_blocking(move || reloading.reload()).await;
            }
        });
        Ok(())
    }

    /// Reads everything again, and logs the outcome.
    fn reload(&self) {
        let files = self.files.read();
        let list = |wanted: bool| {
            let names = files.iter().filter(|(_, is_used)| *is_used == wanted);
            names.map(|(name, _)| name).join(", ")
        };
        let (read, kept) = (list(true), list(false));
        match self.configuration() {
            Ok((filter, others)) => tracing::info!(
                read,
                kept,
                filter,
                needs_restart = others.join(", "),
                "SIGHUP: files and log filter read again"
            ),
            Err(error) => tracing::warn!(
                read,
                kept,
                error = in_one_line(error.as_ref()),
                "SIGHUP: files read again; the configuration cannot be used as it is now, and the log filter stays"
            ),
        }
    }

    /// Reads the configuration and sets its log filter; returns the filter, and the names of other settings that have
    /// changed.
    fn configuration(&self) -> anyhow::Result<(String, Vec<String>)> {
        let loaded = (self.read)()?;
        let filter = loaded.value.log.filter.clone();
        if !self.levels.set(&filter) {
            return Err(io::Error::other("the log takes no other filter")).context(FILTER);
        }
        let others = changed(&self.loaded, &loaded);
        Ok((filter.into(), others))
    }
}

/// Returns the names of the settings, other than the log filter, whose values differ.
fn changed(old: &LoadedConfig<Config>, new: &LoadedConfig<Config>) -> Vec<String> {
    let [old, new] = [old, new].map(|loaded| {
        let settings = loaded.provenance.iter();
        let settings = settings.map(|setting| (&setting.key, &setting.value));
        settings.collect::<BTreeSet<_>>()
    });
    let changed = old.symmetric_difference(&new).map(|(key, _)| *key);
    let keys = changed.filter(|&key| key != FILTER);
    keys.dedup().cloned().collect()
}

#[cfg(test)]
mod tests {
    use ops::config;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn settings_that_need_a_restart_are_named_and_the_filter_is_none_of_them() {
        let load = |flags: Value| config::load::<Config>(None, [], &flags).expect("in order");
        let old = load(json!({}));
        let new = load(json!({
            "log": { "filter": "debug" },
            "verifier": { "max_sessions": 7 },
            "coordinator": { "models": [{ "name": "a", "verifiers": ["http://a:1"] }] },
        }));
        let expected = ["coordinator.models", "verifier.max_sessions"];
        assert_eq!(changed(&old, &new), expected);
        assert_eq!(changed(&new, &old), expected);
        assert!(changed(&new, &new).is_empty());
    }
}
