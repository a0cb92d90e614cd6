//! What a block is sent with: the distribution after it, the residual layers, the horizon.

use super::*;
use crate::verification::layers::Horizon;

fn layer(log_rho: f64, remaining: u32) -> ResidualLayer {
    ResidualLayer { log_rho, remaining }
}

fn with_layers(mut verdict: Input, after: &[ResidualLayer]) -> Input {
    if let Input::Verified { verdict, .. } = &mut verdict {
        verdict.layers = after.to_vec();
    }
    verdict
}

/// A session whose first block of four left `layers` behind, after two tokens of the output.
fn layered(config: SessionConfig, layers: &[ResidualLayer]) -> (Session, Vec<Action>) {
    let mut session = begin(config);
    on(&mut session, drafted(1, &[10, 11, 12, 13]));
    let verdict = verified(1, &[10, 20], 1, LastToken::Recovered);
    let mut next = on(&mut session, with_layers(verdict, layers));
    next.remove(0);
    (session, next)
}

#[test]
fn the_distribution_after_every_block_is_asked_for_where_the_verdict_needs_it() {
    let depends = SessionConfig {
        bonus_q: true,
        max_tokens: 6,
        ..config(Plan::Speculative)
    };
    let mut session = Session::new(depends.clone());
    assert_eq!(actions(&mut session), [send(1, 0, 0, draft_with_bonus(4))]);
    on(&mut session, drafted(1, &[10, 11, 12, 13]));
    let all = verified(1, &[10, 11, 12, 13, 14], 4, LastToken::Bonus);
    let next = on(&mut session, all.clone());
    // One slot is left, which the target fills: of the draft model only its distribution is wanted.
    assert_eq!(next[1..], [send(2, 0, 5, draft_with_bonus(0))]);
    let requested = on(&mut session, drafted(2, &[]));
    assert_eq!(requested, [send(2, 0, 5, verify(&[]))]);
    // Four tokens and two distributions.
    assert_eq!(session.statistics().draft_forwards, 6);

    let lazy = SessionConfig {
        lazy_bonus: true,
        ..depends
    };
    let mut session = Session::new(lazy);
    assert_eq!(actions(&mut session), [send(1, 0, 0, draft(4))]);
    on(&mut session, drafted(1, &[10, 11, 12, 13]));
    let next = on(&mut session, all);
    assert_eq!(next[1..], [send(2, 0, 5, verify(&[]))]);
}

#[test]
fn the_distribution_after_an_end_token_is_not_looked_at() {
    let depends = SessionConfig {
        bonus_q: true,
        ..config(Plan::Speculative)
    };
    let mut session = begin(depends);
    on(&mut session, stopped(1, &[10, 2], DraftStop::EndToken));
    assert_eq!(session.statistics().draft_forwards, 2);
}

#[test]
fn the_horizon_is_what_was_asked_for_only_if_what_was_drafted_cut_the_block() {
    use DraftStop::{Context, EndToken, Length, Policy};
    for (tokens, stop, horizon) in [
        (&[10, 11][..], EndToken, None),
        (&[10, 2], EndToken, Some(4)),
        (&[10, 2], Length, Some(4)),
        (&[10, 11], Length, Some(2)),
        (&[10, 11], Context, Some(2)),
    ] {
        let mut session = begin(config(Plan::Speculative));
        let requested = on(&mut session, stopped(1, tokens, stop));
        let verify = |horizon| [send(1, 0, 0, verify_layered(tokens, horizon, &[]))];
        // Where there is no horizon, what is said to be an end token is none.
        let expected = horizon.map_or(alone(1, 0, 8), verify);
        assert_eq!(requested, expected, "{tokens:?} {stop:?}");
    }
    // A stop rule is asked anew along the output; after the block it has been.
    for tokens in [&[10, 11][..], &[]] {
        let mut session = begin(config(Plan::Speculative));
        let requested = on(&mut session, stopped(1, tokens, Policy));
        let mut expected = verify(tokens);
        let Request::Verify { horizon, .. } = &mut expected else {
            panic!("{expected:?}");
        };
        let (len, stopped) = (4, true);
        *horizon = Horizon { len, stopped };
        assert_eq!(requested, [send(1, 0, 0, expected)]);
    }
}

