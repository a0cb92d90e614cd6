//! Rejection sampling proved by exact enumeration: every random decision of the shipped functions
//! is taken both ways (or every way), with its probability, and the emitted law is added up.

mod tree;

use speculation::TokenId;
use speculation::drafting::draft_token;
use speculation::noise::Noise;
use speculation::proposal::{BadProposal, ProposalForm};
use speculation::verification::{LastToken, Verdict, Verification, token};
use tree::{Branch, Laws, enumerate};

const VOCAB: usize = 3;
const TOLERANCE: f64 = 1e-12;

/// One round on top of `prefix`: draft `draft_len` tokens, verify them.
fn round(
    prefix: &[TokenId],
    draft_len: usize,
    form: ProposalForm,
    (draft, target): (&Laws, &Laws),
    ends: &[TokenId],
    branch: &mut Branch,
) -> Verdict {
    let noise = Noise::new(0, 0);
    let base_len = prefix.len() as u32;
    let mut context = prefix.to_vec();
    let (mut drafts, mut proposals) = (Vec::new(), Vec::new());
    for offset in 0..draft_len as u32 {
        let mut law = draft.after(&context);
        let at = (base_len, offset);
        let drawn = draft_token(&mut law, Verification::Token, form, &noise, at, branch);
        context.push(drawn.id);
        drafts.push(drawn.id);
        proposals.push(drawn.proposal);
        if ends.contains(&drawn.id) {
            break;
        }
    }
    let laws: Vec<Vec<f64>> = (0..=drafts.len())
        .map(|offset| target.after(&context[..prefix.len() + offset]))
        .collect();
    let draft_law = |offset: usize, law: &mut Vec<f64>| {
        law.resize(VOCAB, 0.0);
        proposals[offset].write_law(drafts[offset], law)
    };
    let target_law = |offset: usize| Ok::<_, BadProposal>(&laws[offset][..]);
    token::verify(&drafts, ends, branch, draft_law, target_law).expect("well-formed proposals")
}

/// The exact law of the first `len` tokens after `rounds` rounds; what the rounds leave open is
/// completed by the target.
fn emitted_law(
    rounds: usize,
    draft_len: usize,
    form: ProposalForm,
    laws: (&Laws, &Laws),
    len: usize,
) -> Vec<f64> {
    let mut law = vec![0.0; VOCAB.pow(len as u32)];
    enumerate(|branch| {
        let mut output = Vec::new();
        for _ in 0..rounds {
            let verdict = round(&output, draft_len, form, laws, &[], branch);
            output.extend(verdict.emitted);
        }
        output.truncate(len);
        laws.1.spread(&output, len, branch.weight(), &mut law);
    });
    law
}

fn assert_equal(law: &[f64], expected: &[f64], what: &str) {
    let worst = law
        .iter()
        .zip(expected)
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, f64::max);
    assert!(worst < TOLERANCE, "{what}: differs by {worst:e}");
}

#[test]
fn two_rounds_emit_the_target_law_whatever_is_told_of_the_draft_law() {
    for seed in 0..6 {
        let laws = (&Laws::random(seed, VOCAB), &Laws::random(seed + 100, VOCAB));
        for form in [
            ProposalForm::Sparse { top: 3 },
            ProposalForm::Sparse { top: 2 },
        ] {
            for draft_len in 1..=2 {
                let len = 4;
                let law = emitted_law(2, draft_len, form, laws, len);
                let mut expected = vec![0.0; law.len()];
                laws.1.spread(&[], len, 1.0, &mut expected);
                assert_equal(
                    &law,
                    &expected,
                    &format!("seed {seed} {form:?} K={draft_len}"),
                );
            }
        }
    }
}

#[test]
fn a_deterministic_draft_is_a_point_law() {
    for seed in 0..6 {
        let draft = &Laws::random(seed, VOCAB).greedy();
        let target = &Laws::random(seed + 100, VOCAB);
        let law = emitted_law(2, 2, ProposalForm::Point, (draft, target), 3);
        let mut expected = vec![0.0; law.len()];
        target.spread(&[], 3, 1.0, &mut expected);
        assert_equal(&law, &expected, &format!("seed {seed}"));
    }
}

#[test]
fn a_greedy_target_is_followed_exactly() {
    for seed in 0..6 {
        let draft = &Laws::random(seed, VOCAB);
        let target = &Laws::random(seed + 100, VOCAB).greedy();
        let law = emitted_law(2, 2, ProposalForm::Sparse { top: 3 }, (draft, target), 3);
        let mut expected = vec![0.0; law.len()];
        target.spread(&[], 3, 1.0, &mut expected);
        assert_equal(&law, &expected, &format!("seed {seed}"));
    }
}

/// E[accepted] = Σ_l Σ_{x^l} Π min(q, π), summed over l = 1..K.
#[test]
fn expected_accepted_length_equals_its_formula() {
    fn formula(draft: &Laws, target: &Laws, prefix: &mut Vec<TokenId>, left: usize) -> f64 {
        if left == 0 {
            return 0.0;
        }
        let (q, pi) = (draft.after(prefix), target.after(prefix));
        let mut total = 0.0;
        for x in 0..VOCAB {
            prefix.push(x as TokenId);
            total += q[x].min(pi[x]) * (1.0 + formula(draft, target, prefix, left - 1));
            prefix.pop();
        }
        total
    }
    for seed in 0..6 {
        let draft = &Laws::random(seed, VOCAB).quantised();
        let target = &Laws::random(seed + 100, VOCAB);
        for draft_len in 1..=3 {
            let mut expected = 0.0;
            enumerate(|branch| {
                let form = ProposalForm::Sparse { top: 3 };
                let verdict = round(&[], draft_len, form, (draft, target), &[], branch);
                expected += branch.weight() * verdict.accepted as f64;
            });
            let formula = formula(draft, target, &mut Vec::new(), draft_len);
            assert!(
                (expected - formula).abs() < TOLERANCE,
                "seed {seed} K={draft_len}"
            );
        }
    }
}

/// With an end token the law of the finished outputs is the target's, and nothing follows an end.
#[test]
fn an_accepted_end_token_takes_no_bonus() {
    const END: TokenId = 2;
    for seed in 0..6 {
        let (draft, target) = (&Laws::random(seed, VOCAB), &Laws::random(seed + 100, VOCAB));
        let mut ended_at_once = 0.0;
        enumerate(|branch| {
            let form = ProposalForm::Sparse { top: 3 };
            let verdict = round(&[], 2, form, (draft, target), &[END], branch);
            let position = verdict.emitted.iter().position(|&token| token == END);
            assert!(position.is_none_or(|at| at + 1 == verdict.emitted.len()));
            if verdict.last == LastToken::AcceptedEnd {
                assert_eq!(verdict.accepted, verdict.emitted.len());
            }
            if position == Some(0) {
                ended_at_once += branch.weight();
            }
        });
        let expected = target.after(&[])[END as usize];
        assert!((ended_at_once - expected).abs() < TOLERANCE, "seed {seed}");
    }
}

/// Narasimhan et al., Lemma 3 with δ = 1: a position is refused with probability TV(π, q).
#[test]
fn acceptance_is_one_minus_the_total_variation() {
    for seed in 0..20 {
        let q = Laws::random(seed, 7).after(&[]);
        let pi = Laws::random(seed + 100, 7).after(&[]);
        let tv: f64 = pi.iter().zip(&q).map(|(a, b)| (a - b).max(0.0)).sum();
        assert!((token::acceptance(&q, &pi) - (1.0 - tv)).abs() < TOLERANCE);
    }
}
