//! Which format of metrics a scraper asks for.

use axum::http::{HeaderMap, header};

use crate::metrics::TextFormat;

/// The format that the header `Accept` asks for: OpenMetrics if it is named there and nothing is preferred to it, else
/// Prometheus' own.
pub(super) fn format(headers: &HeaderMap) -> TextFormat {
    let accepted = headers.get_all(header::ACCEPT).iter();
    let accepted: Vec<(String, f64)> = accepted
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(weighted)
        .collect();
    let weight = |types: [&str; 2]| {
        let weights = accepted
            .iter()
            .filter(|(name, _)| types.contains(&name.as_str()));
        weights.fold(0.0, |most: f64, &(_, weight)| most.max(weight))
    };
    let open = weight(["application/openmetrics-text", "application/*"]);
    // Whoever reads OpenMetrics says so, and whoever takes anything may know the older format alone.
    if open > 0.0 && open >= weight(["text/plain", "text/*"]) {
        TextFormat::OpenMetrics
    } else {
        TextFormat::Prometheus
    }
}

/// A type of an `Accept`, in lower case, and its weight.
fn weighted(part: &str) -> (String, f64) {
    let mut pieces = part.split(';').map(str::trim);
    let name = pieces.next().unwrap_or_default().to_ascii_lowercase();
    let weight = pieces.find_map(|piece| piece.strip_prefix("q=")?.parse().ok());
    (name, weight.unwrap_or(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_is_the_one_that_is_liked_most() {
        use TextFormat::{OpenMetrics, Prometheus};
        for (accept, expected) in [
            ("", Prometheus),
            ("*/*", Prometheus),
            ("text/html, */*;q=0.8", Prometheus),
            ("application/openmetrics-text", OpenMetrics),
            ("text/plain", Prometheus),
            ("Text/Plain; version=0.0.4", Prometheus),
            ("text/*", Prometheus),
            ("text/plain, */*", Prometheus),
            ("application/openmetrics-text;q=0", Prometheus),
            // Prometheus by default, and where it was told to read the older format.
            (
                "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,\
                 text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
                OpenMetrics,
            ),
            ("text/plain;version=0.0.4;q=0.5,*/*;q=0.1", Prometheus),
        ] {
            let headers = HeaderMap::from_iter([(header::ACCEPT, accept.parse().unwrap())]);
            assert_eq!(format(&headers), expected, "{accept}");
        }
        assert_eq!(format(&HeaderMap::new()), Prometheus);
    }
}
