//! Heads against their definition, and what is refused.

mod reference;

use serde_json::Value;
use speculation::philox::philox;
use speculation::simd::Level;
use speculation::verification::AcceptanceLabel;

use self::reference::Reference;
use super::*;

/// The cases of `kind` in the golden file.
fn golden(kind: &str) -> Vec<Value> {
    let file = include_str!("../../../speculation/tests/golden/specdecpp.json");
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

fn rows(value: &Value) -> Vec<Vec<f64>> {
    let rows = value.as_array().expect("rows").iter();
    rows.map(numbers).collect()
}

fn narrow(values: &[f64]) -> Vec<f32> {
    values.iter().map(|&value| value as f32).collect()
}

fn info(depth: usize, tied: bool, hidden_size: usize) -> HeadInfo {
    HeadInfo {
        depth,
        tied,
        hidden_size,
        label: AcceptanceLabel::Coupled,
        draft_fingerprint: "00d1a5".to_owned(),
        w_rej: 6.0,
        mix: 0.15,
        seed: u64::MAX,
    }
}

/// Uniform numbers in (0, 1) of a stream under a seed.
fn uniforms(seed: u64, stream: u32) -> impl Iterator<Item = f64> {
    (0..).map(move |next| {
        let word = philox([next, stream, 0, 0], [seed as u32, 0])[0];
        (f64::from(word) + 0.5) / 2_f64.powi(32)
    })
}

/// A head of pseudo-random weights, and the same in double precision.
fn pair(info: HeadInfo, seed: u64) -> (AcceptanceHead, Reference) {
    let hidden = info.hidden_size;
    let mut uniforms = uniforms(seed, 7);
    let bound = 2.0 / (hidden as f64).sqrt();
    let mut values = |count: usize| -> Vec<f32> {
        let values = uniforms.by_ref().take(count);
        values.map(|value| ((value - 0.5) * bound) as f32).collect()
    };
    let blocks: Vec<_> = (0..info.stored_blocks())
        .map(|_| (values(hidden * hidden), values(hidden)))
        .collect();
    let weights = HeadWeights {
        blocks,
        out_weight: values(2 * hidden),
        out_bias: values(2),
    };
    let widen = |values: &[f32]| -> Vec<f64> { values.iter().map(|&v| v.into()).collect() };
    let rows = |values: &[f32]| values.chunks(hidden).map(widen).collect::<Vec<_>>();
    let reference = Reference {
        blocks: weights
            .blocks
            .iter()
            .map(|(w, b)| (rows(w), widen(b)))
            .collect(),
        out_weight: rows(&weights.out_weight),
        out_bias: widen(&weights.out_bias),
        depth: info.depth,
        tied: info.tied,
    };
    (
        AcceptanceHead::new(info, weights, "test").expect("a head"),
        reference,
    )
}

#[test]
fn golden_heads() {
    let cases = golden("head");
    assert_eq!(cases.len(), 2);
    for case in cases {
        let tied = case["tied"] == true;
        let depth = case["depth"].as_u64().expect("depth") as usize;
        let hidden = case["hidden"].as_u64().expect("hidden") as usize;
        let weights: Vec<_> = case["W"].as_array().expect("W").iter().map(rows).collect();
        let reference = Reference {
            blocks: weights.into_iter().zip(rows(&case["b"])).collect(),
            out_weight: rows(&case["w_out"]),
            out_bias: numbers(&case["b_out"]),
            depth,
            tied,
        };
        let weights = HeadWeights {
            blocks: (reference.blocks.iter())
                .map(|(weight, bias)| (narrow(&weight.concat()), narrow(bias)))
                .collect(),
            out_weight: narrow(&reference.out_weight.concat()),
            out_bias: narrow(&reference.out_bias),
        };
        let head = AcceptanceHead::new(info(depth, tied, hidden), weights, "golden").expect("fits");
        let mut scratch = HeadScratch::default();
        for (row, x) in rows(&case["x"]).iter().enumerate() {
            let (h, logits) = reference.logits(x);
            let expected = numbers(&case["h"][row])
                .into_iter()
                .chain(numbers(&case["logits"][row]));
            for (found, expected) in h.into_iter().chain(logits).zip(expected) {
                assert!((found - expected).abs() < 1e-9, "{found}, {expected}");
            }
            let expected = case["p_accept"][row].as_f64().expect("a number");
            let exact = 1.0 / (1.0 + (logits[0] - logits[1]).exp());
            assert!((exact - expected).abs() < 1e-9, "{exact}, {expected}");
            let served = head.accept_probability(&narrow(x), &mut scratch);
            let error = (f64::from(served) - expected).abs();
            assert!(error < 1e-5, "{served}, {expected}");
        }
    }
}

#[test]
fn the_served_head_is_the_reference_at_every_width_and_on_every_cpu() {
    let mut scratch = HeadScratch::default();
    let mut spread = 0.0_f64;
    for hidden in [1, 15, 16, 17, 33, 128] {
        for (depth, tied, format) in [
            (0, false, WeightFormat::F32),
            (1, false, WeightFormat::F32),
            (3, false, WeightFormat::F32),
            (3, true, WeightFormat::F32),
            (4, true, WeightFormat::F32),
            (2, false, WeightFormat::Q8_0),
            (3, true, WeightFormat::Q8_0),
        ] {
            let (head, reference) = pair(info(depth, tied, hidden), hidden as u64);
            let mut head = head.in_format(format);
            let near = match format {
                WeightFormat::F32 => 1e-5,
                WeightFormat::Q8_0 | WeightFormat::Q4_K => 1e-2,
            };
            let mut uniforms = uniforms(5, hidden as u32);
            for _ in 0..8 {
                let x = uniforms.by_ref().take(hidden);
                let x: Vec<f32> = x.map(|value| value as f32 * 4.0 - 2.0).collect();
                let wide: Vec<f64> = x.iter().map(|&x| x.into()).collect();
                let (_, logits) = reference.logits(&wide);
                let expected = 1.0 / (1.0 + (logits[0] - logits[1]).exp());
                head.cpu.level = Level::detect();
                let served = head.accept_probability(&x, &mut scratch);
                let what = format!("{hidden} {depth} {tied} {format}: {served} {expected}");
                assert!((f64::from(served) - expected).abs() < near, "{what}");
                head.cpu.level = Level::Baseline;
                let baseline = head.accept_probability(&x, &mut scratch);
                assert_eq!(served.to_bits(), baseline.to_bits(), "{what}");
                spread = spread.max((expected - 0.5).abs());
            }
        }
    }
    assert!(spread > 0.2, "all predictions are alike: {spread}");
}

#[test]
fn a_head_survives_its_file_bit_for_bit() {
    let folder = tempfile::tempdir().expect("a folder");
    for (depth, tied) in [(0, false), (2, false), (4, true)] {
        let (head, _) = pair(info(depth, tied, 17), 3);
        let file = folder.path().join("head.safetensors");
        head.save(&file).expect("saved");
        let again = AcceptanceHead::open(&file).expect("opened");
        assert_eq!(again.info(), head.info());
        assert_eq!(again.weights(), head.weights());
        let [again, bytes] = [again, head].map(|head| head.to_bytes().expect("bytes"));
        assert_eq!(again, bytes);
        assert_eq!(std::fs::read_dir(folder.path()).expect("listed").count(), 1);
    }
}

/// The message of a head whose bytes were changed by `fault`.
fn refused(fault: impl Fn(&str) -> String) -> String {
    let (head, _) = pair(info(1, false, 4), 3);
    let bytes = head.to_bytes().expect("bytes");
    let len = u64::from_le_bytes(*bytes.first_chunk().expect("8 bytes")) as usize;
    let header = fault(std::str::from_utf8(&bytes[8..8 + len]).expect("text"));
    let mut changed = (header.len() as u64).to_le_bytes().to_vec();
    changed.extend_from_slice(header.as_bytes());
    changed.extend_from_slice(&bytes[8 + len..]);
    AcceptanceHead::from_bytes(changed, "some.safetensors")
        .expect_err("refused")
        .to_string()
}

/// What of the header is replaced, by what, and what is said then: all of it, or a part.
const FAULTS: &str = r#"
\"format\":1 | \"format\":2 | some.safetensors: format is 2, expected 1
\"depth\":1 | \"depth\":9 | some.safetensors: depth is 9, expected 0 to 4
\"label\":\"coupled\" | \"label\":\"blocked\" | some.safetensors: label is blocked, expected coupled or rejection
\"depth\":1 | \"depth\":2 | ... some.safetensors: tensor blocks.1.weight is missing
\"hidden_size\":4 | \"hidden_size\":5 | ... has shape [4, 4], the config implies [5, 5]
acceptance_head | other | ... its metadata has no entry acceptance_head
"#;

#[test]
fn bad_files_are_refused_by_name() {
    for case in FAULTS.trim().lines() {
        let [from, to, expected] = case.split(" | ").collect::<Vec<_>>()[..] else {
            panic!("{case}");
        };
        let found = refused(|header| {
            assert!(header.contains(from), "{header}");
            header.replace(from, to)
        });
        let fits = match expected.strip_prefix("... ") {
            Some(part) => found.contains(part),
            None => found == expected,
        };
        assert!(fits, "{case}: {found}");
    }
    let nonsense = AcceptanceHead::from_bytes(b"nonsense".to_vec(), "x").expect_err("refused");
    let missing = AcceptanceHead::open("no/such/head".as_ref()).expect_err("refused");
    for (error, beginning) in [
        (nonsense, "x is not an acceptance head"),
        (missing, "no/such/head cannot be read"),
    ] {
        assert!(error.to_string().starts_with(beginning), "{error}");
    }
}

#[test]
fn another_draft_model_is_refused() {
    let (head, _) = pair(info(1, false, 4), 3);
    head.check(4, "00d1a5").expect("its own draft model");
    let wider = head.check(5, "00d1a5").expect_err("refused").to_string();
    let reported = "test: hidden_size is 4, expected 5, the draft model's";
    assert_eq!(wider, reported);
    let message = head.check(4, "ffff").expect_err("refused").to_string();
    for part in ["trained for another draft model", "00d1a5, expected ffff"] {
        assert!(message.contains(part), "{message}");
    }
}

/// A folder with the built-in draft model as `draft.gguf`, and the fingerprint of what that was made from.
fn folder_of_gguf() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let draft = crate::embedded::draft().expect("embedded");
    let (out, format) = (&mut Vec::new(), crate::gguf_writer::FileFormat::Q8_0);
    let unstopped = &mut |_: crate::progress::WorkProgress<'_>| std::ops::ControlFlow::Continue(());
    crate::gguf_writer::write(&draft, "draft", format, out, unstopped).expect("written");
    std::fs::write(folder.path().join("draft.gguf"), out).expect("written");
    (folder, draft.fingerprint())
}

