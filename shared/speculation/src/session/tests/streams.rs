//! A session whose target decodes all along, with drafts that come as they come.

use super::*;

fn streaming() -> Session {
    let mut session = Session::new(SessionConfig {
        streams: true,
        ..config(Plan::Speculative)
    });
    assert_eq!(actions(&mut session), alone(1, 0, 8));
    session
}

fn forward(at: u32, tokens: &[TokenId], scored: u32, accepted: u32, last: LastToken) -> Input {
    Input::Decoded {
        round: 1,
        at,
        tokens: tokens.to_vec(),
        drafts: Some(ScoredDrafts {
            scored,
            accepted,
            last,
        }),
    }
}

#[test]
fn forwards_emit_what_they_accepted_and_one_more() {
    let mut session = streaming();
    assert_eq!(
        on(&mut session, decoded(1, 0, &[10])),
        [emit(Origin::Target, &[10])]
    );
    let next = on(
        &mut session,
        forward(1, &[11, 12, 13], 4, 2, LastToken::Recovered),
    );
    let emitted = Action::Emit(vec![
        (11, Origin::Accepted),
        (12, Origin::Accepted),
        (13, Origin::Recovered),
    ]);
    assert_eq!(next, [emitted]);
    let next = on(&mut session, forward(4, &[14, 15], 1, 1, LastToken::Bonus));
    let emitted = Action::Emit(vec![(14, Origin::Accepted), (15, Origin::Bonus)]);
    assert_eq!(next, [emitted]);
    let end = on(
        &mut session,
        forward(6, &[16, 2], 3, 2, LastToken::AcceptedEnd),
    );
    assert_eq!(end, ended(&[16, 2], FinishReason::Stop));
    let statistics = session.statistics();
    assert_eq!(statistics.per_step_drafted, [4, 1, 3]);
    assert_eq!(statistics.per_step_accepted, [2, 1, 2]);
    assert_eq!(
        (statistics.target_forwards, statistics.fallback_tokens),
        (4, 0)
    );
    let (spent, came_to) = balance(statistics);
    assert_eq!(spent, came_to);
}

#[test]
fn what_comes_twice_counts_once_and_the_rest_is_asked_for_again() {
    let mut session = streaming();
    let first = forward(0, &[10, 11], 2, 1, LastToken::Recovered);
    assert_eq!(on(&mut session, first.clone()).len(), 1);
    assert_eq!(on(&mut session, first), []);
    // One is missing in between.
    assert_eq!(on(&mut session, decoded(1, 3, &[13])), []);
    assert_eq!(session.output(), [10, 11]);
    session.handle_timeout(NOW + Duration::from_secs(31));
    session.handle_timeout(NOW + Duration::from_secs(32));
    let again = session.poll(NOW + Duration::from_secs(32));
    assert_eq!(
        again,
        Some(send(1, 1, 2, Request::Decode { max_tokens: 6 }))
    );
}

#[test]
fn counts_that_cannot_be_right_end_the_request_and_emit_nothing() {
    for (tokens, scored, accepted, last) in [
        (&[10, 11][..], 1, 2, LastToken::Recovered),
        (&[10, 11], 2, 2, LastToken::Bonus),
        (&[10], 2, 1, LastToken::Bonus),
        (&[10], 2, 1, LastToken::AcceptedEnd),
        (&[10, 2], 2, 1, LastToken::AcceptedEnd),
        (&[2, 10], 2, 1, LastToken::Recovered),
        (&[10, 100], 2, 1, LastToken::Recovered),
    ] {
        let mut session = streaming();
        let end = on(&mut session, forward(0, tokens, scored, accepted, last));
        let is_failure = |action: &Action| {
            matches!(
                action,
                Action::Finish(FinishReason::Failed {
                    peer: Peer::Verifier,
                    ..
                })
            )
        };
        assert!(end.last().is_some_and(is_failure), "{tokens:?}: {end:?}");
        assert!(session.output().is_empty());
    }
    // In rounds nobody asked for drafts to be scored.
    let mut session = session(Plan::TargetOnly);
    actions(&mut session);
    on(&mut session, forward(0, &[10, 11], 1, 1, LastToken::Bonus));
    assert!(session.output().is_empty());
}
