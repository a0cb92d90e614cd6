//! Requests whose target decodes while a drafter drafts ahead of it: whatever becomes of the drafter, and of what the two
//! say to each other, the client sees the target's own output, and no request is repeated for it.

use std::collections::HashMap;

use speculation::session::Peer;

use crate::case::{Case, DraftModel};
use crate::faults::{Faults, Rates, Trouble, Way};
use crate::record::Record;
use crate::simulation::simulate;
use crate::sweep::{Met, end_of, seeds};

/// This case, with a drafter that drafts ahead of a target slow enough for it.
fn ahead(case: Case) -> Case {
    Case {
        drafts_ahead: true,
        honest: true,
        alone_forwards: 4,
        ..case.streamed()
    }
}

/// Simulates every case of the grid; each must complete with the target's output.
fn complete(faults: &Faults, mut check: impl FnMut(&Case, &Record)) {
    for case in Case::grid("coupled").into_iter().map(ahead) {
        let record = simulate(&case, faults);
        record.assert_lossless();
        assert!(record.is_complete(), "{:?}", record.end());
        assert!(record.statistics.fallbacks.is_empty() && record.is_exact);
        check(&case, &record);
    }
}

#[test]
fn a_drafter_near_the_target_saves_forwards() {
    let mut sums = HashMap::new();
    complete(&Faults::none(1), |case, record| {
        assert_eq!((record.statistics.retries, record.opened_ahead), (0, 1));
        let is_near = case.draft_model == DraftModel::Near;
        let (forwards, tokens) = sums.entry(is_near).or_insert((0, 0));
        *forwards += record.statistics.target_forwards;
        *tokens += record.output.len() as u32;
    });
    let (near, unrelated) = (sums[&true], sums[&false]);
    assert!(near.0 * 10 < near.1 * 9, "{sums:?}");
    assert!(unrelated.0 <= unrelated.1, "{sums:?}");
}

#[test]
fn a_drafter_that_is_lost_is_opened_again_and_the_target_goes_on() {
    let mut opened = 0;
    for trouble in [
        Trouble::Crash,
        Trouble::CutOff,
        Trouble::CutOneWay(Way::Request),
        Trouble::CutOneWay(Way::Reply),
    ] {
        for onset in [1, 60, 200, 400] {
            for down in [30, 300, 10_000] {
                let outage = onset..onset + down;
                let faults = Faults::none(3).outage(Peer::Drafter, trouble, outage);
                complete(&faults, |_, record| {
                    assert_eq!(record.statistics.retries, 0);
                    opened += record.opened_ahead - 1;
                });
            }
        }
    }
    assert!(opened > 100, "{opened}");
}

#[test]
fn the_fate_of_what_a_drafter_says_changes_no_token_and_repeats_no_request() {
    let rates = Rates::default();
    for often in [200, 1_000] {
        for rates in [
            Rates {
                lost: often,
                ..rates
            },
            Rates {
                twice: often,
                ..rates
            },
            Rates {
                late: often,
                ..rates
            },
        ] {
            let faults = Faults {
                proposals: rates,
                ..Faults::none(5)
            };
            complete(&faults, |_, record| {
                assert_eq!(record.statistics.retries, 0);
            });
        }
    }
}

/// What the sweep must meet with.
const TO_MEET: [&str; 10] = [
    "stop",
    "length",
    "deadline",
    "cancelled",
    "failed",
    "retries",
    "new",
    "stale",
    "accepted",
    "opened again",
];

#[test]
fn random_faults_around_a_drafter_lose_nothing() {
    let seeds = seeds();
    let mut met = Met::of(TO_MEET, &seeds);
    for seed in seeds {
        let case = Case {
            drafts_ahead: true,
            ..Case::random(seed).streamed()
        };
        let record = simulate(&case, &Faults::random(seed));
        record.assert_lossless();
        met.meet(end_of(&record), 1);
        met.meet("retries", record.statistics.retries);
        let streamed = record.streamed;
        met.meet("new", streamed.received.new);
        met.meet("stale", streamed.received.stale);
        met.meet("accepted", streamed.accepted);
        met.meet("opened again", record.opened_ahead.saturating_sub(1));
    }
    met.check();
}
