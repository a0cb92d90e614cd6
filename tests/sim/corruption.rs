//! Falsified replies never reach the output.

use speculation::session::{FinishReason, Peer};

use crate::case::Case;
use crate::faults::{Fate, Faults, Trouble, Way};
use crate::message::Corruption;
use crate::record::Record;
use crate::simulation::simulate;

/// Simulates every case of the grid with the reply number `index` of `peer` falsified.
fn falsified(peer: Peer, corruption: Corruption, others: &Faults, mut check: impl FnMut(&Record)) {
    for index in 0..4 {
        let fate = Fate::Corrupt(corruption);
        let faults = others.clone().stroke(peer, Way::Reply, index, fate);
        let mut falsified = 0;
        for case in Case::grid("coupled") {
            let record = simulate(&case, &faults);
            record.assert_lossless();
            // A short request ends before the reply that would have been falsified.
            falsified += record.tally.corrupted;
            if record.tally.corrupted > 0 {
                check(&record);
            }
        }
        assert!(falsified > 10);
    }
}

fn is_refused(record: &Record) -> bool {
    matches!(record.end().1, FinishReason::Failed { peer: Peer::Verifier, reason }
        if reason.starts_with("malformed"))
}

#[test]
fn a_falsified_draft_costs_speed_only() {
    for corruption in Corruption::ALL {
        falsified(Peer::Drafter, corruption, &Faults::none(1), |record| {
            assert!(record.is_complete(), "{:?}", record.end());
            let fell_back = !record.statistics.fallbacks.is_empty();
            match corruption {
                // What a bad draft model could have drafted is a draft like any other.
                Corruption::OtherTokens => assert!(!fell_back),
                // It may leave a shorter block, or none.
                Corruption::WrongCount => {}
                _ => assert!(fell_back),
            }
        });
    }
}

#[test]
fn a_falsified_verdict_ends_the_request() {
    for corruption in Corruption::ALL {
        falsified(Peer::Verifier, corruption, &Faults::none(2), |record| {
            assert!(is_refused(record), "{:?}", record.end());
        });
    }
}

/// The drafter is gone, so the verifier's replies are tokens decoded alone.
#[test]
fn falsified_decoded_tokens_end_the_request_or_are_asked_for_again() {
    let alone = Faults::none(3).outage_from(Peer::Drafter, Trouble::Crash, 0);
    for corruption in Corruption::ALL {
        falsified(
            Peer::Verifier,
            corruption,
            &alone,
            |record| match corruption {
                Corruption::OutOfRange | Corruption::TooMany | Corruption::PastTheEnd => {
                    assert!(is_refused(record));
                }
                // Nothing at the position awaited: as if the message had been lost.
                _ => assert!(record.is_complete(), "{:?}", record.end()),
            },
        );
    }
}
