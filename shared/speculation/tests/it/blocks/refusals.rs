//! Which distributions a round requests, and what it does without them.

use outrider_tests::acceptance::length_distribution;
use speculation::TokenId;
use speculation::coupled::choice;
use speculation::noise::Noise;
use speculation::proposal::BadProposal;
use speculation::verification::layers::ResidualLayer;
use speculation::verification::{
    DraftChain, LastToken, PositionDistributions, RoundDistributions, Verification, verify,
};

use super::{VERIFICATIONS, block_of, seeded, setup};
use crate::tree::chain::Chain;
use crate::tree::{Setup, enumerate, pairs};

/// Counts the positions made, and fails beyond those there are.
struct Counted {
    chain: Chain<f64>,
    made: usize,
}

impl RoundDistributions<f64> for Counted {
    type Error = BadProposal;

    fn at(&mut self, offset: usize) -> Result<PositionDistributions<'_, f64>, BadProposal> {
        assert!(offset <= self.made, "positions come in order");
        self.made = self.made.max(offset + 1);
        self.chain.at(offset)
    }
}

#[test]
fn no_distribution_is_asked_for_beyond_the_first_refusal() {
    // The second of three drafts is one the target never says.
    let draft = vec![vec![0.5, 0.5]; 3];
    let target = vec![
        vec![0.5, 0.5],
        vec![0.0, 1.0],
        vec![0.5, 0.5],
        vec![0.5, 0.5],
    ];
    let noise = Noise::new(0, 0);
    let first = choice(&target[0], &noise, 0);
    let drafts = [first, 0, first];
    let rollback = 3.0;
    for verification in VERIFICATIONS.into_iter().chain([
        Verification::COUPLED,
        Verification::bild(rollback),
        Verification::bild_code(rollback),
    ]) {
        enumerate(|branch| {
            let mut distributions = Counted {
                chain: Chain::new(target.clone(), draft.clone()),
                made: 0,
            };
            let block = block_of(&drafts, 0);
            let verdict = verify(verification, &block, &noise, branch, &mut distributions)
                .expect("distributions");
            assert_eq!(distributions.made, 2, "{verification:?}");
            assert_eq!(verdict.emitted, [first, 1]);
            assert_eq!(verdict.last, LastToken::Recovered);
        });
    }
}

#[test]
fn bild_rolls_back_to_the_first_token_found_too_unlikely() {
    let noise = Noise::new(0, 0);
    let one_hot = |token: usize| (0..3).map(|v| f64::from(u8::from(v == token))).collect();
    let likely = vec![0.5, 0.25, 0.25];
    let run = |drafts: &[TokenId], target: Vec<Vec<f64>>, rollback: f64, ends: &[TokenId]| {
        let block = DraftChain {
            ends,
            ..block_of(drafts, 0)
        };
        let chain = Chain::new(target, Vec::new());
        let verdict = seeded(Verification::bild(rollback), &block, noise, chain);
        let verdict = verdict.expect("distributions");
        let accepted = verdict.accepted();
        (verdict.emitted, accepted, verdict.last)
    };
    let target = vec![likely.clone(), likely.clone(), one_hot(2)];
    // -ln 1/4 is exactly the threshold: kept. Just below it: refused, and the same token may return.
    let rollback = -f64::ln(0.25);
    let kept = run(&[1, 2], target.clone(), rollback, &[]);
    assert_eq!(kept, (vec![1, 2, 2], 2, LastToken::Bonus));
    let choice_there = choice(&likely, &noise, 1);
    let strict = run(&[0, 2], target.clone(), rollback - 1e-9, &[]);
    assert_eq!(strict, (vec![0, choice_there], 1, LastToken::Recovered));
    let same = run(&[0], vec![likely.clone()], 0.1, &[]);
    assert_eq!(same.1, 0);
    assert_eq!(same.0, [choice(&likely, &noise, 0)]);
    let ended = run(&[0, 2], target.clone(), 10.0, &[2]);
    assert_eq!(ended, (vec![0, 2], 2, LastToken::AcceptedEnd));
    let verification = Verification::bild(rollback - 1e-9);
    let lengths = length_distribution(verification, &[0, 2], &mut Chain::new(target, Vec::new()));
    assert_eq!(lengths, Ok(vec![0.0, 1.0, 0.0]));
}