/// Writes a head to `file`.
fn saved(
    file: &std::path::Path,
    label: AcceptanceLabel,
    hidden_size: usize,
    draft_fingerprint: &str,
) -> AcceptanceHead {
    let info = HeadInfo {
        label,
        draft_fingerprint: draft_fingerprint.to_owned(),
        ..info(1, false, hidden_size)
    };
    let (head, _) = pair(info, 3);
    head.save(file).expect("saved");
    head
}

/// A folder of GGUF files may hold other models' heads: none of them keeps a file from being served.
#[test]
fn heads_that_cannot_be_a_gguf_files_are_left_out() {
    let (folder, original) = folder_of_gguf();
    let (coupled, rejection) = (AcceptanceLabel::Coupled, AcceptanceLabel::Rejection);
    let save = |name: &str, label, fingerprint: &str| {
        saved(&folder.path().join(name), label, 128, fingerprint)
    };
    let served = || {
        let path = folder.path().join("draft.gguf");
        let source = crate::source::ModelSource::new(path.display().to_string());
        source.load().expect("served")
    };
    let labels = |served: &crate::source::ServedModel<crate::Model>| -> Vec<_> {
        served.heads.iter().map(|head| head.info.label).collect()
    };
    // No head at all, and one of another kind of model.
    std::fs::write(folder.path().join("head-lm.safetensors"), "other").expect("written");
    assert_eq!(labels(&served()), []);
    save("head-rejection.safetensors", rejection, &original);
    // Of two for one label, which one is its own?
    let one = save("head-a.safetensors", coupled, &original);
    save("head-b.safetensors", coupled, "another");
    let served = served();
    assert_eq!(labels(&served), [rejection]);
    // One that is named is taken.
    assert!(served.fit(one).is_ok());
}

