//! Streamed requests whose verifier or client fails, or is cut off from the other.

use std::time::Duration;

use speculation::session::Peer;

use crate::case::Case;
use crate::changes::is_of_one_model;
use crate::faults::{Fate, Faults, Rates, Trouble, Way};
use crate::message::Corruption;
use crate::simulation::simulate;
use crate::streams::{complete, grid};

/// One message in seven is lost, grants and the end of the request among them.
#[test]
fn a_lost_grant_is_made_up_for() {
    let (mut complete, mut retries) = (0, 0);
    for seed in 0..4 {
        let lost = Rates {
            lost: 150,
            ..Rates::default()
        };
        let faults = Faults {
            rates: lost,
            ..Faults::none(seed)
        };
        for case in grid() {
            let case = Case {
                ahead: 2,
                retries: 9,
                ..case
            };
            let record = simulate(&case, &faults);
            record.assert_lossless();
            retries += record.statistics.retries;
            complete += u32::from(record.is_complete());
        }
    }
    assert!(retries > 200 && complete > 300, "{retries} {complete}");
}

/// It goes no further than it is granted, and is given up then.
#[test]
fn a_decode_that_its_client_cannot_reach_ends_too() {
    let mut expired = 0;
    for cut in [Trouble::CutOff, Trouble::CutOneWay(Way::Request)] {
        for case in grid() {
            let case = Case { ahead: 6, ..case };
            let faults = Faults::none(7).outage_from(Peer::Verifier, cut, 41);
            let record = simulate(&case, &faults);
            record.assert_lossless();
            assert!(record.is_complete() || record.failed_at(Peer::Verifier));
            expired += record.streamed.expired;
        }
    }
    assert!(expired > 50, "{expired}");
}

#[test]
fn a_verifier_that_crashes_loses_its_drafts_and_is_offered_them_again() {
    let mut again = 0;
    for onset in [5, 41, 90, 150] {
        for down in [1, 30, 100] {
            let crash = onset..onset + down;
            complete(
                &Faults::none(3).outage(Peer::Verifier, Trouble::Crash, crash),
                |record| again += record.offered_again,
            );
        }
    }
    assert!(again > 100, "{again}");
}

#[test]
fn falsified_answers_never_reach_the_output() {
    for corruption in Corruption::ALL {
        let mut corrupted = 0;
        for index in 0..4 {
            let fate = Fate::Corrupt(corruption);
            let faults = Faults::none(4).stroke(Peer::Verifier, Way::Reply, index, fate);
            for case in grid() {
                let record = simulate(&case, &faults);
                record.assert_lossless();
                corrupted += record.tally.corrupted;
            }
        }
        assert!(corrupted > 100, "{corruption:?}: {corrupted}");
    }
}

/// A drafter is none of the verifier's business, and the request not the drafter's.
#[test]
fn a_stream_does_not_wait_for_a_drafter() {
    for trouble in [Trouble::CutOff, Trouble::Crash] {
        let faults = Faults::none(5).outage_from(Peer::Drafter, trouble, 0);
        complete(&faults, |record| {
            assert!(record.statistics.fallbacks.is_empty() && record.is_exact);
            assert_eq!(record.statistics.retries, 0);
        });
    }
}

#[test]
fn a_stream_is_exact_only_if_one_target_model_wrote_all_of_it() {
    let (mut exact, mut inexact) = (0, 0);
    for seed in 0..1_000 {
        let case = Case::new(seed, "coupled").streamed();
        let record = simulate(&case, &Faults::random(seed).replacing(seed));
        record.assert_orderly();
        let stream = record.stream();
        let is_of_one = is_of_one_model(&case, &stream);
        assert!(is_of_one || !record.is_exact, "seed {seed}: {stream:?}");
        exact += u32::from(record.is_exact);
        inexact += u32::from(!is_of_one);
    }
    assert!(exact > 100 && inexact > 50, "{exact} {inexact}");
}

#[test]
fn a_stream_whose_client_leaves_ends_at_once() {
    for leaves in [0, 33, 111, 300].map(Duration::from_millis) {
        let faults = Faults {
            client_leaves: Some(leaves),
            ..Faults::none(6)
        };
        for case in grid() {
            let record = simulate(&case, &faults);
            record.assert_lossless();
            assert!(record.end().0 <= leaves || record.is_complete());
            assert_eq!(record.streamed.expired, 0, "what is closed goes at once");
        }
    }
}
