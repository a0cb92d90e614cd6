//! One panel of a plot.

use plotters::coord::Shift;
use plotters::prelude::*;

use super::palette::colour;
use super::{FONT, Plot, PlotAxis, name};
use crate::report::Row;

/// A panel.
#[derive(Debug)]
pub(super) struct Panel<'a> {
    pub(super) plot: &'a Plot<'a>,
    pub(super) title: String,
    /// From where to where the axes go.
    pub(super) x: (f64, f64),
    pub(super) y: (f64, f64),
    pub(super) rows: Vec<&'a Row>,
    /// The series of all panels, each with the colour of its place.
    pub(super) series: &'a [&'a str],
}

/// A row as a point.
#[derive(Clone, Copy, Debug)]
struct Point {
    x: f64,
    y: f64,
    error: f64,
}

impl Point {
    fn of(row: &Row, x: &PlotAxis<'_>, y: &PlotAxis<'_>) -> Option<Self> {
        Some(Self {
            x: x.value(row)?,
            y: y.value(row)?,
            error: y.error(row),
        })
    }
}

impl Panel<'_> {
    pub(super) fn draw<B: DrawingBackend>(
        &self,
        area: &DrawingArea<B, Shift>,
    ) -> Result<(), DrawingAreaErrorKind<B::ErrorType>> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let Self { plot, x, y, .. } = self;
        let mut builder = ChartBuilder::on(area);
        if !self.title.is_empty() {
            builder.caption(&self.title, (FONT, 14));
        }
        let mut chart = builder
            .margin(8)
            .x_label_area_size(38)
            .y_label_area_size(50)
            .build_cartesian_2d(x.0..x.1, y.0..y.1)?;
        chart
            .configure_mesh()
            .x_desc(plot.x.name)
            .y_desc(plot.y.name)
            .x_labels(6)
            .y_labels(6)
            .label_style((FONT, 12))
            .light_line_style(WHITE)
            .draw()?;
        for (index, series) in self.series.iter().enumerate() {
            let rows = self.rows.iter();
            let mut rows = rows.filter(|row| name(plot.series, row).unwrap_or_default() == *series);
            let style = colour(index).stroke_width(2);
            if plot.level == Some(series) {
                let height = rows.find_map(|row| plot.y.value(row));
                let line = height.map(|height| [(x.0, height), (x.1, height)]);
                let line = line.into_iter().flatten();
                chart.draw_series(DashedLineSeries::new(line, 4, 4, style))?;
                continue;
            }
            let points = rows.filter_map(|row| Point::of(row, &plot.x, &plot.y));
            let points: Vec<Point> = points.collect();
            chart.draw_series(LineSeries::new(
                points.iter().map(|point| (point.x, point.y)),
                style,
            ))?;
            let errors = points.iter().filter(|point| point.error > 0.0);
            let errors = errors.map(|point| {
                let ends = [point.y - point.error, point.y + point.error];
                PathElement::new(ends.map(|y| (point.x, y)), colour(index))
            });
            chart.draw_series(errors)?;
            let dots = points.iter();
            let dots = dots.map(|point| Circle::new((point.x, point.y), 3, colour(index).filled()));
            chart.draw_series(dots)?;
        }
        Ok(())
    }
}
