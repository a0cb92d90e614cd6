//! Rejection is exact in distribution, and a seed's tokens depend on what was drafted: what faults
//! must not change is the verdict on a block.

use std::collections::HashMap;

use speculation::session::Peer;

use crate::case::Case;
use crate::faults::{Fate, Faults, Rates, Trouble, Way};
use crate::record::Record;
use crate::simulation::simulate;

/// Fails if a block got two verdicts. How many were decided more than once.
fn assert_verdicts_repeat(record: &Record) -> usize {
    let mut verdicts = HashMap::new();
    let mut again = 0;
    for decision in &record.decisions {
        let block = (decision.round, decision.base_len);
        let made_of = (&decision.drafts, &decision.verdict);
        if let Some(before) = verdicts.insert(block, made_of) {
            again += 1;
            assert_eq!(before, made_of, "round {}", decision.round);
        }
    }
    again
}

/// Faults that repetition overcomes.
fn overcome() -> Vec<Faults> {
    let mut schedules = Vec::new();
    for peer in [Peer::Drafter, Peer::Verifier] {
        for index in 0..3 {
            for way in [Way::Request, Way::Reply] {
                schedules.push(Faults::none(1).stroke(peer, way, index, Fate::Lost));
            }
        }
        for onset in [5, 20, 41, 90] {
            schedules.push(Faults::none(1).outage(peer, Trouble::Crash, onset..onset + 30));
            // The reply is lost, and asked for again of a peer that remembers nothing.
            let silent = Trouble::CutOneWay(Way::Reply);
            let lost = Faults::none(1).outage(peer, silent, onset..onset + 150);
            schedules.push(lost.outage(peer, Trouble::Crash, onset + 150..onset + 160));
        }
    }
    schedules
}

#[test]
fn a_block_decided_again_gets_the_same_verdict() {
    let mut again = 0;
    for faults in overcome() {
        for case in Case::grid("rejection") {
            let record = simulate(&case, &faults);
            record.assert_orderly();
            again += assert_verdicts_repeat(&record);
        }
    }
    assert!(again > 100, "{again} blocks were decided again");
}

/// Without a fallback the same blocks are drafted and decided, whatever was repeated on the way.
#[test]
fn repetition_changes_no_token() {
    for case in Case::grid("rejection") {
        let untroubled = simulate(&case, &Faults::none(1));
        for faults in overcome() {
            let record = simulate(&case, &faults);
            assert!(record.is_complete(), "{:?}", record.end());
            assert!(record.statistics.fallbacks.is_empty());
            assert_eq!(record.stream(), untroubled.stream());
        }
    }
}

#[test]
fn a_request_under_any_faults_ends_once_and_in_order() {
    let mut again = 0;
    for seed in 0..300 {
        let case = Case {
            method: Case::new(seed, "rejection").method,
            ..Case::random(seed)
        };
        let mut faults = Faults::random(seed);
        // What was drafted must be what is verified.
        faults.rates = Rates {
            corrupt: 0,
            ..faults.rates
        };
        let record = simulate(&case, &faults);
        record.assert_orderly();
        again += assert_verdicts_repeat(&record);
    }
    assert!(again > 0, "no block was decided again");
}
