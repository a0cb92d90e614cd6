//! What others wait for, and what other sessions measured.

use super::*;

/// A verifier with so many sessions, all of them in each forward, in which a row takes so many ms.
fn busy(sessions: u32, row_ms: f64) -> Price {
    let sessions = f64::from(sessions);
    Price::new(row_ms / 1e3, sessions, sessions, 0.03)
}

/// An estimator that knows what rounds cost in [`WORLD`], where drafting pays, at each of these loads.
fn settled(loads: &[u32]) -> Estimator {
    let mut estimator = Estimator::default();
    for &sessions in loads {
        estimator.verifier_reported(busy(sessions, 0.0));
        assert!(!WORLD.serve(&mut estimator, 20, 300).is_empty());
        assert!(estimator.decide(20) > 0, "it pays with {sessions}");
    }
    estimator
}

#[test]
fn what_others_wait_for_a_row_ends_drafting_and_its_fall_begins_it_again() {
    let mut estimator = settled(&[16]);
    let free = estimator.costs().expect("known");
    estimator.verifier_reported(busy(16, 20.0));
    let costs = estimator.costs().expect("known");
    // Fifteen wait 20 ms for each row.
    let expected = free.per_token + 15.0 * 0.02;
    assert!(
        (costs.per_token - expected).abs() < 1e-9,
        "{costs:?} {free:?}"
    );
    assert!((costs.alone - free.alone - 0.3).abs() < 1e-9, "{costs:?}");
    assert_eq!(estimator.decide(20), 0);
    assert_eq!(estimator.decision().why, Why::Rests);
    // The row that the target alone has is waited for as well.
    assert!(estimator.decision().gain.is_some_and(|gain| gain < 1.0));
    estimator.verifier_reported(busy(16, 0.0));
    assert!(estimator.decide(20) > 0, "{:?}", estimator.decision());
    assert_eq!(estimator.decision().why, Why::Pays);
}

#[test]
fn a_row_that_others_wait_for_shortens_drafts_before_it_ends_them() {
    let mut estimator = settled(&[4]);
    let mut before = estimator.decide(20);
    let free = before;
    for row in [0.2, 0.5, 1.0, 1.5, 2.0, 3.0] {
        estimator.verifier_reported(busy(4, row));
        // By at most two a round.
        let len = (0..10).map(|_| estimator.decide(20)).last().unwrap_or(0);
        assert!(len <= before, "{row}: {len} after {before}");
        before = len;
    }
    assert!(before < free, "{before} of {free}");
}

#[test]
fn a_drafter_on_the_verifiers_cores_takes_time_from_all() {
    let mut estimator = settled(&[16]);
    let apart = estimator.costs().expect("known");
    let drafter = Price::new(0.0, 2.0, 2.0, 0.004);
    estimator.drafter_reported(drafter, Some(false));
    assert_eq!(estimator.costs(), Some(apart));
    estimator.drafter_reported(drafter, Some(true));
    let costs = estimator.costs().expect("known");
    // Half of a forward of 4 ms is this session's, and fifteen wait for it.
    let expected = apart.per_token + 15.0 * 0.002;
    assert!((costs.per_token - expected).abs() < 1e-9, "{costs:?}");
}

#[test]
fn what_was_measured_at_one_load_says_nothing_of_another() {
    let mut estimator = settled(&[1]);
    assert!(estimator.costs().is_some());
    estimator.verifier_reported(busy(64, 0.0));
    assert_eq!(estimator.costs(), None);
    assert_eq!(
        estimator.decide(20),
        0,
        "the target alone is measured first"
    );
    estimator.verifier_reported(busy(1, 0.0));
    assert!(estimator.decide(20) > 0, "what was known is known again");
}

