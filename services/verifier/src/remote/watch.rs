//! Watches the engine: the verifier is ready only while the engine is well and is the one that the verifier began with.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use engines::{EngineIdentity, ScoringEngine, ScoringError};
use ops::service_error::ServiceError;
use speculation::TokenId;

use super::SECTION;
use super::seen::SeenRow;
use super::standing::{Replaced, Standing};
use crate::config::ROLE;
use crate::scorer::Verifier;

/// Between two looks.
const EVERY: Duration = Duration::from_secs(2);
/// How long the engine may take to answer each question of the watch.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The tokens whose next row is compared, which are in every vocabulary, and the number of its entries that are compared.
const KNOWN: [TokenId; 6] = [5, 17, 11, 7, 13, 19];
const KNOWN_TOP: usize = 32;

/// Returns the reason why an engine that replaced the first one cannot be used; none if it has the same tokens.
pub(super) type Probe = Box<dyn Fn() -> Option<String> + Send>;

/// The engine, and what is known of it as the verifier began with it.
pub(super) struct Watch {
    engine: Arc<dyn ScoringEngine>,
    standing: Arc<Standing>,
    identity: EngineIdentity,
    row: SeenRow,
    probe: Probe,
}

fn known_row(engine: &dyn ScoringEngine, timeout: Duration) -> Result<SeenRow, ScoringError> {
    let row = engine.row_after(&KNOWN, KNOWN_TOP, &[], Instant::now() + timeout)?;
    Ok(SeenRow::of(KNOWN.len(), &row))
}

impl Watch {
    /// Asks `engine`, which says `identity` of itself, for the row that will be compared.
    ///
    /// # Errors
    /// If it gives none.
    pub(super) fn new(
        engine: Arc<dyn ScoringEngine>,
        standing: Arc<Standing>,
        identity: EngineIdentity,
        probe: Probe,
    ) -> Result<Self, ScoringError> {
        let row = known_row(&*engine, TIMEOUT * 12)?;
        Ok(Self {
            engine,
            standing,
            identity,
            row,
            probe,
        })
    }

    /// Returns the engine that answers now, if it is not the first one. A row that does not arrive in time is not compared.
    fn replaced(&self) -> Result<Option<Replaced>, ScoringError> {
        let engine = &*self.engine;
        let identity = engine.identity(Instant::now() + TIMEOUT)?;
        let mut differences = identity.differences(&self.identity);
        if differences.is_empty()
            && let Ok(row) = known_row(engine, TIMEOUT)
            && self.row.differs_from(&row)
        {
            "the same name, and other numbers".clone_into(&mut differences);
        }
        if differences.is_empty() {
            return Ok(None);
        }
        let unusable = (self.probe)();
        Ok(Some(Replaced {
            differences,
            unusable,
        }))
    }

    /// Looks at the engine for as long as the verifier lives.
    ///
    /// # Errors
    /// If there is no thread for it.
    pub(super) fn begin(self, verifier: &Arc<Verifier>) -> Result<(), ServiceError> {
        let verifier = Arc::downgrade(verifier);
        let thread = std::thread::Builder::new().name("target-remote-watch".to_owned());
        let begun = thread.spawn(move || self.look(&verifier));
        begun.map_err(|error| ServiceError::setting(ROLE, SECTION, error))?;
        Ok(())
    }

    fn look(&self, verifier: &Weak<Verifier>) {
        let (engine, standing) = (&*self.engine, &*self.standing);
        let mut was_ready = true;
        loop {
            standing.wait(EVERY);
            let well = engine.is_well(Instant::now() + TIMEOUT);
            let found = well.and_then(|()| self.replaced());
            let Some(verifier) = verifier.upgrade() else {
                return;
            };
            let problem = match found {
                Ok(replaced) => {
                    let problem = replaced.as_ref().map(ToString::to_string);
                    if standing.found(replaced)
                        && let Some(problem) = &problem
                    {
                        tracing::error!("not ready: {problem}");
                    }
                    problem
                }
                Err(error) => {
                    if was_ready {
                        tracing::warn!("not ready until the engine is: {error}");
                    }
                    Some(error.to_string())
                }
            };
            match (was_ready, problem.is_none()) {
                (false, true) => {
                    tracing::info!("the engine is back");
                    verifier.health.ready();
                }
                (true, false) => verifier.health.wait(),
                _ => {}
            }
            was_ready = problem.is_none();
        }
    }
}
