//! Peers that crash, are cut off or are overloaded: the output stays the target's own.

use std::time::Duration;

use speculation::session::{Origin, Peer};

use crate::case::Case;
use crate::faults::{Faults, Trouble, Way};
use crate::record::Record;
use crate::simulation::simulate;

/// Times, in milliseconds, at which something befalls a peer.
const ONSETS: [u64; 6] = [0, 5, 20, 41, 90, 150];

const CUTS: [Trouble; 3] = [
    Trouble::CutOff,
    Trouble::CutOneWay(Way::Request),
    Trouble::CutOneWay(Way::Reply),
];

/// Simulates every case of the grid; the output must be the beginning of the target's.
fn lossless(faults: &Faults, mut check: impl FnMut(&Record)) {
    for case in Case::grid("coupled") {
        let record = simulate(&case, faults);
        record.assert_lossless();
        check(&record);
    }
}

/// As [`lossless`], and every request must come to the end of its output.
fn complete(faults: &Faults, mut check: impl FnMut(&Record)) {
    lossless(faults, |record| {
        assert!(record.is_complete(), "{:?}", record.end());
        check(record);
    });
}

#[test]
fn a_peer_that_crashes_and_comes_back_is_told_what_it_forgot() {
    for peer in [Peer::Drafter, Peer::Verifier] {
        for down in [1, 30, 100] {
            let mut needs = 0;
            for onset in ONSETS {
                let faults = Faults::none(1).outage(peer, Trouble::Crash, onset..onset + down);
                complete(&faults, |record| {
                    needs += record.needs;
                    assert!(record.statistics.fallbacks.is_empty());
                });
            }
            assert!(needs > 0, "{peer:?} never forgot anything");
        }
    }
}

#[test]
fn both_peers_may_crash_at_once_and_again() {
    for onset in ONSETS {
        let mut faults = Faults::none(2);
        for peer in [Peer::Drafter, Peer::Verifier] {
            for again in [0, 60, 700] {
                let start = onset + again;
                faults = faults.outage(peer, Trouble::Crash, start..start + 10);
            }
        }
        complete(&faults, |record| {
            assert!(record.statistics.fallbacks.is_empty());
        });
    }
}

#[test]
fn a_cut_that_heals_in_time_only_delays() {
    for peer in [Peer::Drafter, Peer::Verifier] {
        for cut in CUTS {
            for onset in ONSETS {
                let faults = Faults::none(3).outage(peer, cut, onset..onset + 250);
                complete(&faults, |record| {
                    assert!(record.statistics.fallbacks.is_empty());
                });
            }
        }
    }
}

/// The drafter is tried again now and then, in vain.
#[test]
fn without_its_drafter_the_target_goes_on_alone() {
    for trouble in CUTS.into_iter().chain([Trouble::Crash]) {
        for onset in ONSETS {
            let mut fell_back = 0;
            complete(
                &Faults::none(4).outage_from(Peer::Drafter, trouble, onset),
                |record| {
                    let fallbacks = &record.statistics.fallbacks;
                    assert!(fallbacks.iter().all(|lost| lost.peer == Peer::Drafter));
                    let alone = record.emitted().any(|token| token.1 == Origin::Target);
                    assert!(alone || fallbacks.is_empty());
                    fell_back += usize::from(!fallbacks.is_empty());
                },
            );
            assert!(fell_back > 10);
        }
    }
}

/// A drafter that comes back is used again.
#[test]
fn drafting_resumes_when_the_drafter_is_back() {
    let mut resumed = 0;
    let faults = Faults::none(5).outage(Peer::Drafter, Trouble::CutOff, 0..700);
    complete(&faults, |record| {
        resumed += record.statistics.num_spec_steps();
    });
    assert!(resumed > 0);
}

#[test]
fn without_its_verifier_a_request_fails_and_what_it_gave_stands() {
    for trouble in CUTS.into_iter().chain([Trouble::Crash]) {
        for onset in ONSETS {
            let mut failed = 0;
            lossless(
                &Faults::none(6).outage_from(Peer::Verifier, trouble, onset),
                |record| {
                    assert!(record.is_complete() || record.failed_at(Peer::Verifier));
                    failed += usize::from(!record.is_complete());
                },
            );
            assert!(failed > 10);
        }
    }
}

#[test]
fn an_overloaded_drafter_is_gone_without_and_an_overloaded_verifier_waited_for() {
    let overload = Trouble::Overload {
        retry_after: Duration::from_millis(80),
    };
    complete(
        &Faults::none(7).outage_from(Peer::Drafter, overload, 0),
        |record| {
            assert_eq!(record.statistics.retries, 0);
            assert_eq!(
                record.statistics.fallbacks.is_empty(),
                record.output.len() == 1
            );
        },
    );
    complete(
        &Faults::none(7).outage(Peer::Verifier, overload, 0..100),
        |record| {
            assert!(record.statistics.retries > 0);
            assert!(record.statistics.fallbacks.is_empty());
        },
    );
}
