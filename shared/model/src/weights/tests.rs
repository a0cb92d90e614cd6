mod gguf;
mod rows;
mod tables;

use std::{collections::HashMap, fs};

use safetensors::{Dtype, serialize, tensor::TensorView};

use super::digest::WeightsDigest;
use super::shards::{INDEX, SINGLE};
use super::*;

/// A safetensors file of f32 tensors filled with 0, 1, 2, …
fn file(tensors: &[(&str, &[usize])]) -> Vec<u8> {
    let numbers: Vec<u8> = (0..600).flat_map(|i| (i as f32).to_le_bytes()).collect();
    let views = tensors.iter().map(|(name, shape)| {
        let bytes = &numbers[..4 * shape.iter().product::<usize>()];
        (
            name,
            TensorView::new(Dtype::F32, shape.to_vec(), bytes).unwrap(),
        )
    });
    serialize(views, None).unwrap()
}

#[test]
fn reads_a_file_and_its_bytes_alike() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = file(&[("a", &[2, 3]), ("b", &[1])]);
    fs::write(folder.path().join(SINGLE), &bytes).unwrap();
    let from_file = Weights::open(folder.path()).unwrap();
    let from_bytes = Weights::from_bytes(bytes).unwrap();
    for weights in [&from_file, &from_bytes] {
        let found = weights.tensor("a", &[2, 3]).unwrap();
        assert_eq!(found, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        assert!(weights.contains("b") && !weights.contains("c"));
    }
    assert_eq!(digest(&from_file), digest(&from_bytes));
}

fn digest(weights: &Weights) -> String {
    WeightsDigest::of(weights).fingerprint("model")
}

#[test]
fn reads_shards_and_digests_them_as_one_file() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("x.safetensors"), file(&[("b", &[1])])).unwrap();
    fs::write(folder.path().join("y.safetensors"), file(&[("a", &[2, 3])])).unwrap();
    let index = r#"{"metadata": {}, "weight_map": {"b": "x.safetensors", "a": "y.safetensors"}}"#;
    fs::write(folder.path().join(INDEX), index).unwrap();
    let weights = Weights::open(folder.path()).unwrap();
    assert_eq!(weights.tensor("b", &[1]).unwrap(), [0.0]);
    let whole = Weights::from_bytes(file(&[("a", &[2, 3]), ("b", &[1])])).unwrap();
    assert_eq!(digest(&weights), digest(&whole));
}

#[test]
fn a_folder_that_cannot_be_read_says_what_of_it() {
    let mut cut = file(&[("a", &[20, 30])]);
    cut.truncate(cut.len() - 7);
    assert!(Weights::from_bytes(cut.clone()).is_err());
    assert!(Weights::from_bytes(&b"short"[..]).is_err());
    let index = |shard: &str| format!(r#"{{"weight_map": {{"a": "{shard}"}}}}"#).into_bytes();
    for (name, bytes, reported) in [
        (SINGLE, cut, "model.safetensors is truncated or not"),
        (
            INDEX,
            index("x.safetensors"),
            "x.safetensors cannot be read",
        ),
        (INDEX, index("../x"), r#"the shard "../x""#),
    ] {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(name), bytes).unwrap();
        let error = Weights::open(folder.path()).err().unwrap();
        let is_malformed = matches!(error, WeightsError::Malformed { .. });
        assert_eq!(is_malformed, name == SINGLE);
        assert!(error.to_string().contains(reported), "{error}");
    }
    let empty = tempfile::tempdir().unwrap();
    let error = Weights::open(empty.path()).err().unwrap();
    assert!(matches!(error, WeightsError::NoWeights { .. }));
}

#[test]
fn half_precision_is_widened_and_integers_are_refused() {
    let one = |dtype, bytes: &[u8]| {
        let views = HashMap::from([("t", TensorView::new(dtype, vec![1], bytes).unwrap())]);
        Weights::from_bytes(serialize(views, None).unwrap()).unwrap()
    };
    for (dtype, bytes) in [(Dtype::BF16, [0xc0, 0x3f]), (Dtype::F16, [0x00, 0x3e])] {
        assert_eq!(one(dtype, &bytes).tensor("t", &[1]).unwrap(), [1.5]);
    }
    let error = one(Dtype::I64, &[0; 8]).tensor("t", &[1]).unwrap_err();
    let reported = "tensor t is of type I64: F32, F16 and BF16 are read";
    assert_eq!(error.to_string(), reported);
}

#[cfg(feature = "llama-cpp")]
#[test]
fn the_main_format_may_be_one_that_is_not_read() {
    let tensor = |format_name: &str, shape: &[usize], bytes| file::TensorInfo {
        format: None,
        format_name: format_name.to_owned(),
        shape: shape.to_vec(),
        range: 0..bytes,
    };
    let tensors = [
        ("norm", tensor("F32", &[64], 256)),
        ("matrix", tensor("IQ4_XS", &[64, 256], 0)),
        ("broken", tensor("Q8_0", &[0, usize::MAX, 3], 0)),
    ];
    let tensors = tensors.map(|(name, info)| (name.to_owned(), info));
    let file = TensorFile {
        bytes: Box::new(vec![0; 256]),
        tensors: tensors.into(),
    };
    assert_eq!(file::main_format(&[file]), "IQ4_XS");
}
