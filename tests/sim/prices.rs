//! The load that peers report changes the speed of a request and none of its tokens.

use std::collections::HashMap;

use speculation::goodput::Price;
use speculation::session::{Action, Input, Peer, Request};

use crate::case::Case;
use crate::dice::{Chooses, Dice};
use crate::faults::Faults;
use crate::record::Record;
use crate::simulation::simulate;

/// The loads that the peers report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Claims {
    /// Nothing at all.
    Nothing,
    /// That rows cost nothing.
    Free,
    /// That rows cost more than anything.
    Dear,
    /// NaN in every field.
    NoNumber,
    /// One price after another, none like the one before.
    Jumps,
    /// Any of these, at random, and loads at random.
    Anything,
}

/// Makes the reports that peers send with their answers.
pub(crate) struct Liar {
    claims: Option<Claims>,
    dice: Dice,
    said: u32,
}

impl Liar {
    pub(crate) fn new(case: &Case) -> Self {
        Self {
            claims: case.goodput.then_some(case.claims),
            dice: Dice::new(case.seed, Chooses::Prices),
            said: 0,
        }
    }

    /// The load that `peer` reports next.
    pub(crate) fn next(&mut self, peer: Peer) -> Option<Input> {
        self.said += 1;
        let dice = &mut self.dice;
        let claims = match self.claims? {
            Claims::Anything => dice.pick(&[
                Claims::Nothing,
                Claims::Free,
                Claims::Dear,
                Claims::NoNumber,
                Claims::Jumps,
            ]),
            claims => claims,
        };
        let load = match self.claims? {
            Claims::Anything => f64::from(dice.pick(&[1, 3, 16, 64, 1_000])),
            _ => 16.0,
        };
        let price = match claims {
            Claims::Nothing | Claims::Anything => return None,
            Claims::Free => Price::new(0.0, 1.0, load, 0.0),
            Claims::Dear => Price::new(f64::INFINITY, load, load, f64::INFINITY),
            Claims::NoNumber => Price::new(f64::NAN, f64::NAN, f64::NAN, f64::NAN),
            Claims::Jumps => {
                let row = if self.said.is_multiple_of(2) {
                    1e-9
                } else {
                    1.0
                };
                Price::new(row, 16.0, 16.0, row)
            }
        };
        Some(Input::Priced {
            peer,
            price,
            share_processors: Some(self.dice.happens(500)),
        })
    }
}

/// The numbers of draft requests and of decode requests.
fn counts(record: &Record) -> (usize, usize) {
    let count = |is: fn(&Request) -> bool| {
        let sent = record.actions.iter().filter(
            |(_, action)| matches!(action, Action::Send { request, attempt: 0, .. } if is(request)),
        );
        sent.count()
    };
    let drafts = count(|request| matches!(request, Request::Draft { .. }));
    let rests = count(|request| matches!(request, Request::Decode { .. }));
    (drafts, rests)
}

#[test]
fn no_claim_changes_a_token_or_keeps_a_request_from_its_end() {
    let all = [
        Claims::Nothing,
        Claims::Free,
        Claims::Dear,
        Claims::NoNumber,
        Claims::Jumps,
        Claims::Anything,
    ];
    let mut seen = HashMap::new();
    for claims in all {
        for case in Case::grid("coupled") {
            let case = Case {
                goodput: true,
                claims,
                max_tokens: 200,
                alone_forwards: 5,
                ..case
            };
            let record = simulate(&case, &Faults::none(7));
            record.assert_lossless();
            assert!(record.is_complete(), "{claims:?}: {:?}", record.end());
            let (drafts, rests) = counts(&record);
            let (all_drafts, all_rests) = seen.entry(claims).or_insert((0, 0));
            *all_drafts += drafts;
            *all_rests += rests;
        }
    }
    // More is drafted where rows are free than where they cost more than they bring. Some drafts are tried there too,
    // because a price may fall.
    let of = |claims| seen[&claims];
    assert!(of(Claims::Free).0 > 2 * of(Claims::Dear).0, "{seen:?}");
    assert!(of(Claims::Dear).0 > 0 && of(Claims::Dear).1 > 0, "{seen:?}");
    assert!(
        of(Claims::Jumps).0 > 0 && of(Claims::Jumps).1 > 0,
        "{seen:?}"
    );
}

#[test]
fn claims_change_nothing_where_peers_fail_too() {
    for seed in 0..300 {
        let case = Case {
            goodput: true,
            ..Case::random(seed)
        };
        let record = simulate(&case, &Faults::random(seed));
        if case.method.name == "coupled" {
            record.assert_lossless();
        } else {
            record.assert_orderly();
        }
    }
}
