//! What `/set` changes: the flags of `outrider chat`, read by the parser that reads the command line.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use anyhow::{anyhow, bail};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use itertools::Itertools;
use speculation::methods::{Choice, Setting, Setup};
use wire::status::BadField;
use wire::{sampling, settings, v1};

use super::tools;
use crate::args::{RequestArgs, ServicesArgs};
use crate::failure;

/// The temperature of chats where nobody sets one. At 1, the default of other commands and of the API, small models ramble.
const TEMPERATURE: f32 = 0.7;

/// What takes a setting back.
const NONE: &str = "none";
/// The setting that has a value of this name.
const HAS_NONE: &str = "proposal";

/// The flags of `outrider chat` that may change from one answer to the next.
#[derive(Debug, Args)]
pub(super) struct Changeable {
    /// What the model is told before the conversation.
    #[arg(long, value_name = "TEXT")]
    system: Option<String>,
    /// Prints a line of statistics after each answer.
    #[arg(long)]
    stats: bool,
    /// A file with what the model may call: a JSON list of tools, as OpenAI's API has them.
    ///
    /// A call is shown, and the next line that is typed is what it came to.
    #[arg(long, value_name = "FILE")]
    tools: Option<PathBuf>,
    /// Whether it calls them: auto, none, required, or the name of the one that it must call.
    #[arg(
        long,
        value_name = "CHOICE",
        requires = "tools",
        hide_short_help = true
    )]
    tool_choice: Option<String>,
    #[command(flatten)]
    pub(super) common: RequestArgs,
}

/// Values that were given, as they were written, by the names of their settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct GivenFlags(BTreeMap<String, Vec<String>>);

/// What holds for the answers to come.
#[derive(Debug)]
pub(super) struct ChatSettings {
    given: GivenFlags,
    /// What the model is told before the conversation.
    pub(super) system: Option<String>,
    /// Whether a line of statistics follows each answer.
    pub(super) stats: bool,
    /// The request without its messages.
    pub(super) request: v1::GenerateRequest,
}

impl ChatSettings {
    /// Returns the settings of these flags. What is out of range, the coordinator tells.
    ///
    /// # Errors
    /// Names the flag whose value is unknown.
    pub(super) fn new(given: GivenFlags) -> anyhow::Result<Self> {
        let parsed = parser().try_get_matches_from(given.command_line());
        let parsed = parsed.and_then(|matches| Changeable::from_arg_matches(&matches));
        let parsed = parsed.map_err(|error| anyhow!("{}", failure::of_command_line(&error)))?;
        let mut request = parsed.common.request()?;
        let sampling = request.sampling.get_or_insert_default();
        sampling.temperature.get_or_insert(TEMPERATURE);
        if let Some(file) = &parsed.tools {
            request.tools = tools::read(file)?;
        }
        if let Some(choice) = &parsed.tool_choice {
            tools::choose(choice, &mut request);
        }
        Ok(Self {
            request,
            given,
            system: parsed.system,
            stats: parsed.stats,
        })
    }

    /// Changes a setting, or takes it back.
    ///
    /// # Errors
    /// If there is no such setting, or its value will not do; nothing is then changed.
    pub(super) fn set(&mut self, name: &str, value: &str) -> anyhow::Result<()> {
        let changed = Self::new(self.given.with(name, value)?)?;
        check(&changed.request)?;
        *self = changed;
        Ok(())
    }
}

/// One setting a line.
impl fmt::Display for ChatSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let GivenFlags(given) = &self.given;
        if given.is_empty() {
            return f.write_str("nothing is set; /set NAME VALUE does, see /help");
        }
        let width = given.keys().map(String::len).max().unwrap_or(0);
        let values = given
            .iter()
            .flat_map(|(name, values)| values.iter().map(move |value| (name, value)));
        let mut lines = values.map(|(name, value)| format!("{name:width$}  {value}"));
        f.write_str(&lines.join("\n"))
    }
}

impl GivenFlags {
    /// Returns the same with another value of `name`, or without one.
    fn with(&self, name: &str, value: &str) -> anyhow::Result<Self> {
        let name = name.replace('-', "_");
        let Some(setting) = settings().find(|arg| arg.get_id() == name.as_str()) else {
            let names = settings().map(|arg| arg.get_id().to_string()).join(", ");
            bail!("/set: there is no '{name}' to be set, but {names}");
        };
        let takes_value = setting.get_action().takes_values();
        let is_flag = Setting::find(&name).is_ok_and(Setting::is_flag);
        let mut changed = self.clone();
        match value {
            "on" if is_flag => _ = changed.0.insert(name, vec!["true".to_owned()]),
            "off" if is_flag => _ = changed.0.insert(name, vec!["false".to_owned()]),
            NONE if name != HAS_NONE => _ = changed.0.remove(&name),
            "off" if !takes_value => _ = changed.0.remove(&name),
            "on" if !takes_value => _ = changed.0.insert(name, vec!["on".to_owned()]),
            _ if !takes_value => bail!("{name}: '{value}' will not do, expected on or off"),
            value => _ = changed.0.insert(name, vec![value.to_owned()]),
        }
        Ok(changed)
    }

    /// Returns the command line that gives them.
    fn command_line(&self) -> Vec<String> {
        let mut line = vec![String::new()];
        for setting in settings() {
            let name = setting.get_id().as_str();
            let flag = setting.get_long().unwrap_or(name);
            for value in self.0.get(name).into_iter().flatten() {
                line.push(if setting.get_action().takes_values() {
                    format!("--{flag}={value}")
                } else {
                    format!("--{flag}")
                });
            }
        }
        line
    }
}

/// It has no flags of its own: it is told what those beside it were given.
impl Args for GivenFlags {
    fn augment_args(command: Command) -> Command {
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        command
    }
}

impl FromArgMatches for GivenFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut given = Self::default();
        given.update_from_arg_matches(matches)?;
        Ok(given)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for setting in settings() {
            let name = setting.get_id().as_str();
            if matches.value_source(name) != Some(ValueSource::CommandLine) {
                continue;
            }
            let values = matches.get_raw(name).into_iter().flatten();
            let values = values.map(|value| value.to_string_lossy().into_owned());
            let values = if setting.get_action().takes_values() {
                values.collect()
            } else {
                vec!["on".to_owned()]
            };
            self.0.insert(name.to_owned(), values);
        }
        Ok(())
    }
}

fn parser() -> Command {
    Changeable::augment_args(Command::new("/set"))
}

/// Returns what may be set: all but the flags that choose whom to ask, which is known before there is a conversation.
fn settings() -> impl Iterator<Item = Arg> {
    let of_services = ServicesArgs::augment_args(Command::new("services"));
    let is_setting = move |flag: &Arg| {
        let id = flag.get_id();
        !of_services
            .get_arguments()
            .any(|other| other.get_id() == id)
    };
    let flags: Vec<_> = parser().get_arguments().cloned().collect();
    flags.into_iter().filter(is_setting)
}

/// Checks what can be checked without the model, in the coordinator's words.
fn check(request: &v1::GenerateRequest) -> Result<(), BadField> {
    if request.max_tokens == Some(0) {
        let problem = "0 is out of range, expected at least 1";
        return Err(BadField::new("max_tokens", problem));
    }
    let sampling = sampling::from_wire(request.sampling.clone(), Vec::new(), u32::MAX)?;
    let setup = Setup {
        temperature: sampling.temperature,
        cuts: sampling.cuts(),
        draft_len: None,
    };
    Choice::resolve(&settings::from_wire(request)?, setup)?;
    Ok(())
}

#[cfg(test)]
mod tests;
