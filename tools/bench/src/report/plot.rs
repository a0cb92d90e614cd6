//! Two columns of a table against each other, as SVG.

use anyhow::anyhow;
use plotters::prelude::*;

use super::field::ReportField;
use super::{BenchReport, Row};

const SIZE: (u32, u32) = (900, 480);
/// Where the names of the lines begin.
const NAMES_AT: u32 = 620;
const FONT: &str = "sans-serif";

/// What is drawn: one line a series, in the order of its rows; a series of one is a dot.
#[derive(Clone, Debug)]
pub(crate) struct Plot<'a> {
    pub(crate) table: &'a str,
    pub(crate) caption: String,
    /// The column whose cells name the series.
    pub(crate) series: &'a str,
    pub(crate) x: PlotAxis<'a>,
    pub(crate) y: PlotAxis<'a>,
}

/// A column, and what stands beside its axis; a share is drawn in percent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlotAxis<'a> {
    pub(crate) key: &'a str,
    pub(crate) name: &'a str,
}

impl PlotAxis<'_> {
    fn of(&self, row: &Row) -> f64 {
        let field = row.iter().find(|field| field.key == self.key);
        field.map_or(0.0, ReportField::drawn)
    }
}

impl BenchReport {
    /// The plot of what was measured so far.
    ///
    /// # Errors
    /// If it cannot be drawn, which nothing but a fault of ours brings about.
    pub(crate) fn svg(&self, plot: &Plot<'_>) -> anyhow::Result<String> {
        let mut text = String::new();
        let drawn = draw(&mut text, plot, self.rows(plot.table));
        drawn.map_err(|error| anyhow!("--svg: {error}"))?;
        Ok(text)
    }
}

fn draw(
    text: &mut String,
    plot: &Plot<'_>,
    rows: &[Row],
) -> Result<(), Box<dyn std::error::Error>> {
    let at = |row: &&Row| (plot.x.of(row), plot.y.of(row));
    let root = SVGBackend::with_string(text, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let (left, right) = root.split_horizontally(NAMES_AT);
    let (low, high) = range(rows.iter().map(|row| plot.y.of(row)));
    let most = rows.iter().map(|row| plot.x.of(row)).fold(1.0, f64::max);
    let mut chart = ChartBuilder::on(&left)
        .caption(&plot.caption, (FONT, 18))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(52)
        .build_cartesian_2d(-0.02..most + 0.03, low..high)?;
    chart
        .configure_mesh()
        .x_desc(plot.x.name)
        .y_desc(plot.y.name)
        .label_style((FONT, 13))
        .light_line_style(WHITE)
        .draw()?;
    for (index, (name, rows)) in by_series(plot.series, rows).iter().enumerate() {
        let colour = Palette99::pick(index).to_rgba();
        let line = LineSeries::new(rows.iter().map(at), colour.stroke_width(2));
        chart.draw_series(line)?;
        let dots = rows
            .iter()
            .map(|row| Circle::new(at(row), 3, colour.filled()));
        chart.draw_series(dots)?;
        let y = 50 + 22 * i32::try_from(index)?;
        right.draw(&PathElement::new([(4, y), (24, y)], colour.stroke_width(2)))?;
        right.draw(&Circle::new((14, y), 3, colour.filled()))?;
        right.draw(&Text::new(name.clone(), (30, y - 7), (FONT, 13)))?;
    }
    root.present()?;
    Ok(())
}

/// The rows of each series, in the order the series first came.
fn by_series<'a>(key: &str, rows: &'a [Row]) -> Vec<(String, Vec<&'a Row>)> {
    let mut series: Vec<(String, Vec<&Row>)> = Vec::new();
    for row in rows {
        let name = row.iter().find(|field| field.key == key);
        let name = name.map(ReportField::shown).unwrap_or_default();
        match series.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => known.push(row),
            None => series.push((name, vec![row])),
        }
    }
    series
}

/// From a little below the least of `values` to a little above the largest.
fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (least, most) = values.fold(
        (f64::INFINITY, f64::NEG_INFINITY),
        |(least, most), value| (value.min(least), value.max(most)),
    );
    if least > most {
        return (0.0, 100.0);
    }
    let margin = if least == most {
        0.5
    } else {
        0.05 * (most - least)
    };
    (least - margin, most + margin)
}

#[cfg(test)]
mod tests {
    use super::super::field::{number, percent, text};
    use super::*;

    fn drawn(points: &[(&str, f64, f64)]) -> String {
        let mut report = BenchReport::quiet();
        for &(name, quality, calls) in points {
            let y = percent("quality", quality, 1);
            let row = vec![text("series", name), y, number("calls", calls, 3)];
            report.row("points", row).expect("nothing is printed");
        }
        let axis = |key, name| PlotAxis { key, name };
        let plot = Plot {
            table: "points",
            caption: "german, temperature 0".to_owned(),
            series: "series",
            x: axis("calls", "target calls per token"),
            y: axis("quality", "right answers, percent"),
        };
        report.svg(&plot).expect("drawn")
    }

    #[test]
    fn every_series_is_drawn_and_named() {
        let drawn = drawn(&[
            ("target-only", 1.0, 1.0),
            ("lossy", 0.95, 0.5),
            ("lossy", 0.75, 0.4),
            ("bild", 0.6, 0.3),
            ("bild", 0.4, 0.2),
        ]);
        assert!(drawn.starts_with("<svg") && drawn.trim_end().ends_with("</svg>"));
        for words in ["target-only", "lossy", "bild", "german, temperature 0"] {
            assert!(drawn.contains(words), "{words}");
        }
        let colours = (0..3).map(|index| {
            let RGBAColor(r, g, b, _) = Palette99::pick(index).to_rgba();
            format!("#{r:02X}{g:02X}{b:02X}")
        });
        // Of each colour a dot for every point and one beside the name.
        for (colour, points) in colours.zip([1, 2, 2]) {
            let dots = drawn.matches("<circle").count();
            assert_eq!(dots, 5 + 3);
            let of_colour = drawn
                .lines()
                .filter(|line| line.contains("<circle") && line.contains(&colour));
            assert_eq!(of_colour.count(), points + 1, "{colour}");
        }
    }

    #[test]
    fn no_points_make_an_empty_plot() {
        assert!(drawn(&[]).contains("<svg"));
        assert_eq!(range([50.0, 90.0].into_iter()), (48.0, 92.0));
        assert_eq!(range([90.0].into_iter()), (89.5, 90.5));
    }
}
