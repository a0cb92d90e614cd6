//! The sequence cascade: the draft model's response is held until it is scored, then kept or
//! discarded whole.

use super::*;

fn plan(threshold: f64) -> Plan {
    let mean = false;
    Plan::SequenceCascade { threshold, mean }
}

fn started(plan: Plan) -> Session {
    let mut session = session(plan);
    assert_eq!(actions(&mut session), [send(1, 0, 0, draft(8))]);
    session
}

fn scored(round: u64, tokens: &[TokenId], logprobs: &[f32]) -> Input {
    let block = DraftBlock {
        logprobs: logprobs.to_vec(),
        ..block(tokens)
    };
    Input::Drafted { round, block }
}

fn another(round: u64) -> [Action; 1] {
    alone(round, 0, 8)
}

#[test]
fn a_response_is_held_until_it_ends_and_kept_at_the_very_threshold() {
    let mut session = started(plan(-1.5));
    let actions = on(&mut session, scored(1, &[10, 11], &[-0.5, -0.25]));
    // The peer cut the block short; what it drafted is output for it, and for nobody else.
    assert_eq!(actions, [send(2, 0, 2, draft(6))]);
    assert_eq!(session.held(), [10, 11]);
    assert_eq!(session.output(), [10, 11]);
    let actions = on(&mut session, scored(2, &[2], &[-0.75]));
    assert_eq!(actions, ended(&[10, 11, 2], FinishReason::Stop));
    assert!(session.held().is_empty());
    let statistics = session.statistics();
    assert_eq!(statistics.deferral_rate(), Some(0.0));
    assert_eq!((statistics.discarded, statistics.target_forwards), (0, 0));
    assert_eq!(statistics.draft_forwards, 3);
    assert!(session.is_exact());
}

#[test]
fn a_response_below_the_threshold_is_discarded_and_the_target_begins_anew() {
    let mut session = started(plan(-1.5));
    let response = scored(1, &[10, 11, 2], &[-0.5, -0.25, -0.875]);
    let actions = on(&mut session, response);
    assert_eq!(actions, another(2));
    assert!(session.output().is_empty() && session.held().is_empty());
    let mut expected = vec![emit(Origin::Deferred, &[20, 2])];
    expected.extend(finish(FinishReason::Stop));
    assert_eq!(on(&mut session, decoded(2, 0, &[20, 2])), expected);
    let statistics = session.statistics();
    assert_eq!(statistics.deferral_rate(), Some(1.0));
    assert_eq!((statistics.discarded, statistics.target_forwards), (3, 2));
    assert!(session.is_exact());
}

#[test]
fn a_mean_score_does_not_fall_with_length() {
    let mean = |threshold| Plan::SequenceCascade {
        threshold,
        mean: true,
    };
    let response = || scored(1, &[10, 11, 12, 2], &[-1.0, -0.5, -0.5, -1.0]);
    let kept_one = ended(&[10, 11, 12, 2], FinishReason::Stop);
    assert_eq!(on(&mut started(mean(-0.75)), response()), kept_one);
    assert_eq!(on(&mut started(mean(-0.7)), response()), another(2));
    assert_eq!(on(&mut started(plan(-0.75)), response()), another(2));
    let never = started(plan(f64::NEG_INFINITY));
    assert_eq!(on(&mut { never }, response()), kept_one);
}

#[test]
fn the_limit_ends_a_response_too() {
    let tokens: Vec<TokenId> = (10..18).collect();
    let mut session = started(plan(-8.0));
    let actions = on(&mut session, scored(1, &tokens, &[-1.0; 8]));
    assert_eq!(actions, ended(&tokens, FinishReason::Length));
}

#[test]
fn rounding_above_zero_is_no_score_and_what_is_no_log_probability_is_malformed() {
    // A positive score must not make up for a bad one.
    let mut session = started(plan(-1.0));
    let actions = on(&mut session, scored(1, &[10, 2], &[5e-5, -1.000_01]));
    assert_eq!(actions, another(2));
    let nan = [-1.0, f32::NAN];
    for logprobs in [&[][..], &[-1.0], &[-1.0; 3], &[-1.0, 0.1], &nan] {
        let mut session = started(plan(f64::NEG_INFINITY));
        let actions = on(&mut session, scored(1, &[10, 11], logprobs));
        assert_eq!(actions, another(2), "{logprobs:?}");
        let fallbacks = &session.statistics().fallbacks;
        assert!(fallbacks[0].reason.starts_with("malformed"));
    }
}

/// A penalty or a high temperature may draw what the unscaled distribution gives no number to.
#[test]
fn a_token_of_no_unscaled_probability_defers_unless_nothing_does() {
    for (threshold, is_kept) in [(f64::MIN, false), (f64::NEG_INFINITY, true)] {
        let mut session = started(plan(threshold));
        let response = scored(1, &[10, 2], &[-1.0, f32::NEG_INFINITY]);
        let actions = on(&mut session, response);
        if is_kept {
            assert_eq!(actions, ended(&[10, 2], FinishReason::Stop));
        } else {
            assert_eq!(actions, another(2));
        }
        assert!(session.statistics().fallbacks.is_empty());
    }
}