/// Costs are common to sessions, acceptance is not.
#[test]
fn sessions_share_costs_and_keep_their_own_acceptance() {
    let known = settled(&[1]);
    let [mut lucky, mut unlucky] = [0.0, 1.0].map(|spread| known.begin(spread, true));
    // Tokens emitted by rounds with drafts and by the target alone, after the first rounds.
    let mut tokens = [(0, 0), (0, 0)];
    for index in 0..600 {
        let sessions = [(&mut lucky, 0.95), (&mut unlucky, 0.0)];
        for ((session, acceptance), (drafted, rested)) in sessions.into_iter().zip(&mut tokens) {
            let counts = u32::from(index >= 60);
            if session.decide(20) > 0 {
                let round = world(acceptance, 9).round(4, index);
                *drafted += counts * (round.accepted + 1);
                session.observe(round);
            } else {
                let rest = session.rest();
                *rested += counts * rest;
                session.observe_alone(rest, Some(WORLD.alone() * rest));
            }
        }
    }
    // The unlucky one looks now and then whether its text has changed.
    let [(drafted, rested), (vain, alone)] = tokens;
    assert!(drafted > 20 * rested && alone > 10 * vain, "{tokens:?}");
    assert_eq!(
        lucky.costs().map(|costs| costs.alone),
        unlucky.costs().map(|costs| costs.alone)
    );
    let acceptance = [lucky, unlucky].each_ref().map(Estimator::acceptance);
    assert!(acceptance[0] > acceptance[1] + 0.4, "{acceptance:?}");
}

/// How long a session rests whose drafts are all refused, depends on whether those of its kind pay.
#[test]
fn a_session_that_is_out_of_luck_looks_again_soon() {
    let known = settled(&[1]);
    let mut unlucky = known.begin(0.0, true);
    let mut index = 0;
    while unlucky.decide(20) > 0 {
        unlucky.observe(world(0.0, 9).round(4, index));
        index += 1;
    }
    assert!(known.begin(0.0, true).decide(20) > 0, "the kind drafts");
    assert_eq!(unlucky.rest(), OWN_REST);

    let slow = World {
        draft: (5.0, 40.0),
        ..world(0.0, 9)
    };
    let mut useless = Estimator::default();
    slow.serve(&mut useless, 20, 1_000);
    while useless.decide(20) > 0 {
        useless.observe(slow.round(4, 0));
    }
    let rest = WORLD.alone() * useless.rest();
    assert!(rest.abs_diff(LOOK_EVERY) <= WORLD.alone(), "{rest:?}");
}

/// A session's acceptance is its own: the next session begins with that of the kind.
#[test]
fn a_session_has_no_others_acceptance() {
    let known = settled(&[1]);
    let mut unlucky = known.begin(0.0, true);
    for index in 0..40 {
        unlucky.observe(world(0.0, 9).round(4, index));
    }
    let [next, other] = [&unlucky, &known].map(|before| before.begin(0.0, true).acceptance());
    assert_eq!(next, other, "whoever it begins from");
    assert!(next > unlucky.acceptance() + 0.2, "{next}");
}

#[test]
fn of_many_sessions_one_tries_at_a_time() {
    let slow = World {
        draft: (5.0, 40.0),
        acceptance: 0.3,
        ..WORLD
    };
    let mut known = Estimator::default();
    known.verifier_reported(busy(64, 0.0));
    let spreads = (0..64).map(|at| f64::from(at) / 64.0);
    let mut sessions: Vec<_> = spreads.map(|spread| known.begin(spread, true)).collect();
    let (mut drafted, mut made) = (0, 0);
    for index in 0..400 {
        let mut at_once = 0;
        for session in &mut sessions {
            let len = session.decide(20);
            if len > 0 {
                at_once += 1;
                drafted += 1;
                session.observe(slow.round(len, index));
            } else {
                session.observe_alone(1, Some(slow.alone()));
            }
            made += 1;
        }
        assert!(at_once <= 1 || index < 8, "{at_once} in round {index}");
    }
    // Not at all costs nothing, and never learns: some do.
    assert!((3..made / 100).contains(&drafted), "{drafted} of {made}");
}

