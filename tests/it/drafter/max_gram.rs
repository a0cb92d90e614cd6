//! Max-Gram drafts what its index says, kept over rounds.

use model::bigram::BigramFile;
use speculation::drafting::TreeBuilder;
use speculation::max_gram::{Bigram, MaxGram};
use wire::v1::draft_length::Policy;
use wire::v1::tree_shape::Shape;
use wire::v1::{self, Drafting, ProposalForm, StopCause, Verification};

use super::{Rounds, drafter, max_gram_alone, requested, three};
use crate::cluster::draft;
use crate::protocol::{PROMPT, open};

/// What Max-Gram proposes after the prompt and `output`.
fn proposed(output: &[u32], count: usize) -> Vec<u32> {
    let table = BigramFile::open("embedded").expect("a table").table;
    let mut index = MaxGram::new(&[]);
    index.reconcile(&[&PROMPT, output].concat());
    index.propose(count, &table)
}

/// Outputs of rounds that follow each other: tokens are taken back, and others come.
fn outputs() -> Vec<Vec<u32>> {
    let story: Vec<u32> = [900, 901, 902, 903, 900, 901, 904, 902, 900, 901].into();
    let mut outputs: Vec<Vec<u32>> = (0..story.len()).map(|len| story[..len].to_vec()).collect();
    outputs.push([&story[..6], &[902, 903, 900]].concat());
    outputs.push(vec![600, 700]);
    outputs.push([&[600, 700], &story[..], &[600]].concat());
    outputs.push(vec![]);
    outputs
}

#[tokio::test]
async fn each_round_continues_the_longest_match() {
    for drafter in [three().await, max_gram_alone().await] {
        let mut rounds = Rounds::open(&drafter, open(|_| {})).await;
        let mut copied = 0;
        for output in outputs() {
            let block = rounds.ask(&output, requested(Drafting::MaxGram, 7)).await;
            let expected = proposed(&output, 7);
            assert_eq!(block.tokens(), expected, "after {output:?}");
            assert_eq!(block.stop, StopCause::Length);
            assert!(block.forwards.iter().all(|&forwards| forwards == 0));
            assert!(!block.forwards.is_empty() && block.proposals.is_empty());
            let context = [&PROMPT[..], &output].concat();
            copied += usize::from(context.windows(2).any(|pair| expected.starts_with(pair)));
        }
        assert!(copied > 5, "almost nothing was ever copied");
    }
}

#[tokio::test]
async fn without_a_table_a_block_ends_where_there_is_nothing_to_copy() {
    let drafter = drafter(vec![draft()], |config| {
        "none".clone_into(&mut config.bigram);
    })
    .await;
    let mut rounds = Rounds::open(&drafter, open(|_| {})).await;
    let mut index = MaxGram::new(&[]);
    let (mut whole, mut some, mut none) = (0, 0, 0);
    for output in outputs() {
        let block = rounds.ask(&output, requested(Drafting::MaxGram, 7)).await;
        index.reconcile(&[&PROMPT, &output[..]].concat());
        let expected = index.propose(7, &Bigram::default());
        assert_eq!(block.tokens(), expected, "after {output:?}");
        let (stop, outputs) = match expected.len() {
            7 => (StopCause::Length, &mut whole),
            0 => (StopCause::Policy, &mut none),
            _ => (StopCause::Policy, &mut some),
        };
        assert_eq!(block.stop, stop);
        *outputs += 1;
    }
    assert!(some > 0 && none > 0, "{whole} {some} {none}");
}

/// Of a look-ahead verification the length of a block must not tell anything of the text.
#[tokio::test]
async fn without_a_table_blocks_whose_length_must_be_fixed_are_filled() {
    let drafter = drafter(vec![draft()], |config| {
        "none".clone_into(&mut config.bigram);
    })
    .await;
    let greedy = open(|open| {
        open.verification = Verification::BlockGreedy.into();
        open.proposal_form = ProposalForm::Point.into();
    });
    let mut rounds = Rounds::open(&drafter, greedy).await;
    for output in outputs() {
        let block = rounds.ask(&output, requested(Drafting::MaxGram, 7)).await;
        assert_eq!((block.tokens().len(), block.stop), (7, StopCause::Length));
    }
}

