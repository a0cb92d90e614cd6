//! Plans with a deferral rule. A seed gives the same tokens under every fault, or the session says
//! that they are not what the method promises.

use std::collections::HashMap;

use speculation::session::{Origin, Plan};

use crate::case::Case;
use crate::faults::{Faults, Rates};
use crate::record::Record;
use crate::simulation::simulate;

const SEEDS: std::ops::Range<u64> = 0..300;

const UNBOUNDED: Plan = Plan::TokenCascade { max_run: u32::MAX };

/// Every plan that a deferral rule has a part in. The sequence cascade keeps about half of its
/// responses.
pub(crate) const PLANS: [Plan; 9] = [
    Plan::Speculative,
    Plan::OracleCascade,
    UNBOUNDED,
    Plan::TokenCascade { max_run: 3 },
    Plan::SequenceCascade {
        threshold: -2.5,
        mean: true,
    },
    Plan::SequenceCascade {
        threshold: -40.0,
        mean: false,
    },
    Plan::Bild {
        window: 5,
        verify_on_finish: false,
        code_variant: false,
    },
    Plan::Bild {
        window: 10,
        verify_on_finish: true,
        code_variant: false,
    },
    Plan::Bild {
        window: 10,
        verify_on_finish: true,
        code_variant: true,
    },
];

/// The request without faults and without a deadline.
fn untroubled(case: &Case) -> Record {
    let case = Case {
        deadline: None,
        ..case.clone()
    };
    let record = simulate(&case, &Faults::none(case.seed));
    record.assert_orderly();
    assert!(record.is_complete() && record.is_exact);
    assert_eq!(record.statistics.retries, 0);
    record
}

#[test]
fn both_models_have_their_say_in_every_plan() {
    for plan in PLANS {
        let mut origins = HashMap::new();
        for seed in SEEDS {
            for (_, origin) in untroubled(&Case::cascade(seed, plan)).emitted() {
                *origins.entry(origin).or_insert(0) += 1;
            }
        }
        let expected: &[Origin] = match plan {
            Plan::OracleCascade => &[Origin::Target],
            Plan::TokenCascade { .. } | Plan::SequenceCascade { .. } => {
                &[Origin::Accepted, Origin::Deferred]
            }
            _ => &[Origin::Accepted, Origin::Recovered],
        };
        for origin in expected {
            let times = origins.get(origin).copied().unwrap_or(0);
            // The authors' code of BiLD refuses less than the paper.
            let least = match plan {
                Plan::Bild { code_variant, .. } if code_variant => 100,
                _ => 200,
            };
            assert!(times > least, "{plan:?}: {origins:?}");
        }
    }
}

/// What a faulty drafter says is not repeated here: in a cascade its tokens stand.
#[test]
fn faults_change_no_token_of_an_exact_output() {
    for plan in PLANS {
        let (mut exact, mut inexact, mut retried) = (0, 0, 0);
        for seed in SEEDS {
            let case = Case::cascade(seed, plan);
            let mut faults = Faults::random(seed);
            faults.rates = Rates {
                corrupt: 0,
                ..faults.rates
            };
            let record = simulate(&case, &faults);
            record.assert_orderly();
            assert_eq!(record.is_exact, record.statistics.fallbacks.is_empty());
            if !record.is_exact {
                inexact += 1;
                continue;
            }
            let expected = untroubled(&case).stream();
            let stream = record.stream();
            assert!(
                expected.starts_with(&stream),
                "{stream:?} is not how {expected:?} begins"
            );
            if record.is_complete() {
                assert_eq!(stream, expected);
                exact += 1;
                retried += record.statistics.retries;
            }
        }
        let met = (exact, inexact, retried);
        assert!(
            exact > 50 && inexact > 20 && retried > 20,
            "{plan:?}: {met:?}"
        );
    }
}

/// Whatever a peer says, even what it cannot mean.
#[test]
fn every_cascade_ends_once_and_in_order() {
    let mut corrupted = 0;
    for plan in PLANS {
        for seed in SEEDS {
            let mut faults = Faults::random(seed);
            faults.rates.corrupt = 50;
            let record = simulate(&Case::cascade(seed, plan), &faults);
            record.assert_orderly();
            corrupted += record.tally.corrupted;
        }
    }
    assert!(corrupted > 1_000);
}

/// The rule reads the draft distribution only, and a coupled token is the noise's alone: it makes no
/// difference how the tokens are made.
#[test]
fn oracle_and_token_cascade_and_speculative_cascade_write_the_same() {
    for seed in SEEDS {
        let [speculative, oracle, token] = [Plan::Speculative, Plan::OracleCascade, UNBOUNDED]
            .map(|plan| untroubled(&Case::cascade(seed, plan)));
        assert_eq!(speculative.stream(), oracle.stream());
        assert_eq!(token.stream(), oracle.stream());
        let rates = [&speculative, &oracle, &token].map(|record| {
            let rate = record.statistics.deferral_rate();
            rate.expect("a rule that defers")
        });
        assert!(rates.iter().all(|rate| (rate - rates[0]).abs() < 1e-12));
        let forwards = oracle.output.len() as u32;
        let counted = &oracle.statistics;
        assert_eq!(counted.target_forwards, forwards);
        assert_eq!(counted.draft_forwards, forwards);
    }
}
