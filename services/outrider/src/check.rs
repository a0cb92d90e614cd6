//! What is wrong with a configuration: all that `outrider serve` refuses, found without loading a model or opening a
//! port. `serve` looks for it first, by the same functions; what the models' files hold, it finds when it loads them.

mod ports;

use std::error::Error;

use anyhow::ensure;
use clap::ValueEnum;
use itertools::Itertools;
use net::channel::Trust;
use net::fault::in_one_line;
use net::tls::TlsError;
use ops::config::LoadedConfig;
use ops::service_error::ServiceError;
use ops::telemetry;
use serde::Serialize;
use strum::IntoStaticStr;
use wire::describe::check_pair;

use crate::config::Config;
use crate::global::is_default;
use crate::process;

pub(crate) use ports::of_services as listens;

/// Returns all of a configuration that `serve` would refuse to `role`, each once; of the files that it names too if
/// `with_files`.
pub(crate) fn all(
    loaded: &LoadedConfig<Config>,
    role: ServeRole,
    with_files: bool,
) -> Vec<ConfigProblem> {
    let mut problems = settings(loaded, role, with_files);
    if with_files {
        problems.extend(of_models(&loaded.value, role));
    }
    problems.into_iter().unique().collect()
}

/// Returns what is wrong with the settings, and with files of certificates and tokens; each once.
pub(crate) fn settings(
    loaded: &LoadedConfig<Config>,
    role: ServeRole,
    with_files: bool,
) -> Vec<ConfigProblem> {
    let config = &loaded.value;
    // Nobody insists on the default one.
    let is_http_chosen = !is_default(loaded, "coordinator.http.listen");
    let mut problems = of_process(config, role, with_files);
    problems.extend(of_services(config, role, with_files));
    problems.extend(exposed(config, role));
    problems.extend(ports::shared(config, role, is_http_chosen));
    problems.into_iter().unique().collect()
}

/// Returns a problem for each of `errors`, whose setting `key` tells.
fn each<E: Error + 'static>(
    errors: impl IntoIterator<Item = E>,
    key: impl Fn(&E) -> String,
) -> impl Iterator<Item = ConfigProblem> {
    let errors = errors.into_iter();
    errors.map(move |error| ConfigProblem::new(key(&error), &error))
}

fn of_process(config: &Config, role: ServeRole, with_files: bool) -> Vec<ConfigProblem> {
    let telemetry = telemetry::check(&config.telemetry, with_files);
    let mut problems: Vec<_> = each(telemetry, |error| error.key().to_owned()).collect();
    problems.extend(each(config.tls.check(with_files), TlsError::key));
    if with_files {
        let tokens = if role.has_coordinator() {
            config.auth.check_coordinator()
        } else {
            config.auth.check_peer()
        };
        problems.extend(each(tokens, |error| error.setting.clone()));
    }
    problems
}

fn of_services(config: &Config, role: ServeRole, with_files: bool) -> Vec<ConfigProblem> {
    let (mut errors, mut problems) = (Vec::new(), Vec::new());
    if role.has_coordinator() {
        errors.extend(config.coordinator.check(trust(config)));
    }
    if role.has_drafter() {
        errors.extend(config.drafter.check());
    }
    if role.has_verifier() {
        errors.extend(config.verifier.check());
        if with_files {
            errors.extend(config.verifier.check_files());
        }
        if config.verifier.remote.shows_key() && !config.insecure {
            problems.push(ConfigProblem {
                key: "verifier.remote.key_file".to_owned(),
                problem: KEY_IN_CLEAR.to_owned(),
            });
        }
    }
    problems.extend(each(errors, ServiceError::key));
    problems
}

/// Returns the addresses that other machines could reach in clear.
fn exposed(config: &Config, role: ServeRole) -> Vec<ConfigProblem> {
    let admin = config.admin.check().err();
    let mut problems: Vec<_> = each(admin, |_| "admin.listen".to_owned()).collect();
    for (key, listen) in ports::of_services(config, role) {
        let is_within = role == ServeRole::All && !key.starts_with("coordinator.");
        let checked = if is_within {
            process::check_listen_within(config, key, listen)
        } else {
            process::check_listen(config, key, listen)
        };
        problems.extend(checked.err().map(|error| ConfigProblem::new(key, &*error)));
    }
    problems
}

