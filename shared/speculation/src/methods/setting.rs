//! One setting of a method: its name, what it may be, and what is said of it.

use super::values::{Range, SettingValue};
use crate::bad_value::BadValue;

/// A setting of a method.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Name, in requests and reports.
    pub name: &'static str,
    /// The methods that take it, in a word; empty if all may.
    pub of: &'static str,
    /// One line.
    pub help: &'static str,
    /// What stands for its value in help.
    pub placeholder: &'static str,
    /// What it may be.
    pub kind: SettingKind,
}

/// What a setting may be.
#[derive(Clone, Debug)]
pub enum SettingKind {
    /// An axis: one of some forms. A setting of drafting says who drafts, how much, or in which shape.
    Axis {
        /// The value where a request does not say, in words.
        default: &'static str,
        /// The forms of its values.
        values: fn() -> Vec<AxisValue>,
        /// Checks that a text is one of them.
        check: fn(&str) -> Result<(), BadValue>,
    },
    /// A parameter of some methods, which may narrow range and default.
    Parameter {
        /// The values it may have.
        range: Range,
        /// The value where none is given.
        default: SettingValue,
    },
}

/// A value of an axis, or a form of values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AxisValue {
    /// As it is written; capital letters after a colon stand for a number.
    pub form: &'static str,
    /// The range of its number; empty where it has none.
    pub range: String,
    /// One line.
    pub help: &'static str,
}

/// Names are unique.
impl PartialEq for Setting {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Setting {
    /// Returns whether its values are true and false.
    pub fn is_flag(&self) -> bool {
        matches!(
            self.kind,
            SettingKind::Parameter {
                range: Range::Flag,
                ..
            }
        )
    }

    /// Returns the forms of its values, if it is an axis.
    pub fn values(&self) -> Vec<AxisValue> {
        match self.kind {
            SettingKind::Axis { values, .. } => values(),
            SettingKind::Parameter { .. } => Vec::new(),
        }
    }

    /// Checks that `value` can be one of this setting, whatever stands beside it.
    ///
    /// # Errors
    /// If it is unknown, or of another kind.
    pub fn check(&self, value: &SettingValue) -> Result<(), BadValue> {
        match self.kind {
            SettingKind::Axis { check, .. } => check(&value.to_string()),
            SettingKind::Parameter { range, .. } => range.check(self.name, value),
        }
    }

    /// Returns the forms of its values that are words; capital letters in them stand for a number.
    pub fn forms(&self) -> Vec<&'static str> {
        match self.kind {
            SettingKind::Axis { .. } => self.values().into_iter().map(|value| value.form).collect(),
            SettingKind::Parameter {
                range: Range::Rule(rules),
                ..
            } => rules.iter().map(|rule| rule.name).collect(),
            SettingKind::Parameter {
                range: Range::Beta(..),
                ..
            } => vec!["tuned"],
            SettingKind::Parameter { .. } => Vec::new(),
        }
    }

    /// The same with another help line, range and default: what one method takes it for.
    pub(super) fn taken_as(&self, help: &'static str, range: Range, default: SettingValue) -> Self {
        let kind = SettingKind::Parameter { range, default };
        Self {
            help,
            kind,
            ..self.clone()
        }
    }
}
