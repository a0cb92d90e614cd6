//! What a round makes of the target's rows and of what the drafter told.

use speculation::TokenId;
use speculation::confidence::Confidence;
use speculation::noise::Noise;
use speculation::proposal::{BadProposal, Proposal, ProposalProbs};
use speculation::round::{BlockInput, ComputedRound, RoundInputs, RoundScratch, TargetRows};
use speculation::target::{Beta, Rule, TargetDistribution, TargetProbs, rules};
use speculation::verification::{RoundDistributions, Verification};

use crate::blocks::{block_of, seeded};

const P: [f32; 3] = [0.5, 0.25, 0.25];
const Q: [f32; 3] = [0.25, 0.75, 0.0];

/// Rows that are all `P`.
struct Rows(Vec<Vec<f32>>);

impl Rows {
    fn new(rows: usize) -> Self {
        Self(vec![P.to_vec(); rows])
    }
}

impl TargetRows<f32> for Rows {
    type Error = BadProposal;

    fn distributions(&mut self, offset: usize) -> Result<TargetProbs<'_, f32>, BadProposal> {
        let (max, entropy) = (0.5, 1.04);
        Ok(TargetProbs {
            probs: &mut self.0[offset],
            unscaled: Some(&P),
            confidence: Confidence { max, entropy },
        })
    }

    fn row(&self, offset: usize) -> &[f32] {
        &self.0[offset]
    }
}

fn reported() -> Proposal {
    let (max, entropy) = (0.75, 0.56);
    Proposal {
        probs: ProposalProbs::Dense(Q.to_vec()),
        confidence: Some(Confidence { max, entropy }),
        unscaled: Some(Q.to_vec()),
        logprob: None,
    }
}

fn rule(rule: Rule, alpha: f64) -> TargetDistribution {
    TargetDistribution::Deferral { rule, alpha }
}

fn inputs<'a>(
    target: &'a TargetDistribution,
    verification: Verification,
    block: &'a BlockInput,
) -> RoundInputs<'a> {
    RoundInputs {
        target,
        verification,
        greedy: false,
        block,
        base_len: 0,
        ends: &[],
        vocab_size: 3,
    }
}

fn block(drafts: &[TokenId], proposals: &[Proposal], bonus: Option<&Proposal>) -> BlockInput {
    BlockInput {
        drafts: drafts.into(),
        proposals: proposals.to_vec(),
        bonus: bonus.cloned(),
        ..Default::default()
    }
}

/// The distributions π and q at each position, or the first error.
type Distributions = Result<Vec<(Vec<f32>, Vec<f32>)>, BadProposal>;

fn distributions(inputs: RoundInputs<'_>) -> Distributions {
    let rows = inputs.block.drafts.len() + 1;
    let mut scratch = RoundScratch::default();
    let mut round = ComputedRound::new(inputs, Rows::new(rows), &mut scratch);
    let at = |offset: usize| {
        let position = round.at(offset)?;
        Ok((position.target.to_vec(), position.draft.to_vec()))
    };
    (0..rows).map(at).collect()
}

/// The distributions of a round of the one draft token 1.
fn sent_distributions(
    target: &TargetDistribution,
    verification: Verification,
    proposal: Option<&Proposal>,
    bonus: Option<&Proposal>,
) -> Distributions {
    let proposals = proposal.map_or(&[][..], std::slice::from_ref);
    let block = block(&[1], proposals, bonus);
    distributions(inputs(target, verification, &block))
}

const REJECTIONS: [Verification; 3] = [
    Verification::TOKEN,
    Verification::BLOCK,
    Verification::BLOCK_GREEDY,
];

#[test]
fn exact_coupled_and_bild_rounds_need_nothing_of_the_draft_model() {
    let expected = Ok(vec![(P.to_vec(), vec![]); 2]);
    let (exact, rollback) = (TargetDistribution::Exact, 1.0);
    for verification in [Verification::COUPLED, Verification::bild(rollback)] {
        assert_eq!(
            sent_distributions(&exact, verification, None, None),
            expected
        );
    }
    for verification in REJECTIONS {
        for untold in [None, Some(&Proposal::default())] {
            let untold = sent_distributions(&exact, verification, untold, None);
            assert_eq!(untold, Err(BadProposal::Missing));
        }
        let expected = vec![(P.to_vec(), Q.to_vec()), (P.to_vec(), vec![])];
        let found = sent_distributions(&exact, verification, Some(&reported()), None);
        assert_eq!(found, Ok(expected));
    }
}