#[test]
fn the_authors_code_keeps_a_block_whose_refused_token_the_target_chooses_too() {
    let one_hot = |token: usize| (0..3).map(|v| f64::from(u8::from(v == token))).collect();
    let likely = vec![0.5, 0.25, 0.25];
    let noise = Noise::new(0, 0);
    let chosen = choice(&likely, &noise, 0);
    let other = (chosen + 1) % 3;
    let verification = Verification::bild_code(0.1);
    // Behind the first offending token nothing is looked at, however unlikely it is.
    let run = |drafts: &[TokenId]| {
        let target = vec![likely.clone(), one_hot(0), one_hot(2)];
        let chain = Chain::new(target, Vec::new());
        seeded(verification, &block_of(drafts, 0), noise, chain).expect("distributions")
    };
    let kept = run(&[chosen, 1]);
    assert_eq!(
        (kept.emitted, kept.last),
        (vec![chosen, 1, 2], LastToken::Bonus)
    );
    let refused = run(&[other, 1]);
    assert_eq!(
        (refused.emitted, refused.last),
        (vec![chosen], LastToken::Recovered)
    );
    let target = vec![likely.clone(), one_hot(0), one_hot(2)];
    let mut chain = Chain::new(target, Vec::new());
    let lengths = length_distribution(verification, &[1, 1], &mut chain);
    assert_eq!(lengths, Ok(vec![0.75, 0.0, 0.25]));
}

/// A block cut by an end token is tested as a shorter one, but what its refusal leaves behind lasts as
/// long as the block was planned to.
#[test]
fn residuals_outlive_the_end_token_that_cut_their_block() {
    let mut outlived = false;
    for pair in pairs(30..34, 2) {
        let setup = Setup {
            ends: &[0],
            ..setup(&pair, Verification::BLOCK_GREEDY, |_| 3)
        };
        enumerate(|branch| {
            let verdict = setup.round(&[], &[], branch);
            outlived |= verdict.layers.iter().any(|layer| layer.remaining == 2);
        });
        setup.assert_exact(6, &pair.name);
    }
    assert!(outlived);
}

#[test]
fn a_live_layer_after_the_block_needs_the_draft_distribution_there() {
    let rows = |rows: usize| vec![vec![0.25, 0.75]; rows];
    let (log_rho, remaining) = (0.5, 2);
    let block = DraftChain {
        layers: &[ResidualLayer { log_rho, remaining }],
        ..block_of(&[1], 0)
    };
    let decide = |reported: usize| {
        let chain = Chain::new(rows(2), vec![vec![0.5, 0.5]; reported]);
        seeded(Verification::BLOCK_GREEDY, &block, Noise::new(0, 0), chain)
    };
    assert_eq!(decide(0), Err(BadProposal::Missing));
    assert_eq!(decide(1), Err(BadProposal::MissingBonus));
    assert!(decide(2).is_ok());
}

#[test]
fn a_token_that_its_distribution_cannot_draw_is_refused() {
    for verification in VERIFICATIONS {
        for (reported, error) in [
            (vec![vec![1.0, 0.0]], BadProposal::TokenWithoutMass(1)),
            (Vec::new(), BadProposal::Missing),
        ] {
            let chain = Chain::new(vec![vec![0.5, 0.5]; 2], reported);
            let verdict = seeded(verification, &block_of(&[1], 0), Noise::new(0, 0), chain);
            assert_eq!(verdict, Err(error));
        }
    }
}
