//! Reading OpenMetrics text, as this crate writes it.

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

#[cfg(test)]
mod tests {
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
}
