//! What is drawn of rows.

use super::super::field::{number, percent, text};
use super::*;

/// Rows of a series, a panel, a quality and calls.
fn report(points: &[(&str, u32, f64, f64)]) -> BenchReport {
    let mut report = BenchReport::quiet();
    for &(name, panel, quality, calls) in points {
        let row = vec![
            text("series", name),
            text("panel", panel),
            percent("quality", quality, 1),
            percent("error", 0.05, 1).hidden(),
            number("calls", calls, 3),
        ];
        report.row("points", row).expect("nothing is printed");
    }
    report
}

fn plot() -> Plot<'static> {
    Plot {
        table: "points",
        caption: "german, temperature 0".to_owned(),
        series: "series",
        x: PlotAxis::of("calls", "target calls per token"),
        y: PlotAxis::of("quality", "right answers, percent"),
        ..Plot::default()
    }
}

fn circles(drawn: &str) -> usize {
    drawn.matches("<circle").count()
}

#[test]
fn every_series_is_drawn_and_named() {
    let drawn = report(&[
        ("target-only", 1, 1.0, 1.0),
        ("lossy", 1, 0.95, 0.5),
        ("lossy", 1, 0.75, 0.4),
        ("bild", 1, 0.6, 0.3),
        ("bild", 1, 0.4, 0.2),
    ])
    .svg(&plot())
    .expect("drawn");
    assert!(drawn.starts_with("<svg") && drawn.trim_end().ends_with("</svg>"));
    for words in ["target-only", "lossy", "bild", "german, temperature 0"] {
        assert!(drawn.contains(words), "{words}");
    }
    assert_eq!(circles(&drawn), 5 + 3);
    // Of each colour a dot for every point and one beside the name.
    for (index, points) in [1, 2, 2].into_iter().enumerate() {
        let RGBColor(r, g, b) = colour(index);
        let colour = format!("#{r:02X}{g:02X}{b:02X}");
        let lines = drawn.lines().filter(|line| line.contains("<circle"));
        let of_colour = lines.filter(|line| line.contains(&colour));
        assert_eq!(of_colour.count(), points + 1, "{colour}");
    }
}

#[test]
fn small_multiples_have_a_panel_a_value_and_a_level_in_each() {
    let report = report(&[
        ("target-only", 3, 1.0, 1.0),
        ("lossy", 3, 0.95, 0.5),
        ("target-only", 7, 0.9, 1.0),
        ("lossy", 7, 0.75, 0.4),
        ("lossy", 7, 0.70, 0.3),
    ]);
    let (key, name) = ("panel", "γ");
    let mut y = plot().y;
    y.error = Some("error");
    let plot = Plot {
        y,
        columns: Some(Facet { key, name }),
        level: Some("target-only"),
        ..plot()
    };
    let drawn = report.svg(&plot).expect("drawn");
    assert!(drawn.contains("γ=3") && drawn.contains("γ=7"), "{drawn}");
    // Those of lossy, and the one beside its name.
    assert_eq!(circles(&drawn), 3 + 1);
}

#[test]
fn no_points_make_an_empty_plot() {
    let drawn = report(&[]).svg(&plot()).expect("drawn");
    assert!(drawn.contains("<svg"));
    assert_eq!(circles(&drawn), 0);
}
