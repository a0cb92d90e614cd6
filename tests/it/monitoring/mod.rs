//! What watches the system asks for what the system tells: dashboards and alerts against the list of metrics.
//!
//! Whether each expression is valid PromQL, fires when it should and finds data in a running system is what
//! `tests/monitoring/run` asks of Prometheus itself.

mod alerts;
mod dashboards;
mod expression;
mod known;

use std::path::{Path, PathBuf};

use serde_json::Value;

/// A file or folder of the repository.
fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

/// A text that must be there.
fn text<'v>(value: &'v Value, key: &str, whose: &str) -> &'v str {
    let text = value[key].as_str().unwrap_or_default();
    assert!(!text.is_empty(), "{whose} has no {key}");
    text
}

/// The elements of a list; none if it is not one.
fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