#[test]
fn a_stop_string_among_held_tokens_ends_the_response_before_it_is_scored() {
    for (threshold, is_kept) in [(-1.0, true), (-0.9, false)] {
        // It is found before the next draft, or in the draft that would have ended the response.
        for tokens in [&[10, 11, 12][..], &[10, 11, 2]] {
            let mut session = started(plan(threshold));
            session.handle(scored(1, tokens, &[-0.5, -0.5, -9.0]), NOW);
            assert_eq!(session.held(), tokens);
            let actions = on(&mut session, Input::Stop { len: 2 });
            if is_kept {
                assert_eq!(actions, ended(&[10, 11], FinishReason::Stop));
            } else {
                let round = if tokens[2] == 2 { 2 } else { 3 };
                assert_eq!(actions, another(round));
            }
            assert_eq!(session.statistics().discarded, if is_kept { 1 } else { 3 });
        }
    }
}

#[test]
fn what_was_being_drafted_after_a_stop_string_comes_too_late() {
    let mut session = started(plan(-1.0));
    on(&mut session, scored(1, &[10, 11], &[-0.5, -0.5]));
    session.handle(Input::Stop { len: 2 }, NOW);
    session.handle(scored(2, &[12], &[-9.0]), NOW);
    session.handle(failed(2, Peer::Drafter, false), NOW);
    assert_eq!(actions(&mut session), ended(&[10, 11], FinishReason::Stop));
}

#[test]
fn nothing_left_before_the_stop_string_is_a_response_too() {
    let mut session = started(plan(-1.0));
    session.handle(scored(1, &[10], &[-9.0]), NOW);
    let actions = on(&mut session, Input::Stop { len: 0 });
    assert_eq!(actions, finish(FinishReason::Stop));
    assert!(session.output().is_empty());
}

#[test]
fn a_stop_string_in_the_second_response_ends_it() {
    let mut session = started(plan(0.0));
    on(&mut session, scored(1, &[10, 2], &[-1.0, -1.0]));
    on(&mut session, decoded(2, 0, &[20, 21]));
    let actions = on(&mut session, Input::Stop { len: 1 });
    assert_eq!(actions, finish(FinishReason::Stop));
    assert_eq!(session.output(), [20]);
    assert_eq!(session.statistics().emitted, 1);
}

#[test]
fn a_lost_drafter_takes_what_it_wrote_with_it() {
    let mut full = scored(2, &[12], &[-1.0]);
    if let Input::Drafted { block, .. } = &mut full {
        block.stop = DraftStop::Context;
    }
    let gone = failed(2, Peer::Drafter, false);
    for lost in [gone, stopped(2, &[], DraftStop::Context), full] {
        let mut session = started(plan(f64::NEG_INFINITY));
        on(&mut session, scored(1, &[10, 11], &[-1.0, -1.0]));
        assert_eq!(on(&mut session, lost), another(3));
        let actions = on(&mut session, decoded(3, 0, &[20]));
        assert_eq!(actions, [emit(Origin::Target, &[20])]);
        assert!(!session.is_exact());
        let statistics = session.statistics();
        assert_eq!(statistics.fallbacks.len(), 1);
        assert!(statistics.discarded >= 2);
        assert_eq!(statistics.deferral_rate(), None);
        assert_eq!(statistics.fallback_tokens, 1);
    }
}

/// Losing the drafter costs all it wrote.
#[test]
fn the_drafter_is_waited_for_like_a_verifier() {
    let mut session = started(plan(-1.0));
    let round_timeout = session.config.round_timeout;
    assert_eq!(session.poll_timeout(), Some(NOW + round_timeout));
    let retry_after = Duration::from_secs(3);
    let overloaded = Input::Backpressure {
        round: 1,
        peer: Peer::Drafter,
        retry_after,
    };
    assert_eq!(on(&mut session, overloaded), []);
    assert_eq!(session.poll_timeout(), Some(NOW + retry_after));
}

#[test]
fn an_end_of_another_kind_emits_nothing_that_was_held() {
    let mut session = started(plan(-1.0));
    on(&mut session, scored(1, &[10, 11], &[-1.0, -1.0]));
    let actions = on(&mut session, Input::Cancel);
    assert_eq!(actions, finish(FinishReason::Cancelled));
    assert!(session.output().is_empty());
    assert_eq!(session.statistics().discarded, 2);
    // Nor is a complete response decided after the end.
    let mut session = started(plan(-9.0));
    session.handle(scored(1, &[10, 2], &[-1.0, -1.0]), NOW);
    let actions = on(&mut session, Input::Cancel);
    assert_eq!(actions, finish(FinishReason::Cancelled));
}
