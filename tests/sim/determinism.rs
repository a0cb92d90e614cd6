//! The same inputs at the same times give the same actions.

use std::time::Duration;

use speculation::session::{Action, Session};

use crate::cascades::PLANS;
use crate::case::Case;
use crate::faults::Faults;
use crate::record::{Event, Record};
use crate::simulation::simulate;

const SEEDS: std::ops::Range<u64> = 0..200;

/// A request of a method, and one of each cascade.
fn cases(seed: u64) -> impl Iterator<Item = Case> {
    let cascades = PLANS.iter().map(move |&plan| Case::cascade(seed, plan));
    std::iter::once(Case::random(seed)).chain(cascades)
}

/// Tells a fresh session what another was told; what it asks for, and when.
fn replay(case: &Case, record: &Record) -> Vec<(Duration, Action)> {
    let mut session = Session::new(case.session_config());
    let mut actions = Vec::new();
    let mut poll = |session: &mut Session, now| {
        actions.extend(std::iter::from_fn(|| session.poll(now)).map(|action| (now, action)));
    };
    poll(&mut session, Duration::ZERO);
    for (now, event) in &record.events {
        match event {
            Event::Timeout => {
                assert_eq!(session.poll_timeout(), Some(*now));
                session.handle_timeout(*now);
            }
            Event::Input(input) => session.handle(input.clone(), *now),
        }
        poll(&mut session, *now);
    }
    actions
}

#[test]
fn a_replayed_request_asks_for_the_same() {
    for seed in SEEDS {
        for case in cases(seed) {
            let record = simulate(&case, &Faults::random(seed));
            assert_eq!(replay(&case, &record), record.actions);
        }
    }
}

#[test]
fn a_repeated_simulation_is_the_same() {
    for seed in SEEDS {
        let faults = Faults::random(seed);
        for case in cases(seed) {
            let (one, other) = (simulate(&case, &faults), simulate(&case, &faults));
            assert_eq!(one.events, other.events);
            assert_eq!(one.actions, other.actions);
            assert_eq!(one.statistics, other.statistics);
        }
    }
}