/// Where drafting gains about as much as it costs, sessions change at different gains.
#[test]
fn sessions_do_not_change_their_way_together() {
    let known = settled(&[16]);
    let [low, high] = [0.0, 1.0].map(|spread| known.begin(spread, true));
    assert!(low.spread < high.spread);
    let changes = |mut session: Estimator| {
        let rows = (0..4_000).map(|step| f64::from(step) * 0.01);
        let rests = rows.clone().find(|&row| {
            session.verifier_reported(busy(16, row));
            session.decide(20) == 0
        });
        let rests = rests.expect("too dear at last");
        let mut down = rows.rev().skip_while(|&row| row > rests);
        let drafts = down.find(|&row| {
            session.verifier_reported(busy(16, row));
            session.decide(20) > 0
        });
        (rests, drafts.expect("cheap at last"))
    };
    let [low, high] = [low, high].map(|mut session| {
        session.decide(20);
        changes(session)
    });
    assert!(low.1 < low.0 && high.1 < high.0, "{low:?} {high:?}");
    assert!(high.0 > low.0 && high.1 < low.1, "{low:?} {high:?}");
}

#[test]
fn whatever_peers_claim_costs_speed_alone() {
    let claims = [
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        -1.0,
        0.0,
        1e300,
        1e-300,
    ];
    let mut estimator = settled(&[1]);
    for (at, &row) in claims.iter().enumerate() {
        for &sequences in &claims {
            let other = claims[(at + 3) % claims.len()];
            let price = Price::new(row, sequences, other, other);
            estimator.verifier_reported(price);
            estimator.drafter_reported(price, Some(true));
            for most in [0, 1, 20] {
                assert!(estimator.decide(most) <= most);
                let rest = estimator.rest();
                assert!(rest >= 1, "{rest}");
                estimator.observe_alone(rest, Some(Duration::ZERO));
                estimator.observe(WORLD.round(most, 0));
            }
            if let Some(costs) = estimator.costs() {
                let all = [costs.fixed, costs.per_token, costs.alone];
                assert!(
                    all.iter().all(|cost| cost.is_finite() && *cost >= 0.0),
                    "{costs:?}"
                );
            }
        }
    }
}

/// What a token takes is known from many of them, in whatever bursts they come; and not from those that were held up.
#[test]
fn bursts_and_tokens_that_were_held_up_do_not_change_what_one_takes() {
    let ms = |ms: u64| Some(Duration::from_millis(ms));
    let mut estimator = Estimator::default();
    estimator.verifier_reported(Price::new(0.0, 1.0, 1.0, 0.008));
    for _ in 0..100 {
        for took in [30, 4, 3, 3] {
            estimator.observe_alone(1, ms(took));
        }
    }
    let each = estimator.at_load(|costs| costs.alone.fixed());
    assert!((each - 0.01).abs() < 1e-9, "{each}");
    // A client that does not read for a second, and then all that was kept for it.
    for _ in 0..20 {
        estimator.observe_alone(1, ms(1_000));
        for _ in 0..100 {
            estimator.observe_alone(1, ms(0));
        }
    }
    let each = estimator.at_load(|costs| costs.alone.fixed());
    assert!((each - 0.01).abs() < 1e-9, "{each}");
}

/// A session that heard lies drafts as before once it hears the truth: lies leave nothing behind.
#[test]
fn lies_are_forgotten_with_the_next_price() {
    let mut estimator = settled(&[16]);
    let before = estimator.costs();
    for lie in [f64::NAN, f64::INFINITY, 1e300] {
        estimator.verifier_reported(Price::new(lie, 16.0, 16.0, lie));
        estimator.drafter_reported(Price::new(lie, 16.0, 16.0, lie), Some(true));
        estimator.decide(20);
    }
    assert_ne!(estimator.costs(), before, "it was lied to");
    estimator.verifier_reported(busy(16, 0.0));
    estimator.drafter_reported(Price::default(), Some(false));
    assert_eq!(estimator.costs(), before);
    assert!(estimator.decide(20) > 0, "{:?}", estimator.decision());
}
