//! The oracle cascade and the original BiLD.

use super::*;

const ORACLE: Plan = Plan::OracleCascade;

fn bild(verify_on_finish: bool) -> Plan {
    Plan::Bild {
        window: 3,
        verify_on_finish,
        code_variant: false,
    }
}

fn deferred(round: u64, token: TokenId, share: f32) -> Input {
    deferring(verified(round, &[token], 0, LastToken::Bonus), &[share])
}

/// Of the draft model and of the target model.
fn forwards(session: &Session) -> (u32, u32) {
    let statistics = session.statistics();
    (statistics.draft_forwards, statistics.target_forwards)
}

#[test]
fn the_oracle_asks_both_models_at_every_position() {
    // Also where the executor of the round would fetch distributions by itself.
    let lazy = SessionConfig {
        lazy_bonus: true,
        ..config(ORACLE)
    };
    let mut session = Session::new(lazy);
    let mut sent = actions(&mut session);
    for (at, share) in [0.0, 1.0, 0.25, 0.25].into_iter().enumerate() {
        let (round, at) = (at as u64 + 1, at as u32);
        assert_eq!(sent.pop(), Some(send(round, 0, at, draft_with_bonus(0))));
        let requested = on(&mut session, drafted(round, &[]));
        assert_eq!(requested, [send(round, 0, at, verify(&[]))]);
        let token = if at == 3 { 2 } else { 10 + at };
        sent = on(&mut session, deferred(round, token, share));
        assert_eq!(sent[0], emit(Origin::Target, &[token]));
    }
    assert_eq!(sent[1..], finish(FinishReason::Stop));
    let statistics = session.statistics();
    assert_eq!(forwards(&session), (4, 4));
    assert_eq!(statistics.num_spec_steps(), 0);
    assert_eq!(statistics.deferral_rate(), Some(0.375));
    assert!(session.is_exact());
}

#[test]
fn the_oracle_has_no_draft_tokens_and_no_target_distribution_without_its_drafter() {
    let mut chatty = begin(config(ORACLE));
    assert_eq!(on(&mut chatty, drafted(1, &[10])), alone(1, 0, 8));
    assert!(!chatty.is_exact());
    // The distribution it sent may be found to be none.
    let mut lying = begin(config(ORACLE));
    on(&mut lying, drafted(1, &[]));
    let reason = "no mass".to_owned();
    let disbelieved = Input::ProposalsRejected { round: 1, reason };
    assert_eq!(on(&mut lying, disbelieved), alone(1, 0, 8));
}

#[test]
fn the_window_is_looked_over_and_an_unsure_first_token_left_to_the_target() {
    let mut session = session(bild(false));
    assert_eq!(actions(&mut session), [send(1, 0, 0, draft(3))]);
    let requested = on(&mut session, drafted(1, &[10, 11, 12]));
    assert_eq!(requested, [send(1, 0, 0, verify(&[10, 11, 12]))]);
    let verdict = verified(1, &[10, 20], 1, LastToken::Recovered);
    let next = on(&mut session, verdict);
    assert_eq!(next[1..], [send(2, 0, 2, draft(3))]);
    let requested = on(&mut session, stopped(2, &[], DraftStop::Policy));
    assert_eq!(requested, [send(2, 0, 2, verify(&[]))]);
    let next = on(&mut session, verified(2, &[21], 0, LastToken::Bonus));
    assert_eq!(next, [emit(Origin::Target, &[21]), send(3, 0, 3, draft(3))]);
    let statistics = session.statistics();
    assert_eq!(forwards(&session), (4, 2));
    assert_eq!(statistics.rejection_rate(), Some(0.5));
    assert_eq!(statistics.deferral_rate(), None);
}

