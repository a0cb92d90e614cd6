//! The metrics beside `sacrebleu` and `rouge-score`, on the pairs of `tests/quality/pairs.jsonl`.

use clap::ValueEnum;
use serde::Deserialize;

use super::Metric;

/// Made by `tests/quality/pairs.py`: 200 pairs with what the packages say of each, then what they say of all.
const PAIRS: &str = include_str!("../../tests/quality/pairs.jsonl");

#[derive(Deserialize)]
struct Pair {
    output: String,
    reference: [String; 1],
    f1: f64,
    rouge_2: f64,
    rouge_l: f64,
}

#[derive(Deserialize)]
struct Corpus {
    bleu: f64,
    /// With the reference in small letters as a second one.
    bleu_of_two: f64,
    /// Of these pairs alone, in which no four tokens match.
    smoothed: Vec<usize>,
    bleu_smoothed: f64,
}

fn read() -> (Vec<Pair>, Corpus) {
    let (pairs, corpus) = PAIRS.trim_end().rsplit_once('\n').expect("lines");
    let pairs = pairs.lines().map(serde_json::from_str);
    let pairs = pairs.collect::<Result<_, _>>().expect("pairs");
    (pairs, serde_json::from_str(corpus).expect("of all"))
}

fn value(metric: Metric, outputs: &[(&str, &[String])]) -> f64 {
    metric.score(outputs).expect("a score").value
}

#[test]
fn each_output_scores_as_the_packages_say() {
    let (pairs, _) = read();
    assert_eq!(pairs.len(), 200);
    for pair in &pairs {
        let output = [(&pair.output[..], &pair.reference[..])];
        for (metric, expected) in [
            (Metric::F1, pair.f1),
            (Metric::Rouge2, pair.rouge_2),
            (Metric::RougeL, pair.rouge_l),
        ] {
            let found = value(metric, &output);
            let name = metric.name();
            assert!(
                (found - expected).abs() < 1e-3,
                "{name} of {:?} and {:?}: {found}, expected {expected}",
                pair.output,
                pair.reference
            );
        }
    }
}

#[test]
fn all_outputs_have_the_bleu_of_sacrebleu() {
    let (pairs, corpus) = read();
    let outputs: Vec<_> = pairs
        .iter()
        .map(|pair| (&pair.output[..], &pair.reference[..]))
        .collect();
    let two: Vec<[String; 2]> = pairs
        .iter()
        .map(|pair| [pair.reference[0].clone(), pair.reference[0].to_lowercase()])
        .collect();
    let of_two: Vec<_> = pairs
        .iter()
        .zip(&two)
        .map(|(pair, two)| (&pair.output[..], &two[..]))
        .collect();
    let smoothed: Vec<_> = corpus.smoothed.iter().map(|&at| outputs[at]).collect();
    for (outputs, expected) in [
        (&outputs, corpus.bleu),
        (&of_two, corpus.bleu_of_two),
        (&smoothed, corpus.bleu_smoothed),
    ] {
        let found = 100.0 * value(Metric::Bleu, outputs);
        assert!(
            (found - expected).abs() < 1e-3,
            "{found}, expected {expected}"
        );
    }
}

#[test]
fn a_metric_is_called_as_on_the_command_line() {
    for &metric in Metric::value_variants() {
        let value = metric.to_possible_value().expect("a name");
        assert_eq!(value.get_name(), metric.name());
        let asks_the_model = metric.scale() == super::Scale::Nats;
        assert_eq!(metric.score(&[]).is_none(), asks_the_model);
    }
}
