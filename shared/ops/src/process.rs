//! What a process gives each service in it: who it is, how its services are, what may be wrong with it.

use std::sync::Arc;

use net::Credentials;
use net::reload::Reloads;
use parking_lot::Mutex;
use serde_json::Value;
use strum::Display;
use tokio::sync::watch;

use crate::metrics::{Metrics, names};
use crate::trace::Traces;

/// What a process gives each service in it, and each of its channels to others. Cheap to clone; the default
/// is a process without TLS, tokens and traces, whose metrics nobody reads.
#[derive(Clone, Debug, Default)]
pub struct Process {
    /// Who it is, and whom it trusts.
    pub credentials: Credentials,
    /// Where its figures are counted.
    pub metrics: Metrics,
    /// Where its spans go.
    pub traces: Traces,
    /// Which services are in it, and how they are.
    pub services: ServiceConditions,
    /// What may be wrong with it although it is ready.
    pub warnings: Warnings,
    /// What operators are told of its parts.
    pub status: StatusParts,
    /// What can be read again while it runs.
    pub reloads: Reloads,
}

impl Process {
    /// Returns the same process with `credentials`, whose files are read again with its others, and whose certificate's
    /// expiry is one of its metrics: that of the certificate in use at each scrape.
    #[must_use]
    pub fn with_credentials(self, credentials: Credentials) -> Self {
        credentials.tls.add_to(&self.reloads);
        credentials.auth.add_to(&self.reloads);
        let tls = credentials.tls.clone();
        self.metrics.sample(move |samples| {
            if let Some(expires) = tls.expires() {
                samples.add(&names::TLS_EXPIRY, &[], expires.as_secs_f64());
            }
            Some(())
        });
        Self {
            credentials,
            ..self
        }
    }
}

/// Tells what is wrong at the moment, if anything is.
type Warning = Box<dyn Fn() -> Option<String> + Send + Sync>;

/// Those who may have something to say. Clones share them.
#[derive(Clone, Default, derive_more::Debug)]
#[debug("Warnings")]
pub struct Warnings(Arc<Mutex<Vec<Warning>>>);

impl Warnings {
    /// Has `warning` asked whenever readiness is.
    pub fn add(&self, warning: impl Fn() -> Option<String> + Send + Sync + 'static) {
        self.0.lock().push(Box::new(warning));
    }

    /// Returns what is wrong at the moment.
    pub fn all(&self) -> Vec<String> {
        self.0
            .lock()
            .iter()
            .filter_map(|warning| warning())
            .collect()
    }
}

/// Tells how a part of the process is at the moment, as an object; none once the part is gone.
type StatusPart = Box<dyn Fn() -> Option<Value> + Send + Sync>;

/// The parts of a process that tell operators more than figures can: whom they know, what they do. Clones share them.
#[derive(Clone, Default, derive_more::Debug)]
#[debug("StatusParts")]
pub struct StatusParts(Arc<Mutex<Vec<StatusPart>>>);

impl StatusParts {
    /// Has `part` asked whenever somebody looks.
    pub fn add(&self, part: impl Fn() -> Option<Value> + Send + Sync + 'static) {
        self.0.lock().push(Box::new(part));
    }

    /// Returns what all parts say, those that are gone left out.
    pub fn all(&self) -> Vec<Value> {
        self.0.lock().iter().filter_map(|part| part()).collect()
    }
}

/// The condition of a service. It only moves on, from starting to dead, except that a ready service may wait again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Display)]
#[strum(serialize_all = "lowercase")]
pub enum Condition {
    /// It loads its model, or warms up.
    Starting,
    /// It is a coordinator that no verifier answers, or a verifier whose engine elsewhere does not.
    #[strum(serialize = "waiting for a verifier or its engine")]
    Waiting,
    /// It takes requests.
    Ready,
    /// It finishes what it has and takes nothing new.
    Draining,
    /// It can do no more work.
    Dead,
}

/// The services of a process by their names, in the order in which they were made. Clones share the list.
#[derive(Clone, Debug, Default)]
pub struct ServiceConditions(watch::Sender<Vec<(&'static str, Condition)>>);

impl ServiceConditions {
    /// Adds a service that starts; returns where it stands in the list.
    pub(crate) fn add(&self, name: &'static str) -> usize {
        let mut index = 0;
        self.0.send_modify(|services| {
            index = services.len();
            services.push((name, Condition::Starting));
        });
        index
    }

    /// Moves the service at `index` on to `condition`, if it is not beyond that.
    pub(crate) fn go_on(&self, index: usize, condition: Condition) {
        self.0.send_if_modified(|services| {
            let (_, now) = &mut services[index];
            let goes_on = *now < condition;
            *now = condition.max(*now);
            goes_on
        });
    }

    /// Has the service at `index` wait, if it is ready.
    pub(crate) fn wait(&self, index: usize) {
        self.0.send_if_modified(|services| {
            let (_, now) = &mut services[index];
            let was_ready = *now == Condition::Ready;
            if was_ready {
                *now = Condition::Waiting;
            }
            was_ready
        });
    }

    /// Tells of every change.
    pub(crate) fn watch(&self) -> watch::Receiver<Vec<(&'static str, Condition)>> {
        self.0.subscribe()
    }

    /// Returns the services that were made so far, and how each is.
    pub fn conditions(&self) -> Vec<(&'static str, Condition)> {
        self.0.borrow().clone()
    }

    /// Returns whether there is a service and all of them are ready.
    pub fn are_ready(&self) -> bool {
        are_ready(&self.0.borrow())
    }

    /// Returns whether none of them is dead.
    pub fn are_alive(&self) -> bool {
        let services = self.0.borrow();
        services
            .iter()
            .all(|(_, condition)| *condition != Condition::Dead)
    }
}

/// Returns whether there is a service among these, and all of them are ready.
pub(crate) fn are_ready(services: &[(&'static str, Condition)]) -> bool {
    let is_ready = |(_, condition): &(_, Condition)| *condition == Condition::Ready;
    !services.is_empty() && services.iter().all(is_ready)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_ready_when_all_its_services_are() {
        let services = ServiceConditions::default();
        assert!(
            services.are_alive() && !services.are_ready(),
            "nothing is there yet"
        );
        let (one, other) = (services.add("one"), services.add("other"));
        services.go_on(one, Condition::Ready);
        assert!(!services.are_ready());
        services.go_on(other, Condition::Ready);
        assert!(services.are_ready());
        services.wait(other);
        assert!(!services.are_ready() && services.are_alive());
        services.go_on(other, Condition::Ready);
        assert!(services.are_ready());
        services.go_on(other, Condition::Draining);
        services.wait(other);
        assert!(!services.are_ready() && services.are_alive());
        services.go_on(other, Condition::Dead);
        assert!(!services.are_alive());
        for earlier in [Condition::Ready, Condition::Draining] {
            services.go_on(other, earlier);
        }
        let conditions = services.conditions();
        assert_eq!(
            conditions,
            [("one", Condition::Ready), ("other", Condition::Dead)],
            "nothing leads back"
        );
    }
}