#[test]
fn a_stop_rule_that_leaves_nothing_leaves_one_token_to_the_target() {
    let mut session = begin(SessionConfig {
        carries_layers: false,
        ..config(Plan::Speculative)
    });
    let requested = on(&mut session, stopped(1, &[], DraftStop::Policy));
    assert_eq!(requested, [send(1, 0, 0, verify(&[]))]);
    // It looked at a distribution all the same.
    assert_eq!(session.statistics().draft_forwards, 1);
    // Nothing but a stop rule may leave nothing.
    let mut session = begin(config(Plan::Speculative));
    let requested = on(&mut session, stopped(1, &[], DraftStop::Length));
    assert_eq!(requested, alone(1, 0, 8));
}

#[test]
fn layers_go_with_every_block_and_every_repetition() {
    let layers = [layer(-0.5, 2), layer(0.25, 1)];
    let (mut session, next) = layered(config(Plan::Speculative), &layers);
    assert_eq!(next, [send(2, 0, 2, draft(4))]);
    let requested = on(&mut session, drafted(2, &[11, 12, 13, 14]));
    let request = verify_layered(&[11, 12, 13, 14], 4, &layers);
    assert_eq!(requested, [send(2, 0, 2, request.clone())]);
    assert_eq!(on(&mut session, failed(2, Peer::Verifier, true)), []);
    assert_eq!(resumed(&mut session), [send(2, 1, 2, request)]);
    // The verdict says what is left of them.
    let left = [layer(1.5, 3)];
    let verdict = verified(2, &[21], 0, LastToken::Recovered);
    on(&mut session, with_layers(verdict, &left));
    let requested = on(&mut session, drafted(3, &[11, 12, 13, 14]));
    let request = verify_layered(&[11, 12, 13, 14], 4, &left);
    assert_eq!(requested, [send(3, 0, 3, request)]);
}

#[test]
fn a_layer_that_outlives_a_block_needs_the_distribution_after_it() {
    let short = |max_tokens, lazy_bonus| SessionConfig {
        lazy_bonus,
        max_tokens,
        ..config(Plan::Speculative)
    };
    // Blocks of two: three slots are left, and the target fills one.
    let (_, next) = layered(short(5, false), &[layer(0.0, 2), layer(0.0, 1)]);
    assert_eq!(next, [send(2, 0, 2, draft(2))]);
    let (_, next) = layered(short(5, false), &[layer(0.0, 3)]);
    assert_eq!(next, [send(2, 0, 2, draft_with_bonus(2))]);
    let (_, next) = layered(short(5, true), &[layer(0.0, 3)]);
    assert_eq!(next, [send(2, 0, 2, draft(2))]);
}

#[test]
fn the_last_slot_needs_the_distribution_too_while_a_layer_is_live() {
    let limited = |lazy_bonus| SessionConfig {
        // Blocks of two, then one slot.
        max_tokens: 3,
        lazy_bonus,
        ..config(Plan::Speculative)
    };
    let layers = [layer(-0.5, 1)];
    let after_two = |lazy_bonus| {
        let mut session = begin(limited(lazy_bonus));
        on(&mut session, drafted(1, &[10, 11]));
        let verdict = verified(1, &[10, 20], 1, LastToken::Recovered);
        let next = on(&mut session, with_layers(verdict, &layers));
        (session, next)
    };
    let (mut session, next) = after_two(false);
    assert_eq!(next[1..], [send(2, 0, 2, draft_with_bonus(0))]);
    let requested = on(&mut session, drafted(2, &[]));
    let request = verify_layered(&[], 0, &layers);
    assert_eq!(requested, [send(2, 0, 2, request.clone())]);
    let (_, next) = after_two(true);
    assert_eq!(next[1..], [send(2, 0, 2, request)]);
}

