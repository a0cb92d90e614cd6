//! Which events are logged, which can be changed while the process runs.

use std::str::FromStr;
use std::sync::Arc;

use derive_more::Into;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::reload;

/// The crates that a level by itself is for.
const OURS: [&str; 18] = [
    "calls",
    "client",
    "coordinator",
    "drafter",
    "engines",
    "fleet",
    "grammar",
    "llama",
    "model",
    "net",
    "ops",
    "outrider",
    "outrider_bench",
    "peer",
    "speculation",
    "text",
    "verifier",
    "wire",
];

/// Levels as they are written.
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// A log filter: levels and `TARGET=LEVEL`, with commas between. A level by itself is that of our crates; others say no
/// more than warnings, unless they are named.
#[derive(Clone, Debug, PartialEq, Eq, Into, Serialize, Deserialize, JsonSchema, SmartDefault)]
#[serde(try_from = "String", into = "String")]
pub struct LogFilter(#[default = "info"] String);

/// Text that is not a log filter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{part:?} is no log filter; write a level ({levels}) or TARGET=LEVEL, with commas between, for example \
     info,coordinator=debug",
    levels = LEVELS.join(", ")
)]
pub struct FilterError {
    part: String,
}

impl LogFilter {
    /// Returns the filter as `tracing` reads it.
    fn directives(&self) -> EnvFilter {
        EnvFilter::new(expanded(&self.0))
    }
}

/// Returns the filter with each bare level replaced by directives: that level for our crates, and another for all
/// others.
fn expanded(text: &str) -> String {
    let (mut levels, mut named) = (Vec::new(), Vec::new());
    for part in parts(text) {
        match part.parse::<LevelFilter>() {
            Err(_) => named.push(part.to_owned()),
            Ok(level) => {
                levels.push(level.min(LevelFilter::WARN).to_string());
                levels.extend(OURS.map(|name| format!("{name}={level}")));
            }
        }
    }
    // If two directives name one target, the later one holds, so named targets come last.
    levels.append(&mut named);
    levels.join(",")
}

fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim)
}

/// Returns whether `part` is a level, or ends with one for the target before it.
fn is_directive(part: &str) -> bool {
    // `LevelFilter` would parse an empty text as the level error.
    let is_level = |text: &str| !text.is_empty() && text.parse::<LevelFilter>().is_ok();
    match part.rsplit_once('=') {
        None => is_level(part),
        Some((target, level)) => {
            !target.is_empty() && is_level(level) && EnvFilter::try_new(part).is_ok()
        }
    }
}

impl FromStr for LogFilter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        match parts(text).find(|part| !is_directive(part)) {
            None => Ok(Self(text.to_owned())),
            Some(part) => Err(FilterError {
                part: part.to_owned(),
            }),
        }
    }
}

impl TryFrom<String> for LogFilter {
    type Error = FilterError;

    fn try_from(text: String) -> Result<Self, FilterError> {
        text.parse()
    }
}

/// Sets the filter of one destination of the log; returns whether that destination still exists.
type Change = dyn Fn(&LogFilter) -> bool + Send + Sync;

/// The log filters of a process, one for each destination. Clones share them; the default has none.
#[derive(Clone, Default, derive_more::Debug)]
#[debug("LogLevels")]
pub struct LogLevels(Vec<Arc<Change>>);

impl LogLevels {
    /// Sets the filter of every destination; returns whether all destinations still exist.
    pub fn set(&self, filter: &LogFilter) -> bool {
        // Not `all`, which would stop at the first that does not.
        let kept = self.0.iter().filter(|change| !change(filter));
        kept.count() == 0
    }

    /// Creates the filter of a destination, at first `filter`.
    pub(super) fn add<S: 'static>(&mut self, filter: &LogFilter) -> reload::Layer<EnvFilter, S> {
        let (layer, handle) = reload::Layer::new(filter.directives());
        let change = move |filter: &LogFilter| handle.reload(filter.directives()).is_ok();
        self.0.push(Arc::new(change));
        layer
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use tracing::Level;
    use tracing_subscriber::Registry;
    use tracing_subscriber::layer::{Layer, SubscriberExt};