#[test]
fn in_the_authors_code_the_target_begins_and_goes_on_after_a_rollback() {
    let mut session = session(Plan::Bild {
        window: 3,
        verify_on_finish: false,
        code_variant: true,
    });
    assert_eq!(actions(&mut session), [send(1, 0, 0, verify(&[]))]);
    let next = on(&mut session, verified(1, &[20], 0, LastToken::Bonus));
    assert_eq!(next, [emit(Origin::Target, &[20]), send(2, 0, 1, draft(3))]);
    on(&mut session, drafted(2, &[10, 11, 12]));
    let verdict = verified(2, &[10, 21], 1, LastToken::Recovered);
    let next = on(&mut session, verdict);
    assert_eq!(next[1..], [send(3, 0, 3, verify(&[]))]);
    let next = on(&mut session, verified(3, &[22], 0, LastToken::Bonus));
    assert_eq!(next[1..], [send(4, 0, 4, draft(3))]);
}

#[test]
fn an_output_that_the_draft_model_ends_is_looked_over_only_if_asked_for() {
    let ending = |verify_on_finish| {
        let mut session = begin(config(bild(verify_on_finish)));
        let then = on(&mut session, stopped(1, &[10, 2], DraftStop::EndToken));
        (session, then)
    };
    let expected = ended(&[10, 2], FinishReason::Stop);
    let (session, then) = ending(false);
    assert_eq!(then, expected);
    assert_eq!(session.statistics().target_forwards, 0);
    let (mut session, then) = ending(true);
    assert_eq!(then, [send(1, 0, 0, verify(&[10, 2]))]);
    let verdict = verified(1, &[10, 2], 2, LastToken::AcceptedEnd);
    let then = on(&mut session, verdict);
    assert_eq!(then, expected);
}

#[test]
fn at_the_limit_there_is_no_room_for_a_bonus() {
    for verify_on_finish in [false, true] {
        let limited = SessionConfig {
            max_tokens: 2,
            ..config(bild(verify_on_finish))
        };
        let mut session = Session::new(limited);
        assert_eq!(actions(&mut session), [send(1, 0, 0, draft(2))]);
        let mut then = on(&mut session, drafted(1, &[10, 11]));
        if verify_on_finish {
            assert_eq!(then, [send(1, 0, 0, verify(&[10, 11]))]);
            let verdict = verified(1, &[10, 11, 12], 2, LastToken::Bonus);
            then = on(&mut session, verdict);
        }
        assert_eq!(then, ended(&[10, 11], FinishReason::Length));
    }
}

#[test]
fn bild_without_its_drafter_is_the_target_alone() {
    let mut session = begin(config(bild(false)));
    let then = on(&mut session, drafted(1, &[]));
    assert_eq!(then, alone(1, 0, 8));
    assert!(!session.is_exact());
}

/// Where the target looks decides what it adds, so a drafter with a limit of its own is asked again.
#[test]
fn a_window_is_filled_however_little_the_drafter_takes_at_once() {
    let plan = Plan::Bild {
        window: 4,
        verify_on_finish: false,
        code_variant: false,
    };
    let mut session = session(plan);
    assert_eq!(actions(&mut session), [send(1, 0, 0, draft(4))]);
    let next = on(&mut session, drafted(1, &[10, 11]));
    assert_eq!(next, [send(2, 0, 2, draft(2))]);
    assert_eq!((session.emitted(), session.output()), (0, &[10, 11][..]));
    assert!(session.held().is_empty());
    let next = on(&mut session, drafted(2, &[12]));
    assert_eq!(next, [send(3, 0, 3, draft(1))]);
    let look = on(&mut session, drafted(3, &[13]));
    assert_eq!(look, [send(3, 0, 0, verify(&[10, 11, 12, 13]))]);
    let verdict = verified(3, &[10, 20], 1, LastToken::Recovered);
    let next = on(&mut session, verdict);
    assert_eq!(next[1..], [send(4, 0, 2, draft(4))]);

    // The drafter is lost with a window half full: what nobody looked over is dropped.
    on(&mut session, drafted(4, &[21, 22]));
    let then = on(&mut session, failed(5, Peer::Drafter, false));
    assert_eq!(then, alone(5, 2, 6));
    assert_eq!(session.output(), [10, 20]);
    assert_eq!(session.statistics().discarded, 5);
}
