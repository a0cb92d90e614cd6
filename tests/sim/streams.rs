//! Requests whose target decodes all along and takes drafts as they come: whatever is proposed, and whatever becomes of it,
//! the client sees the target's own output.

use std::collections::HashMap;

use speculation::session::{Origin, Peer};

use crate::case::{Case, ROUND_TIMEOUT};
use crate::faults::{Fate, Faults, Rates, Way};
use crate::record::Record;
use crate::simulation::simulate;
use crate::sweep::{Met, end_of, seeds};

/// The grid, with sources of every kind and with the draft model alone.
pub(crate) fn grid() -> impl Iterator<Item = Case> {
    let cases = Case::grid("coupled").into_iter();
    cases.flat_map(|case| {
        [true, false].map(|honest| Case {
            honest,
            ..case.clone().streamed()
        })
    })
}

/// Simulates every case of the grid; each must complete with the target's output.
pub(crate) fn complete(faults: &Faults, mut check: impl FnMut(&Record)) {
    for case in grid() {
        let record = simulate(&case, faults);
        record.assert_lossless();
        assert!(record.is_complete(), "{:?}", record.end());
        check(&record);
    }
}

/// Faults that befall proposals only.
fn proposals(rates: Rates) -> Faults {
    Faults {
        proposals: rates,
        ..Faults::none(1)
    }
}

#[test]
fn without_faults_drafts_are_accepted_and_nothing_is_asked_for_again() {
    let (mut origins, mut accepted, mut changed, mut waits) = (HashMap::new(), 0, 0, 0);
    complete(&Faults::none(1), |record| {
        for (_, origin) in record.emitted() {
            *origins.entry(origin).or_insert(0) += 1;
        }
        assert_eq!(record.statistics.retries, 0);
        assert!(record.statistics.fallbacks.is_empty() && record.is_exact);
        let streamed = record.streamed;
        assert_eq!((streamed.begun, streamed.expired), (1, 0));
        accepted += streamed.accepted;
        changed += streamed.changed;
        waits += streamed.waits;
    });
    for origin in [Origin::Accepted, Origin::Recovered, Origin::Bonus] {
        assert!(origins[&origin] > 30, "{origins:?}");
    }
    assert!(origins[&Origin::Target] > 50, "{origins:?}");
    assert_eq!(origins[&Origin::Accepted], accepted);
    assert!(changed > 50 && waits > 50, "{changed} {waits}");
}

/// Proposals decide how many forwards there are, and nothing else.
#[test]
fn the_fate_of_proposals_changes_no_token_and_repeats_no_request() {
    let mut forwards = HashMap::new();
    let fates = [("none", Rates::default())]
        .into_iter()
        .chain([400, 1_000].into_iter().flat_map(|often| {
            let rates = Rates::default();
            [
                (
                    "lost",
                    Rates {
                        lost: often,
                        ..rates
                    },
                ),
                (
                    "twice",
                    Rates {
                        twice: often,
                        ..rates
                    },
                ),
                (
                    "late",
                    Rates {
                        late: often,
                        ..rates
                    },
                ),
            ]
        }));
    for (what, rates) in fates {
        let mut sum = 0;
        complete(&proposals(rates), |record| {
            assert_eq!(record.statistics.retries, 0);
            sum += record.statistics.target_forwards;
            if rates.lost == 1_000 {
                assert_eq!(record.streamed.received.new, 0);
                assert!(record.emitted().all(|(_, it)| it == Origin::Target));
            }
        });
        let worst = forwards.entry(what).or_insert(0);
        *worst = sum.max(*worst);
    }
    // Without any there are as many forwards as tokens.
    assert!(
        forwards["lost"] > forwards["none"] * 11 / 10,
        "{forwards:?}"
    );
    assert!(forwards["twice"] < forwards["lost"], "{forwards:?}");
}

#[test]
fn a_lost_late_or_repeated_request_or_reply_changes_no_token() {
    let mut retries = 0;
    for way in [Way::Request, Way::Reply] {
        for index in [0, 1, 3, 7] {
            for fate in [Fate::Lost, Fate::Twice, Fate::Late(ROUND_TIMEOUT * 2)] {
                let faults = Faults::none(2).stroke(Peer::Verifier, way, index, fate);
                complete(&faults, |record| {
                    retries += record.statistics.retries;
                    assert!(record.statistics.fallbacks.is_empty());
                });
            }
        }
    }
    assert!(retries > 500, "{retries}");
}

/// What the sweep must meet with.
const TO_MEET: [&str; 14] = [
    "stop",
    "length",
    "deadline",
    "cancelled",
    "failed",
    "retries",
    "new",
    "stale",
    "without room",
    "malformed",
    "accepted",
    "changed",
    "waits",
    "offered again",
];

#[test]
fn random_streams_under_random_faults_are_lossless_and_end() {
    let seeds = seeds();
    let mut met = Met::of(TO_MEET, &seeds);
    for seed in seeds {
        let record = simulate(&Case::random(seed).streamed(), &Faults::random(seed));
        record.assert_lossless();
        met.meet(end_of(&record), 1);
        met.meet("retries", record.statistics.retries);
        let streamed = record.streamed;
        met.meet("new", streamed.received.new);
        met.meet("stale", streamed.received.stale);
        met.meet("without room", streamed.received.without_room);
        met.meet("malformed", streamed.received.malformed);
        met.meet("accepted", streamed.accepted);
        met.meet("changed", streamed.changed);
        met.meet("waits", streamed.waits);
        met.meet("offered again", record.offered_again);
    }
    met.check();
}
