//! Every request ends, and none later than its deadline.

use std::time::Duration;

use speculation::session::{FinishReason, Peer};

use crate::case::{Case, ROUND_TIMEOUT};
use crate::faults::{Fate, Faults, Trouble, Way};
use crate::network::MAX_LATENCY;
use crate::simulation::{FORWARD, simulate};

const METHODS: [&str; 4] = ["coupled", "rejection", "target-only", "draft-only"];

#[test]
fn without_faults_nothing_is_repeated_or_lost() {
    for method in METHODS {
        for case in Case::grid(method) {
            let record = simulate(&case, &Faults::none(case.seed));
            record.assert_orderly();
            assert!(record.is_complete());
            assert_eq!(record.statistics.retries, 0);
            assert!(record.statistics.fallbacks.is_empty());
            assert_eq!(record.needs, 0);
            // A round takes two exchanges at most, each token at most a forward of each model.
            let rounds = record.output.len() as u32;
            let exchange = 2 * MAX_LATENCY + FORWARD;
            assert!(record.end().0 <= rounds * 2 * exchange);
        }
    }
}

/// However long the request could still be repeated, and whatever it waits for.
#[test]
fn a_request_that_waits_ends_at_its_deadline() {
    let deadline = Duration::from_millis(1_234);
    let overload = Trouble::Overload {
        retry_after: Duration::from_secs(10),
    };
    let busy = Trouble::Overload {
        retry_after: Duration::from_millis(10),
    };
    for trouble in [Trouble::CutOff, Trouble::Crash, overload, busy] {
        for method in METHODS {
            for case in Case::grid(method) {
                let case = Case {
                    retries: u32::MAX,
                    deadline: Some(deadline),
                    ..case
                };
                let faults = Faults::none(1).outage_from(Peer::Verifier, trouble, 0);
                let record = simulate(&case, &faults.outage_from(Peer::Drafter, trouble, 0));
                record.assert_orderly();
                assert_eq!(record.end(), (deadline, &FinishReason::DeadlineExceeded));
                assert!(record.output.is_empty());
            }
        }
    }
}

/// Every answer comes just before it is given up, so only the request's own deadline ends it.
#[test]
fn a_request_that_trickles_ends_at_its_deadline() {
    let deadline = Duration::from_millis(1_000);
    let trickle = |peer, faults: Faults| {
        (0..100).fold(faults, |faults, index| {
            faults.stroke(peer, Way::Reply, index, Fate::Late(ROUND_TIMEOUT * 7 / 10))
        })
    };
    let faults = trickle(Peer::Verifier, trickle(Peer::Drafter, Faults::none(2)));
    let mut ended_by_deadline = 0;
    for case in Case::grid("coupled") {
        let case = Case {
            deadline: Some(deadline),
            ..case
        };
        let record = simulate(&case, &faults);
        record.assert_lossless();
        let (ended_at, reason) = record.end();
        if *reason == FinishReason::DeadlineExceeded {
            assert_eq!(ended_at, deadline);
            assert!(!record.output.is_empty());
            ended_by_deadline += 1;
        }
    }
    assert!(ended_by_deadline > 10);
}

/// Without a deadline the number of repetitions is what ends it.
#[test]
fn a_request_without_a_deadline_ends_too() {
    for peer in [Peer::Drafter, Peer::Verifier] {
        for method in METHODS {
            for case in Case::grid(method) {
                let case = Case {
                    deadline: None,
                    ..case
                };
                let faults = Faults::none(3).outage_from(peer, Trouble::CutOff, 30);
                simulate(&case, &faults).assert_orderly();
            }
        }
    }
}

/// Or has ended already, and nothing comes after it.
#[test]
fn a_request_whose_client_leaves_ends_at_once() {
    for leaves in [0, 7, 33, 60, 111, 300, 5_000].map(Duration::from_millis) {
        for method in METHODS {
            for case in Case::grid(method) {
                let faults = Faults {
                    client_leaves: Some(leaves),
                    ..Faults::none(4)
                };
                let record = simulate(&case, &faults);
                record.assert_orderly();
                match record.end() {
                    (at, FinishReason::Cancelled) => assert_eq!(at, leaves),
                    (at, _) => assert!(record.is_complete() && at <= leaves),
                }
            }
        }
    }
}
