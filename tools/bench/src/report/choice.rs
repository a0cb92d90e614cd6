//! Which tables and columns are printed, looked at before anything is measured.

use anyhow::bail;

use super::ReportArgs;
use super::known::KnownColumns;

impl ReportArgs {
    /// Returns the same, with headings put together again that have a comma.
    ///
    /// # Errors
    /// Names what the report of `command` does not have, and what it has.
    pub(crate) fn checked(mut self, command: &str) -> anyhow::Result<Self> {
        let Some(known) = KnownColumns::of(command) else {
            return Ok(self);
        };
        self.columns = joined(&self.columns, |name| known.has_column(name));
        let unknown = |name: &&String| !known.tables.contains(&name.as_str());
        if let Some(name) = self.tables.iter().find(unknown) {
            let all = known.tables.join(", ");
            bail!("--tables: {command} has no table '{name}', expected one of {all}");
        }
        if let Some(name) = self.columns.iter().find(|name| !known.has_column(name)) {
            let (all, headings) = (known.columns.join(", "), known.headings.join("; "));
            bail!(
                "--columns: {command} has no column '{name}', expected one of {all}; or a heading as it is printed: \
                 {headings}"
            );
        }
        Ok(self)
    }
}

/// Returns the names that `pieces` between commas make, of which some have commas themselves.
fn joined(pieces: &[String], is_known: impl Fn(&str) -> bool) -> Vec<String> {
    let mut names = Vec::new();
    let mut rest = pieces;
    while !rest.is_empty() {
        let longest = (1..=rest.len()).rev().find_map(|count| {
            let name = rest[..count].join(",").trim().to_owned();
            is_known(&name).then_some((count, name))
        });
        let (count, name) = longest.unwrap_or_else(|| (1, rest[0].clone()));
        names.push(name);
        rest = &rest[count..];
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(command: &str, tables: &[&str], columns: &str) -> Result<Vec<String>, String> {
        let args = ReportArgs {
            tables: tables.iter().map(|&name| name.to_owned()).collect(),
            columns: columns.split_terminator(',').map(str::to_owned).collect(),
            json: false,
        };
        let checked = args.checked(command).map_err(|error| error.to_string())?;
        Ok(checked.columns)
    }

    #[test]
    fn names_and_headings_are_columns_and_others_are_refused_before_the_run() {
        for (command, columns, expected) in [
            (
                "compare",
                "method,tokens_per_second",
                "method|tokens_per_second",
            ),
            (
                "compare",
                "tokens/s,calls/token,ratio",
                "tokens/s|calls/token|ratio",
            ),
            ("compare", "draft acceptance rate", "draft acceptance rate"),
            (
                "decode",
                "on,products, ms,ms/token",
                "on|products, ms|ms/token",
            ),
            ("drafting", "draft_2_ms,c=0.1+0.03", "draft_2_ms|c=0.1+0.03"),
        ] {
            assert_eq!(
                checked(command, &[], columns).map(|it| it.join("|")),
                Ok(expected.to_owned())
            );
        }
        let refused = checked("compare", &[], "method,token/s").expect_err("no column");
        for part in [
            "--columns: compare has no column 'token/s'",
            "tokens_per_second",
            "calls/token",
        ] {
            assert!(refused.contains(part), "{refused}");
        }
        let refused = checked("compare", &["every"], "").expect_err("no table");
        assert!(
            refused.contains("no table 'every', expected one of by-kind, all, rounds"),
            "{refused}"
        );
    }

    /// What stands in a file before its tests.
    fn code(file: &std::path::Path) -> String {
        let text = std::fs::read_to_string(file).expect("a source");
        text.split("#[cfg(test)]")
            .next()
            .unwrap_or_default()
            .to_owned()
    }

    /// A column that is missing in the list could not be asked for.
    #[test]
    fn the_list_has_every_column_that_the_sources_name() {
        let sources = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut found = 0;
        for known in super::super::known::KNOWN {
            let module = known.command.replace('-', "_");
            let within = std::fs::read_dir(sources.join(&module))
                .into_iter()
                .flatten();
            let within = within.map(|entry| entry.expect("an entry").path());
            let files = within
                .filter(|path| path.is_file())
                .chain([sources.join(format!("{module}.rs"))]);
            let text: String = files.map(|path| code(&path)).collect();
            for field in ["text(", "number(", "percent(", "only_json("] {
                for (at, _) in text.match_indices(field) {
                    // Not the end of another name, as in `context(`.
                    if text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
                        continue;
                    }
                    let quoted = text[at + field.len()..].trim_start().strip_prefix('"');
                    let Some(name) = quoted.and_then(|it| it.split('"').next()) else {
                        continue;
                    };
                    found += 1;
                    assert!(known.has_column(name), "{}: {name}", known.command);
                }
            }
        }
        assert!(found > 100, "{found} columns were found");
    }
}
