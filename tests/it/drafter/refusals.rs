//! What a drafter cannot do is refused by name.

use tonic::Code;
use wire::v1::draft_length::Policy;
use wire::v1::target_distribution::Kind;
use wire::v1::tree_shape::Shape;
use wire::v1::{
    CascadeRow, CascadeSettings, DraftRound, Drafting, LearnedStop, Open, ProposalForm,
    TargetDistribution, Verification,
};

use super::{Rounds, draft, drafter, max_gram_alone, policy, requested, smaller, three, tree};
use crate::cluster::Service;
use crate::protocol::open;

/// Asks in sessions of their own; each is refused, and said `field | part` of.
async fn each_refused(drafter: &Service, cases: Vec<(&str, Open, DraftRound)>) {
    for (expected, opening, round) in cases {
        let mut rounds = Rounds::open(drafter, opening).await;
        let status = rounds.try_ask(&[], round).await.expect_err(expected);
        assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
        let (field, part) = expected.split_once(" | ").unwrap_or((expected, ""));
        let (named, said) = status.message().split_once(": ").expect("a field");
        assert!(
            named == field && said.contains(part),
            "{expected}: {status:?}"
        );
    }
}

fn form(verification: Verification, form: ProposalForm) -> Open {
    open(|open| {
        open.verification = verification.into();
        open.proposal_form = form.into();
        open.proposal_top = if form == ProposalForm::Sparse { 8 } else { 0 };
    })
}

fn with(drafting: Drafting, change: impl FnOnce(&mut DraftRound)) -> DraftRound {
    let mut round = requested(drafting, 4);
    change(&mut round);
    round
}

#[tokio::test]
async fn what_it_does_not_hold() {
    let bare = drafter(vec![draft()], |config| {
        "none".clone_into(&mut config.bigram);
    })
    .await;
    let alone = max_gram_alone().await;
    for (drafter, drafting, expected) in [
        (&bare, Drafting::Cascade, "drafting | drafter.cascade"),
        (
            &alone,
            Drafting::Model,
            "drafting | 'max-gram' holds no draft model",
        ),
        (&alone, Drafting::Cascade, "drafting | holds no cascade"),
    ] {
        each_refused(
            drafter,
            vec![(expected, open(|_| {}), requested(drafting, 4))],
        )
        .await;
    }
    // What is left open, the drafter's default does.
    for drafter in [&bare, &alone] {
        let mut rounds = Rounds::open(drafter, open(|_| {})).await;
        let block = rounds.ask(&[], requested(Drafting::Unspecified, 4)).await;
        assert_eq!(block.tokens().len(), 4);
    }
}

fn deferral() -> Open {
    open(|open| {
        open.target = Some(TargetDistribution {
            kind: Kind::Deferral.into(),
            rule: "chow".to_owned(),
            alpha: Some(0.5),
            ..Default::default()
        });
    })
}

#[tokio::test]
async fn who_drafts_must_tell_what_the_session_needs() {
    let drafter = three().await;
    let confidences = || open(|open| open.confidences = true);
    let bild = || open(|open| open.verification = Verification::Bild.into());
    for drafting in [Drafting::MaxGram, Drafting::Cascade] {
        let requested = || requested(drafting, 4);
        let bonus = with(drafting, |round| round.bonus_q = true);
        let cases = vec![
            ("drafting | needs target 'exact'", deferral(), requested()),
            ("drafting | verification 'bild'", bild(), requested()),
            (
                "drafting | nothing but their distributions",
                confidences(),
                requested(),
            ),
            ("drafting | after a block", open(|_| {}), bonus),
        ];
        each_refused(&drafter, cases).await;
    }
    let sparse = form(Verification::Token, ProposalForm::Sparse);
    let greedy = form(Verification::BlockGreedy, ProposalForm::DenseF32);
    let point = form(Verification::Token, ProposalForm::Point);
    let cascade = || requested(Drafting::Cascade, 4);
    let cases = vec![
        (
            "proposal_form | expected point",
            sparse,
            requested(Drafting::MaxGram, 4),
        ),
        ("drafting | or verification block", greedy, cascade()),
        (
            "proposal_form | expected sparse:K or dense",
            point,
            cascade(),
        ),
    ];
    each_refused(&drafter, cases).await;
}

/// At temperature 0 each form will do but none, which does not say that distributions are one-hot.
#[tokio::test]
async fn rejection_is_told_of_distributions_even_at_temperature_0() {
    let drafter = three().await;
    for (reported, will_do) in [
        (ProposalForm::None, false),
        (ProposalForm::Point, true),
        (ProposalForm::Sparse, true),
    ] {
        let mut opening = form(Verification::Token, reported);
        opening.sampling.get_or_insert_default().temperature = Some(0.0);
        let mut rounds = Rounds::open(&drafter, opening).await;
        let requested = rounds.try_ask(&[], requested(Drafting::Cascade, 4)).await;
        assert_eq!(requested.is_ok(), will_do, "{reported:?}");
    }
}

