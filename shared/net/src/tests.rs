//! What is logged, for tests.

use std::io;
use std::sync::{Arc, Mutex};

/// Keeps what a subscriber writes.
#[derive(Clone, Default)]
struct LogBuffer(Arc<Mutex<Vec<u8>>>);

impl io::Write for LogBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no panic").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns what `run` logs on this thread.
pub(crate) fn logged(run: impl FnOnce()) -> String {
    let written = LogBuffer::default();
    let kept = written.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(move || kept.clone())
        .finish();
    tracing::subscriber::with_default(subscriber, run);
    let log = written.0.lock().expect("no panic").clone();
    String::from_utf8(log).expect("UTF-8")
}
