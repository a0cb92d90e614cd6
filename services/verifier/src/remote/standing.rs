//! Records whether the engine is still the one that the verifier began with.
//!
//! An engine may be replaced behind its address: by another model, version or number format, or by an upgrade that has
//! only begun. Sessions that were open then go on, and are told that the numbers changed, so that no answer says that it
//! is exact. New ones are refused.

use std::fmt;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use tonic::Status;
use wire::describe::fingerprint;
use wire::failure::Failure;
use wire::{status, v1};

/// The state of the engine. Rounds read it, and the watching thread changes it.
///
/// The engine's generation is a number that grows each time its numerics change.
pub(super) struct Standing {
    /// Its numerics when the verifier started.
    first: v1::Numerics,
    state: Mutex<EngineState>,
    /// A round has seen rows of another engine.
    doubted: Condvar,
}

#[derive(Default)]
struct EngineState {
    /// The engine's generation.
    generation: u32,
    /// Distinguishes the current numerics from the first ones; empty while they are the first ones.
    since: String,
    replaced: Option<Replaced>,
    is_doubted: bool,
}

/// An engine that replaced the first one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Replaced {
    /// The differences from the first engine, in words.
    pub(super) differences: String,
    /// The reason why open sessions cannot use it either, such as another vocabulary; none if they can.
    pub(super) unusable: Option<String>,
}

impl fmt::Display for Replaced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let differences = &self.differences;
        write!(
            f,
            "the engine is not the one that this verifier began with ({differences}"
        )?;
        if let Some(problem) = &self.unusable {
            write!(f, "; {problem}")?;
        }
        f.write_str("); restart the verifier to serve it")
    }
}

impl Standing {
    pub(super) fn new(first: v1::Numerics) -> Self {
        Self {
            first,
            state: Mutex::default(),
            doubted: Condvar::new(),
        }
    }

    /// Returns the current numerics.
    pub(super) fn numerics(&self) -> v1::Numerics {
        self.numerics_of(&self.state.lock())
    }

    fn numerics_of(&self, state: &EngineState) -> v1::Numerics {
        if state.since.is_empty() {
            return self.first.clone();
        }
        let weights = format!("{}\n{}", self.first.weights, state.since);
        v1::Numerics {
            weights: format!("{:016x}", fingerprint(weights.as_bytes())),
            ..self.first.clone()
        }
    }

    /// Returns the generation for a session whose coordinator expects these `numerics`; an empty text expects none.
    ///
    /// # Errors
    /// If the current numerics are different.
    pub(super) fn opened(&self, numerics: &str) -> Result<u32, Status> {
        let state = self.state.lock();
        if !numerics.is_empty() && self.numerics_of(&state).weights != numerics {
            return Err(changed());
        }
        Ok(state.generation)
    }

    /// Returns the engine's generation.
    pub(super) fn generation(&self) -> u32 {
        self.state.lock().generation
    }

    /// Checks that a session that was opened at `generation` may ask for a round; `is_new` tells that it has no output yet.
    ///
    /// # Errors
    /// If another engine has replaced the one that the session was opened with. The session can be opened again if it has
    /// output and the other engine has the same tokens.
    pub(super) fn admit(&self, generation: u32, is_new: bool) -> Result<(), Status> {
        let state = self.state.lock();
        if let Some(replaced) = &state.replaced
            && (is_new || replaced.unusable.is_some())
        {
            return Err(Failure::Unavailable.status(replaced.to_string()));
        }
        if generation != state.generation {
            return Err(changed());
        }
        Ok(())
    }

    /// Records that a session at `generation` has received a row of another engine, and wakes the watching thread.
    pub(super) fn doubt(&self, generation: u32) {
        let mut state = self.state.lock();
        if state.generation != generation {
            // It was known.
            return;
        }
        state.generation += 1;
        state.since = format!("since {}", state.generation);
        state.is_doubted = true;
        self.doubted.notify_all();
    }

    /// Waits for `timeout`, or until [`doubt`](Self::doubt) is called.
    pub(super) fn wait(&self, timeout: Duration) {
        let mut state = self.state.lock();
        let is_known = |state: &mut EngineState| !state.is_doubted;
        self.doubted.wait_while_for(&mut state, is_known, timeout);
        state.is_doubted = false;
    }

    /// Records that the first engine answers, or that it was `replaced`. Returns whether that is a change.
    pub(super) fn found(&self, replaced: Option<Replaced>) -> bool {
        let mut state = self.state.lock();
        if state.replaced == replaced {
            return false;
        }
        state.generation += 1;
        state.since = match &replaced {
            Some(replaced) => replaced.differences.clone(),
            None => String::new(),
        };
        state.replaced = replaced;
        true
    }
}

/// Returns the status for a session whose engine was replaced: the coordinator must ask for the description again.
pub(super) fn changed() -> Status {
    status::other_numerics("the engine behind this verifier became another one")
}

#[cfg(test)]
mod tests {
    use wire::status::{PeerFailure, classify, names_field};

    use super::*;

    fn standing() -> Standing {
        Standing::new(v1::Numerics {
            weights: "first".to_owned(),
            ..Default::default()
        })
    }

    fn replaced(unusable: Option<&str>) -> Replaced {
        Replaced {
            differences: "model 'B', before 'A'".to_owned(),
            unusable: unusable.map(str::to_owned),
        }
    }

    #[test]
    fn open_sessions_are_opened_again_and_new_ones_refused_until_the_first_engine_is_back() {
        let standing = standing();
        let first = standing.opened("first").expect("the first engine");
        standing.admit(first, true).expect("the first engine");
        assert!(standing.found(Some(replaced(None))) && !standing.found(Some(replaced(None))));
        let told = standing.admit(first, false).expect_err("another");
        assert!(names_field(&told, "numerics"), "{told:?}");
        assert_eq!(classify(&told), PeerFailure::Transient);
        assert!(standing.opened("first").is_err(), "it is to ask again");
        let numerics = standing.numerics();
        assert_ne!(numerics, standing.first);
        let second = standing.opened(&numerics.weights).expect("it asked again");
        standing.admit(second, false).expect("an open session");
        let refused = standing.admit(second, true).expect_err("a new one");
        assert!(
            refused.message().contains("model 'B', before 'A'"),
            "{refused}"
        );
        assert!(standing.found(None));
        assert_eq!(standing.numerics(), standing.first);
        assert!(standing.admit(second, false).is_err(), "changed again");
        let third = standing.opened("first").expect("the first engine");
        standing.admit(third, true).expect("the first engine");
    }

    #[test]
    fn an_engine_of_other_tokens_answers_nobody() {
        let standing = standing();
        standing.found(Some(replaced(Some("its rows have 5 tokens"))));
        let generation = standing.opened("").expect("any");
        let refused = standing.admit(generation, false);
        let refused = refused.expect_err("no token fits");
        assert!(refused.message().contains("5 tokens"), "{refused}");
    }

    #[test]
    fn a_doubt_changes_the_numbers_once_and_wakes_the_watch() {
        let standing = standing();
        standing.doubt(0);
        standing.doubt(0);
        standing.wait(Duration::from_secs(1_000));
        assert!(standing.admit(0, false).is_err());
        assert_ne!(standing.numerics(), standing.first);
        // It may have been noise, so new sessions are taken.
        let generation = standing.opened("").expect("any");
        standing.admit(generation, true).expect("a new one");
        assert_eq!(generation, 1);
    }
}
