//! Values of parameters, and the ranges they lie in.

use std::borrow::Cow;
use std::fmt;

use derive_more::{Display, From};

use crate::bad_value::BadValue;
use crate::target::{Beta, Rule};

/// The value of a setting, as a request gives it and as it is reported.
#[derive(Clone, Debug, PartialEq, Display, From)]
pub enum SettingValue {
    /// A number; whole numbers too.
    #[from(f64, u32)]
    Number(f64),
    /// Yes or no.
    #[from]
    Flag(bool),
    /// A name, or what stands for a number or a flag.
    #[from(String)]
    Text(Cow<'static, str>),
}

impl SettingValue {
    /// No number, where there need be none.
    pub const NONE: Self = Self::Text(Cow::Borrowed("none"));

    /// Reads a value as it is written.
    pub fn read(text: &str) -> Self {
        match text {
            "true" => Self::Flag(true),
            "false" => Self::Flag(false),
            text => match text.parse::<f64>() {
                Ok(number) if number.is_finite() => Self::Number(number),
                _ => text.into(),
            },
        }
    }

    /// Returns the number that it is.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Flag(_) | Self::Text(_) => None,
        }
    }

    /// Returns the whole number that it is. Whole numbers may be written as any others are.
    pub fn count(&self) -> Option<u32> {
        let is_count =
            |number: &f64| number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(number);
        self.number().filter(is_count).map(|number| number as u32)
    }

    /// Returns whether it is yes, if it is yes or no.
    pub fn flag(&self) -> Option<bool> {
        match self {
            Self::Flag(flag) => Some(*flag),
            Self::Number(_) | Self::Text(_) => None,
        }
    }

    /// Returns the deferral rule that it names.
    pub fn rule(&self) -> Option<Rule> {
        match self {
            Self::Text(name) => Rule::find(name),
            Self::Number(_) | Self::Flag(_) => None,
        }
    }

    /// Returns the residual parameter of lossy sampling that it is.
    pub fn beta(&self) -> Option<Beta> {
        let is_tuned = *self == Self::from(Beta::Tuned);
        let fixed = self.number().map(Beta::Fixed);
        if is_tuned { Some(Beta::Tuned) } else { fixed }
    }
}

impl From<&str> for SettingValue {
    fn from(text: &str) -> Self {
        Self::Text(Cow::Owned(text.to_owned()))
    }
}

impl From<Beta> for SettingValue {
    fn from(beta: Beta) -> Self {
        match beta {
            Beta::Fixed(number) => Self::Number(number),
            Beta::Tuned => Self::Text(Cow::Borrowed("tuned")),
        }
    }
}

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

    /// Checks that `given` for the setting `name` is of this kind, in range or not.
    ///
    /// # Errors
    /// If it is of another kind.
    pub(super) fn check(&self, name: &str, given: &SettingValue) -> Result<(), BadValue> {
        if self.is_kind_of(given) {
            return Ok(());
        }
        let problem = match (self, given) {
            (Self::Rule(_), _) => format!("'{given}' is unknown, expected one of {self}"),
            (Self::Count(..), SettingValue::Number(number)) if number.fract() == 0.0 => {
                format!("{given} is out of range, expected {self}")
            }
            _ => format!("'{given}' will not do, expected: {}", self.kind()),
        };
        Err(BadValue::new(name, problem))
    }

    fn is_kind_of(&self, given: &SettingValue) -> bool {
        match self {
            Self::Number(..) | Self::NumberBelow(..) => given.number().is_some(),
            Self::NumberOrNone(..) => given.number().is_some() || *given == SettingValue::NONE,
            Self::Count(..) => given.count().is_some(),
            Self::Flag => given.flag().is_some(),
            Self::Rule(_) => given.rule().is_some(),
            Self::Beta(..) => given.beta().is_some(),
        }
    }

    /// Whether `value` is in it. NaN is in none.
    pub fn contains(&self, value: &SettingValue) -> bool {
        let number = value.number();
        let within =
            |least: f64, most: f64| number.is_some_and(|number| (least..=most).contains(&number));
        match *self {
            Self::Number(least, most) => within(least, most),
            Self::NumberBelow(least, below) => {
                number.is_some_and(|number| (least..below).contains(&number))
            }
            Self::NumberOrNone(least, most) => *value == SettingValue::NONE || within(least, most),
            Self::Count(least, most) => {
                let count = value.count();
                count.is_some_and(|count| (least..=most).contains(&count))
            }
            Self::Flag => value.flag().is_some(),
            Self::Rule(rules) => value.rule().is_some_and(|rule| rules.contains(&rule)),
            Self::Beta(least, most) => value.beta() == Some(Beta::Tuned) || within(least, most),
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
#[derive(Clone, Debug, PartialEq)]
pub struct EffectiveSetting {
    /// Name, as given in requests.
    pub name: &'static str,
    /// One line.
    pub help: &'static str,
    /// The values it may have, beside the request's other parameters.
    pub range: Range,
    /// The value where none is given.
    pub default: SettingValue,
    /// The value it has.
    pub value: SettingValue,
}
