//! The points of a sweep as a table.

use std::io::{self, Write};

use super::point::Point;
use super::task::Task;
use crate::table::or_dash;

/// Writes one line a point.
///
/// # Errors
/// If nobody can read them.
pub(super) fn write(
    out: &mut impl Write,
    task: &Task,
    temperature: f32,
    points: &[Point],
) -> io::Result<()> {
    let outputs = points.first().map_or(0, |point| point.outputs);
    writeln!(
        out,
        "task {}, T={temperature}, {outputs} outputs of {} prompts a method; right: the first line is the answer",
        task.name,
        task.items.len()
    )?;
    let widest = |text: fn(&Point) -> &str| points.iter().map(|of| text(of).len()).max();
    let first = widest(|point| &point.series).unwrap_or_default().max(6);
    let second = widest(|point| &point.values).unwrap_or_default().max(6);
    writeln!(
        out,
        "{:<first$} {:<second$} {:>13} {:>11} {:>6} {:>8} {:>8}",
        "method", "", "right", "calls/token", "tok/s", "accepted", "deferred"
    )?;
    let percent = |share: f64| format!("{:.0}%", 100.0 * share);
    for point in points {
        let right = format!(
            "{:.1} +- {:.1}%",
            100.0 * point.quality(),
            100.0 * point.standard_error()
        );
        writeln!(
            out,
            "{:<first$} {:<second$} {right:>13} {:>11.3} {:>6.0} {:>8} {:>8}",
            point.series,
            point.values,
            point.measured.target_calls_per_token(),
            point.measured.tokens_per_second(),
            or_dash(point.measured.acceptance_rate(), percent),
            or_dash(point.measured.deferral_rate(), percent),
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::point::example;
    use super::*;

    #[test]
    fn every_point_has_its_line() {
        let task = Task::load(None, 2).expect("a task");
        let points = [
            example("target-only", "", 20, 100.0),
            example("lossy", "alpha=0.5", 15, 40.0),
        ];
        let mut text = Vec::new();
        write(&mut text, &task, 1.0, &points).expect("written");
        let text = String::from_utf8(text).expect("text");
        let line = |name: &str| text.lines().find(|line| line.starts_with(name));
        let lossy = line("lossy").expect("a line");
        for figure in ["alpha=0.5", "75.0 +- 9.7%", "0.400", "2000"] {
            assert!(lossy.contains(figure), "{lossy}");
        }
        let target = line("target-only").expect("a line");
        assert!(
            target.contains("100.0 +- 0.0%") && target.ends_with('-'),
            "{target}"
        );
    }
}
