//! The training against its definition: golden vectors, finite differences, and what is learnt.

use candle_core::{DType, Device, Tensor, Var};
use model::AcceptanceHead;
use model::head::HeadScratch;
use outrider_tests::acceptance::label_probability;
use serde_json::Value;
use speculation::TokenId;
use speculation::verification::AcceptanceLabel;

use super::evaluation::binary_kl;
use super::fit::schedule;
use super::network::{HeadNetwork, loss};
use super::*;

/// The cases of `kind` in the golden file.
fn golden(kind: &str) -> Vec<Value> {
    let file = include_str!("../../../../../shared/speculation/tests/golden/specdecpp.json");
    let file: Value = serde_json::from_str(file).expect("JSON");
    let cases = file["cases"].as_array().expect("cases");
    let wanted = cases.iter().filter(|case| case["kind"] == kind);
    wanted.cloned().collect()
}

fn numbers(value: &Value) -> Vec<f64> {
    let values = value.as_array().expect("a list").iter();
    values
        .map(|value| value.as_f64().expect("a number"))
        .collect()
}

fn scalar(tensor: &Tensor) -> f64 {
    tensor.to_scalar().expect("a scalar")
}

#[test]
fn golden_losses_and_their_gradients() {
    let cases = golden("loss");
    assert_eq!(cases.len(), 2);
    for case in cases {
        let mask = case["mask"].as_array().expect("mask");
        let counted: Vec<usize> = (0..mask.len()).filter(|&row| mask[row] == true).collect();
        let logits: Vec<f64> = (counted.iter())
            .flat_map(|&row| numbers(&case["logits"][row]))
            .collect();
        let all = numbers(&case["target"]);
        let labels: Vec<f64> = counted.iter().map(|&row| all[row]).collect();
        let shape = (labels.len(), 2);
        let var = Var::from_vec(logits.clone(), shape, &Device::Cpu).expect("logits");
        let target = Tensor::new(&labels[..], &Device::Cpu).expect("labels");
        let w_rej = case["w_rej"].as_f64().expect("w_rej");
        let weighted = loss(&var, &target, w_rej).expect("a loss");
        let normalised = (&weighted.sum / &weighted.weight).expect("a loss");
        for (loss, value, gradient) in [
            (&weighted.sum, "loss_sum", "grad_sum_wrt_margin"),
            (&normalised, "loss_normalised", "grad_norm_wrt_margin"),
        ] {
            let expected = case[value].as_f64().expect(value);
            assert!((scalar(loss) - expected).abs() < 1e-9, "{value}");
            let gradients = loss.backward().expect("gradients");
            let found = gradients.get(&var).expect("the logits'");
            let found = found.to_vec2::<f64>().expect("rows");
            let expected = numbers(&case[gradient]);
            for (&row, found) in counted.iter().zip(found) {
                assert!((found[1] - expected[row]).abs() < 1e-9, "{gradient} {row}");
                assert!((found[0] + expected[row]).abs() < 1e-9, "{gradient} {row}");
            }
        }
        let kl: f64 = (labels.iter().zip(logits.chunks(2)))
            .map(|(&label, z)| binary_kl(label, 1.0 / (1.0 + (z[0] - z[1]).exp())))
            .sum();
        let expected = case["binary_kl"].as_f64().expect("binary_kl");
        assert!(
            (kl / labels.len() as f64 - expected).abs() < 1e-9,
            "{kl}, {expected}"
        );
    }
}

#[test]
fn golden_mixing() {
    let cases = golden("mix");
    assert_eq!(cases.len(), 1);
    for case in cases {
        let tokens = |name: &str| -> Vec<TokenId> {
            let tokens = numbers(&case[name]).into_iter();
            tokens.map(|token| token as TokenId).collect()
        };
        let share = case["r"].as_f64().expect("r");
        let uniforms = numbers(&case["uniforms"]).into_iter();
        let mixed = mix(&tokens("X"), &tokens("Y"), uniforms, share);
        assert_eq!(mixed.tokens, tokens("Z"));
        let mask = case["loss_mask"].as_array().expect("a mask").iter();
        assert!(mask.eq(mixed.drafted.iter()));
        // Its labels are min(1, p / q).
        let (p, q) = (
            numbers(&case["logp_target_of_Y"]),
            numbers(&case["logp_draft_of_Y"]),
        );
        for ((p, q), expected) in p.iter().zip(&q).zip(numbers(&case["target_prob"])) {
            let (p, q) = (p.exp(), q.exp());
            let label =
                label_probability(AcceptanceLabel::Rejection, &[q, 1.0 - q], &[p, 1.0 - p], 0);
            assert!((label - expected).abs() < 1e-9, "{label}, {expected}");
        }
    }
}

