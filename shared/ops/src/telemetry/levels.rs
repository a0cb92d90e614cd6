//! The log filter, which can be changed while the process runs.

use std::fmt;
use std::sync::Arc;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::reload;

use super::LogFilter;

/// Sets the filter of one destination of the log; returns whether that destination still exists.
type Change = dyn Fn(&LogFilter) -> bool + Send + Sync;

/// The log filters of a process, one for each destination. Clones share them; the default has none.
#[derive(Clone, Default)]
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

impl fmt::Debug for LogLevels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LogLevels({} destinations)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use tracing::Level;
    use tracing_subscriber::Registry;
    use tracing_subscriber::layer::{Layer, SubscriberExt};

    use super::*;

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
