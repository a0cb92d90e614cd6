//! A report for people: tables in Markdown, padded so that a terminal shows them too.

use std::fmt::Write;

use super::field::{FieldRole, ReportField, text};
use super::{BenchReport, ReportArgs, Row, machine};

/// Columns of a paragraph.
const WIDTH: usize = 120;

impl BenchReport {
    /// What was run where and when, then each table that is asked for, then notes.
    pub(super) fn markdown(&self, requested: &ReportArgs) -> String {
        let seconds = self.began.elapsed().as_secs_f64();
        let head = format!(
            "{}: `{}`, version {}, {}, in {seconds:.0} s on {}.",
            self.title,
            self.command,
            machine::VERSION,
            self.machine.date,
            self.machine.words(),
        );
        let mut all = paragraph(&head);
        let is_asked = |name: &str| {
            requested.tables.is_empty() || requested.tables.iter().any(|of| of == name)
        };
        let tables = self.tables.iter().filter(|table| is_asked(table.name));
        let tables = tables.map(|of| {
            let rows = of.rows.iter().map(|row| chosen(row, &requested.columns));
            (of.name, gathered(&rows.collect::<Vec<Row>>()))
        });
        // One without any of the columns that are asked for is not there.
        let tables: Vec<_> = tables
            .filter(|(_, rows)| rows.iter().any(|row| !row.is_empty()))
            .collect();
        for (name, rows) in &tables {
            if tables.len() > 1 {
                let _ = write!(all, "\nTable `{name}`:\n");
            }
            all.push('\n');
            all.push_str(&table(rows));
        }
        for note in &self.notes {
            all.push('\n');
            all.push_str(&paragraph(note));
        }
        all
    }
}

/// The fields of `row` that people are shown: those named, or all that are not for programs alone.
fn chosen(row: &Row, names: &[String]) -> Row {
    if names.is_empty() {
        let shown = row.iter().filter(|field| field.role != FieldRole::JsonOnly);
        return shown.cloned().collect();
    }
    let named = names.iter().filter_map(|name| {
        let is_named = |field: &&ReportField| field.key == *name || field.heading == *name;
        let field = row.iter().find(is_named)?;
        Some(match field.role {
            FieldRole::JsonOnly => ReportField {
                role: FieldRole::Shown,
                ..field.clone()
            },
            _ => field.clone(),
        })
    });
    named.collect()
}

/// Rows that differ in nothing but their cell, and in what stands above it, as one.
fn gathered(rows: &[Row]) -> Vec<Row> {
    let mut gathered: Vec<Row> = Vec::new();
    for row in rows {
        let Some(cell) = row.iter().find(|field| field.role == FieldRole::Cell) else {
            gathered.push(row.clone());
            continue;
        };
        let of = |role| row.iter().filter(move |field| field.role == role);
        let names: Vec<ReportField> = of(FieldRole::Shown).cloned().collect();
        let above: Vec<String> = of(FieldRole::Across).map(ReportField::shown).collect();
        let above = above.join(", ");
        let cell = ReportField {
            key: above.clone(),
            heading: above,
            ..cell.clone()
        };
        let is_same = |known: &&mut Row| {
            let known = known.iter().map(ReportField::shown);
            known
                .take(names.len())
                .eq(names.iter().map(ReportField::shown))
        };
        match gathered.iter_mut().find(is_same) {
            Some(known) => known.push(cell),
            None => gathered.push(names.into_iter().chain([cell]).collect()),
        }
    }
    gathered
}

/// A table of `rows`, with a column for every field that one of them has.
fn table(rows: &[Row]) -> String {
    let mut columns: Vec<&ReportField> = Vec::new();
    for field in rows.iter().flatten() {
        if !columns.iter().any(|known| known.key == field.key) {
            columns.push(field);
        }
    }
    let cells_of = |column: &ReportField| -> Vec<ReportField> {
        let none = || text(column.key.clone(), ());
        let cell = |row: &Row| row.iter().find(|field| field.key == column.key).cloned();
        rows.iter()
            .map(|row| cell(row).unwrap_or_else(none))
            .collect()
    };
    let mut lines = vec![String::new(); rows.len() + 2];
    for column in columns {
        let cells = cells_of(column);
        let is_right = cells.iter().all(ReportField::is_number);
        let shown: Vec<String> = cells.iter().map(ReportField::shown).collect();
        let longest = shown.iter().map(|cell| cell.chars().count()).max();
        let width = longest.unwrap_or_default().max(3);
        let width = width.max(column.heading.chars().count());
        let rule = "-".repeat(width - 1);
        let rule = if is_right { rule + ":" } else { rule + "-" };
        let heads = [column.heading.clone(), rule].into_iter();
        for (line, cell) in lines.iter_mut().zip(heads.chain(shown)) {
            let _ = if is_right {
                write!(line, "| {cell:>width$} ")
            } else {
                write!(line, "| {cell:<width$} ")
            };
        }
    }
    lines.join("|\n") + "|\n"
}

/// `words` in lines of at most [`WIDTH`] columns; a line break in them stays.
fn paragraph(words: &str) -> String {
    let mut all = String::new();
    for part in words.lines() {
        let mut width = 0;
        for word in part.split(' ') {
            let more = word.chars().count();
            if width > 0 && width + 1 + more > WIDTH {
                all.push('\n');
                width = 0;
            } else if width > 0 {
                all.push(' ');
                width += 1;
            }
            all.push_str(word);
            width += more;
        }
        all.push('\n');
    }
    all
}
