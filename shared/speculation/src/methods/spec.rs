//! What a request chooses: the name of a method, and settings by name that override its presets.

use std::fmt;

use super::setting::Setting;
use super::table::SETTINGS;
use super::values::SettingValue;
use crate::bad_value::BadValue;

/// A method by name and what overrides its presets. The default is the default method.
///
/// Command line, JSON, gRPC and configuration all come to one of these; what it means is found out in one place,
/// [`Choice::resolve`](super::Choice::resolve). As text it is `spec-cascade:rule=opt:alpha=0.3`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MethodSpec {
    /// Name or alias of the method; empty is the default one.
    pub method: String,
    /// In the order of [`SETTINGS`].
    settings: Vec<(&'static Setting, SettingValue)>,
}

impl MethodSpec {
    /// A method with its presets.
    pub fn new(method: &str) -> Self {
        Self {
            method: method.to_owned(),
            settings: Vec::new(),
        }
    }

    /// Sets `name`, which may be written with hyphens.
    ///
    /// # Errors
    /// If there is no such setting; the message lists them all.
    pub fn set(&mut self, name: &str, value: impl Into<SettingValue>) -> Result<(), BadValue> {
        let setting = Setting::find(name)?;
        self.settings
            .retain(|(other, _)| other.name != setting.name);
        self.settings.push((setting, value.into()));
        let place = |setting: &Setting| SETTINGS.iter().position(|it| it.name == setting.name);
        self.settings.sort_by_key(|(setting, _)| place(setting));
        Ok(())
    }

    /// The same with another setting.
    ///
    /// # Panics
    /// If there is no such setting.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<SettingValue>) -> Self {
        self.set(name, value).expect("a setting of the table");
        self
    }

    /// Returns what is given for `setting`.
    pub fn get(&self, setting: &Setting) -> Option<&SettingValue> {
        let mut given = self.settings.iter();
        let found = given.find(|(other, _)| other.name == setting.name);
        found.map(|(_, value)| value)
    }

    /// Returns whether `setting` is given.
    pub fn gives(&self, setting: &Setting) -> bool {
        self.get(setting).is_some()
    }

    /// Returns the settings that are given, in the order of [`SETTINGS`].
    pub fn settings(&self) -> impl Iterator<Item = (&'static Setting, &SettingValue)> {
        self.settings
            .iter()
            .map(|(setting, value)| (*setting, value))
    }

    /// Checks that each value can be one of its setting. Whether they go together,
    /// [`Choice::resolve`](super::Choice::resolve) tells.
    ///
    /// # Errors
    /// Names the setting whose value is unknown or of another kind.
    pub fn check(&self) -> Result<(), BadValue> {
        let mut settings = self.settings.iter();
        settings.try_for_each(|(setting, value)| setting.check(value))
    }

    /// Returns the text that is given for `setting`; a number as it is written.
    pub fn text(&self, setting: &Setting) -> Option<String> {
        self.get(setting).map(ToString::to_string)
    }

    /// Returns what is given for `setting`, as `read` has it.
    pub(super) fn read<T>(
        &self,
        setting: &Setting,
        read: fn(&str) -> Result<T, BadValue>,
    ) -> Result<Option<T>, BadValue> {
        self.text(setting).map(|text| read(&text)).transpose()
    }

    /// Reads `NAME[:KEY=VALUE]...`; a key without a value is a flag that is set.
    ///
    /// # Errors
    /// Names the key that is none. Whether method and values are known, [`Choice::resolve`](super::Choice::resolve)
    /// tells.
    pub fn parse(text: &str) -> Result<Self, BadValue> {
        let (method, settings) = Self::split(text);
        let mut spec = Self::new(method);
        if method.is_empty() {
            return Err(BadValue::new("method", "missing"));
        }
        for setting in settings {
            let (key, value) = setting.split_once('=').unwrap_or((&setting, "true"));
            spec.set(key, SettingValue::read(value))?;
        }
        Ok(spec)
    }

    /// Splits the text of a spec into its name and its settings, some of whose values have colons of their own.
    pub fn split(text: &str) -> (&str, Vec<String>) {
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default();
        let mut settings: Vec<String> = Vec::new();
        for part in parts {
            match settings.last_mut() {
                Some(last) if goes_on(last, part) => *last = format!("{last}:{part}"),
                _ => settings.push(part.to_owned()),
            }
        }
        (name, settings)
    }
}

/// Whether `part` belongs to the value of the setting before it: `sparse:8`, `dense:f16`, `specdec++:0.7`, `comb:8`.
/// What follows such a value is another setting, whose name begins with no digit.
fn goes_on(setting: &str, part: &str) -> bool {
    let has_colons = ["proposal=", "draft-len=", "draft_len=", "tree="];
    let is_setting = part.contains('=');
    let is_number = part.starts_with(|first: char| first.is_ascii_digit() || first == '.');
    let is_precision = setting.starts_with("proposal=") && !is_setting;
    let takes_more = has_colons.iter().any(|name| setting.starts_with(name));
    takes_more && (is_number && !is_setting || is_precision)
}

impl fmt::Display for MethodSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.method)?;
        for (setting, value) in &self.settings {
            write!(f, ":{}={value}", setting.name)?;
        }
        Ok(())
    }
}