#[test]
fn the_draft_distribution_after_the_block_is_given_to_live_layers_alone() {
    let (exact, good) = (TargetDistribution::Exact, reported());
    for verification in REJECTIONS {
        let distributions = sent_distributions(&exact, verification, Some(&good), Some(&good));
        let given = !distributions.expect("distributions")[1].1.is_empty();
        assert_eq!(given, verification == Verification::BLOCK_GREEDY);
    }
    // A point distribution says nothing without its token.
    let probs = ProposalProbs::Point;
    let point = Proposal {
        probs,
        ..reported()
    };
    let greedy = Verification::BLOCK_GREEDY;
    let distributions = sent_distributions(&exact, greedy, Some(&good), Some(&point));
    assert!(distributions.expect("distributions")[1].1.is_empty());
}

#[test]
fn a_mixture_needs_the_draft_distribution_after_the_block_and_lossy_sampling_where_its_end_would_show()
 {
    let (alpha, beta) = (0.5, Beta::Tuned);
    let lossy = TargetDistribution::Lossy { alpha, beta };
    let mixture = rule(rules::CHOW, 0.5);
    let good = reported();
    for verification in REJECTIONS.into_iter().chain([Verification::COUPLED]) {
        let without = |target| sent_distributions(target, verification, Some(&good), None);
        assert_eq!(without(&mixture), Err(BadProposal::MissingBonus));
        match without(&lossy) {
            Ok(distributions) => {
                assert!(!lossy.mixes_bonus(verification));
                assert_ne!(distributions[0].0, P);
                assert_eq!(distributions[1].0, P);
            }
            Err(error) => {
                assert!(lossy.mixes_bonus(verification));
                assert_eq!(error, BadProposal::MissingBonus);
            }
        }
    }
    let distributions = sent_distributions(&lossy, Verification::COUPLED, Some(&good), Some(&good))
        .expect("distributions");
    assert_eq!(distributions[0], distributions[1]);
    assert_ne!(distributions[1].0, P);
}

#[test]
fn what_a_rule_reads_must_be_told_and_in_range() {
    let confident = |confidence| Proposal {
        confidence,
        ..reported()
    };
    let sure = |max, entropy| confident(Some(Confidence { max, entropy }));
    let (max, entropy) = (|max| sure(max, 0.5), |entropy| sure(0.5, entropy));
    let unscaled = |unscaled: &[f32]| Proposal {
        unscaled: Some(unscaled.to_vec()),
        ..reported()
    };
    let sparse = |unscaled: Option<Vec<f32>>| Proposal {
        probs: ProposalProbs::Sparse {
            ids: vec![1, 0],
            weights: vec![3, 1],
        },
        unscaled,
        ..reported()
    };
    let untold_max = BadProposal::NotKept("max_probability");
    let bad_max = BadProposal::OutOfRange("max_probability");
    let bad_entropy = BadProposal::OutOfRange("entropy");
    let bad_unscaled = BadProposal::OutOfRange("unscaled");
    let untold_unscaled = BadProposal::NotKept("unscaled");
    let length = |found, expected| BadProposal::Length { found, expected };
    let (found_two, found_one) = (length(2, 3), length(1, 2));
    for (rule_read, proposal, error) in [
        (rules::CHOW, confident(None), untold_max),
        (rules::CHOW, max(0.0), bad_max.clone()),
        (rules::CHOW, max(1.01), bad_max.clone()),
        (rules::CHOW, max(f32::NAN), bad_max),
        (
            rules::CHOW_LOG,
            confident(None),
            BadProposal::NotKept("entropy"),
        ),
        (rules::CHOW_LOG, entropy(-0.1), bad_entropy.clone()),
        (rules::CHOW_LOG, entropy(f32::INFINITY), bad_entropy),
        (rules::TOKEN_V1, unscaled(&[0.5, 0.5]), found_two),
        (
            rules::TOKEN_V1,
            unscaled(&[0.5, 1.5, 0.0]),
            bad_unscaled.clone(),
        ),
        (
            rules::TOKEN_V1,
            unscaled(&[0.5, f32::NAN, 0.0]),
            bad_unscaled,
        ),
        (rules::TOKEN_V1, sparse(None), untold_unscaled.clone()),
        (rules::TOKEN_V1, sparse(Some(vec![0.5])), found_one),
        (rules::BILD, sparse(Some(vec![0.5, 0.5])), untold_unscaled),
    ] {
        let (target, good) = (rule(rule_read, 0.2), reported());
        for verification in [Verification::COUPLED, Verification::TOKEN] {
            for (proposal, bonus) in [(&proposal, &good), (&good, &proposal)] {
                let found = sent_distributions(&target, verification, Some(proposal), Some(bonus));
                assert_eq!(found, Err(error.clone()));
            }
        }
    }
    // What a rule does not read may be anything.
    let odd = Proposal {
        unscaled: Some(vec![9.0]),
        ..max(f32::NAN)
    };
    let target = rule(rules::CHOW_LOG, 0.2);
    sent_distributions(&target, Verification::TOKEN, Some(&odd), Some(&reported()))
        .expect("distributions");
}