/// A GGUF file's weights are not the bytes that a head was trained beside, and are the same model.
#[test]
fn a_gguf_file_is_served_with_the_heads_of_what_it_was_made_from() {
    let (folder, original) = folder_of_gguf();
    let path = folder.path().join("draft.gguf");
    let save = |name: &str, label, hidden_size, fingerprint: &str| {
        saved(&folder.path().join(name), label, hidden_size, fingerprint)
    };
    let (coupled, rejection) = (AcceptanceLabel::Coupled, AcceptanceLabel::Rejection);
    let head = save("head-coupled.safetensors", coupled, 128, &original);
    let wide = save("head-of-another.safetensors", rejection, 160, &original);
    // By its own name, and by that of its folder.
    for path in [&*path, folder.path()] {
        let source = crate::source::ModelSource::new(path.display().to_string());
        let served = source.load().expect("served");
        assert_ne!(served.weights_fingerprint, original);
        let labels: Vec<_> = served.heads.iter().map(|head| head.info.label).collect();
        assert_eq!(labels, [coupled]);
        // As one that a drafter's configuration names.
        assert!(served.fit(head.clone()).is_ok());
        let reported = served.fit(wide.clone()).expect_err("too wide").to_string();
        assert!(
            reported.contains("hidden_size is 160, expected 128"),
            "{reported}"
        );
    }
    // One that was trained for this very file comes before one for what it was made from.
    let source = crate::source::ModelSource::new(path.display().to_string());
    let fingerprint = source.load().expect("served").weights_fingerprint;
    save("head-trained.safetensors", coupled, 128, &fingerprint);
    let served = source.load().expect("served");
    let trained_for: Vec<_> = served
        .heads
        .iter()
        .map(|head| &head.info.draft_fingerprint)
        .collect();
    assert_eq!(trained_for, [&fingerprint]);
}

