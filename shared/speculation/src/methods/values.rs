//! Values of parameters, and the ranges they lie in.

use std::fmt;

use crate::target::{Beta, Rule};

/// A parameter's value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
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

impl fmt::Display for Value {
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

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<Option<f64>> for Value {
    fn from(number: Option<f64>) -> Self {
        number.map_or(Self::None, Self::Number)
    }
}

impl From<u32> for Value {
    fn from(count: u32) -> Self {
        Self::Count(count)
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl From<Rule> for Value {
    fn from(rule: Rule) -> Self {
        Self::Rule(rule)
    }
}

impl From<Beta> for Value {
    fn from(beta: Beta) -> Self {
        Self::Beta(beta)
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

    /// Whether `value` is in it. NaN is in none.
    pub fn contains(&self, value: Value) -> bool {
        match (*self, value) {
            (
                Self::Number(least, most) | Self::NumberOrNone(least, most),
                Value::Number(number),
            )
            | (Self::Beta(least, most), Value::Beta(Beta::Fixed(number))) => {
                (least..=most).contains(&number)
            }
            (Self::NumberBelow(least, below), Value::Number(number)) => {
                (least..below).contains(&number)
            }
            (Self::Count(least, most), Value::Count(count)) => (least..=most).contains(&count),
            (Self::Rule(rules), Value::Rule(rule)) => rules.contains(&rule),
            (Self::Flag, Value::Flag(_))
            | (Self::Beta(..), Value::Beta(Beta::Tuned))
            | (Self::NumberOrNone(..), Value::None) => true,
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

/// A parameter of a request, with its value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setting {
    /// Name, as given in requests.
    pub name: &'static str,
    /// One line.
    pub help: &'static str,
    /// The values it may have, beside the request's other parameters.
    pub range: Range,
    /// The value where none is given.
    pub default: Value,
    /// The value it has.
    pub value: Value,
}
