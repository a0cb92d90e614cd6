//! Every verification proved exact by enumeration: each random decision of the shipped functions is
//! taken every way, with its probability, and the emitted distribution is added up.

use crate::blocks::{VERIFICATIONS, WHOLE, setup};
use crate::tree::{Distributions, OutputDistribution, Pair, Setup, enumerate, pairs};
use outrider_tests::acceptance::rejection;
use speculation::TokenId;
use speculation::proposal::ProposalForm;
use speculation::target::{Beta, RULES, TargetDistribution};
use speculation::verification::{LastToken, Verification};

/// The draft tokens of the round after so many output tokens.
type Length = fn(u32) -> u32;

const LOSSY: [TargetDistribution; 4] = [
    TargetDistribution::Lossy {
        alpha: 0.3,
        beta: Beta::Fixed(1.0),
    },
    TargetDistribution::Lossy {
        alpha: 0.5,
        beta: Beta::Tuned,
    },
    TargetDistribution::LossyWithin { kl_budget: 0.05 },
    TargetDistribution::LossyWithin { kl_budget: 0.5 },
];

/// Long enough that every output takes two rounds, and greedy block verification nests its layers.
#[test]
fn rounds_emit_the_target_distribution() {
    let cases: [(usize, Length, usize); 8] = [
        (2, |_| 1, 4),
        (2, |_| 2, 6),
        (2, |_| 3, 6),
        (2, |_| 4, 6),
        (3, |_| 1, 3),
        (3, |_| 2, 4),
        (4, |_| 1, 3),
        (5, |_| 2, 3),
    ];
    for (vocab, length, len) in cases {
        for pair in pairs(0..3, vocab) {
            for verification in VERIFICATIONS {
                setup(&pair, verification, length).assert_exact(len, &pair.name);
            }
        }
    }
}

/// A grammar masks rows before anything else, of both models, or of the target alone where the drafter does not know it.
#[test]
fn masked_distributions_are_emitted_by_every_verification() {
    for (vocab, len) in [(3, 4), (4, 3)] {
        let random = pairs(120..126, vocab).into_iter();
        for pair in random.filter(|pair| pair.name.starts_with("random")) {
            let target = pair.target.clone().masked();
            assert_eq!(target.after(&[1])[1], 0.0);
            for draft in [pair.draft.clone().masked(), pair.draft.clone()] {
                let (name, target) = (pair.name.clone(), target.clone());
                let pair = Pair {
                    name,
                    draft,
                    target,
                };
                for verification in VERIFICATIONS {
                    setup(&pair, verification, |_| 3).assert_exact(len, &pair.name);
                }
            }
        }
    }
}

/// The next block may be shorter than a layer lasts, or longer.
#[test]
fn blocks_of_varying_length_emit_the_target_distribution() {
    let lengths: [Length; 3] = [
        |base_len| 3 - base_len % 3,
        |base_len| 1 + base_len % 3,
        |base_len| [3, 0, 1, 2, 0, 1][base_len as usize],
    ];
    for length in lengths {
        for pair in pairs(10..13, 2) {
            for verification in VERIFICATIONS {
                setup(&pair, verification, length).assert_exact(6, &pair.name);
            }
        }
        for pair in pairs(10..11, 3) {
            for verification in VERIFICATIONS {
                setup(&pair, verification, length).assert_exact(4, &pair.name);
            }
        }
    }
}

/// Drafting stops at an end token, so blocks are cut; nothing follows an end.
#[test]
fn outputs_that_end_follow_the_target_distribution() {
    for (vocab, len) in [(2, 6), (3, 4)] {
        for pair in pairs(20..24, vocab) {
            for verification in VERIFICATIONS {
                let setup = Setup {
                    ends: &[1],
                    ..setup(&pair, verification, |_| 3)
                };
                setup.assert_exact(len, &pair.name);
            }
        }
    }
}

