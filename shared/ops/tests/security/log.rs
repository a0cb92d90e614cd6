//! What is logged during a test.

use std::cell::RefCell;
use std::io::{Result, Write};
use std::sync::Once;

use tracing::Level;

thread_local! {
    static LINES: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The log of this thread since it was started; a test's tasks run on the same one.
pub(crate) struct Log(());

impl Log {
    /// Logs everything, at every level.
    pub(crate) fn start() -> Self {
        static LOGGER: Once = Once::new();
        LOGGER.call_once(|| {
            tracing_subscriber::fmt()
                .with_max_level(Level::TRACE)
                .with_ansi(false)
                .with_writer(|| Lines)
                .init();
        });
        LINES.take();
        Self(())
    }

    pub(crate) fn text(&self) -> String {
        let Self(()) = self;
        LINES.with_borrow(|lines| String::from_utf8(lines.clone()).expect("UTF-8"))
    }

    /// Waits for a line with all these parts.
    pub(crate) async fn wait_for(&self, parts: &[&str]) {
        let is_there = |line: &str| parts.iter().all(|part| line.contains(part));
        for _ in 0..200 {
            if self.text().lines().any(is_there) {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        let text = self.text();
        let lines = text.lines().filter(|line| !line.contains("TRACE"));
        panic!(
            "{parts:?} was never logged: {:#?}",
            lines.collect::<Vec<_>>()
        );
    }
}

struct Lines;

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        LINES.with_borrow_mut(|lines| lines.extend_from_slice(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}
