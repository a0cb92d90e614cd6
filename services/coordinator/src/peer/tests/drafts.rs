//! What is asked of a drafter, and what is taken of its answers.

use super::*;

#[tokio::test]
async fn only_what_answers_this_very_request_is_taken() {
    let (mut peers, mut wire) = at_drafter(description(100, 8)).await;
    let mut requested = draft(2);
    let others = RoundProposals::default();
    let answer = peers.answer(&mut requested, position(&OUTPUT), &others);
    let replies = replying(&mut wire, |header| {
        let mut left_over = [header; 3];
        left_over[0].digest ^= 1;
        left_over[1].round -= 1;
        left_over[2].epoch += 1;
        let left_over = left_over.into_iter().map(|header| block(header, &[1, 1]));
        left_over.chain([block(header, &[2, 0])]).collect()
    });
    let (answer, (header, round)) = tokio::join!(answer, replies);
    assert_eq!(drafted(answer), (vec![2, 0], DraftStop::Length));
    assert_eq!((header.round, round.max_tokens), (3, 2));
}

/// What follows the first part of an answer, and only that, may say its round alone.
#[tokio::test]
async fn further_parts_say_their_round_alone() {
    let (mut peers, mut wire) = at_drafter(description(100, 8)).await;
    let mut requested = draft(2);
    let replies = |header: v1::ReplyHeader| {
        let alone = |round| v1::ReplyHeader {
            round,
            ..Default::default()
        };
        let part = |header, offset, tokens: &[TokenId]| {
            let mut part = block(header, tokens);
            if let Some(Reply::Answer(answer)) = &mut part.reply
                && let Some(Part::Block(block)) = &mut answer.part
            {
                (block.offset, block.last) = (offset, offset > 0);
            }
            part
        };
        vec![
            block(alone(header.round), &[1, 1]),
            part(header, 0, &[2]),
            part(alone(header.round - 1), 1, &[1]),
            part(alone(header.round), 1, &[0]),
        ]
    };
    let (answer, _) = exchange(&mut peers, &mut wire, &mut requested, replies).await;
    assert_eq!(drafted(answer), (vec![2, 0], DraftStop::Length));
}

#[tokio::test]
async fn a_peer_is_told_the_time_that_is_left_for_it() {
    let (mut peers, mut wire) = at_drafter(description(100, 8)).await;
    let mut requested = draft(2);
    let reply = |header| vec![block(header, &[2, 0])];
    let (_, (header, _)) = exchange(&mut peers, &mut wire, &mut requested, reply).await;
    assert!(
        (1_000..=2_000).contains(&header.timeout_ms),
        "{}",
        header.timeout_ms
    );
}

/// The drafter holds what it drafted; the output of which it knows only what was emitted.
#[tokio::test]
async fn what_was_not_emitted_is_sent_again() {
    let (mut peers, mut wire) = at_drafter(description(100, 8)).await;
    for from_len in [0, 3] {
        let mut requested = draft(2);
        let reply = |header| vec![block(header, &[2, 0])];
        let (answer, (header, _)) = exchange(&mut peers, &mut wire, &mut requested, reply).await;
        drafted(answer);
        assert_eq!(header.from_len, from_len);
        assert_eq!(header.committed, OUTPUT[from_len as usize..]);
    }
}

#[tokio::test]
async fn a_peer_that_holds_too_little_gets_it_twice_and_then_is_broken() {
    let (mut peers, mut wire) = at_drafter(description(100, 8)).await;
    let others = RoundProposals::default();
    let mut before = draft(2);
    let reply = |header| vec![block(header, &[2, 0])];
    drafted(exchange(&mut peers, &mut wire, &mut before, reply).await.0);
    let mut requested = draft(2);
    let answer = peers.answer(&mut requested, position(&OUTPUT), &others);
    let replies = async {
        let mut from_lens = Vec::new();
        for from in [5, 1, 0] {
            let replies = replying(&mut wire, |header| vec![need_from(header, from)]);
            from_lens.push(replies.await.0.from_len);
        }
        from_lens
    };
    let (answer, from_lens) = soon(async { tokio::join!(answer, replies) }).await;
    // Never from beyond the three tokens that it was known to hold.
    assert_eq!(from_lens, [3, 3, 1]);
    let failure = answer.expect_err("it keeps asking");
    assert_eq!(failure.error.fault(), PeerFault::Malformed);
}

/// What a drafter is asked for after a sequence of seven tokens, if its context holds so many.
async fn asked_with_context(context_len: u32, requested: (u32, bool)) -> Result<u32, PeerFault> {
    let (mut peers, mut wire) = at_drafter(description(context_len, 8)).await;
    let (max_tokens, bonus_q) = requested;
    let request = Request::Draft {
        max_tokens,
        bonus_q,
    };
    let mut requested = PendingRequest::new(3, request);
    let others = RoundProposals::default();
    let found = async {
        tokio::select! {
            answer = peers.answer(&mut requested, position(&OUTPUT), &others) => {
                Err(answer.expect_err("nobody answered").error.fault())
            }
            request = wire.requests.recv() => Ok(drafting(request).1.max_tokens),
        }
    };
    soon(found).await
}

