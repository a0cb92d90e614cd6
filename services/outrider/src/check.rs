//! What is wrong with a configuration: all that `outrider serve` refuses, found without loading a model or opening a
//! port. `serve` looks for it first, by the same functions; what the models' files hold, it finds when it loads them.

mod ports;

use std::error::Error;
use std::fmt;

use clap::ValueEnum;
use net::channel::Trust;
use net::fault::in_one_line;
use ops::config::LoadedConfig;
use ops::telemetry;
use serde::Serialize;
use wire::describe::check_pair;

use crate::config::Config;
use crate::draft::leave_out_misfit;
use crate::global::is_default;
use crate::process;

pub(crate) use ports::of_services as listens;

/// A configuration to be checked for a role.
pub(crate) struct Check<'a> {
    config: &'a Config,
    role: Role,
    /// Whether somebody chose the address of the OpenAI API: nobody insists on the default one.
    is_http_chosen: bool,
    /// Whether the files that it names are looked at.
    with_files: bool,
}

impl<'a> Check<'a> {
    /// Returns the check of what `role` needs of a configuration, and of the files that it names if `with_files`.
    pub(crate) fn of(loaded: &'a LoadedConfig<Config>, role: Role, with_files: bool) -> Self {
        Self {
            config: &loaded.value,
            role,
            is_http_chosen: !is_default(loaded, "coordinator.http.listen"),
            with_files,
        }
    }

    /// All that is wrong, each once.
    pub(crate) fn all(&self) -> Vec<Problem> {
        let mut problems = self.settings();
        if self.with_files {
            problems.extend(of_models(self.config, self.role));
        }
        each_once(problems)
    }

    /// Returns what is wrong with the settings, and with files of certificates and tokens; each once.
    pub(crate) fn settings(&self) -> Vec<Problem> {
        let mut problems = self.of_process();
        problems.extend(self.of_services());
        problems.extend(self.exposed());
        problems.extend(ports::shared(self.config, self.role, self.is_http_chosen));
        each_once(problems)
    }

    fn of_process(&self) -> Vec<Problem> {
        let config = self.config;
        let mut problems = Vec::new();
        for error in telemetry::check(&config.telemetry, self.with_files) {
            problems.push(Problem::new(error.key(), &error));
        }
        for error in config.tls.check(self.with_files) {
            problems.push(Problem::new(error.key(), &error));
        }
        let tokens = match (self.with_files, self.role.has_coordinator()) {
            (false, _) => Vec::new(),
            (true, true) => config.auth.check_coordinator(),
            (true, false) => config.auth.check_peer(),
        };
        problems.extend(
            tokens
                .iter()
                .map(|error| Problem::new(error.setting(), error)),
        );
        problems
    }

    fn of_services(&self) -> Vec<Problem> {
        let (config, role) = (self.config, self.role);
        let mut problems = Vec::new();
        if role.has_coordinator() {
            for error in config.coordinator.check(trust(config)) {
                problems.push(Problem::new(error.key(), &error));
            }
        }
        let mut of_peers = Vec::new();
        if role.has_drafter() {
            of_peers.extend(config.drafter.check());
        }
        if role.has_verifier() {
            of_peers.extend(config.verifier.check());
            if self.with_files {
                of_peers.extend(config.verifier.check_files());
            }
            if config.verifier.remote.shows_key() && !config.insecure {
                problems.push(Problem {
                    key: "verifier.remote.key_file".to_owned(),
                    problem: KEY_IN_CLEAR.to_owned(),
                });
            }
        }
        problems.extend(
            of_peers
                .iter()
                .map(|error| Problem::new(error.key(), error)),
        );
        problems
    }

    /// Addresses that other machines could reach in clear.
    fn exposed(&self) -> Vec<Problem> {
        let (config, role) = (self.config, self.role);
        let admin = config.admin.check().err();
        let mut problems = Vec::from_iter(admin.map(|error| Problem::new("admin.listen", &error)));
        for (key, listen) in ports::of_services(config, role) {
            let is_within = role == Role::All && !key.starts_with("coordinator.");
            let checked = if is_within {
                process::check_listen_within(config, key, listen)
            } else {
                process::check_listen(config, key, listen)
            };
            problems.extend(checked.err().map(|error| Problem::new(key, &*error)));
        }
        problems
    }
}