/// A distribution that is known only after a lenient review cannot be cut before its token is drawn.
#[tokio::test]
async fn a_lenient_cascade_tells_whole_distributions_only() {
    let models = || vec![draft(), smaller()];
    let lenient = drafter(models(), |config| config.cascade.lenience = 2.0).await;
    let cut = [ProposalForm::Sparse, ProposalForm::DenseF16].map(|reported| {
        let opening = form(Verification::Token, reported);
        (
            "drafting | lenience 2",
            opening,
            requested(Drafting::Cascade, 4),
        )
    });
    each_refused(&lenient, cut.into()).await;
    let opening = form(Verification::Token, ProposalForm::DenseF32);
    let mut rounds = Rounds::open(&lenient, opening).await;
    rounds.ask(&[], requested(Drafting::Cascade, 4)).await;
}

#[tokio::test]
async fn settings_of_a_cascade_fit_it() {
    let drafter = three().await;
    let set = |drafting, change: fn(&mut CascadeSettings)| {
        with(drafting, |round| {
            change(round.cascade.get_or_insert_default());
        })
    };
    let any = || open(|_| {});
    let cases = vec![
        (
            "cascade_k | 1 rows, expected 3",
            any(),
            set(Drafting::Cascade, |it| {
                it.k = vec![CascadeRow { tokens: vec![4] }];
            }),
        ),
        (
            "cascade_lenience | 0.5, expected a finite number of at least 1",
            any(),
            set(Drafting::Cascade, |it| it.lenience = Some(0.5)),
        ),
        (
            "cascade_max_gram_tokens | 0, expected 1 to 1024",
            any(),
            set(Drafting::Cascade, |it| it.max_gram_tokens = Some(0)),
        ),
        (
            "cascade | goes with drafting CASCADE",
            any(),
            set(Drafting::Model, |it| it.lenience = Some(2.0)),
        ),
        (
            "drafting | lenience 2",
            form(Verification::Token, ProposalForm::Sparse),
            set(Drafting::Cascade, |it| it.lenience = Some(2.0)),
        ),
    ];
    each_refused(&drafter, cases).await;
}

#[tokio::test]
async fn stop_rules_read_what_drafts_and_blocks_have_a_length() {
    let drafter = three().await;
    let under = |drafting, rule| with(drafting, |round| round.draft_length = Some(policy(rule)));
    let mut cases = Vec::new();
    // Max-Gram knows how sure it is, and has no distribution.
    for (drafting, rule) in [
        (Drafting::Cascade, Policy::Confidence(0.5)),
        (Drafting::Cascade, Policy::Entropy(1.0)),
        (Drafting::MaxGram, Policy::Entropy(1.0)),
    ] {
        cases.push(("draft_length", open(|_| {}), under(drafting, rule)));
    }
    let greedy = form(Verification::BlockGreedy, ProposalForm::Sparse);
    let learned = Policy::Learned(LearnedStop {
        threshold: 0.5,
        min_tokens: 0,
    });
    let learned = under(Drafting::Model, learned);
    cases.push(("draft_length | greedy", greedy, learned));
    for tokens in [0, 65] {
        cases.push((
            "max_tokens",
            open(|_| {}),
            requested(Drafting::Model, tokens),
        ));
    }
    each_refused(&drafter, cases).await;
}

#[tokio::test]
async fn trees_are_for_verifications_that_walk_them_and_within_the_limit() {
    let drafter = three().await;
    let comb = |siblings, levels| {
        let mut round = requested(Drafting::Model, levels);
        round.tree = Some(tree(Shape::Comb(siblings)));
        round
    };
    let any = || open(|_| {});
    let block = form(Verification::Block, ProposalForm::Sparse);
    let reported = form(Verification::Coupled, ProposalForm::Sparse);
    let mut bonus = comb(2, 4);
    bonus.bonus_q = true;
    let cases = vec![
        ("tree | 'coupled' or 'token'", block, comb(2, 4)),
        ("tree | needs target 'exact'", deferral(), comb(2, 4)),
        ("proposal_form | expected none", reported, comb(2, 4)),
        (
            "tree | 5 levels of 13 nodes are 65, expected at most 64",
            any(),
            comb(13, 5),
        ),
        ("tree | 128", any(), comb(2, 64)),
        ("tree", any(), bonus),
        ("tree.comb", any(), comb(1, 1)),
        ("tree.comb", any(), comb(65, 1)),
    ];
    each_refused(&drafter, cases).await;
}
