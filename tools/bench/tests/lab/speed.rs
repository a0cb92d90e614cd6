//! The benchmarks of the model runtime and of the whole, on models so small that they end at once.

use serde_json::Value;

use super::{each_refused, number, of_table, rows, words};

/// The JSON lines of a benchmark.
fn lines(command: &str, flags: &str) -> Vec<Value> {
    rows(&[&[command, "--json"][..], &words(flags)].concat())
}

#[test]
fn decoding_is_measured_against_memory_and_its_own_products() {
    let flags =
        "--models=embedded,random --repeats=1 --context=9 --hidden=64 --layers=2 --vocab=256";
    let all = lines("decode", flags);
    let measured = of_table(&all, "steps");
    let named = |line: &Value| (line["on"].clone(), line["format"].clone());
    let names: Vec<_> = measured.iter().map(named).collect();
    let expected = [
        ("embedded target", "q8_0"),
        ("embedded target", "f32"),
        ("random, 0.1 M", "q8_0"),
        ("random, 0.1 M", "f32"),
    ];
    assert_eq!(
        names,
        expected.map(|(on, format)| (on.into(), format.into()))
    );
    for line in &measured {
        assert!(number(line, "tokens_per_second") > 0.0, "{line}");
        assert!(number(line, "outside_products") < 1.0, "{line}");
        assert!(number(line, "of_bound") > 0.0, "{line}");
    }
    let positions = of_table(&all, "positions");
    assert_eq!(
        (positions.len(), &positions[2]["positions"]),
        (4 * 5, &5.into())
    );
    // The same weights in four times the bytes, but for the scales.
    let bytes = |line: usize| number(&measured[line], "weight_bytes");
    assert!((bytes(1) / bytes(0) - 4.0 * 32.0 / 34.0).abs() < 0.01);
}

#[test]
fn llama_cpp_is_asked_for_with_all_it_needs() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("empty.gguf");
    std::fs::write(&file, "").expect("written");
    for line in [
        "--gguf=model.gguf | --llama-cpp",
        // The embedded target is written for it.
        "--llama-cpp --python=no-such-python | --python: no-such-python",
        "--repeats=1 --llama-cpp --gguf=no-such-file.gguf --python=python3 | --gguf: no-such-file.gguf",
        "--repeats=1 --llama-cpp --gguf=EMPTY --python=no-such-python | --python: no-such-python",
        // An interpreter that says nothing.
        "--repeats=1 --llama-cpp --gguf=EMPTY --python=true | pip install llama-cpp-python",
    ] {
        let line = line.replace("EMPTY", file.to_str().expect("UTF-8"));
        each_refused(&["decode"], &[&line]);
    }
}

#[test]
fn sessions_decode_together() {
    let flags =
        "--models=random --sessions=1,3 --tokens=4 --repeats=1 --hidden=64 --layers=2 --vocab=256";
    let measured = lines("batch", flags);
    assert_eq!(measured.len(), 2);
    assert_eq!(
        (
            number(&measured[0], "ratio"),
            number(&measured[1], "sessions")
        ),
        (1.0, 3.0)
    );
    assert!(number(&measured[1], "tokens_per_second") > 0.0);
    let wrong = ["--format=q3 | q8_0", "--sessions=0 | --sessions: 0"];
    each_refused(&["batch"], &wrong);
}

#[test]
fn a_synthetic_pair_is_made_and_says_so() {
    let flags = "--layers=3 --hidden=64 --vocab=512 --prompts=3 --sweep-prompts=2 --draft-lens=2,3 \
                 --max-tokens=24 --temperatures=1";
    let all = lines("speedup", flags);
    let [tried, measured, rounds] =
        ["draft-lengths", "speedup", "rounds"].map(|table| of_table(&all, table));
    // Two draft lengths and auto on two pairs; then the best length and auto.
    assert_eq!((tried.len(), measured.len(), rounds.len()), (6, 4, 4));
    for (line, synthetic) in measured.iter().zip([true, true, false, false]) {
        assert_eq!(line["synthetic"], synthetic, "{line}");
        assert!(number(line, "speedup") > 0.0, "{line}");
    }
    assert_eq!(measured[1]["draft_len"], "auto");
    assert_eq!(measured[3]["draft_len"], "auto");
    // What was calibrated on some sequences holds for others: of 48 tokens each, five standard errors.
    let synthetic = &of_table(&all, "synthetic")[0];
    let calibrated = number(synthetic, "calibrated_acceptance");
    assert!((calibrated - 0.8).abs() < 0.03, "{synthetic}");
    for line in &tried[..2] {
        let accepted = number(line, "draft_acceptance_rate");
        assert!((0.4..0.99).contains(&accepted), "{line}");
    }
    for line in &rounds {
        // A request that rests under `auto` has no round to time.
        let rested = line["draft_len"] == "auto" && line["verify_forward_ms"].is_null();
        assert!(rested || number(line, "verify_forward_ms") > 0.0, "{line}");
    }
    assert_eq!(number(&measured[0], "tokens"), 72.0);
    each_refused(&["speedup"], &["--acceptance=0 | --acceptance: 0"]);
}

#[test]
fn output_under_a_grammar_is_measured_beside_free_output() {
    let flags = "--vocab=300 --clients=1,2 --repeats=1 --window=0.5 --max-tokens=16";
    let measured = lines("structured", flags);
    assert_eq!(measured.len(), 2 * 2);
    for line in &measured {
        for side in ["free", "masked", "drafted"] {
            let speed = number(line, &format!("{side}_tokens_per_second"));
            assert!(speed > 0.0, "{line}");
        }
    }
    let wrong = [
        "--vocab=256 | --vocab: 256",
        "--clients=0 | --clients: 0",
        "--window=-1 | --window: -1",
        "--temperature=-1 | --temperature: -1",
    ];
    each_refused(&["structured"], &wrong);
}
