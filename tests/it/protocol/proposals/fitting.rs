//! Proposals that fit the output, or once did.

use speculation::pending::ROOM;
use wire::v1::{LastToken, Open};

use super::{Append, Decoding, FIRST, MAX_TOKENS, chain, numbered, own, tree};
use crate::cluster::{target, verifier};

#[tokio::test]
async fn right_proposals_are_decoded_together() {
    let (verifier, monitor) = verifier(target()).await;
    let alone = own(&verifier, MAX_TOKENS, |_| {}).await;
    assert_eq!(alone.forwards.len(), MAX_TOKENS as usize);
    let own = &alone.tokens;
    let before = monitor.engine().forwards;
    let mut decoding = Decoding::start(&verifier, MAX_TOKENS, numbered(1)).await;
    let first = FIRST as usize;
    decoding.propose(&[chain(FIRST, &own[first..10])], 12).await;
    decoding.rest().await;
    assert_eq!(decoding.tokens, own[..12]);
    let forward = &decoding.streamed()[0];
    assert_eq!(forward.token_ids, own[first..11]);
    let drafts = decoding.first_drafts();
    assert_eq!(
        (drafts.offered, drafts.scored, drafts.accepted),
        (6, 6, 6),
        "{drafts:?}"
    );
    assert_eq!(drafts.last(), LastToken::Bonus);
    assert!(drafts.price > 0.0 && drafts.price < 1.0, "{drafts:?}");
    assert_eq!(drafts.room as usize, ROOM);
    assert_eq!(
        (drafts.stale, drafts.without_room, drafts.malformed),
        (0, 0, 0)
    );
    // Twelve tokens, of which six came with another.
    assert_eq!(monitor.engine().forwards - before, 6);
    assert_eq!(decoding.forwards.len(), 6);
    // It goes on where the drafts end, from the sequence that they left.
    decoding.propose(&[], MAX_TOKENS).await;
    decoding.rest().await;
    assert_eq!(decoding.tokens, *own);
}

#[tokio::test]
async fn a_tree_is_followed_along_the_targets_own_choices() {
    let (verifier, _) = verifier(target()).await;
    let own = own(&verifier, MAX_TOKENS, |_| {}).await.tokens;
    let other = |at: usize| if own[at] == 77 { 78 } else { 77 };
    let mut decoding = Decoding::start(&verifier, MAX_TOKENS, numbered(1)).await;
    // Others stand before the right ones, have children of their own, and come in between.
    let tokens = [other(4), own[4], other(5), own[5], own[5], own[6], other(6)];
    let proposed = tree(FIRST, &[], &tokens, &[-1, -1, 1, 1, 0, 3, 3]);
    decoding.propose(&[proposed], MAX_TOKENS).await;
    decoding.rest().await;
    assert_eq!(decoding.tokens, own);
    let drafts = decoding.first_drafts();
    assert_eq!(
        (drafts.offered, drafts.scored, drafts.accepted),
        (7, 7, 3),
        "{drafts:?}"
    );
    assert_eq!(drafts.last(), LastToken::Bonus);
    assert_eq!(decoding.streamed()[0].token_ids, own[4..8]);
}

/// What is proposed at the fourth token, and how many of it are accepted and fall off.
struct Case {
    what: &'static str,
    proposals: Vec<Append>,
    /// Offered and accepted.
    drafts: (u32, u32),
    /// Stale and malformed.
    fell_off: (u32, u32),
}

fn case(
    what: &'static str,
    proposals: Vec<Append>,
    drafts: (u32, u32),
    fell_off: (u32, u32),
) -> Case {
    Case {
        what,
        proposals,
        drafts,
        fell_off,
    }
}