#[test]
fn golden_stopping() {
    let cases = golden("stop");
    assert_eq!(cases.len(), 2);
    for case in cases {
        let predicted: Vec<f32> = numbers(&case["pred"]).iter().map(|&p| p as f32).collect();
        let stop = StopAt::Refusal {
            threshold: case["threshold"].as_f64().expect("threshold"),
            cap: case["max_len"].as_u64().expect("max_len") as usize,
        };
        assert_eq!(Some(stop.draft_len(&predicted) as u64), case["K"].as_u64());
    }
}

#[test]
fn gradients_are_finite_differences() {
    let (rows, hidden) = (5, 6);
    let mut uniforms = Uniforms::new(3, 9);
    let mut values = |count: usize| (0..count).map(|_| uniforms.uniform()).collect::<Vec<f64>>();
    let states =
        Tensor::from_vec(values(rows * hidden), (rows, hidden), &Device::Cpu).expect("states");
    let labels = Tensor::from_vec(values(rows), rows, &Device::Cpu).expect("labels");
    for (depth, stored) in [(0, 0), (3, 3), (3, 1)] {
        let network = HeadNetwork::new((depth, stored, hidden), DType::F64, 11).expect("a network");
        let value = || {
            let weighted =
                loss(&network.logits(&states).expect("logits"), &labels, 6.0).expect("a loss");
            (weighted.sum / weighted.weight).expect("a loss")
        };
        let gradients = value().backward().expect("gradients");
        let vars = network.vars();
        assert_eq!(vars.len(), 2 * stored + 2);
        for var in vars {
            let values = |tensor: &Tensor| {
                let flat = tensor.flatten_all().expect("flat");
                flat.to_vec1::<f64>().expect("values")
            };
            let found = values(gradients.get(&var).expect("a gradient"));
            let before = values(var.as_tensor());
            for (index, found) in found.into_iter().enumerate() {
                let moved = |by: f64| {
                    let mut values = before.clone();
                    values[index] += by;
                    var.set(&Tensor::from_vec(values, var.shape(), &Device::Cpu).expect("values"))
                        .expect("set");
                    scalar(&value())
                };
                let expected = (moved(1e-5) - moved(-1e-5)) / 2e-5;
                moved(0.0);
                let error = (found - expected).abs();
                assert!(error < 1e-8, "{depth} {stored}: {found}, {expected}");
            }
        }
    }
}

fn options(w_rej: f64, seed: u64) -> FitOptions {
    FitOptions {
        depth: 1,
        tied: false,
        label: AcceptanceLabel::Rejection,
        draft_fingerprint: "d".to_owned(),
        w_rej,
        mix: 0.15,
        epochs: 6,
        learning_rate: 1e-2,
        batch: 64,
        seed,
    }
}

/// States whose acceptance is a sigmoid of one direction.
fn examples(stream: u32) -> Examples {
    let mut uniforms = Uniforms::new(1, stream);
    let mut examples = Examples {
        hidden_size: 8,
        ..Examples::default()
    };
    for _ in 0..2000 {
        let state: Vec<f32> = (0..8)
            .map(|_| uniforms.uniform() as f32 * 2.0 - 1.0)
            .collect();
        let margin = 3.0 * state[0] - 2.0 * state[1] + 1.0;
        examples.labels.push(1.0 / (1.0 + (-margin).exp()));
        examples.states.extend(state);
    }
    examples
}

fn predictions(head: &AcceptanceHead, examples: &Examples) -> Vec<f32> {
    let mut scratch = HeadScratch::default();
    let states = examples.states.chunks(examples.hidden_size);
    states
        .map(|state| head.accept_probability(state, &mut scratch))
        .collect()
}

#[test]
fn a_head_learns_what_can_be_learnt_and_the_same_for_a_seed() {
    let (learnt, held_out) = (examples(1), examples(2));
    let mut steps = 0;
    let head = fit(&learnt, &options(1.0, 5), |done, of| {
        assert!(done <= of);
        steps = of;
    })
    .expect("a head");
    assert_eq!(steps, 6 * 2000_usize.div_ceil(64));
    let predicted = predictions(&head, &held_out);
    let kl = mean_kl(&held_out.labels, &predicted);
    let constant = constant_kl(&held_out.labels);
    assert!(kl < 0.02 * constant, "{kl}, constant {constant}");
    for bin in calibration(&held_out.labels, &predicted, 10) {
        let error = (bin.predicted - bin.label).abs();
        assert!(bin.count > 0 && error < 0.03, "{bin:?}");
    }
    let bytes = |seed| {
        let head = fit(&learnt, &options(1.0, seed), |_, _| ()).expect("a head");
        head.to_bytes().expect("bytes")
    };
    assert_eq!(bytes(5), head.to_bytes().expect("bytes"));
    assert_ne!(bytes(6), head.to_bytes().expect("bytes"));
    // Refusals that count more make it warier.
    let wary = fit(&learnt, &options(6.0, 5), |_, _| ()).expect("a head");
    let mean = |values: &[f32]| values.iter().sum::<f32>() / values.len() as f32;
    assert!(mean(&predictions(&wary, &held_out)) < mean(&predicted) - 0.1);
}

