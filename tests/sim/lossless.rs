//! Messages that are lost, repeated or late change nothing: the client sees the target's own output.

use std::collections::HashMap;
use std::time::Duration;

use speculation::session::{Origin, Peer};

use crate::case::{Case, ROUND_TIMEOUT};
use crate::faults::{Fate, Faults, Rates, Way};
use crate::record::Record;
use crate::simulation::simulate;

const PEERS: [Peer; 2] = [Peer::Drafter, Peer::Verifier];

/// Simulates every case of the grid; each must complete with the target's output.
fn complete(faults: &Faults, mut check: impl FnMut(&Record)) {
    for case in Case::grid("coupled") {
        let record = simulate(&case, faults);
        record.assert_lossless();
        assert!(record.is_complete(), "{:?}", record.end());
        check(&record);
    }
}

#[test]
fn without_faults_the_target_speaks_and_drafts_are_accepted() {
    let mut origins = HashMap::new();
    complete(&Faults::none(1), |record| {
        for (_, origin) in record.emitted() {
            *origins.entry(origin).or_insert(0) += 1;
        }
    });
    // All of them happen often, or the other tests prove little.
    for origin in [Origin::Accepted, Origin::Recovered, Origin::Bonus] {
        assert!(origins[&origin] > 50, "{origins:?}");
    }
}

#[test]
fn a_lost_request_or_reply_is_asked_for_again() {
    for peer in PEERS {
        for way in [Way::Request, Way::Reply] {
            for index in 0..4 {
                let faults = Faults::none(2).stroke(peer, way, index, Fate::Lost);
                complete(&faults, |record| {
                    assert_eq!(record.statistics.retries, record.tally.lost);
                    assert!(record.statistics.fallbacks.is_empty());
                });
            }
        }
    }
}

#[test]
fn repeated_messages_cost_nothing() {
    let rates = Rates {
        twice: 1000,
        ..Rates::default()
    };
    let faults = Faults {
        rates,
        ..Faults::none(3)
    };
    complete(&faults, |record| {
        assert!(record.tally.repeated > 0);
        assert_eq!(record.statistics.retries, 0);
        assert!(record.statistics.fallbacks.is_empty());
    });
}

/// Faults that delay every third reply of `peer` by `late`.
fn stragglers(peer: Peer, late: Duration) -> Faults {
    [0, 3, 6, 9].iter().fold(Faults::none(4), |faults, &index| {
        faults.stroke(peer, Way::Reply, index, Fate::Late(late))
    })
}

/// The late reply is stale: its request was repeated, and the session is rounds ahead.
#[test]
fn stale_replies_are_overtaken_and_ignored() {
    for peer in PEERS {
        for by in [1, 2, 5] {
            complete(&stragglers(peer, ROUND_TIMEOUT * by), |record| {
                assert_eq!(record.statistics.retries, record.tally.late);
                assert!(record.tally.late > 0);
            });
        }
    }
}

/// A late request reaches a peer that has gone on and forgotten its reply: it answers for a shorter
/// output, and must then be told anew what is committed.
#[test]
fn stale_requests_do_not_set_a_peer_back_for_long() {
    for peer in PEERS {
        let mut needs = 0;
        for by in [600, 700, 800, 900] {
            let late = Fate::Late(Duration::from_millis(by));
            let faults = Faults::none(5).stroke(peer, Way::Request, 0, late);
            complete(&faults, |record| needs += record.needs);
        }
        assert!(needs > 0, "{peer:?} was never set back");
    }
}

#[test]
fn the_target_alone_survives_broken_streams() {
    for index in [0, 1, 7] {
        for fate in [Fate::Lost, Fate::Twice, Fate::Late(ROUND_TIMEOUT)] {
            for case in Case::grid("target-only") {
                let faults = Faults::none(6).stroke(Peer::Verifier, Way::Reply, index, fate);
                let record = simulate(&case, &faults);
                record.assert_lossless();
                assert!(record.is_complete());
                assert!(record.statistics.per_step_drafted.is_empty());
            }
        }
    }
}
