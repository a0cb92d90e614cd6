//! What was found, in words and as JSON.

use std::io::Write;

use anstream::stdout;
use serde::Serialize;
use serde_json::json;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum FindingLevel {
    /// As it should be.
    Ok,
    /// Worth knowing; nothing is wrong.
    Info,
    /// It works, but not as well or as long as it could.
    Warning,
    /// It does not work.
    Error,
}

/// One line of the report.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Finding {
    pub(super) section: &'static str,
    pub(super) level: FindingLevel,
    pub(super) message: String,
    /// What to do; none where nothing need be done.
    pub(super) remedy: Option<String>,
}

/// What was found in a section, or in all of them one after the other.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// Where the next is found.
    section: &'static str,
    pub(super) found: Vec<Finding>,
    /// By how many seconds the clock of whoever answered at a URL is ahead of this machine's.
    pub(super) skews: Vec<(String, i64)>,
}

impl Findings {
    pub(super) fn of(section: &'static str) -> Self {
        Self {
            section,
            ..Self::default()
        }
    }

    pub(super) fn ok(&mut self, message: impl Into<String>) {
        self.push(FindingLevel::Ok, message.into(), None);
    }

    pub(super) fn info(&mut self, message: impl Into<String>) {
        self.push(FindingLevel::Info, message.into(), None);
    }

    pub(super) fn warning(&mut self, message: impl Into<String>, remedy: impl Into<String>) {
        self.push(FindingLevel::Warning, message.into(), Some(remedy.into()));
    }

    pub(super) fn error(&mut self, message: impl Into<String>, remedy: impl Into<String>) {
        self.push(FindingLevel::Error, message.into(), Some(remedy.into()));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    fn push(&mut self, level: FindingLevel, message: String, remedy: Option<String>) {
        self.found.push(Finding {
            section: self.section,
            level,
            message,
            remedy,
        });
    }

    /// Adds what another section tells.
    pub(super) fn add(&mut self, other: Self) {
        self.found.extend(other.found);
        self.skews.extend(other.skews);
    }

    /// Returns whether nothing is broken.
    pub(super) fn is_ok(&self) -> bool {
        self.count(FindingLevel::Error) == 0
    }

    fn count(&self, level: FindingLevel) -> usize {
        self.found.iter().filter(|it| it.level == level).count()
    }

    pub(super) fn print(&self, as_json: bool) -> std::io::Result<()> {
        let mut out = stdout().lock();
        if as_json {
            let object = json!({ "ok": self.is_ok(), "findings": self.found });
            return writeln!(out, "{object}");
        }
        write!(out, "{}", self.text())
    }

    fn text(&self) -> String {
        let mut lines = Vec::new();
        let mut section = "";
        for finding in &self.found {
            if finding.section != section {
                section = finding.section;
                lines.push(section.to_owned());
            }
            let level = format!("{:?}", finding.level).to_lowercase();
            lines.push(format!("  {level:8} {}", finding.message));
            lines.extend((finding.remedy.iter()).map(|remedy| format!("  {:8} {remedy}", "->")));
        }
        let [errors, warnings] =
            [FindingLevel::Error, FindingLevel::Warning].map(|level| self.count(level));
        lines.push(format!("errors: {errors}, warnings: {warnings}\n"));
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_stand_under_their_section_with_what_to_do() {
        let mut report = Findings::default();
        let mut clock = Findings::of("clock");
        clock.ok("it runs");
        clock.warning("it is slow", "wind it up");
        report.add(clock);
        let expected = "clock\n  ok       it runs\n  warning  it is slow\n  ->       wind it up\n\
                        errors: 0, warnings: 1\n";
        assert_eq!(report.text(), expected);
        assert!(report.is_ok());
        let mut door = Findings::of("door");
        door.error("it is locked", "find the key");
        report.add(door);
        assert!(!report.is_ok());
    }
}
