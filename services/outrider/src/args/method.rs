//! Flags that choose a method and its settings, made of the table of settings; shared by the commands that generate.

use anyhow::{Error, anyhow};
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use speculation::bad_value::BadValue;
use speculation::methods::{
    MethodSpec, OF_DRAFTING, SETTINGS, Setting, SettingValue, check_length,
};
use wire::{settings, v1};

use super::Suggested;

/// The method where none is named.
const DEFAULT: &str = "coupled";
/// The settings that short help shows.
const SHORT: [&str; 1] = ["draft_len"];

/// A method, and what overrides its presets.
#[derive(Clone, Debug)]
pub struct MethodArgs(pub MethodSpec);

impl MethodArgs {
    /// Writes the choice to `request`; what was not given is left to the coordinator.
    ///
    /// # Errors
    /// Names the flag whose value is unknown. Whether they go together, the coordinator checks.
    pub fn apply(&self, request: &mut v1::GenerateRequest) -> anyhow::Result<()> {
        self.0.check().map_err(as_flag)?;
        check_length(&self.0).map_err(as_flag)?;
        settings::to_wire(&self.0, request);
        Ok(())
    }
}

/// Returns the error of a fault in a value, by the name of its flag.
pub fn as_flag(BadValue { field, problem }: BadValue) -> Error {
    let flag = match SETTINGS.iter().find(|setting| setting.name == field) {
        Some(setting) => flag_of(setting),
        None => field.replace('_', "-"),
    };
    anyhow!("--{flag}: {problem}")
}

/// Returns the long flag of `setting`. A target is a model elsewhere on the command line.
fn flag_of(setting: &Setting) -> String {
    match setting.name {
        "target" => "target-distribution".to_owned(),
        name => name.replace('_', "-"),
    }
}

/// Returns `message`, in which a coordinator refuses `field` of a request, with the flag that sets the field, where it is
/// a setting of a method.
pub(crate) fn with_flag(message: &str, field: Option<&str>) -> String {
    let named = field.and_then(|field| Some((field, field.strip_prefix("settings.")?)));
    match named.map(|(field, name)| (field, Setting::find(name))) {
        Some((field, Ok(setting))) => {
            let flag = format!("--{} ({field})", flag_of(setting));
            message.replacen(field, &flag, 1)
        }
        _ => message.to_owned(),
    }
}

/// Returns the flag of `setting`.
fn flag(setting: &'static Setting) -> Arg {
    let heading = if is_of_drafting(setting) {
        "Drafting"
    } else {
        "Method"
    };
    let arg = Arg::new(setting.name)
        .long(flag_of(setting))
        .value_name(setting.placeholder)
        .help_heading(heading)
        .help(help(setting))
        .alias((setting.name == "target").then_some("target"))
        .hide_short_help(!SHORT.contains(&setting.name))
        .hide_possible_values(true)
        .allow_negative_numbers(true)
        .value_parser(Suggested::of(setting));
    let arg = match long_help(setting) {
        Some(long) => arg.long_help(long),
        None => arg,
    };
    if setting.is_flag() {
        arg.num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true")
    } else {
        arg
    }
}

/// Returns the line of `setting` in help: for which methods it is, and what it does.
fn help(setting: &Setting) -> String {
    let line = match setting.of {
        "" => setting.help.to_owned(),
        of => format!("{of}: {}", setting.help),
    };
    as_sentence(&line)
}

/// Returns `line` with a capital letter at its beginning.
pub(super) fn as_sentence(line: &str) -> String {
    let mut rest = line.chars();
    let first = rest.next().map(|first| first.to_uppercase().to_string());
    first.unwrap_or_default() + rest.as_str()
}