#[test]
fn a_drafter_is_hard_to_lose_while_a_layer_is_live() {
    let two_tries = SessionConfig {
        retries: 0,
        last_resort_retries: 1,
        ..config(Plan::Speculative)
    };
    let (mut session, _) = layered(two_tries.clone(), &[layer(-0.5, 2)]);
    let due = NOW + session.config.round_timeout;
    assert_eq!(session.poll_timeout(), Some(due));
    assert_eq!(on(&mut session, failed(2, Peer::Drafter, true)), []);
    assert_eq!(resumed(&mut session), [send(2, 1, 2, draft(4))]);
    assert!(session.is_exact());
    let then = on(&mut session, failed(2, Peer::Drafter, true));
    assert_eq!(then, alone(2, 2, 6));
    assert!(!session.is_exact());
    // What the target said alone followed no layer, so none is left.
    on(&mut session, decoded(2, 2, &[21, 22, 23, 24]));
    assert!(session.layers.is_empty());

    // Without a layer nobody is bound.
    let (session, _) = layered(two_tries, &[]);
    let due = NOW + session.config.draft_timeout;
    assert_eq!(session.poll_timeout(), Some(due));
}

#[test]
fn going_on_from_the_target_is_exact_unless_the_target_distribution_needs_the_drafter() {
    for depends_on_draft in [false, true] {
        let config = SessionConfig {
            depends_on_draft,
            ..config(Plan::Speculative)
        };
        let mut session = Session::new(config);
        assert!(session.is_exact());
        session.handle(failed(1, Peer::Drafter, false), NOW);
        assert_eq!(session.is_exact(), !depends_on_draft);
    }
}

/// A coordinator that decides blocks itself requests a distribution of the drafter while it decides.
#[test]
fn a_drafter_may_be_lost_on_the_way_to_a_verdict() {
    let lazy = SessionConfig {
        lazy_bonus: true,
        depends_on_draft: true,
        ..config(Plan::Speculative)
    };
    let mut session = begin(lazy);
    on(&mut session, drafted(1, &[10, 11]));
    assert_eq!(on(&mut session, failed(1, Peer::Drafter, true)), []);
    assert_eq!(resumed(&mut session), [send(1, 1, 0, verify(&[10, 11]))]);
    let then = on(&mut session, failed(1, Peer::Drafter, false));
    assert_eq!(then, alone(1, 0, 8));
    assert_eq!(session.statistics().discarded, 2);
    assert!(!session.is_exact());
    // Otherwise the drafter has no part in a verdict.
    let mut session = verifying(&[10, 11]);
    assert_eq!(on(&mut session, failed(1, Peer::Drafter, false)), []);
    assert!(session.statistics().fallbacks.is_empty());
}

#[test]
fn deferrals_are_counted_where_the_verdict_tells_them() {
    let reported = |shares: &[f32]| {
        let mut session = verifying(&[10, 11]);
        let verdict = verified(1, &[10, 20], 1, LastToken::Recovered);
        on(&mut session, deferring(verdict, shares));
        session
    };
    // A token of the target alone is counted apart: nobody asked the rule about it.
    for (shares, rate) in [
        (&[][..], None),
        (&[0.25, 1.0], Some(0.625)),
        (&[-1e-5, 1.0 + 1e-5], Some(0.5)),
    ] {
        let mut session = reported(shares);
        assert_eq!(session.statistics().deferral_rate(), rate);
        on(&mut session, failed(2, Peer::Drafter, false));
        on(&mut session, decoded(2, 2, &[21]));
        assert_eq!(session.statistics().deferral_rate(), rate);
        assert_eq!(session.statistics().fallback_tokens, 1);
    }
    let nan = [f32::NAN, 0.5];
    for shares in [&[0.5][..], &[0.5; 3], &[0.5, 1.1], &[-0.1, 0.5], &nan] {
        let session = reported(shares);
        assert!(session.finished && session.output().is_empty());
    }
}

#[test]
fn layers_that_are_none_are_malformed() {
    for (layers, is_malformed) in [
        (vec![layer(f64::NAN, 1)], true),
        (vec![layer(f64::INFINITY, 1)], true),
        (vec![layer(0.0, 0)], true),
        (vec![layer(0.0, 5)], true),
        (vec![layer(0.0, 1); 5], true),
        (vec![layer(-700.0, 4); 4], false),
    ] {
        let mut session = verifying(&[10, 11]);
        let verdict = verified(1, &[10, 20], 1, LastToken::Recovered);
        on(&mut session, with_layers(verdict, &layers));
        assert_eq!(session.finished, is_malformed);
    }
    // Only greedy block verification leaves any.
    let other = SessionConfig {
        carries_layers: false,
        ..config(Plan::Speculative)
    };
    let (session, _) = layered(other, &[layer(0.0, 1)]);
    assert!(session.finished);
}
