//! Watches the engine: the verifier is ready only while the engine is well and is the one that the verifier began with.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use engines::{EngineError, Identity, Scoring, ScoringEngine, Sequence};
use peer::{PeerError, PeerServer, Role};
use speculation::TokenId;

use super::SECTION;
use super::seen::SeenRow;
use super::standing::{Replaced, Standing};
use crate::config::ROLE;

/// Between two looks.
const EVERY: Duration = Duration::from_secs(2);
/// How long the engine may take to answer each question of the watch.
const PATIENCE: Duration = Duration::from_secs(5);

/// The tokens whose next row is compared, which are in every vocabulary, and the number of its entries that are compared.
const KNOWN: [TokenId; 6] = [5, 17, 11, 7, 13, 19];
const KNOWN_TOP: usize = 32;

/// Returns the reason why an engine that replaced the first one cannot be used; none if it has the same tokens.
pub(super) type Probe = Box<dyn Fn() -> Option<String> + Send>;

/// The engine as the verifier began with it.
pub(super) struct First {
    identity: Identity,
    row: SeenRow,
    probe: Probe,
}

impl First {
    /// Asks `engine` for the row that will be compared.
    ///
    /// # Errors
    /// If it gives none.
    pub(super) fn of(
        identity: Identity,
        engine: &dyn ScoringEngine,
        probe: Probe,
    ) -> Result<Self, EngineError> {
        let row = known_row(engine, PATIENCE * 12)?;
        Ok(Self {
            identity,
            row,
            probe,
        })
    }

    /// Returns the engine that answers now, if it is not this one. A row that does not arrive in time is not compared.
    fn replaced(&self, engine: &dyn ScoringEngine) -> Result<Option<Replaced>, EngineError> {
        let identity = engine.identity(Instant::now() + PATIENCE)?;
        let mut differences = identity.differences(&self.identity);
        if differences.is_empty()
            && let Ok(row) = known_row(engine, PATIENCE)
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
}

fn known_row(engine: &dyn ScoringEngine, patience: Duration) -> Result<SeenRow, EngineError> {
    let sequence = Sequence {
        tokens: &KNOWN,
        committed: KNOWN.len(),
        asked: &[Vec::new()],
        salt: "",
    };
    let scoring = Scoring {
        sequences: &[sequence],
        top: KNOWN_TOP,
    };
    let rows = engine.score(&scoring, Instant::now() + patience)?;
    let row = rows.first().and_then(|rows| rows.first());
    let row = row.ok_or(EngineError::Answer("holds no row"))?;
    Ok(SeenRow::of(KNOWN.len(), row))
}

/// An engine that is to be looked at.
pub(crate) struct Watch {
    pub(super) engine: Arc<dyn ScoringEngine>,
    pub(super) first: First,
    pub(super) standing: Arc<Standing>,
}

impl Watch {
    /// Looks at the engine for as long as the verifier lives.
    ///
    /// # Errors
    /// If there is no thread for it.
    pub(crate) fn begin<R: Role>(self, verifier: &Arc<PeerServer<R>>) -> Result<(), PeerError> {
        let verifier = Arc::downgrade(verifier);
        let thread = std::thread::Builder::new().name("target-remote-watch".to_owned());
        let begun = thread.spawn(move || self.look(&verifier));
        begun.map_err(|error| PeerError::setting(ROLE, SECTION, error))?;
        Ok(())
    }

    fn look<R: Role>(&self, verifier: &Weak<PeerServer<R>>) {
        let (engine, standing) = (&*self.engine, &*self.standing);
        let mut was_ready = true;
        loop {
            standing.wait(EVERY);
            let well = engine.is_well(Instant::now() + PATIENCE);
            let found = well.and_then(|()| self.first.replaced(engine));
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
                    verifier.ready();
                }
                (true, false) => verifier.wait(),
                _ => {}
            }
            was_ready = problem.is_none();
        }
    }
}