/// Returns the same with the forms of its values, if there are any.
fn long_help(setting: &Setting) -> Option<String> {
    let values = setting.values();
    let lines = values.iter().map(|value| {
        let range = match &value.range[..] {
            "" => String::new(),
            range => format!(", {range}"),
        };
        let help = match value.help {
            "" => String::new(),
            // Pages of the manual know no Greek.
            help => format!(": {}", help.replace('π', "pi")),
        };
        format!("\n- `{}`{range}{help}", value.form)
    });
    (!values.is_empty()).then(|| format!("{}\n{}", help(setting), lines.collect::<String>()))
}

fn is_of_drafting(setting: &Setting) -> bool {
    OF_DRAFTING.iter().any(|other| other.name == setting.name)
}

impl Args for MethodArgs {
    fn augment_args(command: Command) -> Command {
        let method = Arg::new("method")
            .long("method")
            .value_name("NAME")
            .default_value(DEFAULT)
            .value_parser(Suggested::methods())
            .hide_possible_values(true)
            .help_heading("Method")
            .help("How draft tokens become output, see `outrider methods`");
        command.arg(method).args(SETTINGS.iter().map(|it| flag(it)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// A command that has only some of the flags has the others not given.
impl FromArgMatches for MethodArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut args = Self(MethodSpec::new(DEFAULT));
        args.update_from_arg_matches(matches)?;
        Ok(args)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        if let Ok(Some(method)) = matches.try_get_one::<String>("method") {
            self.0.method.clone_from(method);
        }
        for setting in SETTINGS {
            if let Ok(Some(text)) = matches.try_get_one::<String>(setting.name) {
                // It is in the table.
                let _ = self.0.set(setting.name, SettingValue::read(text));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(flags: &[&str]) -> MethodSpec {
        let command = MethodArgs::augment_args(Command::new("x").no_binary_name(true));
        let matches = command.try_get_matches_from(flags).expect("flags");
        MethodArgs::from_arg_matches(&matches).expect("flags").0
    }

    #[test]
    fn each_setting_has_a_flag() {
        for setting in SETTINGS {
            let flag = format!("--{}=7", flag_of(setting));
            let spec = parsed(&[&flag]);
            assert_eq!(
                spec.get(setting),
                Some(&SettingValue::Number(7.0)),
                "{flag}"
            );
        }
        assert_eq!(parsed(&[]), MethodSpec::new("coupled"));
        let spec = parsed(&["--method", "bild", "--verify-on-finish", "--alpha", "-0.5"]);
        let expected = MethodSpec::new("bild")
            .with("verify_on_finish", true)
            .with("alpha", -0.5);
        assert_eq!(spec, expected);
        assert_eq!(
            parsed(&["--target", "lossy"]),
            parsed(&["--target-distribution=lossy"])
        );
    }

    #[test]
    fn what_a_coordinator_refuses_is_named_by_its_flag_too() {
        for (field, refused, expected) in [
            (
                "settings.alpha",
                "settings.alpha: -1",
                "--alpha (settings.alpha): -1",
            ),
            (
                "settings.target",
                "settings.target: 7",
                "--target-distribution (settings.target): 7",
            ),
            ("settings.other", "settings.other: 7", "settings.other: 7"),
            ("temperature", "temperature: -1", "temperature: -1"),
        ] {
            assert_eq!(with_flag(refused, Some(field)), expected);
        }
        assert_eq!(with_flag("busy", None), "busy");
    }

    #[test]
    fn what_is_unknown_is_named_by_its_flag() {
        for (flag, words) in [
            ("--draft-len=specdec++", "--draft-len: 'specdec++'"),
            ("--draft-len=confidence:2", "0 to 1"),
            ("--drafting=guess", "max-gram"),
            ("--tree=comb:1", "2 to 64"),
            (
                "--target-distribution=guess",
                "--target-distribution: 'guess'",
            ),
            ("--alpha=much", "--alpha: 'much'"),
            ("--mean=perhaps", "--mean: 'perhaps'"),
        ] {
            let args = MethodArgs(parsed(&[flag]));
            let error = args.apply(&mut v1::GenerateRequest::default());
            let error = error.expect_err(flag).to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