#[tokio::test]
async fn whatever_is_proposed_the_tokens_are_the_targets() {
    let own = {
        let (verifier, _) = verifier(target()).await;
        own(&verifier, MAX_TOKENS, |_| {}).await.tokens
    };
    let wrong: Vec<u32> = own.iter().map(|&token| (token + 1) % 4_096).collect();
    let right = || chain(FIRST, &own[4..10]);
    let mut rising = right();
    rising.survivals[2..4].copy_from_slice(&[4, 2]);
    let mut partly = right();
    partly.token_ids[2] = wrong[6];
    let mut unknown = right();
    unknown.token_ids[3] = 4_096;
    let cases = [
        case("wrong", vec![chain(FIRST, &wrong[4..10])], (6, 0), (6, 0)),
        case("wrong from the third on", vec![partly], (6, 2), (4, 0)),
        case("doubled", vec![right(), right()], (6, 6), (0, 0)),
        case(
            "in two parts",
            vec![
                chain(FIRST, &own[4..7]),
                tree(FIRST, &own[4..7], &own[7..10], &[]),
            ],
            (6, 6),
            (0, 0),
        ),
        case(
            "the second part first",
            vec![
                tree(FIRST, &own[4..7], &own[7..10], &[]),
                chain(FIRST, &own[4..7]),
            ],
            (3, 3),
            (3, 0),
        ),
        case(
            "from a while ago",
            vec![chain(1, &own[1..10])],
            (6, 6),
            (0, 0),
        ),
        case(
            "from a while ago, with its path",
            vec![tree(1, &own[1..4], &own[4..10], &[])],
            (6, 6),
            (0, 0),
        ),
        case(
            "of another output",
            vec![tree(1, &wrong[1..4], &own[4..10], &[])],
            (0, 0),
            (6, 0),
        ),
        case(
            "what the output had otherwise",
            vec![chain(1, &[own[1], own[2], wrong[3], own[4], own[5]])],
            (0, 0),
            (3, 0),
        ),
        case(
            "what the output had already",
            vec![chain(0, &own[..4])],
            (0, 0),
            (0, 0),
        ),
        case("too early", vec![chain(9, &own[9..12])], (0, 0), (3, 0)),
        case("out of the vocabulary", vec![unknown], (3, 3), (2, 1)),
        case("more likely than its path", vec![rising], (3, 3), (2, 1)),
        case("empty", vec![chain(FIRST, &[])], (0, 0), (0, 0)),
    ];
    for (number, case) in (1..).zip(cases) {
        let Case {
            what,
            proposals,
            drafts,
            fell_off,
        } = case;
        // Its engine has scored no draft yet, so that it scores whatever is claimed to be certain.
        let (verifier, _) = verifier(target()).await;
        let mut decoding = Decoding::start(&verifier, MAX_TOKENS, numbered(number)).await;
        decoding.propose(&proposals, MAX_TOKENS).await;
        decoding.rest().await;
        assert_eq!(decoding.tokens, own, "{what}");
        let first = decoding.first_drafts();
        assert_eq!((first.offered, first.accepted), drafts, "{what}: {first:?}");
        assert_eq!(first.scored, first.offered, "{what}: {first:?}");
        let expected = (fell_off, 0);
        assert_eq!(
            ((first.stale, first.malformed), first.without_room),
            expected,
            "{what}: {first:?}"
        );
        let emitted = first.accepted as usize + 1;
        assert_eq!(decoding.streamed()[0].token_ids.len(), emitted, "{what}");
    }
}

#[tokio::test]
async fn log_probabilities_are_the_same_bit_for_bit() {
    let (verifier, _) = verifier(target()).await;
    let logprobs = |open: &mut Open| (open.logprobs, open.top_logprobs) = (true, 3);
    let alone = own(&verifier, MAX_TOKENS, logprobs).await;
    let own = &alone.tokens;
    let other = |at: usize| if own[at] == 77 { 78 } else { 77 };
    let mut decoding = Decoding::start(&verifier, MAX_TOKENS, |open| {
        logprobs(open);
        numbered(1)(open);
    })
    .await;
    let tokens = [&[other(4)], &own[4..9], &[other(9)]].concat();
    let proposed = tree(FIRST, &[], &tokens, &[-1, -1, 1, 2, 3, 4, 5]);
    decoding.propose(&[proposed], MAX_TOKENS).await;
    decoding.rest().await;
    assert_eq!(decoding.first_drafts().accepted, 5);
    assert_eq!(decoding.first_drafts().last(), LastToken::Recovered);
    assert_eq!(decoding.tokens, *own);
    let all = |decoding: &Decoding| {
        let parts = decoding.forwards.iter();
        parts
            .flat_map(|part| part.logprobs.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(all(&decoding).len(), MAX_TOKENS as usize);
    assert_eq!(all(&decoding), all(&alone));
}
