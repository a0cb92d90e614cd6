//! Values of parameters, and the ranges they lie in.

use std::fmt;

use crate::bad_value::BadValue;
use crate::target::{Beta, Rule};

/// The value of a setting as a request gives it.
#[derive(Clone, Debug, PartialEq)]
pub enum SettingValue {
    /// A number; whole numbers too.
    Number(f64),
    /// Yes or no.
    Flag(bool),
    /// A name, or what stands for a number or a flag.
    Text(String),
}

impl SettingValue {
    /// Reads a value as it is written.
    pub fn read(text: &str) -> Self {
        match text {
            "true" => Self::Flag(true),
            "false" => Self::Flag(false),
            text => match text.parse::<f64>() {
                Ok(number) if number.is_finite() => Self::Number(number),
                _ => Self::Text(text.to_owned()),
            },
        }
    }
}

impl fmt::Display for SettingValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl From<f64> for SettingValue {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<u32> for SettingValue {
    fn from(number: u32) -> Self {
        Self::Number(number.into())
    }
}

impl From<bool> for SettingValue {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl From<&str> for SettingValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for SettingValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// A parameter's value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ParameterValue {
    /// A real number.
    Number(f64),
    /// No number, where there need be none.
    None,
    /// A whole number.
    Count(u32),
    /// Yes or no.
    Flag(bool),
    /// A deferral rule.
    Rule(Rule),
    /// The residual parameter of lossy sampling.
    Beta(Beta),
}

impl ParameterValue {
    /// A value where the table has another kind.
    pub(super) fn misplaced(self, name: &str) -> BadValue {
        BadValue::new(
            name,
            format!("'{self}' stands in the table for a value of another kind"),
        )
    }
}

impl fmt::Display for ParameterValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) | Self::Beta(Beta::Fixed(number)) => write!(f, "{number}"),
            Self::None => f.write_str("none"),
            Self::Count(count) => write!(f, "{count}"),
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::Rule(rule) => f.write_str(rule.name),
            Self::Beta(Beta::Tuned) => f.write_str("tuned"),
        }
    }
}

/// Makes values of the types they hold, and those types of values; a value of another type is handed back.
macro_rules! held {
    ($($kind:ident($type:ty)),*) => {
        $(
            impl From<$type> for ParameterValue {
                fn from(value: $type) -> Self {
                    Self::$kind(value)
                }
            }

            impl TryFrom<ParameterValue> for $type {
                type Error = ParameterValue;

                fn try_from(value: ParameterValue) -> Result<Self, ParameterValue> {
                    match value {
                        ParameterValue::$kind(value) => Ok(value),
                        other => Err(other),
                    }
                }
            }
        )*
    };
}

held!(Number(f64), Count(u32), Flag(bool), Rule(Rule), Beta(Beta));

/// The values a parameter may have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Range {
    /// From the first to the second.
    Number(f64, f64),
    /// From the first to below the second.
    NumberBelow(f64, f64),
    /// From the first to the second, or none.
    NumberOrNone(f64, f64),
    /// From the first to the second.
    Count(u32, u32),
    /// Yes or no.
    Flag,
    /// One of these.
    Rule(&'static [Rule]),
    /// From the first to the second, or tuned.
    Beta(f64, f64),
}

impl Range {
    /// What kind of value it is, in one or two words.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Number(..) | Self::NumberBelow(..) => "number",
            Self::NumberOrNone(..) => "number or none",
            Self::Count(..) => "integer",
            Self::Flag => "boolean",
            Self::Rule(_) => "name",
            Self::Beta(..) => "number or tuned",
        }
    }

    /// Returns the value that is given for the setting `name`, in range or not. Whole numbers may be written as any others
    /// are.
    ///
    /// # Errors
    /// If it is of another kind.
    pub(super) fn read(
        &self,
        name: &str,
        given: &SettingValue,
    ) -> Result<ParameterValue, BadValue> {
        self.of_kind(given).ok_or_else(|| {
            let problem = match (self, given) {
                (Self::Rule(_), _) => format!("'{given}' is unknown, expected one of {self}"),
                (Self::Count(..), SettingValue::Number(number)) if number.fract() == 0.0 => {
                    format!("{given} is out of range, expected {self}")
                }
                _ => format!("'{given}' will not do, expected: {}", self.kind()),
            };
            BadValue::new(name, problem)
        })
    }

    fn of_kind(&self, given: &SettingValue) -> Option<ParameterValue> {
        match (self, given) {
            (Self::Number(..) | Self::NumberBelow(..) | Self::NumberOrNone(..), given) => {
                match given {
                    SettingValue::Number(number) => Some(ParameterValue::Number(*number)),
                    SettingValue::Text(text) if text == "none" => {
                        matches!(self, Self::NumberOrNone(..)).then_some(ParameterValue::None)
                    }
                    SettingValue::Text(_) | SettingValue::Flag(_) => None,
                }
            }
            (Self::Count(..), SettingValue::Number(number)) => {
                let is_whole =
                    number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(number);
                is_whole.then_some(ParameterValue::Count(*number as u32))
            }
            (Self::Flag, SettingValue::Flag(flag)) => Some(ParameterValue::Flag(*flag)),
            (Self::Rule(_), SettingValue::Text(name)) => Rule::find(name).map(ParameterValue::Rule),
            (Self::Beta(..), SettingValue::Number(number)) => {
                Some(ParameterValue::Beta(Beta::Fixed(*number)))
            }
            (Self::Beta(..), SettingValue::Text(text)) => {
                (text == "tuned").then_some(ParameterValue::Beta(Beta::Tuned))
            }
            _ => None,
        }
    }

    /// Whether `value` is in it. NaN is in none.
    pub fn contains(&self, value: ParameterValue) -> bool {
        match (*self, value) {
            (
                Self::Number(least, most) | Self::NumberOrNone(least, most),
                ParameterValue::Number(number),
            )
            | (Self::Beta(least, most), ParameterValue::Beta(Beta::Fixed(number))) => {
                (least..=most).contains(&number)
            }
            (Self::NumberBelow(least, below), ParameterValue::Number(number)) => {
                (least..below).contains(&number)
            }
            (Self::Count(least, most), ParameterValue::Count(count)) => {
                (least..=most).contains(&count)
            }
            (Self::Rule(rules), ParameterValue::Rule(rule)) => rules.contains(&rule),
            (Self::Flag, ParameterValue::Flag(_))
            | (Self::Beta(..), ParameterValue::Beta(Beta::Tuned))
            | (Self::NumberOrNone(..), ParameterValue::None) => true,
            _ => false,
        }
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(least, most) => write!(f, "{least} to {most}"),
            Self::NumberBelow(least, below) => write!(f, "{least} to below {below}"),
            Self::NumberOrNone(least, most) => write!(f, "{least} to {most}, or none"),
            Self::Count(least, most) => write!(f, "{least} to {most}"),
            Self::Flag => f.write_str("true or false"),
            Self::Rule(rules) => {
                let names: Vec<_> = rules.iter().map(|rule| rule.name).collect();
                f.write_str(&names.join(", "))
            }
            Self::Beta(least, most) => {
                // Without what rounding added to the bound.
                let least = (least * 1e9).round() / 1e9;
                write!(f, "{least} to {most}, or tuned")
            }
        }
    }
}

/// A parameter that a request takes, with its value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EffectiveSetting {
    /// Name, as given in requests.
    pub name: &'static str,
    /// One line.
    pub help: &'static str,
    /// The values it may have, beside the request's other parameters.
    pub range: Range,
    /// The value where none is given.
    pub default: ParameterValue,
    /// The value it has.
    pub value: ParameterValue,
}
