//! OpenMetrics text as this crate writes it: read, and rewritten in Prometheus' older text format.

use std::fmt::Write;

/// A line of text with a value.
#[derive(Debug, PartialEq)]
pub(super) struct TextSample<'a> {
    pub(super) name: &'a str,
    /// Names and values; values still have their escapes.
    pub(super) labels: Vec<(&'a str, &'a str)>,
    pub(super) value: f64,
}

impl<'a> TextSample<'a> {
    /// Returns the value of the label `name`.
    pub(super) fn label(&self, name: &str) -> Option<&'a str> {
        let mut found = self.labels.iter().filter(|(known, _)| *known == name);
        found.next().map(|&(_, value)| value)
    }
}

/// Returns the samples of `text`.
pub(super) fn samples(text: &str) -> Vec<TextSample<'_>> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(sample).collect()
}

fn sample(line: &str) -> Option<TextSample<'_>> {
    let end = line.find(['{', ' '])?;
    let (name, mut rest) = line.split_at(end);
    let mut labels = Vec::new();
    if let Some(inner) = rest.strip_prefix('{') {
        rest = inner;
        while !rest.starts_with('}') {
            let (label, after) = rest.trim_start_matches(',').split_once("=\"")?;
            let close = closing_quote(after)?;
            labels.push((label, &after[..close]));
            rest = &after[close + 1..];
        }
        rest = &rest[1..];
    }
    // An exemplar may follow.
    let value = rest.split_whitespace().next()?.parse().ok()?;
    Some(TextSample {
        name,
        labels,
        value,
    })
}

/// Returns the index of the first quote that no backslash escapes.
fn closing_quote(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.bytes().position(|byte| {
        let closes = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        closes
    })
}

/// Returns `openmetrics` in Prometheus' older text format, 0.0.4: counters are named as their samples are, and what that
/// format does not know (units, exemplars, infos, an end) is left out or named otherwise.
pub(super) fn plain(openmetrics: &str) -> String {
    let mut text = String::with_capacity(openmetrics.len());
    let mut help = "";
    for line in openmetrics.lines() {
        let mut words = line.splitn(4, ' ');
        match (words.next(), words.next(), words.next(), words.next()) {
            // The help precedes the kind, and the kind decides the family's name, so the help is kept until then.
            (Some("#"), Some("HELP"), Some(_), said) => help = said.unwrap_or_default(),
            (Some("#"), Some("TYPE"), Some(name), Some(kind)) => {
                let (suffix, kind) = match kind {
                    "counter" => ("_total", kind),
                    "info" => ("_info", "gauge"),
                    kind => ("", kind),
                };
                // Writing to a string does not fail.
                let _ = writeln!(text, "# HELP {name}{suffix} {help}");
                let _ = writeln!(text, "# TYPE {name}{suffix} {kind}");
            }
            (Some("#"), ..) => {}
            _ => {
                text += without_exemplar(line);
                text.push('\n');
            }
        }
    }
    text
}

/// Returns a sample up to the first `#` outside of its labels' values.
fn without_exemplar(sample: &str) -> &str {
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (at, letter) in sample.char_indices() {
        match letter {
            '"' if !is_escaped => is_quoted = !is_quoted,
            '#' if !is_quoted => return sample[..at].trim_end(),
            _ => {}
        }
        is_escaped = letter == '\\' && !is_escaped;
    }
    sample
}

#[cfg(test)]
mod tests {
    use super::super::{Metrics, names};
    use super::*;

    #[test]
    fn values_are_read_past_escapes_and_exemplars() {
        let text = "# TYPE a gauge\na 3\n\
                    b_bucket{model=\"x\\\"},y\\\\\",le=\"0.5\"} 7 # {trace_id=\"t\"} 0.4 1.5\nc{} 1e-3\nbroken{x=\"\n# EOF\n";
        let expected = [
            ("a", vec![], 3.0),
            (
                "b_bucket",
                vec![("model", "x\\\"},y\\\\"), ("le", "0.5")],
                7.0,
            ),
            ("c", vec![], 1e-3),
        ];
        let expected = expected.map(|(name, labels, value)| TextSample {
            name,
            labels,
            value,
        });
        assert_eq!(samples(text), expected);
    }

    #[test]
    fn a_family_is_written_as_the_older_format_wants_it() {
        let metrics = Metrics::default();
        let labels = ["default", "a\"# {b"];
        metrics.counter(&names::DRAFT_TOKENS, &labels).inc_by(7.0);
        let histogram = metrics.histogram(&names::TIME_TO_FIRST_TOKEN, &["chat", "outrider", "m"]);
        histogram.observe_traced(0.03, Some("4bf92f3577b34da6"));
        let openmetrics = metrics.encode().unwrap();
        assert!(openmetrics.contains(" # {trace_id="), "{openmetrics}");
        let text = plain(&openmetrics);
        let written = "# HELP outrider_draft_tokens_total Draft tokens verified; all nodes of a tree count.\n\
                       # TYPE outrider_draft_tokens_total counter\n\
                       outrider_draft_tokens_total{model=\"default\",method=\"a\\\"# {b\"} 7.0\n";
        assert!(text.contains(written), "{text}");
        assert!(
            text.contains("\n# TYPE outrider_build_info gauge\noutrider_build_info{"),
            "{text}"
        );
        assert!(text.contains("\n# TYPE gen_ai_server_time_to_first_token_seconds histogram\n"));
        for part in ["# EOF", "# UNIT", "trace_id"] {
            assert!(!text.contains(part), "{part} stands in\n{text}");
        }
        // No sample is lost.
        let samples = |text: &str| text.lines().filter(|line| !line.starts_with('#')).count();
        assert_eq!(samples(&text), samples(&openmetrics));
    }
}
