//! Rejection is exact in distribution, and a seed's tokens depend on what was drafted: what faults
//! must not change is the verdict on a block.

use std::collections::HashMap;

use speculation::session::Peer;

use crate::case::Case;
use crate::faults::{Fate, Faults, Rates, Trouble, Way};
use crate::peer::Decision;
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

const METHODS: [&str; 3] = ["rejection", "block", "block-greedy"];

#[test]
fn a_block_decided_again_gets_the_same_verdict() {
    for method in METHODS {
        let mut again = 0;
        for faults in overcome() {
            for case in Case::grid(method) {
                let record = simulate(&case, &faults);
                record.assert_orderly();
                again += assert_verdicts_repeat(&record);
            }
        }
        assert!(again > 100, "{method}: {again} blocks were decided again");
    }
}

/// Residual layers live in the session, so they survive a repetition and a verifier that forgot
/// everything.
#[test]
fn faults_that_repetition_overcomes_change_no_token() {
    for method in METHODS {
        let (mut retried, mut carried) = (0, 0);
        for faults in overcome() {
            for case in Case::grid(method) {
                let record = simulate(&case, &faults);
                assert!(record.is_complete(), "{:?}", record.end());
                assert!(record.statistics.fallbacks.is_empty(), "{method}");
                let untroubled = simulate(&case, &Faults::none(1));
                assert_eq!(record.stream(), untroubled.stream(), "{method}");
                assert!(record.is_exact);
                if record.statistics.retries > 0 {
                    retried += 1;
                    let layers = |decision: &Decision| !decision.verdict.layers.is_empty();
                    carried += record.decisions.iter().filter(|d| layers(d)).count();
                }
            }
        }
        assert!(retried > 100, "{method}: {retried} requests were repeated");
        assert_eq!(
            carried > 100,
            method == "block-greedy",
            "{method}: {carried}"
        );
    }
}

#[test]
fn a_request_under_any_faults_ends_once_and_in_order() {
    let mut again = 0;
    for seed in 0..300 {
        let case = Case {
            method: Case::new(seed, "rejection").method,
            streams: false,
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
