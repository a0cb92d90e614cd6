//! What a command found: where it was measured, tables of rows, and notes; as Markdown, JSON lines, CSV, and plots.

mod choice;
mod csv;
mod field;
mod folder;
mod known;
mod machine;
mod markdown;
mod plot;

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::time::Instant;

use anstream::stdout;
use anyhow::bail;
use clap::Args;
use outrider::progress;
use serde_json::{Map, Value, json};

pub(crate) use field::{ReportField, number, only_json, percent, text};
pub(crate) use folder::Folder;
pub(crate) use plot::{Facet, Plot, PlotAxis};

use machine::Machine;

/// One line of a table: its fields name its columns.
pub(crate) type Row = Vec<ReportField>;

/// How a report is printed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Report")]
pub(crate) struct ReportArgs {
    /// Prints one JSON object a line instead of tables, each row as soon as it is measured: what was run and
    /// where, then the rows, each with the name of its table. A failure is {"error": {"message": ...}}.
    #[arg(long, global = true)]
    json: bool,
    /// Prints these tables and no others. Names are looked at before anything is measured.
    #[arg(
        long,
        global = true,
        value_name = "NAMES",
        value_delimiter = ',',
        conflicts_with = "json"
    )]
    tables: Vec<String>,
    /// Prints these columns and no others, in this order, called as in `--json` or as the tables' headings.
    #[arg(
        long,
        global = true,
        value_name = "NAMES",
        value_delimiter = ',',
        conflicts_with = "json"
    )]
    columns: Vec<String>,
}

/// What a command found so far.
#[derive(Debug)]
pub(crate) struct BenchReport {
    /// What the tables are about, in a few words.
    title: String,
    args: ReportArgs,
    machine: Machine,
    command: String,
    began: Instant,
    notes: Vec<String>,
    tables: Vec<Table>,
}

/// Rows that have columns in common.
#[derive(Debug)]
struct Table {
    name: &'static str,
    rows: Vec<Row>,
}

impl BenchReport {
    /// Whether the column `name` is printed, called as in `--json`.
    pub(crate) fn shows(&self, name: &str) -> bool {
        let columns = &self.args.columns;
        columns.is_empty() || columns.iter().any(|it| it == name)
    }

    /// Of a command that begins now.
    pub(crate) fn new(args: ReportArgs) -> Self {
        let words = std::env::args().skip(1).map(|word| {
            let is_plain = !word.is_empty() && !word.contains([' ', '\'', '`']);
            if is_plain { word } else { format!("'{word}'") }
        });
        let program = "outrider-bench".to_owned();
        let words: Vec<String> = std::iter::once(program).chain(words).collect();
        Self {
            title: String::new(),
            args,
            machine: Machine::here(),
            command: words.join(" "),
            began: Instant::now(),
            notes: Vec::new(),
            tables: Vec::new(),
        }
    }

    /// Says what the tables are about, in a few words.
    pub(crate) fn title(&mut self, title: impl Into<String>) {
        self.title = title.into();
    }

    /// Adds a paragraph, which stands below the tables, once.
    pub(crate) fn note(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }

    /// Adds a row to the table `name`.
    ///
    /// # Errors
    /// If nobody can read it.
    pub(crate) fn row(&mut self, name: &'static str, row: Row) -> io::Result<()> {
        if self.args.json {
            progress::clear()?;
            let mut out = stdout().lock();
            if self.tables.is_empty() {
                writeln!(out, "{}", self.head())?;
            }
            writeln!(out, "{}", object(name, &row))?;
            out.flush()?;
        }
        let known = self.tables.iter().position(|table| table.name == name);
        let index = known.unwrap_or_else(|| {
            self.tables.push(Table {
                name,
                rows: Vec::new(),
            });
            self.tables.len() - 1
        });
        self.tables[index].rows.push(row);
        Ok(())
    }

    /// Prints what there is to print: everything, unless each row was told when it came.
    ///
    /// # Errors
    /// If nobody can read it, or a table or column is asked for that there is not; all are printed then, so
    /// that nothing was measured for nothing.
    pub(crate) fn finish(&self) -> anyhow::Result<()> {
        progress::clear()?;
        if self.args.json || self.tables.is_empty() {
            return Ok(());
        }
        let unknown = self.unknown();
        let everything = ReportArgs::default();
        let requested = if unknown.is_some() {
            &everything
        } else {
            &self.args
        };
        let mut out = stdout().lock();
        write!(out, "{}", self.markdown(requested))?;
        out.flush()?;
        match unknown {
            Some(problem) => bail!(problem),
            None => Ok(()),
        }
    }

    /// The rows of the table `name`.
    pub(crate) fn rows(&self, name: &str) -> &[Row] {
        let table = self.tables.iter().find(|table| table.name == name);
        table.map_or(&[], |table| &table.rows)
    }

    /// The name that was asked for and is nowhere, in words.
    fn unknown(&self) -> Option<String> {
        let tables: BTreeSet<&str> = self.tables.iter().map(|table| table.name).collect();
        let rows = self.tables.iter().flat_map(|table| &table.rows);
        let names = rows
            .flatten()
            .flat_map(|field| [&*field.key, &*field.heading]);
        let columns: BTreeSet<&str> = names.collect();
        let lists = [
            ("--tables", &self.args.tables, tables),
            ("--columns", &self.args.columns, columns),
        ];
        lists.into_iter().find_map(|(flag, requested, known)| {
            let name = requested
                .iter()
                .find(|name| !known.contains(name.as_str()))?;
            let known = Vec::from_iter(known).join(", ");
            let problem = format!("{flag}: there is no '{name}', expected one of {known}");
            Some(problem)
        })
    }

    /// What was run and where, for those who read JSON.
    fn head(&self) -> Value {
        json!({ "report": {
            "title": self.title,
            "command": self.command,
            "version": machine::VERSION,
            "date": self.machine.date,
            "machine": self.machine.json(),
        }})
    }
}

/// A row for those who read JSON.
fn object(table: &str, row: &Row) -> Value {
    let name = ("table".to_owned(), Value::from(table));
    let fields = row
        .iter()
        .map(|field| (field.key.clone(), field.value.clone()));
    let all: Map<String, Value> = std::iter::once(name).chain(fields).collect();
    all.into()
}

#[cfg(test)]
impl BenchReport {
    /// One that prints nothing until it is finished.
    pub(crate) fn quiet() -> Self {
        Self::new(ReportArgs::default())
    }

    /// The rows of the table `name` as JSON.
    pub(crate) fn objects(&self, name: &str) -> Vec<Value> {
        let rows = self.rows(name).iter();
        rows.map(|row| object(name, row)).collect()
    }

    /// All of it as text.
    pub(crate) fn text(&self) -> String {
        self.markdown(&self.args)
    }
}

#[cfg(test)]
mod tests;
