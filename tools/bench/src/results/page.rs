//! A page in Markdown with sections that commands print, between lines of comments:
//!
//! ```text
//! <!-- outrider-bench verification --repeats 41; takes 2 min; needs file distributions.rec -->
//! what the command printed
//! <!-- end -->
//! ```

use std::fmt;

use anyhow::{Context, bail, ensure};

use super::needs::Need;

/// A page, cut into lines.
#[derive(Debug)]
pub(super) struct ResultsPage {
    lines: Vec<String>,
    pub(super) sections: Vec<Section>,
}

/// What stands between two markers.
#[derive(Clone, Debug)]
pub(super) struct Section {
    /// The command's name and flags.
    pub(super) command: String,
    /// About how long it takes.
    pub(super) takes: Option<String>,
    needs: Vec<Need>,
    /// The line of the first marker, counted from one.
    pub(super) line: usize,
    /// The line of the last one.
    end: usize,
}

impl ResultsPage {
    /// Finds the sections of `text`.
    ///
    /// # Errors
    /// Names the line of a comment that is no marker, or of one that is not closed or closes nothing.
    pub(super) fn parse(text: &str) -> anyhow::Result<Self> {
        let mut sections = Vec::new();
        let mut open: Option<Section> = None;
        for (line, words) in (1..).zip(text.lines()) {
            let Some(comment) = words.trim().strip_prefix("<!--") else {
                continue;
            };
            let comment = comment.trim_end_matches("-->").trim();
            if comment == "end" {
                let section = open.take();
                let section = section.with_context(|| format!("line {line}: nothing ends here"))?;
                sections.push(Section {
                    end: line,
                    ..section
                });
                continue;
            }
            if let Some(Section { line: before, .. }) = open {
                bail!(
                    "line {line}: the section of line {before} is not closed before this comment"
                );
            }
            let started = Section::parse(comment, line);
            open = Some(started.with_context(|| format!("line {line}: {words}"))?);
        }
        if let Some(Section { line, .. }) = open {
            bail!("line {line}: the section is not closed by <!-- end -->");
        }
        Ok(Self {
            lines: text.lines().map(str::to_owned).collect(),
            sections,
        })
    }

    /// The page with `printed` in one of its sections, and everything else as it is.
    pub(super) fn with(&self, section: &Section, printed: &str) -> String {
        let before = self.lines[..section.line].iter().map(String::as_str);
        let after = self.lines[section.end - 1..].iter().map(String::as_str);
        let printed = printed.trim_end().lines();
        let printed = [""].into_iter().chain(printed).chain([""]);
        let lines = before.chain(printed).chain(after);
        lines.flat_map(|line| [line, "\n"]).collect()
    }
}

impl Section {
    fn parse(comment: &str, line: usize) -> anyhow::Result<Self> {
        let mut parts = comment.split(';').map(str::trim);
        let command = parts.next().unwrap_or_default();
        let command = command.strip_prefix("outrider-bench ");
        let command = command.context("no marker, expected outrider-bench COMMAND or end")?;
        let mut section = Self {
            command: command.trim().to_owned(),
            takes: None,
            needs: Vec::new(),
            line,
            end: line,
        };
        for part in parts {
            match part.split_once(' ') {
                Some(("takes", time)) => section.takes = Some(time.to_owned()),
                Some(("needs", what)) => section.needs.push(Need::parse(what)?),
                _ => bail!("'{part}' is unknown, expected takes or needs"),
            }
        }
        ensure!(!section.command.is_empty(), "no command is named");
        Ok(section)
    }

    /// The words of the command.
    pub(super) fn words(&self) -> impl Iterator<Item = &str> {
        self.command.split_whitespace()
    }

    /// What it needs and is not here, in words.
    pub(super) fn missing(&self) -> Option<String> {
        self.needs.iter().find_map(Need::missing)
    }
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.command)?;
        if let Some(time) = &self.takes {
            write!(f, "; takes about {time}")?;
        }
        for need in &self.needs {
            write!(f, "; needs {need}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\
# Results

Prose.

<!-- outrider-bench verification --repeats 41; takes 2 min -->

| old | table |

<!-- end -->

More prose.
<!-- outrider-bench replay distributions.rec; needs file no-such.rec -->
<!-- end -->
The end.
";

    #[test]
    fn a_section_is_replaced_and_nothing_else() {
        let page = ResultsPage::parse(PAGE).expect("a page");
        let [distributions, replay] = &page.sections[..] else {
            panic!("two sections: {page:?}")
        };
        assert_eq!(distributions.command, "verification --repeats 41");
        assert_eq!(
            distributions.words().collect::<Vec<_>>(),
            ["verification", "--repeats", "41"]
        );
        let printed = "Distributions: `outrider-bench verification`\n\n| new |\n\n";
        let expected = PAGE.replace("| old | table |", printed.trim_end());
        let replaced = page.with(distributions, printed);
        assert_eq!(replaced, expected);
        // What came of it is a page again, and the next section is where it was.
        let page = ResultsPage::parse(&replaced).expect("a page");
        assert_eq!(page.with(&page.sections[0], printed), expected);
        let expected = PAGE.replace("rec -->\n<!-- end", "rec -->\n\nfound\n\n<!-- end");
        let page = ResultsPage::parse(PAGE).expect("a page");
        assert_eq!(page.with(replay, "found"), expected);
    }

    #[test]
    fn a_section_says_what_it_takes_and_needs() {
        let page = ResultsPage::parse(PAGE).expect("a page");
        let reported: Vec<String> = page.sections.iter().map(Section::to_string).collect();
        assert_eq!(
            reported[0],
            "line 5: verification --repeats 41; takes about 2 min"
        );
        assert_eq!(
            reported[1],
            "line 12: replay distributions.rec; needs file no-such.rec"
        );
        assert_eq!(page.sections[0].missing(), None);
        let missing = page.sections[1].missing().expect("missing");
        assert!(missing.contains("no-such.rec"), "{missing}");
    }

    #[test]
    fn a_marker_that_is_wrong_is_named_by_its_line() {
        for (text, words) in [
            (
                "a\n<!-- outrider-bench verification -->\n",
                "line 2: the section is not closed",
            ),
            ("a\n\n<!-- end -->\n", "line 3: nothing ends here"),
            (
                "<!-- outrider-bench verification -->\n<!-- outrider-bench parts -->\n<!-- end -->\n",
                "line 2: the section of line 1 is not closed",
            ),
            (
                "<!-- outrider distributions -->\n<!-- end -->\n",
                "line 1: <!-- outrider distributions -->: no marker",
            ),
            ("<!-- done -->\n", "line 1: <!-- done -->: no marker"),
            (
                "<!-- outrider-bench verification; tkaes 2 min -->\n<!-- end -->\n",
                "'tkaes 2 min' is unknown",
            ),
            (
                "<!-- outrider-bench verification; needs luck -->\n<!-- end -->\n",
                "'luck' is unknown, expected file PATH",
            ),
        ] {
            let error = ResultsPage::parse(text).expect_err("refused");
            let error = format!("{error:#}");
            assert!(error.contains(words), "{error}");
        }
    }
}