/// A stop rule looks at the context, and so at what was drafted: with it blocks end in another place than the output goes
/// on at. Layers end where drafting does on the output's own path, whichever block they are of.
#[test]
fn blocks_whose_length_is_decided_while_drafting_emit_the_target_distribution() {
    let rules: [fn(&[TokenId]) -> bool; 4] = [
        |context| context.last() == Some(&1),
        |context| context.len() % 4 == 2,
        |context| context.len() > 1 && context.iter().sum::<u32>() % 3 == 1,
        |context| context.iter().fold(5, |hash, &token| hash * 3 + token) % 5 < 2,
    ];
    let cases: [(usize, Length, &[TokenId], usize); 5] = [
        (2, |_| 4, &[], 6),
        (2, |base_len| [4, 1, 3, 1, 2, 1][base_len as usize], &[], 6),
        (2, |_| 3, &[0], 6),
        (3, |_| 3, &[], 4),
        (3, |_| 2, &[2], 4),
    ];
    for stops in rules {
        for (vocab, length, ends, len) in cases {
            for pair in pairs(90..94, vocab) {
                for verification in VERIFICATIONS {
                    let setup = Setup {
                        ends,
                        stops,
                        ..setup(&pair, verification, length)
                    };
                    setup.assert_exact(len, &pair.name);
                }
            }
        }
    }
}

#[test]
fn what_is_told_of_the_draft_distribution_changes_nothing() {
    for form in [
        ProposalForm::Sparse { top: 1 },
        ProposalForm::Sparse { top: 2 },
        ProposalForm::Dense { half: false },
        ProposalForm::Dense { half: true },
    ] {
        for pair in pairs(30..32, 3) {
            for verification in VERIFICATIONS {
                let setup = Setup {
                    form,
                    ..setup(&pair, verification, |_| 2)
                };
                setup.assert_exact(4, &pair.name);
            }
        }
    }
}

#[test]
fn a_deterministic_draft_is_a_point_distribution() {
    for pair in pairs(40..43, 3) {
        let pair = Pair {
            draft: pair.draft.greedy(),
            ..pair
        };
        for verification in VERIFICATIONS {
            let setup = Setup {
                form: ProposalForm::Point,
                ..setup(&pair, verification, |_| 3)
            };
            setup.assert_exact(5, &pair.name);
        }
    }
}

/// The bonus position is a mixture as well, and greedy block verification lays its residual on the
/// mixture.
#[test]
fn rounds_emit_the_mixture_of_every_deferral_rule() {
    for rule in RULES.iter().copied() {
        let alpha = rule.alpha.default;
        let distribution = TargetDistribution::Deferral { rule, alpha };
        for pair in pairs(0..2, 3) {
            for temperature in [0.0, 0.6, 1.0] {
                for verification in VERIFICATIONS {
                    let setup = Setup {
                        distribution: &distribution,
                        form: ProposalForm::Dense { half: false },
                        temperature,
                        ..setup(&pair, verification, |base_len| 1 + base_len % 2)
                    };
                    let name = rule.name;
                    setup.assert_exact(3, &format!("{name} T={temperature} {}", pair.name));
                }
            }
        }
    }
}

/// At a drafted position the distribution that lossy sampling emits, at the bonus position p.
#[test]
fn lossy_rounds_emit_what_is_aimed_at_and_a_bonus_of_the_target() {
    for distribution in LOSSY {
        for pair in pairs(45..49, 3) {
            for verification in [Verification::TOKEN, Verification::BLOCK] {
                let setup = Setup {
                    distribution: &distribution,
                    ..setup(&pair, verification, |_| 1)
                };
                let mut first = setup.expected(1);
                let mut bonus = OutputDistribution::new();
                enumerate(|branch| {
                    let emitted = setup.round(&[], &[], branch).emitted;
                    *first.entry(emitted[..1].to_vec()).or_default() -= branch.weight();
                    if emitted.len() == 2 {
                        for (token, mass) in pair.target.after(&emitted[..1]).iter().enumerate() {
                            let output = vec![emitted[0], token as TokenId];
                            *bonus.entry(output).or_default() += branch.weight() * mass;
                        }
                        *bonus.entry(emitted).or_default() -= branch.weight();
                    }
                });
                let off = first.values().chain(bonus.values());
                let worst = off.fold(0.0, |worst: f64, off| worst.max(off.abs()));
                assert!(worst < 1e-12, "{verification:?} {}: {worst:e}", pair.name);
            }
        }
    }
}