    use super::*;

    #[test]
    fn what_is_no_level_of_anything_is_refused_with_what_is_allowed() {
        for text in [
            "info",
            "WARN",
            "off",
            "info,h2=debug",
            "debug, model::load=trace",
            "a[b]=info",
        ] {
            assert!(text.parse::<LogFilter>().is_ok(), "{text}");
        }
        for (text, part) in [
            ("nonsense", "nonsense"),
            ("info,debg", "debg"),
            ("verifier=loud", "verifier=loud"),
            ("=info", "=info"),
            ("", ""),
        ] {
            let said = text.parse::<LogFilter>().unwrap_err().to_string();
            let parts = [&format!("{part:?}"), "debug, trace", "TARGET=LEVEL"];
            assert!(parts.iter().all(|part| said.contains(*part)), "{said}");
        }
    }

    #[test]
    fn a_level_by_itself_is_for_our_crates() {
        /// Returns whether events at levels from error to trace are logged, of a crate of ours and of another.
        fn logged(filter: &str) -> (Vec<Level>, Vec<Level>) {
            let filter: LogFilter = filter.parse().expect("a filter");
            let subscriber = tracing_subscriber::registry().with(filter.directives());
            tracing::subscriber::with_default(subscriber, || {
                let (mut ours, mut others) = (Vec::new(), Vec::new());
                macro_rules! look {
                    ($($level:ident)*) => {$(
                        if tracing::enabled!(target: "peer::lease", Level::$level) {
                            ours.push(Level::$level);
                        }
                        if tracing::enabled!(target: "h2::codec", Level::$level) {
                            others.push(Level::$level);
                        }
                    )*};
                }
                look!(ERROR WARN INFO DEBUG TRACE);
                (ours, others)
            })
        }
        let all = [
            Level::ERROR,
            Level::WARN,
            Level::INFO,
            Level::DEBUG,
            Level::TRACE,
        ];
        for (filter, ours, others) in [
            ("debug", 4, 2),
            ("error", 1, 1),
            ("info,h2=trace", 3, 5),
            ("peer=info,debug", 3, 2),
            ("h2=info", 0, 3),
            ("off", 0, 0),
        ] {
            let (ours, others) = (all[..ours].to_vec(), all[..others].to_vec());
            assert_eq!(logged(filter), (ours, others), "{filter}");
        }
    }

    #[test]
    fn every_crate_of_ours_is_known() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let folders = ["shared", "services", "tools"].map(|folder| root.join(folder));
        let mut names: Vec<String> = (folders.iter())
            .flat_map(|folder| std::fs::read_dir(folder).expect("a folder").flatten())
            .filter_map(|entry| std::fs::read_to_string(entry.path().join("Cargo.toml")).ok())
            .map(|manifest| {
                let name = manifest
                    .lines()
                    .find_map(|line| line.strip_prefix("name = "));
                name.expect("a name").trim_matches('"').replace('-', "_")
            })
            .collect();
        names.sort_unstable();
        assert_eq!(names, OURS);
    }

    #[test]
    fn a_level_can_be_changed_while_the_log_is_written() {
        let filter = |text: &str| text.parse::<LogFilter>().expect("a filter");
        let mut levels = LogLevels::default();
        let lines = tracing_subscriber::fmt::layer().with_writer(std::io::sink);
        let lines = lines.with_filter(levels.add::<Registry>(&filter("info")));
        tracing::subscriber::with_default(tracing_subscriber::registry().with(lines), || {
            let is_logged = || tracing::enabled!(target: "peer::lease", Level::DEBUG);
            assert!(!is_logged());
            assert!(levels.set(&filter("info,peer=debug")));
            assert!(is_logged());
            assert!(levels.clone().set(&filter("warn")));
            assert!(!is_logged());
        });
        assert!(!levels.set(&filter("info")), "the log is gone");
    }
}
