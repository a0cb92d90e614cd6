//! A table as CSV, for spreadsheets and data frames.

use serde_json::Value;

use super::field::ReportField;
use super::{BenchReport, Row};

impl BenchReport {
    /// Returns the table `name` as CSV: a line of column names as in `--json`, then the rows, in full precision and with what
    /// people are not shown. A cell is empty where a row has no value.
    ///
    /// # Errors
    /// If it cannot be written, which nothing but a fault of ours brings about.
    pub(super) fn csv(&self, name: &str) -> anyhow::Result<Vec<u8>> {
        let rows = self.rows(name);
        let columns = columns(rows);
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(&columns)?;
        for row in rows {
            let cells = columns.iter().map(|column| {
                let field = row.iter().find(|field| field.key == *column);
                field.map(cell).unwrap_or_default()
            });
            writer.write_record(cells)?;
        }
        Ok(writer.into_inner()?)
    }
}

/// The names of all fields, in the order they first came.
fn columns(rows: &[Row]) -> Vec<&str> {
    let mut columns: Vec<&str> = Vec::new();
    for field in rows.iter().flatten() {
        if !columns.contains(&&*field.key) {
            columns.push(&field.key);
        }
    }
    columns
}

fn cell(field: &ReportField) -> String {
    match &field.value {
        Value::Null => String::new(),
        Value::String(words) => words.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::field::{number, only_json, percent, text};
    use super::*;

    #[test]
    fn rows_have_all_columns_and_quotes_where_they_need_them() {
        let mut report = BenchReport::quiet();
        let rows = [
            vec![text("method", "a, b"), percent("quality", 0.5, 1)],
            vec![
                text("method", "c \"d\""),
                percent("quality", None, 1),
                number("calls", 0.25, 1),
                only_json("seed", 7),
            ],
        ];
        for row in rows {
            report.row("points", row).expect("nothing is printed");
        }
        let text = String::from_utf8(report.csv("points").expect("CSV")).expect("UTF-8");
        assert_eq!(
            text,
            "method,quality,calls,seed\n\"a, b\",0.5,,\n\"c \"\"d\"\"\",,0.25,7\n"
        );
    }
}
