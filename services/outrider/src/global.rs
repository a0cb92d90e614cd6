//! Options that every command has, and the configuration they lead to.

use std::env::vars_os;
use std::path::{Path, PathBuf};

use anyhow::ensure;
use clap::Args;
use ops::config::{self as layers, ConfigError, LoadedConfig};
use ops::telemetry::LogFormat;
use serde_json::{Value, json};

use crate::args::ServicesArgs;
use crate::config::Config;

/// Options of all commands.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Program")]
pub struct Global {
    /// Configuration file, TOML or JSON. Overridden by OUTRIDER__SECTION__KEY variables, and those
    /// by flags; `outrider config print` shows the outcome.
    #[arg(long, global = true, value_name = "FILE", hide_short_help = true)]
    config: Option<PathBuf>,
    /// Which events are logged on stderr: a level (`debug`) for outrider's own crates, others by name
    /// (`info,h2=debug`). Without it and `log.filter`, RUST_LOG.
    #[arg(long, global = true, value_name = "FILTER", hide_short_help = true)]
    log: Option<String>,
}

/// What is logged by commands whose output is what matters.
const QUIET_LOG: &str = "error";

/// Exit code after Ctrl-C, as a shell would have it: 128 and the signal's number.
pub const INTERRUPTED: u8 = 130;

impl Global {
    /// Returns the same with the configuration of `file`, where a command takes one without the flag.
    ///
    /// # Errors
    /// If the flag names a file too.
    pub(crate) fn of_file(&self, file: Option<&Path>) -> anyhow::Result<Self> {
        let both = file.is_some() && self.config.is_some();
        ensure!(
            !both,
            "FILE and --config both name a configuration file; give one of them"
        );
        Ok(Self {
            config: file.or(self.config.as_deref()).map(Path::to_owned),
            ..self.clone()
        })
    }

    /// Loads the configuration with the settings of a command's flags on top.
    pub fn load(&self, flags: Value) -> anyhow::Result<LoadedConfig<Config>> {
        let flags = self.with_flags(flags);
        let loaded = layers::load(self.config.as_deref(), vars_os(), &flags)?;
        Ok(knowing_names(loaded))
    }

    /// Returns the configuration as far as it can be read, and what cannot.
    pub(crate) fn survey(&self, flags: Value) -> (Option<LoadedConfig<Config>>, Vec<ConfigError>) {
        let flags = self.with_flags(flags);
        let (loaded, wrong) = layers::survey(self.config.as_deref(), vars_os(), &flags);
        (loaded.map(knowing_names), wrong)
    }

    /// Returns how log lines are written; known also where the rest of the configuration cannot be used.
    pub(crate) fn log_format(&self) -> LogFormat {
        let (loaded, _) = self.survey(json!({}));
        loaded.map_or_else(LogFormat::default, |loaded| loaded.value.log.format)
    }

    fn with_flags(&self, mut flags: Value) -> Value {
        if let Some(filter) = &self.log {
            flags["log"] = json!({ "filter": filter });
        }
        flags
    }

    /// Loads the configuration for a command that asks a coordinator, its own or another.
    pub fn load_for(&self, services: &ServicesArgs) -> anyhow::Result<Config> {
        ensure!(
            services.coordinator.is_none() || services.models.is_empty(),
            "--target-model and --draft-model are for services of this process; with --coordinator, the models \
             are its own"
        );
        self.load_quietly(services.settings())
    }

    /// Loads the configuration for a command whose output is what matters: services in this
    /// process tell only of what goes wrong, unless asked for more.
    pub fn load_quietly(&self, flags: Value) -> anyhow::Result<Config> {
        let mut loaded = self.load(flags)?;
        if is_default(&loaded, "log.filter") {
            loaded.value.log.filter = QUIET_LOG.parse()?;
        }
        Ok(loaded.value)
    }
}

fn knowing_names(mut loaded: LoadedConfig<Config>) -> LoadedConfig<Config> {
    loaded.value.names_draft = !is_default(&loaded, "drafter.model.path");
    loaded
}

pub(crate) fn is_default(loaded: &LoadedConfig<Config>, key: &str) -> bool {
    let found = loaded.provenance.iter().find(|setting| setting.key == key);
    found.is_some_and(|setting| setting.source == "default")
}
