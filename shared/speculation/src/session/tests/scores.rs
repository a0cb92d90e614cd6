//! The prompt's log probabilities, before the first round.

use super::*;

const WANTED: u32 = 5;

fn scoring(plan: Plan) -> SessionConfig {
    SessionConfig {
        prompt_scores: WANTED,
        ..config(plan)
    }
}

fn score(attempt: u32, from: u32) -> Action {
    send(0, attempt, 0, Request::Score { from })
}

fn scored(from: u32, count: u32) -> Input {
    let round = 0;
    Input::Scored { round, from, count }
}

fn emit_scores(from: u32, count: u32) -> Action {
    Action::EmitScores { from, count }
}

#[test]
fn they_come_before_the_first_round_in_order_and_once() {
    for (plan, first) in [
        (Plan::Speculative, draft(4)),
        (Plan::TargetOnly, Request::Decode { max_tokens: 8 }),
    ] {
        let mut session = Session::new(scoring(plan));
        assert_eq!(actions(&mut session), [score(0, 0)]);
        assert_eq!(on(&mut session, scored(0, 3)), [emit_scores(0, 3)]);
        // The session ignores a part that came already, leaves a gap, is empty, or belongs to another round.
        for stale in [scored(0, 3), scored(4, 1), scored(3, 0)] {
            assert_eq!(on(&mut session, stale), []);
        }
        let of_another = Input::Scored {
            round: 1,
            from: 3,
            count: 2,
        };
        assert_eq!(on(&mut session, of_another), []);
        let last = on(&mut session, scored(3, 2));
        assert_eq!(last, [emit_scores(3, 2), send(1, 0, 0, first)]);
        assert_eq!(on(&mut session, scored(5, 1)), []);
    }
}

#[test]
fn a_repeated_request_goes_on_where_the_scores_ended() {
    let mut session = begin(scoring(Plan::Speculative));
    on(&mut session, scored(0, 2));
    assert_eq!(on(&mut session, failed(0, Peer::Verifier, true)), []);
    assert_eq!(resumed(&mut session), [score(1, 2)]);
    assert_eq!(on(&mut session, scored(2, 1)), [emit_scores(2, 1)]);
    // Each part is progress, with retries of its own.
    for attempt in 1..=2 {
        on(&mut session, failed(0, Peer::Verifier, true));
        assert_eq!(resumed(&mut session), [score(attempt, 3)]);
    }
    let reason = FinishReason::Failed {
        peer: Peer::Verifier,
        reason: "gone".to_owned(),
    };
    let given_up = on(&mut session, failed(0, Peer::Verifier, true));
    assert_eq!(given_up, finish(reason));
}

#[test]
fn more_than_the_prompt_has_ends_the_request() {
    let mut session = begin(scoring(Plan::Speculative));
    let ended = on(&mut session, scored(0, WANTED + 1));
    assert!(
        matches!(&ended[2], Action::Finish(FinishReason::Failed { reason, .. }) if reason.contains("6 scores")),
        "{ended:?}"
    );
}

#[test]
fn a_prompt_is_scored_though_nothing_is_generated() {
    let nothing = |prompt_scores| SessionConfig {
        prompt_scores,
        max_tokens: 0,
        ..config(Plan::Speculative)
    };
    let mut session = begin(nothing(WANTED));
    let mut expected = vec![emit_scores(0, WANTED)];
    expected.extend(finish(FinishReason::Length));
    assert_eq!(on(&mut session, scored(0, WANTED)), expected);
    let mut session = Session::new(nothing(0));
    assert_eq!(actions(&mut session), finish(FinishReason::Length));
}