/// Of what it would propose the tokens it is sure enough of: a confidence is each token's own, a learned rule's threshold
/// is that of all of them together.
#[tokio::test]
async fn only_what_is_sure_enough_is_proposed() {
    let drafter = max_gram_alone().await;
    let mut rounds = Rounds::open(&drafter, open(|_| {})).await;
    let table = BigramFile::open("embedded").expect("a table").table;
    let mut index = MaxGram::new(&[]);
    let (mut whole, mut some, mut none) = (0, 0, 0);
    for output in outputs() {
        index.reconcile(&[&PROMPT, &output[..]].concat());
        let sure = index.propose_sure(7, &table);
        let ids = |count: usize| sure[..count].iter().map(|sure| sure.id).collect::<Vec<_>>();
        let learned = v1::LearnedStop {
            threshold: 0.7,
            min_tokens: 0,
        };
        let confident = sure.iter().take_while(|sure| sure.chance >= 0.3).count();
        let mut survival = 1.0;
        let surviving = sure.iter().take_while(|sure| {
            survival *= sure.chance;
            1.0 - survival <= 0.7
        });
        for (policy, count) in [
            (Policy::Confidence(0.3), confident),
            (Policy::Learned(learned), surviving.count()),
        ] {
            let mut wanted = requested(Drafting::MaxGram, 7);
            wanted.draft_length = Some(v1::DraftLength {
                policy: Some(policy),
            });
            let block = rounds.ask(&output, wanted).await;
            let stop = if count < 7 {
                StopCause::Policy
            } else {
                StopCause::Length
            };
            assert_eq!((block.tokens(), block.stop), (&ids(count)[..], stop));
            match count {
                0 => none += 1,
                7 => whole += 1,
                _ => some += 1,
            }
        }
    }
    assert!(some > 0 && none > 0, "{whole} {some} {none}");
}

#[tokio::test]
async fn drafting_ends_at_an_end_token() {
    let drafter = max_gram_alone().await;
    let opening = open(|open| open.end_token_ids = vec![902]);
    let mut rounds = Rounds::open(&drafter, opening).await;
    let output = [900, 901, 902, 903, 900, 901];
    let block = rounds.ask(&output, requested(Drafting::MaxGram, 7)).await;
    assert_eq!(
        (block.tokens(), block.stop),
        (&[902][..], StopCause::EndToken)
    );
}

#[tokio::test]
async fn a_retry_is_answered_alike_and_messages_are_cut() {
    let drafter = max_gram_alone().await;
    let mut rounds = Rounds::open(&drafter, open(|_| {})).await;
    let mut cut = requested(Drafting::MaxGram, 7);
    cut.tokens_per_block = 3;
    let first = rounds.ask(&[900, 901], cut.clone()).await;
    assert_eq!(first.messages, [3, 3, 1]);
    rounds.round -= 1;
    let again = rounds.ask(&[900, 901], cut).await;
    assert!(again.is_replayed && !first.is_replayed);
    assert_eq!(
        (again.drafts, again.messages),
        (first.drafts, first.messages)
    );
}

/// Rejection needs to know that each token's distribution is its own one-hot distribution; form POINT says so.
#[tokio::test]
async fn rejection_is_told_of_points() {
    let drafter = three().await;
    for verification in [
        Verification::Token,
        Verification::Block,
        Verification::BlockGreedy,
    ] {
        let opening = open(|open| {
            open.verification = verification.into();
            open.proposal_form = ProposalForm::Point.into();
        });
        let mut rounds = Rounds::open(&drafter, opening).await;
        let block = rounds
            .ask(&[900, 901], requested(Drafting::MaxGram, 5))
            .await;
        assert_eq!(block.tokens(), proposed(&[900, 901], 5));
        assert!(block.proposals.is_empty());
    }
}

/// Beside each token stand others that followed its match.
#[tokio::test]
async fn a_tree_holds_what_else_followed_the_match() {
    let drafter = max_gram_alone().await;
    let mut rounds = Rounds::open(&drafter, open(|_| {})).await;
    let mut beside = 0;
    for output in outputs() {
        let mut wanted = requested(Drafting::MaxGram, 5);
        wanted.tree = Some(v1::TreeShape {
            shape: Some(Shape::Comb(3)),
        });
        let block = rounds.ask(&output, wanted).await;
        let leads = proposed(&output, 5);
        let mut index = MaxGram::new(&[]);
        index.reconcile(&[&PROMPT, &output[..]].concat());
        let mut growth = TreeBuilder::default();
        for (lead, others) in leads.iter().zip(index.alternatives(&leads, 2)) {
            growth.push(*lead, &others);
        }
        beside += growth.tokens().len() - leads.len();
        assert_eq!(block.drafts, growth.finish(), "after {output:?}");
    }
    assert!(beside > 0, "no token had any beside it");
}

/// A context that is longer than any model's is none of Max-Gram's concern.
#[tokio::test]
async fn the_draft_models_context_does_not_bound_max_gram() {
    let drafter = three().await;
    let mut rounds = Rounds::open(&drafter, open(|_| {})).await;
    let long: Vec<u32> = (0..5_000).map(|at| 300 + at % 1_000).collect();
    let model = rounds.try_ask(&long, requested(Drafting::Model, 4)).await;
    let refused = model.expect_err("the context is full").message().to_owned();
    assert!(refused.contains("the draft model holds 512"), "{refused}");
    let mut rounds = Rounds::open(&drafter, open(|_| {})).await;
    let block = rounds.ask(&long, requested(Drafting::MaxGram, 4)).await;
    assert_eq!(block.tokens(), [300, 301, 302, 303]);
}