/// Its residual reaches over the ends of blocks, so there too it aims at what lossy sampling emits.
#[test]
fn lossy_greedy_rounds_emit_what_is_aimed_at_wherever_blocks_end() {
    for distribution in LOSSY {
        for length in [|_| 2, |base_len| 1 + base_len % 3] as [Length; 2] {
            for pair in pairs(45..49, 3) {
                let setup = Setup {
                    distribution: &distribution,
                    ..setup(&pair, Verification::BLOCK_GREEDY, length)
                };
                setup.assert_exact(4, &pair.name);
            }
        }
    }
}

#[test]
fn equal_models_accept_every_draft_token() {
    for pair in pairs(50..54, 3) {
        let equal = Pair {
            target: pair.draft.reported(WHOLE),
            draft: pair.draft,
            name: pair.name,
        };
        for verification in VERIFICATIONS {
            enumerate(|branch| {
                let verdict = setup(&equal, verification, |_| 3).round(&[], &[], branch);
                assert_eq!(verdict.accepted(), 3, "{verification:?} {}", equal.name);
            });
        }
    }
}

#[test]
fn at_temperature_zero_every_verification_matches_tokens() {
    for pair in pairs(60..70, 3) {
        let (draft, target) = (pair.draft.greedy(), pair.target.greedy());
        let best = |probs: Vec<f64>| probs.iter().position(|&mass| mass == 1.0).expect("one-hot");
        let mut output: Vec<TokenId> = Vec::new();
        for _ in 0..=3 {
            let (drafted, chosen) = (best(draft.after(&output)), best(target.after(&output)));
            output.push(chosen as TokenId);
            if drafted != chosen {
                break;
            }
        }
        let accepted = output.len() - 1;
        let pair = Pair {
            draft,
            target,
            ..pair
        };
        for verification in VERIFICATIONS {
            let setup = setup(&pair, verification, |_| 3);
            let mut total = 0.0;
            enumerate(|branch| {
                let verdict = setup.round(&[], &[], branch);
                assert_eq!((&verdict.emitted, verdict.accepted()), (&output, accepted));
                total += branch.weight();
            });
            assert_eq!(total, 1.0);
        }
    }
}

#[test]
fn an_accepted_end_token_takes_no_bonus() {
    const END: TokenId = 2;
    for pair in pairs(80..83, 3) {
        for verification in VERIFICATIONS {
            let setup = Setup {
                ends: &[END],
                ..setup(&pair, verification, |_| 2)
            };
            enumerate(|branch| {
                let verdict = setup.round(&[], &[], branch);
                let position = verdict.emitted.iter().position(|&token| token == END);
                assert!(position.is_none_or(|at| at + 1 == verdict.emitted.len()));
                let ended = verdict.last == LastToken::AcceptedEnd;
                assert_eq!(ended, position.is_some_and(|at| at < verdict.accepted()));
                assert!(!ended || verdict.layers.is_empty());
            });
        }
    }
}

/// Narasimhan et al., Lemma 3 with δ = 1: a position is refused with probability TV(π, q).
#[test]
fn acceptance_is_one_minus_the_total_variation() {
    for seed in 0..20 {
        let q = Distributions::random(seed, 7).after(&[]);
        let pi = Distributions::random(seed + 100, 7).after(&[]);
        let tv: f64 = pi.iter().zip(&q).map(|(a, b)| (a - b).max(0.0)).sum();
        assert!((rejection(&q, &pi) - (1.0 - tv)).abs() < 1e-12);
    }
}