#[test]
fn unscaled_probabilities_of_a_sparse_distribution_stand_at_its_ids() {
    // V1 refuses what is below max p - α = 0.3: token 0 by its unscaled probability.
    let target = rule(rules::TOKEN_V1, 0.2);
    let sparse = Proposal {
        probs: ProposalProbs::Sparse {
            ids: vec![1, 0],
            weights: vec![3, 1],
        },
        unscaled: Some(vec![0.6, 0.2]),
        ..reported()
    };
    let coupled = |proposal| {
        let distributions = sent_distributions(
            &target,
            Verification::COUPLED,
            Some(proposal),
            Some(&sparse),
        );
        distributions.expect("distributions").remove(0)
    };
    let (probs, draft) = coupled(&sparse);
    assert_eq!(draft, Q);
    assert_eq!(probs, [0.125, 0.8125, 0.0625]);
    // A point distribution may say it of its one token.
    let point = Proposal {
        probs: ProposalProbs::Point,
        unscaled: Some(vec![0.2]),
        ..reported()
    };
    assert_eq!(coupled(&point).0, P);
}

/// BiLD looks at p before cuts and temperature.
#[test]
fn bild_judges_by_the_unscaled_distribution() {
    let cut = || Rows(vec![vec![1.0, 0.0, 0.0]; 2]);
    let (exact, noise) = (TargetDistribution::Exact, Noise::new(0, 0));
    let decide = |rollback| {
        let verification = Verification::bild(rollback);
        let mut scratch = RoundScratch::default();
        let block = block(&[1], &[], None);
        let inputs = inputs(&exact, verification, &block);
        let round = ComputedRound::new(inputs, cut(), &mut scratch);
        let verdict = seeded(verification, &block_of(&[1], 0), noise, round);
        verdict.expect("distributions").emitted
    };
    // -ln 1/4 = 1.386...
    assert_eq!(decide(1.39), [1, 0]);
    assert_eq!(decide(1.38), [0]);
}

#[test]
fn a_position_asked_for_again_is_the_same_and_counts_once() {
    let target = rule(rules::TOKEN_V3, 0.2);
    let (proposals, bonus) = ([reported(), reported()], reported());
    let block = block(&[1, 0], &proposals, Some(&bonus));
    let mut scratch = RoundScratch::default();
    for _ in 0..2 {
        let inputs = inputs(&target, Verification::TOKEN, &block);
        let mut round = ComputedRound::new(inputs, Rows::new(3), &mut scratch);
        assert!(round.deferral().is_empty());
        let mut at = |offset| {
            let position = round.at(offset).expect("distributions");
            let distributions = (position.target.to_vec(), position.draft.to_vec());
            position.draft.fill(9.0);
            distributions
        };
        let first = at(0);
        at(1);
        assert_eq!(at(0), first);
        // p(v) >= 0.4 for token 0 alone, so the draft's 0.75 of token 1 goes to the target.
        assert_eq!(first.0, [0.625, 0.1875, 0.1875]);
        assert_eq!(round.deferral(), [0.75, 0.75]);
    }
}