const KEY_IN_CLEAR: &str = "verifier.remote.key_file: the key would go to another machine in clear: take an https:// URL, or \
     say insecure = true (--insecure) where nobody else can listen";

/// Returns where a coordinator of this configuration may connect to.
fn trust(config: &Config) -> Trust {
    let shows_token = !config.auth.peer_token_file.as_os_str().is_empty();
    Trust {
        is_believing: !config.tls.ca_file.as_os_str().is_empty(),
        hides_token: shows_token && !config.insecure,
    }
}

/// Something because of which a configuration is refused.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub(crate) struct ConfigProblem {
    /// The setting, `section.key`; empty where the configuration cannot be read.
    pub(crate) key: String,
    /// One line: the setting, what it says, and what to do.
    pub(crate) problem: String,
}

impl ConfigProblem {
    pub(crate) fn new(key: impl Into<String>, error: &(dyn Error + 'static)) -> Self {
        Self {
            key: key.into(),
            problem: in_one_line(error),
        }
    }
}

/// Refuses a configuration in which there are `problems`, in one line.
///
/// # Errors
/// If there are any.
pub(crate) fn refuse(problems: &[ConfigProblem]) -> anyhow::Result<()> {
    let said = problems.iter().map(|it| &it.problem).join("; besides: ");
    ensure!(said.is_empty(), "{said}");
    Ok(())
}

/// The services of a process, as `outrider serve` is told them, with its name there and in traces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, IntoStaticStr, ValueEnum)]
#[strum(serialize_all = "lowercase", const_into_str)]
pub(crate) enum ServeRole {
    /// All three in one process.
    #[default]
    All,
    /// The coordinator alone.
    Coordinator,
    /// A drafter alone.
    Drafter,
    /// A verifier alone.
    Verifier,
}

impl ServeRole {
    pub(crate) fn has_coordinator(self) -> bool {
        matches!(self, Self::All | Self::Coordinator)
    }

    pub(crate) fn has_drafter(self) -> bool {
        matches!(self, Self::All | Self::Drafter)
    }

    /// Returns whether a process of this role runs a drafter under `config`.
    pub(crate) fn drafts(self, config: &Config) -> bool {
        self == Self::Drafter || self == Self::All && config.drafter.drafts()
    }

    pub(crate) fn has_verifier(self) -> bool {
        matches!(self, Self::All | Self::Verifier)
    }
}

/// What to do about a pair that does not fit.
pub(crate) const OF_ONE_FAMILY: &str = "name another, best one of the target's family, or none: without --draft-model (drafter.model.path), or with none in \
     its place, drafts are copied from the text";

/// Returns what is wrong with the files of `role`'s models, and in one process whether they fit each other.
fn of_models(config: &Config, role: ServeRole) -> Vec<ConfigProblem> {
    let mut config = config.clone();
    if role == ServeRole::All {
        config.leave_out_misfit();
    }
    let (mut draft, mut target) = (None, None);
    let mut problems = Vec::new();
    if role.has_verifier() {
        match verifier::inspect(&config.verifier) {
            Ok(found) => target = found.map(|model| verifier::outline(&model)),
            Err(error) => problems.push(ConfigProblem::new(error.key(), &error)),
        }
    }
    if role.drafts(&config) {
        let found = drafter::inspect(&config.drafter);
        let wrong = found.problems.iter();
        problems.extend(wrong.map(|error| ConfigProblem::new(error.key(), error)));
        draft = found.description;
    }
    if let (Some(draft), Some(target)) = (draft, target)
        && let Err(mismatch) = check_pair(&draft, &target)
    {
        problems.push(ConfigProblem {
            key: "drafter.model".to_owned(),
            problem: format!(
                "drafter.model: the draft model does not fit the target model: {mismatch}; {OF_ONE_FAMILY}"
            ),
        });
    }
    problems
}