#[test]
fn bad_options_are_refused_by_name() {
    type Change = fn(&mut FitOptions);
    let w_rej = "w_rej is 0, expected above 0, at most 1000";
    let changes: [(&str, Change); 6] = [
        ("depth is 5, expected 0 to 4", |options| options.depth = 5),
        (w_rej, |options| options.w_rej = 0.0),
        ("mix is 1.5, expected 0 to 1", |options| options.mix = 1.5),
        ("epochs is 0, expected 1 to 1000", |options| {
            options.epochs = 0;
        }),
        ("batch is 0, expected 1 to 1000000", |options| {
            options.batch = 0;
        }),
        ("lr is NaN...", |options| options.learning_rate = f64::NAN),
    ];
    let one = Examples {
        hidden_size: 1,
        states: vec![0.0],
        labels: vec![1.0],
    };
    for (expected, change) in changes {
        let mut options = options(1.0, 0);
        change(&mut options);
        let refused = fit(&one, &options, |_, _| ()).expect_err(expected);
        let message = refused.to_string();
        match expected.strip_suffix("...") {
            Some(beginning) => assert!(message.starts_with(beginning), "{message}"),
            None => assert_eq!(message, expected),
        }
    }
    let none = fit(&Examples::default(), &options(1.0, 0), |_, _| ()).expect_err("refused");
    let reported = none.to_string();
    assert!(reported.starts_with("examples is 0 labels"), "{reported}");
}

#[test]
fn the_learning_rate_rises_and_falls() {
    let factors: Vec<f64> = (0..200).map(|step| schedule(step, 200)).collect();
    let first = [1.0 / 6.0, 2.0 / 6.0, 0.5, 4.0 / 6.0, 5.0 / 6.0, 1.0, 1.0];
    for (found, expected) in factors.iter().zip(first) {
        assert!((found - expected).abs() < 1e-12, "{found}, {expected}");
    }
    assert!(factors[6..].windows(2).all(|pair| pair[1] < pair[0]));
    assert!(factors[103] > 0.49 && factors[103] < 0.51 && factors[199] < 1e-3);
}

/// h = .5; the token after the one that leaves 1 - Π above h is the last.
#[test]
fn a_block_that_learnt_stopping_would_draft_ends_as_it_is_served() {
    let len =
        |threshold, cap, predicted: &[f32]| StopAt::Refusal { threshold, cap }.draft_len(predicted);
    // 1 - .6 is within .5, 1 - .6 * .8 is not.
    assert_eq!(len(0.5, 20, &[0.6, 0.8, 1.0, 1.0]), 3);
    // Exactly h is within it.
    assert_eq!(len(0.5, 20, &[0.5, 1.0, 0.9, 1.0, 1.0]), 4);
    // The last token's own prediction is never asked for.
    assert_eq!(len(0.5, 2, &[1.0, 0.0, 1.0]), 2);
    assert_eq!(len(0.5, 20, &[0.9, 0.0]), 2);
    // What is no probability counts as the nearest one, and what is no number as a refusal.
    assert_eq!(len(0.5, 20, &[7.0, 0.6, 0.6, 1.0, 1.0]), 4);
    assert_eq!(len(0.5, 20, &[f32::NAN, 1.0, 1.0]), 2);
    // At least one, and as many as there are.
    assert_eq!(len(0.0, 20, &[0.1, 0.1]), 2);
    assert_eq!(len(0.0, 1, &[0.1, 0.1]), 1);
    assert_eq!(len(1.0, 20, &[0.1; 5]), 5);
    assert_eq!(len(0.5, 20, &[]), 0);
}

#[test]
fn a_replayed_round_emits_the_products_of_its_labels() {
    let chain = LabelledChain {
        predicted: vec![0.9, 0.5, 0.9, 0.9],
        labels: vec![0.5, 0.25, 1.0, 0.5],
        ended: false,
    };
    let costs = StopCosts {
        draft: 1.0,
        target: 4.0,
    };
    // One start, at the first position; 1 - .9 is within .2, 1 - .45 is not.
    let stop = StopAt::Refusal {
        threshold: 0.2,
        cap: 4,
    };
    let replayed = replay(std::slice::from_ref(&chain), stop, costs, 4);
    assert_eq!(
        (replayed.draft_len, replayed.emitted),
        (3.0, 1.0 + 0.5 + 0.125 + 0.125)
    );
    assert_eq!(replayed.rate, replayed.emitted / 7.0);
    let fixed = replay(std::slice::from_ref(&chain), StopAt::Fixed(1), costs, 3);
    // Two starts.
    assert_eq!((fixed.draft_len, fixed.emitted), (1.0, 1.0 + 0.375));
    // After its end nothing is drafted, so all four positions are starts.
    let ended = LabelledChain {
        ended: true,
        ..chain
    };
    let ended = replay(&[ended], StopAt::Fixed(2), costs, 9);
    assert_eq!(ended.draft_len, 1.75);
    assert_eq!(replay(&[], StopAt::Fixed(2), costs, 2), Replayed::default());
}
