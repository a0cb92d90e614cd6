//! The benchmarks of the model runtime and of the whole, on models so small that they end at once.

use serde_json::Value;

use super::{refused, run};

const SMALL: [&str; 3] = ["--hidden=64", "--layers=2", "--vocab=256"];

/// The JSON lines of a benchmark.
fn lines(command: &str, flags: &[&str]) -> Vec<Value> {
    let output = run(&[&[command, "--json"], flags].concat());
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command}: {stderr}");
    let stdout = String::from_utf8(output.stdout).expect("text");
    let parsed = stdout.lines().map(serde_json::from_str);
    parsed.collect::<Result<_, _>>().expect("JSON lines")
}

fn number(line: &Value, key: &str) -> f64 {
    let number = line[key].as_f64();
    number.unwrap_or_else(|| panic!("{key} of {line}"))
}

#[test]
fn decoding_is_measured_against_memory_and_its_own_products() {
    let flags = ["--models=embedded,random", "--repeats=1", "--context=9"];
    let measured = lines("decode", &[&flags[..], &SMALL].concat());
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
        assert_eq!(line["positions"][2]["positions"], 5);
    }
    // The same weights in four times the bytes, but for the scales.
    let bytes = |line: usize| number(&measured[line], "weight_bytes");
    assert!((bytes(1) / bytes(0) - 4.0 * 32.0 / 34.0).abs() < 0.01);
}

#[test]
fn llama_cpp_is_asked_for_with_all_it_needs() {
    let stderr = refused(&["decode", "--gguf=model.gguf"]);
    assert!(stderr.contains("--llama-cpp"), "{stderr}");
    // The embedded target is written for it.
    let stderr = refused(&["decode", "--llama-cpp", "--python=no-such-python"]);
    assert!(stderr.contains("--python: no-such-python"), "{stderr}");
    let with = |gguf: &str, python: &str| {
        let python = format!("--python={python}");
        let flags = ["decode", "--repeats=1", "--llama-cpp"];
        refused(&[&flags[..], &[&format!("--gguf={gguf}"), &python]].concat())
    };
    let stderr = with("no-such-file.gguf", "python3");
    assert!(stderr.contains("--gguf: no-such-file.gguf"), "{stderr}");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("empty.gguf");
    std::fs::write(&file, "").expect("written");
    let gguf = file.to_str().expect("UTF-8");
    let stderr = with(gguf, "no-such-python");
    assert!(stderr.contains("--python: no-such-python"), "{stderr}");
    // An interpreter that says nothing.
    let stderr = with(gguf, "true");
    assert!(stderr.contains("pip install llama-cpp-python"), "{stderr}");
}

#[test]
fn sessions_decode_together() {
    let flags = [
        "--models=random",
        "--sessions=1,3",
        "--tokens=4",
        "--repeats=1",
    ];
    let measured = lines("batch", &[&flags[..], &SMALL].concat());
    assert_eq!(measured.len(), 2);
    assert_eq!(
        (
            number(&measured[0], "ratio"),
            number(&measured[1], "sessions")
        ),
        (1.0, 3.0)
    );
    assert!(number(&measured[1], "tokens_per_second") > 0.0);
    assert!(refused(&["batch", "--format=q3"]).contains("q8_0"));
    assert!(refused(&["batch", "--sessions=0"]).contains("--sessions: 0"));
}

#[test]
fn a_synthetic_pair_is_made_and_says_so() {
    let flags = [
        "--layers=3",
        "--hidden=64",
        "--vocab=512",
        "--prompts=3",
        "--sweep-prompts=2",
        "--draft-lens=2,3",
        "--max-tokens=24",
        "--temperatures=1",
    ];
    let measured = lines("speedup", &flags);
    assert_eq!(measured.len(), 2);
    let [synthetic, embedded] = &measured[..] else {
        panic!("two pairs")
    };
    assert_eq!(
        (&synthetic["synthetic"], &embedded["synthetic"]),
        (&true.into(), &false.into())
    );
    // What was calibrated on some sequences holds for others: of 48 tokens each, five standard errors.
    let calibrated = number(synthetic, "calibrated_acceptance");
    assert!((calibrated - 0.8).abs() < 0.03, "{synthetic}");
    for draft_len in 0..2 {
        let accepted = number(&synthetic["sweep"][draft_len], "draft_acceptance_rate");
        assert!((0.4..0.99).contains(&accepted), "{synthetic}");
    }
    let fixed = &synthetic["compared"][0];
    for line in &measured {
        assert_eq!(line["sweep"].as_array().expect("an array").len(), 3);
        let compared = line["compared"].as_array().expect("an array");
        assert_eq!(compared.len(), 2, "{line}");
        assert_eq!(compared[1]["draft_len"], "goodput");
        for compared in compared {
            assert!(number(compared, "speedup") > 0.0, "{line}");
            assert!(
                number(&compared["round_ms"], "verify_forward") > 0.0,
                "{line}"
            );
        }
    }
    assert_eq!(number(fixed, "tokens"), 72.0);
    let stderr = refused(&["speedup", "--acceptance=0"]);
    assert!(stderr.contains("--acceptance: 0"), "{stderr}");
}
