//! A report as files of one folder.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::{BenchReport, Plot, ReportArgs, object};

/// The folder of a report.
#[derive(Clone, Debug)]
pub(crate) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Makes the folder unless it is there, before anything is measured.
    ///
    /// # Errors
    /// If it cannot be made, or nothing can be written there.
    pub(crate) fn create(path: &Path) -> anyhow::Result<Self> {
        fs::create_dir_all(path)
            .with_context(|| format!("--output: {} cannot be made", path.display()))?;
        let folder = Self {
            path: path.to_owned(),
        };
        folder.write("report.md", "")?;
        Ok(folder)
    }

    /// Writes `report.md`, `rows.jsonl`, a CSV file of each table, and an SVG file of each figure whose table has rows. Files
    /// of the same names are replaced, others stay.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub(crate) fn save(
        &self,
        report: &BenchReport,
        figures: &[(&str, Plot<'_>)],
    ) -> anyhow::Result<()> {
        let mut text = report.markdown(&ReportArgs::default());
        let mut lines = report.head().to_string() + "\n";
        for table in &report.tables {
            for row in &table.rows {
                writeln!(lines, "{}", object(table.name, row))?;
            }
            self.write(&format!("{}.csv", table.name), report.csv(table.name)?)?;
        }
        for (name, plot) in figures {
            if !report.rows(plot.table).is_empty() {
                let file = format!("{name}.svg");
                write!(text, "\n![{}]({file})\n", plot.caption)?;
                self.write(&file, report.svg(plot)?)?;
            }
        }
        self.write("rows.jsonl", lines)?;
        self.write("report.md", text)
    }

    fn write(&self, name: &str, contents: impl AsRef<[u8]>) -> anyhow::Result<()> {
        let file = self.path.join(name);
        fs::write(&file, contents)
            .with_context(|| format!("--output: {} cannot be written", file.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{PlotAxis, number, text};
    use super::*;

    #[test]
    fn a_report_is_a_folder_of_files() {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("found/here");
        let folder = Folder::create(&path).expect("made");
        let mut report = BenchReport::quiet();
        for (x, y) in [(1.0, 0.5), (2.0, 0.25)] {
            let row = vec![text("method", "a"), number("x", x, 1), number("y", y, 2)];
            report.row("points", row).expect("nothing is printed");
        }
        let figure = |table| Plot {
            table,
            caption: "y over x".to_owned(),
            series: "method",
            x: PlotAxis::of("x", "x"),
            y: PlotAxis::of("y", "y"),
            ..Plot::default()
        };
        let figures = [
            ("points-figure", figure("points")),
            ("none", figure("others")),
        ];
        folder.save(&report, &figures).expect("written");
        let mut names: Vec<String> = fs::read_dir(&path)
            .expect("a folder")
            .map(|entry| {
                entry
                    .expect("an entry")
                    .file_name()
                    .into_string()
                    .expect("a name")
            })
            .collect();
        names.sort();
        let expected = ["points-figure.svg", "points.csv", "report.md", "rows.jsonl"];
        assert_eq!(names, expected);
        let read = |name: &str| fs::read_to_string(path.join(name)).expect("read");
        assert_eq!(read("points.csv"), "method,x,y\na,1.0,0.5\na,2.0,0.25\n");
        assert_eq!(read("rows.jsonl").lines().count(), 3);
        assert!(read("report.md").ends_with("![y over x](points-figure.svg)\n"));
        let file = path.join("report.md");
        let error = Folder::create(&file).expect_err("a file").to_string();
        assert!(error.contains("--output"), "{error}");
    }
}