const KEY_IN_CLEAR: &str = "verifier.remote.key_file: the key would go to another machine in clear: take an https:// URL, or \
     say insecure = true (--insecure) where nobody else can listen";

/// The problems without those that stand before already.
fn each_once(problems: Vec<Problem>) -> Vec<Problem> {
    let mut once = Vec::new();
    for problem in problems {
        if !once.contains(&problem) {
            once.push(problem);
        }
    }
    once
}

/// Where a coordinator of this configuration may connect to.
fn trust(config: &Config) -> Trust {
    let shows_token = !config.auth.peer_token_file.as_os_str().is_empty();
    Trust {
        is_believing: !config.tls.ca_file.as_os_str().is_empty(),
        hides_token: shows_token && !config.insecure,
    }
}

/// Something because of which a configuration is refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Problem {
    /// The setting, `section.key`; empty where the configuration cannot be read.
    pub(crate) key: String,
    /// One line: the setting, what it says, and what to do.
    pub(crate) problem: String,
}

impl Problem {
    pub(crate) fn new(key: impl Into<String>, error: &(dyn Error + 'static)) -> Self {
        Self {
            key: key.into(),
            problem: in_one_line(error),
        }
    }
}

/// A configuration that is refused, in one line.
#[derive(Debug)]
pub(crate) struct Refused(Vec<Problem>);

impl Refused {
    /// # Errors
    /// If there are any problems.
    pub(crate) fn if_any(problems: Vec<Problem>) -> Result<(), Self> {
        if problems.is_empty() {
            return Ok(());
        }
        Err(Self(problems))
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let problems: Vec<_> = self.0.iter().map(|it| it.problem.as_str()).collect();
        f.write_str(&problems.join("; besides: "))
    }
}

impl Error for Refused {}

/// The services of a process, as `outrider serve` is told them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Role {
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

impl Role {
    /// Returns its name on the command line and in traces.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Coordinator => "coordinator",
            Self::Drafter => "drafter",
            Self::Verifier => "verifier",
        }
    }

    pub(crate) fn has_coordinator(self) -> bool {
        matches!(self, Self::All | Self::Coordinator)
    }

    pub(crate) fn has_drafter(self) -> bool {
        matches!(self, Self::All | Self::Drafter)
    }

    pub(crate) fn has_verifier(self) -> bool {
        matches!(self, Self::All | Self::Verifier)
    }
}

/// What to do about a pair that does not fit.
pub(crate) const OF_ONE_FAMILY: &str = "name one of the target's family, with the same tokenizer.json, or none: without --draft-model (drafter.model.path), \
     or with none in its place, drafts are copied from the text";

/// Returns what is wrong with the files of `role`'s models, and in one process whether they fit each other.
fn of_models(config: &Config, role: Role) -> Vec<Problem> {
    let mut config = config.clone();
    if role == Role::All {
        leave_out_misfit(&mut config);
    }
    let (mut draft, mut target) = (None, None);
    let mut problems = Vec::new();
    if role.has_verifier() {
        match verifier::inspect(&config.verifier) {
            Ok(found) => target = found.map(|model| verifier::outline(&model)),
            Err(error) => problems.push(Problem::new(error.key(), &error)),
        }
    }
    if role.has_drafter() {
        let found = drafter::inspect(&config.drafter, target.as_ref());
        let wrong = found.problems.iter();
        problems.extend(wrong.map(|error| Problem::new(error.key(), error)));
        draft = found.description;
    }
    if let (Some(draft), Some(target)) = (draft, target)
        && let Err(mismatch) = check_pair(&draft, &target)
    {
        problems.push(Problem {
            key: "drafter.model".to_owned(),
            problem: format!(
                "drafter.model: the draft model does not fit the target model: {mismatch}; {OF_ONE_FAMILY}"
            ),
        });
    }
    problems
}
