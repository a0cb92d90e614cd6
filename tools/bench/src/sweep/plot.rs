//! Quality against target calls per token, as SVG.

use anyhow::anyhow;
use plotters::prelude::*;

use super::point::Point;

const SIZE: (u32, u32) = (900, 480);
/// Where the names of the lines begin.
const NAMES_AT: u32 = 620;
const FONT: &str = "sans-serif";

/// The plot of `points` on the task `task`: one line a series, in the order of its values; a series
/// of one is a dot.
///
/// # Errors
/// If it cannot be drawn, which nothing but a fault of ours brings about.
pub(super) fn svg(task: &str, temperature: f32, points: &[Point]) -> anyhow::Result<String> {
    let mut text = String::new();
    draw(&mut text, task, temperature, points).map_err(|error| anyhow!("--svg: {error}"))?;
    Ok(text)
}

fn draw(
    text: &mut String,
    task: &str,
    temperature: f32,
    points: &[Point],
) -> Result<(), Box<dyn std::error::Error>> {
    let series = by_series(points);
    let root = SVGBackend::with_string(text, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let (left, right) = root.split_horizontally(NAMES_AT);
    let (low, high) = range(points.iter().map(|point| 100.0 * point.quality()));
    let most = points.iter().map(calls).fold(1.0, f64::max);
    let mut chart = ChartBuilder::on(&left)
        .caption(format!("{task}, temperature {temperature}"), (FONT, 18))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(52)
        .build_cartesian_2d(-0.02..most + 0.03, low..high)?;
    chart
        .configure_mesh()
        .x_desc("target calls per token")
        .y_desc("right answers, percent")
        .label_style((FONT, 13))
        .light_line_style(WHITE)
        .draw()?;
    for (index, (name, points)) in series.iter().enumerate() {
        let colour = Palette99::pick(index).to_rgba();
        let at = |point: &&Point| (calls(point), 100.0 * point.quality());
        let line = LineSeries::new(points.iter().map(at), colour.stroke_width(2));
        chart.draw_series(line)?;
        let dots = points
            .iter()
            .map(|point| Circle::new(at(point), 3, colour.filled()));
        chart.draw_series(dots)?;
        let y = 50 + 22 * i32::try_from(index)?;
        right.draw(&PathElement::new([(4, y), (24, y)], colour.stroke_width(2)))?;
        right.draw(&Circle::new((14, y), 3, colour.filled()))?;
        right.draw(&Text::new((*name).to_owned(), (30, y - 7), (FONT, 13)))?;
    }
    root.present()?;
    Ok(())
}

fn calls(point: &Point) -> f64 {
    point.measured.target_calls_per_token()
}

/// The points of each series, in the order the series first came.
fn by_series(points: &[Point]) -> Vec<(&str, Vec<&Point>)> {
    let mut series: Vec<(&str, Vec<&Point>)> = Vec::new();
    for point in points {
        match series.iter_mut().find(|(name, _)| *name == point.series) {
            Some((_, known)) => known.push(point),
            None => series.push((&point.series, vec![point])),
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
    let margin = (0.05 * (most - least)).max(0.5);
    (least - margin, most + margin)
}

#[cfg(test)]
mod tests {
    use super::super::point::example;
    use super::*;

    #[test]
    fn every_series_is_drawn_and_named() {
        let points = [
            example("target-only", "", 20, 100.0),
            example("lossy", "alpha=0", 19, 50.0),
            example("lossy", "alpha=0.5", 15, 40.0),
            example("bild", "alpha=1", 12, 30.0),
            example("bild", "alpha=2", 8, 20.0),
        ];
        let drawn = svg("german", 0.0, &points).expect("drawn");
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
        assert!(svg("german", 0.0, &[]).expect("drawn").contains("<svg"));
        assert_eq!(range([50.0, 90.0].into_iter()), (48.0, 92.0));
        assert_eq!(range([90.0].into_iter()), (89.5, 90.5));
    }
}