#[tokio::test]
async fn a_drafter_is_asked_for_what_its_context_has_room_for() {
    let full = Err(PeerFault::ContextFull);
    for (context_len, requested, expected) in [
        // The last token needs no place if nothing comes after it.
        (9, (5, false), Ok(3)),
        (9, (5, true), Ok(2)),
        (7, (5, false), Ok(1)),
        // The distribution after the sequence, and no token.
        (7, (5, true), Ok(0)),
        (7, (0, true), Ok(0)),
        (6, (5, false), full),
        (6, (0, true), full),
        (20, (5, true), Ok(5)),
    ] {
        let found = asked_with_context(context_len, requested).await;
        assert_eq!(found, expected, "{requested:?} of {context_len}");
    }
}

#[tokio::test]
async fn a_draft_that_its_context_has_no_room_for_ends_with_the_context() {
    let (mut peers, mut wire) = at_drafter(description(9, 8)).await;
    let mut requested = draft(5);
    let reply = |header| vec![block(header, &[2, 0, 1])];
    let (answer, _) = exchange(&mut peers, &mut wire, &mut requested, reply).await;
    assert_eq!(drafted(answer), (vec![2, 0, 1], DraftStop::Context));
}

#[tokio::test]
async fn bytes_of_streams_that_are_gone_count() {
    for loss in [
        FailureKind::Silent,
        FailureKind::Stalled,
        FailureKind::Broken,
        FailureKind::Malformed,
    ] {
        let (mut peers, mut wire) = at_drafter(description(100, 8)).await;
        let mut requested = draft(2);
        let reply = |header| vec![block(header, &[2, 0])];
        drafted(
            exchange(&mut peers, &mut wire, &mut requested, reply)
                .await
                .0,
        );
        let before = peers.traffic().rounds;
        assert!(before > 0);
        peers.session(Peer::Drafter).give_up(loss);
        assert_eq!(peers.traffic().rounds, before, "{loss:?}");
        peers.session(Peer::Drafter).close();
        assert_eq!(peers.traffic().rounds, before, "{loss:?}");
    }
}

/// Max-Gram gets one too, and one to begin with.
#[tokio::test]
async fn max_gram_proposes_only_what_is_worth_its_cost() {
    let sure = v1::PeerDescription {
        draftings: vec![v1::Drafting::MaxGram.into()],
        ..description(100, 8)
    };
    for (len, worth, expected) in [
        ("", Some(0.25), Some(0.75)),
        ("", None, Some(0.6)),
        ("4", Some(0.25), None),
    ] {
        let asked = |request: &mut v1::GenerateRequest| {
            choosing(request, &[("drafting", "max-gram"), ("draft_len", len)]);
        };
        let learned = learned_stop(asked, sure.clone(), worth).await;
        assert_eq!(learned, expected.map(|threshold| (threshold, 0)));
    }
}

/// Under draft length `auto`, a drafter with an acceptance head gets a threshold to stop at. A fixed length sends
/// none.
#[tokio::test]
async fn a_drafter_with_a_head_stops_where_a_token_is_not_worth_its_cost() {
    let head = |label: v1::Verification| v1::PeerDescription {
        heads: vec![v1::AcceptanceHead {
            label: label.into(),
            depth: 3,
        }],
        ..description(100, 8)
    };
    let coupled = head(v1::Verification::Coupled);
    for (drafter, len, worth, expected) in [
        (coupled.clone(), "", Some(0.25), Some(0.75)),
        (coupled.clone(), "", None, None),
        (coupled, "4", Some(0.25), None),
        (head(v1::Verification::Token), "", Some(0.25), None),
        (description(100, 8), "", Some(0.25), None),
    ] {
        let asked = |request: &mut v1::GenerateRequest| choosing(request, &[("draft_len", len)]);
        let learned = learned_stop(asked, drafter, worth).await;
        assert_eq!(learned, expected.map(|threshold| (threshold, 1)));
    }
}

/// Threshold and fewest tokens of the learnt stop that a draft is sent with, if it is sent with one. A draft token must
/// survive with the probability `worth` to pay.
async fn learned_stop(
    configure: impl Fn(&mut v1::GenerateRequest),
    drafter: v1::PeerDescription,
    worth: Option<f64>,
) -> Option<(f64, u32)> {
    let (mut peers, mut wire) = requesting(configure, drafter).await;
    let mut requested = draft(2);
    let position = RoundPosition {
        worth,
        ..position(&OUTPUT)
    };
    let others = RoundProposals::default();
    let answer = peers.answer(&mut requested, position, &others);
    let replies = replying(&mut wire, |header| vec![block(header, &[2, 0])]);
    let (answer, (_, round)) = soon(async { tokio::join!(answer, replies) }).await;
    drafted(answer);
    let policy = round.draft_length.and_then(|length| length.policy);
    policy.map(|policy| match policy {
        v1::draft_length::Policy::Learned(learned) => (learned.threshold, learned.min_tokens),
        other => panic!("{other:?}"),
    })
}
