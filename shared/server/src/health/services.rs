//! The services of a process, as its admin port reports them.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// How a service is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// It loads its model, warms up, or looks for what it needs.
    Starting,
    /// It takes requests.
    Ready,
    /// It finishes what it has and takes nothing new.
    Draining,
    /// It can do no more work.
    Dead,
}

impl Condition {
    /// As the admin port says it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Draining => "draining",
            Self::Dead => "dead",
        }
    }
}

/// The condition of one service. It only ever goes on, from starting to dead.
#[derive(Debug, Default)]
pub(super) struct State(AtomicU8);

const ORDER: [Condition; 4] = [
    Condition::Starting,
    Condition::Ready,
    Condition::Draining,
    Condition::Dead,
];

impl State {
    pub(super) fn condition(&self) -> Condition {
        ORDER[usize::from(self.0.load(Ordering::Acquire))]
    }

    /// Whether it is ready now: a service that drains already is not.
    pub(super) fn ready(&self) -> bool {
        self.go_on_to(1);
        self.condition() == Condition::Ready
    }

    pub(super) fn drain(&self) {
        self.go_on_to(2);
    }

    pub(super) fn die(&self) {
        self.go_on_to(3);
    }

    fn go_on_to(&self, index: u8) {
        self.0.fetch_max(index, Ordering::AcqRel);
    }
}

/// The services of a process. Clones share the list.
#[derive(Clone, Debug, Default)]
pub struct Services(Arc<Mutex<Vec<Service>>>);

/// A service's name and condition.
type Service = (&'static str, Arc<State>);

impl Services {
    pub(super) fn add(&self, name: &'static str) -> Arc<State> {
        let state = Arc::new(State::default());
        self.with(|services| services.push((name, Arc::clone(&state))));
        state
    }

    /// The services that were made so far, and how each is.
    pub fn conditions(&self) -> Vec<(&'static str, Condition)> {
        let condition = |(name, state): &Service| (*name, state.condition());
        self.with(|services| services.iter().map(condition).collect())
    }

    /// Whether there is a service and all of them are ready.
    pub fn are_ready(&self) -> bool {
        let conditions = self.conditions();
        let is_ready = |(_, condition): &(_, Condition)| *condition == Condition::Ready;
        !conditions.is_empty() && conditions.iter().all(is_ready)
    }

    /// Whether none of them is dead.
    pub fn are_alive(&self) -> bool {
        let conditions = self.conditions();
        conditions
            .iter()
            .all(|(_, condition)| *condition != Condition::Dead)
    }

    fn with<T>(&self, action: impl FnOnce(&mut Vec<Service>) -> T) -> T {
        // Nothing here panics half-way, so what is behind a poisoned lock is whole.
        action(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_ready_when_all_its_services_are() {
        let services = Services::default();
        assert!(
            services.are_alive() && !services.are_ready(),
            "nothing is there yet"
        );
        let (one, other) = (services.add("one"), services.add("other"));
        assert!(one.ready());
        assert!(!services.are_ready());
        assert!(other.ready());
        assert!(services.are_ready());
        other.drain();
        assert!(!services.are_ready() && services.are_alive());
        other.die();
        assert!(!services.are_alive());
        let conditions = services.conditions();
        assert_eq!(
            conditions,
            [("one", Condition::Ready), ("other", Condition::Dead)]
        );
    }

    #[test]
    fn nothing_leads_back() {
        let state = State::default();
        state.drain();
        assert!(!state.ready());
        assert_eq!(state.condition(), Condition::Draining);
        state.die();
        state.drain();
        assert_eq!(state.condition(), Condition::Dead);
    }
}
