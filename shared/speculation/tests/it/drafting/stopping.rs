//! The loop of SpecDec++, replayed (Huang et al., "SpecDec++", Algorithm 2).

use speculation::confidence::Confidence;
use speculation::drafting::policies::LEARNED;
use speculation::drafting::{StopRule, Stopping};
use speculation::session::Statistics;

use crate::read::{cases_of, close, numbers};

/// The product after each token drawn, as a drafter would go about it.
fn replay(rule: StopRule, predicted: &[f64], most: usize, end_at: Option<usize>) -> Vec<f64> {
    let flat = Confidence {
        max: 0.0_f64,
        entropy: 99.0,
    };
    let mut stopping = Stopping::new(rule);
    let mut products = Vec::new();
    while products.len() < most && !stopping.stops_before(flat) {
        if stopping.wants_prediction() {
            // Of the last token drawn, before the next is.
            stopping.predicted(predicted[products.len() - 1]);
        }
        let stops = stopping.drawn();
        products.push(stopping.all_accepted());
        assert_eq!(stopping.len() as usize, products.len());
        if stops || end_at == Some(products.len()) {
            break;
        }
    }
    products
}

#[test]
fn the_loop_stops_where_the_authors_code_does() {
    let mut lengths = Vec::new();
    for case in cases_of("specdecpp", "stop") {
        let count = |field: &str| numbers(&case[field])[0] as usize;
        let rule = StopRule::new(&LEARNED, numbers(&case["threshold"])[0])
            .with_least(count("min_len") as u32);
        let end_at = case["eos_at"].as_u64().map(|at| at as usize);
        let predicted = numbers(&case["pred"]);
        let products = replay(rule, &predicted, count("max_len"), end_at);
        assert_eq!(products.len(), count("K"), "{}", case["id"]);
        close(&products, &numbers(&case["cum_accept"]), 1e-12);
        lengths.push(products.len());
    }
    assert!(lengths.len() >= 2, "{lengths:?}");
}

/// By hand: the product is 1, .9, .72, .36, .324 after the first five tokens.
#[test]
fn hand_computed_traces() {
    let predicted = [0.9, 0.8, 0.5, 0.9];
    let len = |threshold, least, most, end_at| {
        replay(
            StopRule::new(&LEARNED, threshold).with_least(least),
            &predicted,
            most,
            end_at,
        )
        .len()
    };
    // 1 - product: 0, .1, .28, .64.
    for (threshold, expected) in [(0.05, 2), (0.2, 3), (0.5, 4), (0.65, 5)] {
        assert_eq!(len(threshold, 1, 5, None), expected, "h = {threshold}");
    }
    // At least so many, whatever the head says; at most so many; no more after an end token.
    assert_eq!(len(0.05, 4, 5, None), 4);
    assert_eq!(len(0.65, 1, 3, None), 3);
    assert_eq!(len(0.65, 1, 5, Some(1)), 1);
    // At the threshold itself it goes on.
    assert_eq!(len(0.5_f64.next_down(), 1, 5, None), 4);
    let halves = |threshold| {
        let rule = StopRule::new(&LEARNED, threshold).with_least(1);
        replay(rule, &[0.5, 0.5, 0.5], 4, None).len()
    };
    assert_eq!((halves(0.5), halves(0.5_f64.next_down())), (3, 2));
}

/// What recorded runs counted balances, and gives their rates. That runs of ours balance is held where they
/// run: by the session's tests, the simulated network and the services.
#[test]
fn recorded_runs_balance_and_have_their_rates() {
    for case in cases_of("specdecpp", "time") {
        let count = |field: &str| numbers(&case[field])[0] as u32;
        let statistics = Statistics {
            drafted: count("n_draft"),
            target_forwards: count("n_target"),
            emitted: count("N"),
            discarded: count("n_discard"),
            ..Statistics::default()
        };
        let spent = statistics.drafted + statistics.target_forwards;
        assert_eq!(spent, count("N") + count("n_discard"));
        let per_token = |count: u32| Some(f64::from(count) / f64::from(statistics.emitted));
        assert_eq!(statistics.verification_rate(), per_token(count("n_target")));
    }
}
