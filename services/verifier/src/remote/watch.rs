//! Whether the engine is well, which is whether this verifier is ready.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use engines::ScoringEngine;

use crate::target::Verifier;

/// Between two looks.
const EVERY: Duration = Duration::from_secs(2);
/// How long the engine may take to say that it is well.
const PATIENCE: Duration = Duration::from_secs(5);

/// Looks at the engine for as long as the verifier lives.
///
/// # Errors
/// If there is no thread for it.
pub(super) fn watch(
    verifier: &Arc<Verifier>,
    engine: Arc<dyn ScoringEngine>,
) -> std::io::Result<()> {
    let verifier = Arc::downgrade(verifier);
    let thread = std::thread::Builder::new().name("target-remote-watch".to_owned());
    thread.spawn(move || look(&verifier, &*engine)).map(drop)
}

fn look(verifier: &Weak<Verifier>, engine: &dyn ScoringEngine) {
    let mut was_well = true;
    loop {
        std::thread::sleep(EVERY);
        let found = engine.is_well(Instant::now() + PATIENCE);
        let Some(verifier) = verifier.upgrade() else {
            return;
        };
        match &found {
            Ok(()) if !was_well => {
                tracing::info!("the engine is back");
                verifier.ready();
            }
            Err(error) if was_well => {
                tracing::warn!("not ready until the engine is: {error}");
                verifier.wait();
            }
            _ => {}
        }
        was_well = found.is_ok();
    }
}