#[test]
fn a_model_is_served_with_the_heads_beside_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let default = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/default");
    for (from, to) in [
        ("draft/config.json", "config.json"),
        ("draft/model.safetensors", "model.safetensors"),
        ("tokenizer/tokenizer.json", "tokenizer.json"),
    ] {
        std::fs::copy(default.join(from), folder.path().join(to)).expect("copied");
    }
    let load = |dtype: &str| {
        let source = crate::source::ModelSource {
            dtype: dtype.to_owned(),
            ..crate::source::ModelSource::new(folder.path().display().to_string())
        };
        source.load()
    };
    let served = load("q8_0").expect("served");
    assert!(served.heads.is_empty());
    let fingerprint = served.weights_fingerprint;
    // The format of the weights changes the numbers, and not which model they are of.
    let single = load("f32").expect("served");
    assert_eq!(single.weights_fingerprint, fingerprint);
    assert_ne!(single.numerics, served.numerics);
    assert_ne!(fingerprint, served.numerics.weights);

    let (coupled, rejection) = (AcceptanceLabel::Coupled, AcceptanceLabel::Rejection);
    let save = |name: &str, label, draft_fingerprint: &str| {
        let draft_fingerprint = draft_fingerprint.to_owned();
        let info = HeadInfo {
            label,
            draft_fingerprint,
            ..info(1, false, 128)
        };
        let (head, _) = pair(info, 3);
        head.save(&folder.path().join(name)).expect("saved");
    };
    save("head-b.safetensors", rejection, &fingerprint);
    save("head-a.safetensors", coupled, &fingerprint);
    save("other.safetensors", coupled, "another");
    let labels = |served: &crate::source::ServedModel<crate::Model>| -> Vec<_> {
        served.heads.iter().map(|head| head.info.label).collect()
    };
    let served = load("q8_0").expect("served");
    assert_eq!(labels(&served), [coupled, rejection]);
    for (fingerprint, fault) in [
        (&fingerprint[..], "label is coupled"),
        ("another", "draft_fingerprint is another"),
    ] {
        save("head-c.safetensors", coupled, fingerprint);
        let message = load("q8_0").expect_err("refused").to_string();
        let fault = format!("head-c.safetensors: {fault}");
        assert!(message.contains(&fault), "{message}");
    }
}
