//! What a PromQL expression names: metrics, labels, and values asked of them. Not a parser: it reads what is
//! valid, and Prometheus decides what is.

use std::collections::BTreeSet;

/// `name{label="value", …}`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Selector {
    pub(super) metric: String,
    /// Labels, and the values they are compared with; several where `|` parts them.
    pub(super) matchers: Vec<(String, Vec<String>)>,
}

/// The names in an expression.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Expression {
    pub(super) selectors: Vec<Selector>,
    /// Labels in `by (…)`, `on (…)` and their like.
    pub(super) groups: BTreeSet<String>,
}

impl Expression {
    /// Reads `text`.
    pub(super) fn read(text: &str) -> Self {
        let mut rest = text;
        let mut expression = Self::default();
        while let Some(first) = rest.chars().next() {
            if is_name_start(first) {
                let (name, after) = split_name(rest);
                rest = expression.named(name, after.trim_start());
            } else if first == '"' {
                rest = after_string(rest);
            } else if first == '[' {
                rest = rest.split_once(']').map_or("", |(_, after)| after);
            } else if first.is_ascii_digit() {
                // A number; its exponent or unit is no name.
                rest = rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '.');
            } else {
                rest = &rest[first.len_utf8()..];
            }
        }
        expression
    }

    /// Takes `name` for what it is by what stands after it, and returns what comes then.
    fn named<'t>(&mut self, name: &str, after: &'t str) -> &'t str {
        match name {
            "by" | "without" | "on" | "ignoring" | "group_left" | "group_right"
                if after.starts_with('(') =>
            {
                let (labels, after) = after[1..].split_once(')').unwrap_or_default();
                let labels = labels.split(',').map(str::trim);
                self.groups
                    .extend(labels.filter(|label| !label.is_empty()).map(str::to_owned));
                return after;
            }
            "and" | "or" | "unless" | "bool" | "offset" => return after,
            _ => {}
        }
        let is_call = after.starts_with('(')
            || after.starts_with("by ")
            || after.starts_with("by(")
            || after.starts_with("without ");
        if is_call {
            return after;
        }
        let (matchers, after) = match after.strip_prefix('{') {
            Some(inside) => read_matchers(inside),
            None => (Vec::new(), after),
        };
        let metric = name.to_owned();
        self.selectors.push(Selector { metric, matchers });
        after
    }
}

/// Reads up to the closing brace.
fn read_matchers(mut rest: &str) -> (Vec<(String, Vec<String>)>, &str) {
    let mut matchers = Vec::new();
    loop {
        rest = rest.trim_start_matches([' ', ',', '\n']);
        if let Some(after) = rest.strip_prefix('}') {
            return (matchers, after);
        }
        let (label, after) = split_name(rest);
        let quoted = after.trim_start_matches(['=', '!', '~', ' ']);
        let after = after_string(quoted);
        assert!(
            !label.is_empty() && after.len() + 2 <= quoted.len(),
            "not a matcher: {rest}"
        );
        let value = &quoted[1..quoted.len() - after.len() - 1];
        matchers.push((
            label.to_owned(),
            value.split('|').map(str::to_owned).collect(),
        ));
        rest = after;
    }
}

fn is_name_start(first: char) -> bool {
    first.is_ascii_alphabetic() || first == '_' || first == ':'
}

fn split_name(text: &str) -> (&str, &str) {
    let is_inside = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let end = text.find(|c| !is_inside(c)).unwrap_or(text.len());
    text.split_at(end)
}

/// What stands after the string that `text` begins with; strings with escapes are none of ours.
fn after_string(text: &str) -> &str {
    let inside = text.strip_prefix('"').unwrap_or(text);
    inside.split_once('"').map_or("", |(_, after)| after)
}

#[test]
fn metrics_labels_and_values_are_found() {
    let read = Expression::read(
        r#"histogram_quantile(0.95, sum by (le, role) (rate(a_bucket{job="$job",state=~"x|y"}[$__rate_interval])))
           / on(job) group_left() (b:c:rate5m > 1e3 or 0 * sum(rate(d{}[5m])) and e offset 5m)"#,
    );
    let named: Vec<&str> = read.selectors.iter().map(|s| &*s.metric).collect();
    assert_eq!(named, ["a_bucket", "b:c:rate5m", "d", "e"]);
    let (label, values) = &read.selectors[0].matchers[1];
    assert_eq!((&**label, values.len()), ("state", 2));
    assert_eq!(read.groups, ["job", "le", "role"].map(str::to_owned).into());
}
