//! Two columns of a table against each other, as SVG: one panel, or small multiples.

mod facet;
mod palette;
mod panel;
mod range;

use anyhow::anyhow;
use plotters::prelude::*;

use super::field::ReportField;
use super::{BenchReport, Row};

use palette::colour;
use panel::Panel;

pub(crate) use facet::Facet;

/// Width and height of a panel that stands alone.
const ALONE: (u32, u32) = (620, 440);
/// Those of one of several.
const ONE_OF_MANY: (u32, u32) = (320, 240);
/// Width of the column with the names of the series.
const NAMES: u32 = 280;
/// Height of the caption.
const CAPTION: u32 = 36;
const FONT: &str = "sans-serif";

/// What is drawn: one line a series, in the order of its rows; a series of one is a dot.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plot<'a> {
    pub(crate) table: &'a str,
    pub(crate) caption: String,
    /// The column whose cells name the series.
    pub(crate) series: &'a str,
    pub(crate) x: PlotAxis<'a>,
    pub(crate) y: PlotAxis<'a>,
    /// Small multiples: a row of panels for each value of this column. Panels of a row have the same y axis.
    pub(crate) rows: Option<Facet<'a>>,
    /// The same for columns of panels, which have the same x axis.
    pub(crate) columns: Option<Facet<'a>>,
    /// The series that is drawn as a dashed line at the height of its first row, wherever it is along x.
    pub(crate) level: Option<&'a str>,
}

/// A column, and what stands beside its axis; a share is drawn in percent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PlotAxis<'a> {
    pub(crate) key: &'a str,
    pub(crate) name: &'a str,
    /// The column of standard errors, drawn upwards and downwards.
    pub(crate) error: Option<&'a str>,
}

impl<'a> PlotAxis<'a> {
    /// Returns the axis of a column, without errors.
    pub(crate) fn of(key: &'a str, name: &'a str) -> Self {
        Self {
            key,
            name,
            error: None,
        }
    }

    fn value(&self, row: &Row) -> Option<f64> {
        field(row, self.key)?.drawn()
    }

    /// Returns the standard error; 0 without one.
    fn error(&self, row: &Row) -> f64 {
        let error = self.error.and_then(|key| field(row, key)?.drawn());
        error.unwrap_or_default()
    }

    /// Returns the ends of the error around the value.
    fn ends(&self, row: &Row) -> [Option<f64>; 2] {
        let (value, error) = (self.value(row), self.error(row));
        [value.map(|it| it - error), value.map(|it| it + error)]
    }
}

fn field<'a>(row: &'a Row, key: &str) -> Option<&'a ReportField> {
    row.iter().find(|field| field.key == key)
}

impl BenchReport {
    /// Returns the plot of what was measured so far, as SVG.
    ///
    /// # Errors
    /// If it cannot be drawn, which nothing but a fault of ours brings about.
    pub(crate) fn svg(&self, plot: &Plot<'_>) -> anyhow::Result<String> {
        let mut text = String::new();
        let drawn = draw(&mut text, plot, self.rows(plot.table));
        drawn.map_err(|error| anyhow!("the plot of {}: {error}", plot.table))?;
        Ok(text)
    }
}

fn draw(
    text: &mut String,
    plot: &Plot<'_>,
    rows: &[Row],
) -> Result<(), Box<dyn std::error::Error>> {
    let down = facet::values(plot.rows.as_ref(), rows);
    let across = facet::values(plot.columns.as_ref(), rows);
    let (width, height) = match (down.len(), across.len()) {
        (1, 1) => ALONE,
        _ => ONE_OF_MANY,
    };
    let count = |values: &[String]| u32::try_from(values.len());
    let (wide, high) = (width * count(&across)?, height * count(&down)?);
    let root = SVGBackend::with_string(text, (wide + NAMES, high + CAPTION)).into_drawing_area();
    root.fill(&WHITE)?;
    let (caption, below) = root.split_vertically(CAPTION);
    caption.draw(&Text::new(plot.caption.clone(), (12, 10), (FONT, 18)))?;
    let (charts, names) = below.split_horizontally(wide);
    let series = names_of_series(plot.series, rows);
    let areas = charts.split_evenly((down.len(), across.len()));
    for (index, area) in areas.iter().enumerate() {
        let (row, column) = (index / across.len(), index % across.len());
        let in_row = facet::of(plot.rows.as_ref(), &down[row], rows);
        let in_column = facet::of(plot.columns.as_ref(), &across[column], rows);
        let titles = [&down[row], &across[column]].map(String::as_str);
        Panel {
            plot,
            title: facet::title(plot, titles),
            x: range::of(in_column.iter().filter_map(|row| {
                let is_level = plot.level.is_some() && plot.level == name(plot.series, row);
                plot.x.value(row).filter(|_| !is_level)
            })),
            y: range::of(in_row.iter().flat_map(|row| plot.y.ends(row)).flatten()),
            rows: facet::of(plot.columns.as_ref(), &across[column], in_row),
            series: &series,
        }
        .draw(area)?;
    }
    for (index, name) in series.iter().enumerate() {
        let (y, colour) = (24 + 22 * i32::try_from(index)?, colour(index));
        names.draw(&PathElement::new([(4, y), (24, y)], colour.stroke_width(2)))?;
        if plot.level != Some(name) {
            names.draw(&Circle::new((14, y), 3, colour.filled()))?;
        }
        names.draw(&Text::new((*name).to_owned(), (30, y - 7), (FONT, 13)))?;
    }
    root.present()?;
    Ok(())
}

fn name<'a>(series: &str, row: &'a Row) -> Option<&'a str> {
    field(row, series)?.value.as_str()
}

/// Returns the series, in the order they first came.
fn names_of_series<'a>(key: &str, rows: &'a [Row]) -> Vec<&'a str> {
    let mut names = Vec::new();
    for row in rows {
        let name = name(key, row).unwrap_or_default();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

#[cfg(test)]
mod tests;
