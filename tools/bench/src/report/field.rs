//! One figure of a row: its column's name and heading, its value, and how that is written.

use serde_json::Value;

/// A value and the column it stands in.
#[derive(Clone, Debug)]
pub(crate) struct ReportField {
    /// The column's name, in JSON and on the command line.
    pub(super) key: String,
    /// What stands above the column.
    pub(super) heading: String,
    pub(super) value: Value,
    pub(super) role: FieldRole,
    pub(super) form: NumberForm,
    /// Instead of the value, for people.
    pub(super) words: Option<String>,
    pub(super) missed: bool,
}

/// Where a field stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldRole {
    /// In a column of its own.
    Shown,
    /// In JSON alone.
    JsonOnly,
    /// Above the column that its row's cell goes to.
    Across,
    /// In the column that the others of its row name.
    Cell,
}

/// How a number is written.
#[derive(Clone, Copy, Debug)]
pub(super) enum NumberForm {
    /// With as many digits as it has.
    Plain,
    /// With so many decimals.
    Fixed(usize),
    /// As a percentage with so many decimals.
    Percent(usize),
}

/// A name, a number with as many digits as it has, a count, or nothing.
pub(crate) fn text(key: impl Into<String>, value: impl Into<Value>) -> ReportField {
    let key = key.into();
    ReportField {
        heading: key.replace('_', " "),
        key,
        value: value.into(),
        role: FieldRole::Shown,
        form: NumberForm::Plain,
        words: None,
        missed: false,
    }
}

/// A number with so many decimals.
pub(crate) fn number(
    key: impl Into<String>,
    value: impl Into<Option<f64>>,
    decimals: usize,
) -> ReportField {
    let form = NumberForm::Fixed(decimals);
    ReportField {
        form,
        ..text(key, value.into())
    }
}

/// A share, as a percentage with so many decimals.
pub(crate) fn percent(
    key: impl Into<String>,
    share: impl Into<Option<f64>>,
    decimals: usize,
) -> ReportField {
    let form = NumberForm::Percent(decimals);
    ReportField {
        form,
        ..text(key, share.into())
    }
}

/// What people are not shown, unless they ask for it by name.
pub(crate) fn only_json(key: impl Into<String>, value: impl Into<Value>) -> ReportField {
    text(key, value).hidden()
}

impl ReportField {
    /// Has `heading` stand above the column.
    pub(crate) fn called(self, heading: impl Into<String>) -> Self {
        let heading = heading.into();
        Self { heading, ..self }
    }

    /// Names the column that the row's cell stands in: rows that are equal but for such fields and the cell
    /// become one for people.
    pub(crate) fn across(self) -> Self {
        let role = FieldRole::Across;
        Self { role, ..self }
    }

    /// Stands in the column that the row's fields [across](Self::across) name.
    pub(crate) fn cell(self) -> Self {
        let role = FieldRole::Cell;
        Self { role, ..self }
    }

    /// Is told to people in these words.
    pub(crate) fn said(self, words: String) -> Self {
        let words = Some(words);
        Self { words, ..self }
    }

    /// Is for programs and plots: people are not shown it, unless they ask for it by name.
    pub(crate) fn hidden(self) -> Self {
        let role = FieldRole::JsonOnly;
        Self { role, ..self }
    }

    /// Has an asterisk if it misses its goal.
    pub(crate) fn missed(self, missed: bool) -> Self {
        Self { missed, ..self }
    }

    /// Whether it is one of the figures, which stand right.
    pub(super) fn is_number(&self) -> bool {
        self.words.is_none() && (self.value.is_number() || self.value.is_null())
    }

    /// Where a plot has it: as it is, and a share in percent; none where there is no number.
    pub(super) fn drawn(&self) -> Option<f64> {
        let value = self.value.as_f64()?;
        Some(match self.form {
            NumberForm::Percent(_) => 100.0 * value,
            NumberForm::Plain | NumberForm::Fixed(_) => value,
        })
    }

    /// As people read it.
    pub(crate) fn shown(&self) -> String {
        let written = self.words.clone().unwrap_or_else(|| self.written());
        let mark = if self.missed { "*" } else { "" };
        // What separates the cells of a table.
        written.replace('|', "\\|") + mark
    }

    /// The value as it stands in a table.
    pub(super) fn written(&self) -> String {
        match (&self.value, self.form) {
            (Value::Null, _) => "-".to_owned(),
            (Value::String(words), _) => words.clone(),
            (Value::Number(number), form) => match (number.as_f64(), form) {
                (Some(value), NumberForm::Fixed(decimals)) => format!("{value:.decimals$}"),
                (Some(share), NumberForm::Percent(decimals)) => {
                    let percent = 100.0 * share;
                    format!("{percent:.decimals$}%")
                }
                // Single precision became double on its way here.
                (Some(value), NumberForm::Plain) if number.is_f64() => (value as f32).to_string(),
                _ => number.to_string(),
            },
            (other, _) => other.to_string(),
        }
    }
}
