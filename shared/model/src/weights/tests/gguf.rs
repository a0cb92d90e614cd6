//! Tensors of GGUF files.

use candle_core::{
    Device, Tensor,
    quantized::{GgmlDType, QTensor},
};

use super::super::*;
use super::digest;
use crate::{
    gguf::tests::{file, floats, open, tensors},
    linear::{Linear, OutputOrder, WeightFormat},
};

/// Weights with one tensor, `a` in the checkpoint and `b` in the file.
fn one(shape: &[usize], format: GgmlDType, contents: Vec<u8>, layout: TensorLayout) -> Weights {
    let tensor = ("b", shape, format, contents);
    of(tensors(&[tensor]).tensors, shape, layout)
}

pub(super) fn of(file: TensorFile, shape: &[usize], layout: TensorLayout) -> Weights {
    let tensor = NamedTensor {
        hugging_face: "a".to_owned(),
        gguf: "b".to_owned(),
        shape: shape.to_vec(),
        layout,
    };
    Weights::from_gguf(vec![file], vec![tensor])
}

/// Numbers from -1 to 1, and not alike.
pub(super) fn numbers(count: u32) -> Vec<f32> {
    (0..count)
        .map(|i| (i * 7919 % 1009) as f32 / 504.5 - 1.0)
        .collect()
}

#[test]
fn every_format_is_read_as_candle_reads_it() {
    use GgmlDType::{BF16, F16, F32, Q2K, Q3K, Q4_0, Q4_1, Q4K, Q5_0, Q5_1, Q5K, Q6K, Q8_0};

    let values = numbers(512);
    let tensor = Tensor::from_slice(&values, (2, 256), &Device::Cpu).unwrap();
    for format in [
        F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q2K, Q3K, Q4K, Q5K, Q6K,
    ] {
        let quantized = QTensor::quantize(&tensor, format).unwrap();
        let contents = quantized.data().unwrap().into_owned();
        let weights = one(&[2, 256], format, contents.clone(), TensorLayout::Same);
        let expected = quantized.dequantize(&Device::Cpu).unwrap();
        let expected = expected.flatten_all().unwrap().to_vec1::<f32>().unwrap();
        let found = weights.tensor("a", &[2, 256]).unwrap();
        assert_eq!(found, expected, "{format:?}");
        // As blocks they are untouched.
        let blocks = weights.blocks("a", &[2, 256], format).unwrap();
        assert_eq!(blocks.unwrap(), contents);
        let other = weights.blocks("a", &[2, 256], GgmlDType::Q8K).unwrap();
        assert_eq!(other, None);
        assert_eq!(weights.matrix_formats(), [format.into()]);
    }
}

/// Returns what a linear layer of `weights` holds, `(outputs, inputs)`.
pub(super) fn held(linear: &Linear, inputs: usize) -> Vec<f32> {
    let mut rows = vec![0.0; linear.outputs() * inputs];
    for (output, row) in rows.chunks_exact_mut(inputs).enumerate() {
        linear.read_row(output, row);
    }
    rows
}

#[test]
fn blocks_are_taken_as_they_are_when_loaded() {
    // No quant of this block reaches 127: quantised again, it would come out otherwise.
    let block = [0x00, 0x3c, 100, 0xff, 3].into_iter().chain([7; 29]);
    let weights = one(
        &[1, 32],
        GgmlDType::Q8_0,
        block.collect(),
        TensorLayout::Same,
    );
    let parts = [("a".to_owned(), [1, 32])];
    let linear = weights
        .linear(&parts, None, WeightFormat::Q8_0, OutputOrder::AsGiven)
        .unwrap();
    assert_eq!(held(&linear, 32), weights.tensor("a", &[1, 32]).unwrap());
    assert_eq!(held(&linear, 32)[..3], [100.0, -1.0, 3.0]);
}

#[test]
fn a_matrix_beside_one_in_another_format_keeps_its_blocks() {
    let values = numbers(512);
    let tensor = Tensor::from_slice(&values, (2, 256), &Device::Cpu).unwrap();
    let contents = |format| {
        let quantized = QTensor::quantize(&tensor, format).unwrap();
        quantized.data().unwrap().into_owned()
    };
    let formats = [GgmlDType::Q4K, GgmlDType::Q6K];
    let [first, second] =
        formats.map(|format| ("x", &[2_usize, 256][..], format, contents(format)));
    let (first, second) = (first, ("y", second.1, second.2, second.3));
    let file = tensors(&[first, second]).tensors;
    let named = ["x", "y"].map(|name| NamedTensor {
        hugging_face: name.to_owned(),
        gguf: name.to_owned(),
        shape: vec![2, 256],
        layout: TensorLayout::Same,
    });
    let weights = Weights::from_gguf(vec![file], named.to_vec());
    let parts = ["x", "y"].map(|name| (name.to_owned(), [2, 256]));
    let linear = weights
        .linear(&parts, None, WeightFormat::Q4_K, OutputOrder::AsGiven)
        .unwrap();
    let rows = held(&linear, 256);
    assert_eq!(rows[..512], weights.tensor("x", &[2, 256]).unwrap());
    let near = rows[512..]
        .iter()
        .zip(&values)
        .all(|(a, b)| (a - b).abs() < 0.2);
    assert!(near && rows[512..] != weights.tensor("y", &[2, 256]).unwrap());
}

#[test]
fn rows_that_llama_cpp_rotates_side_by_side_are_put_back() {
    // Two heads of six dimensions; row r holds r. In the file 0 stands beside 3, 1 beside 4, …
    let order = [0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11];
    let values: Vec<f32> = order.iter().flat_map(|&row| [row as f32; 32]).collect();
    let layout = TensorLayout::RotaryPairs { heads: 2, dims: 6 };
    let expected: Vec<f32> = (0..12_u8).flat_map(|row| [f32::from(row); 32]).collect();
    let weights = one(&[12, 32], GgmlDType::F32, floats(&values), layout);
    assert_eq!(weights.tensor("a", &[12, 32]).unwrap(), expected);
    // Biases are vectors of the same rows.
    let biases: Vec<f32> = order.iter().map(|&row| row as f32).collect();
    let weights = one(&[12], GgmlDType::F32, floats(&biases), layout);
    let expected: Vec<f32> = (0..12_u8).map(f32::from).collect();
    assert_eq!(weights.tensor("a", &[12]).unwrap(), expected);
}

#[test]
fn rows_of_dimensions_that_do_not_rotate_stay() {
    let order = [0, 2, 1, 3, 4, 5, 6, 8, 7, 9, 10, 11];
    let values: Vec<f32> = order.iter().map(|&row| row as f32).collect();
    let layout = TensorLayout::RotaryPairs { heads: 2, dims: 4 };
    let weights = one(&[12], GgmlDType::F32, floats(&values), layout);
    let expected: Vec<f32> = (0..12_u8).map(f32::from).collect();
    assert_eq!(weights.tensor("a", &[12]).unwrap(), expected);
}

#[test]
fn the_one_that_was_added_is_taken_away() {
    let weights = one(
        &[2],
        GgmlDType::F32,
        floats(&[1.25, 0.5]),
        TensorLayout::PlusOne,
    );
    assert_eq!(weights.tensor("a", &[2]).unwrap(), [0.25, -0.5]);
}

#[test]
fn tensors_are_named_as_they_are_in_the_file() {
    let weights = one(
        &[2, 3],
        GgmlDType::F32,
        floats(&numbers(6)),
        TensorLayout::Same,
    );
    assert!(weights.contains("a") && !weights.contains("b"));
    let refused = |name, shape: &[usize]| weights.tensor(name, shape).unwrap_err().to_string();
    let shape = "tensor b has shape [2, 3], the config implies [3, 2]";
    assert_eq!(refused("a", &[3, 2]), shape);
    assert_eq!(refused("c", &[1]), "tensor c is missing");
    let infinite = [[0x00, 0x7c].as_slice(), &[1; 32]].concat();
    let q4_k = [[0x00, 0x3c, 0x00, 0x7e].as_slice(), &[1; 140]].concat();
    for (row, format, contents) in [
        (1, GgmlDType::F32, floats(&[f32::NAN])),
        (32, GgmlDType::Q8_0, infinite),
        (256, GgmlDType::Q4K, q4_k),
    ] {
        let broken = one(&[1, row], format, contents, TensorLayout::Same);
        let mut errors = vec![broken.tensor("a", &[1, row]).unwrap_err()];
        if format != GgmlDType::F32 {
            errors.push(broken.blocks("a", &[1, row], format).unwrap_err());
        }
        for error in errors {
            let reported = "tensor b holds numbers that are not finite";
            assert_eq!(error.to_string(), reported);
        }
    }
}

#[test]
fn formats_that_are_not_read_are_named_with_those_that_are() {
    let tensor = ("b", &[1, 32][..], GgmlDType::F32, vec![0; 128]);
    let mut file = file(&[tensor]);
    // The tensor's description: length and name, dimensions, two sizes, then the format.
    let at = file
        .windows(9)
        .position(|found| found == b"\x01\0\0\0\0\0\0\0b")
        .unwrap();
    let format = at + 9 + 4 + 16;
    assert_eq!(file[format..format + 4], [0; 4]);
    for (id, name) in [(21, "IQ3_S"), (99, "number 99")] {
        file[format] = id;
        let weights = of(open(&file).unwrap().tensors, &[1, 32], TensorLayout::Same);
        let error = weights.tensor("a", &[1, 32]).unwrap_err().to_string();
        let begins = format!("tensor b is of type {name}: F32, F16, BF16, Q8_0, Q4_0, ");
        let fits =
            error.starts_with(&begins) && error.ends_with("Q6_K, IQ4_NL, IQ4_XS, MXFP4 are read");
        assert!(fits, "{error}");
    }
}

#[test]
fn the_digest_is_of_names_formats_and_contents() {
    let base = one(
        &[2],
        GgmlDType::F32,
        floats(&[1.0, 2.0]),
        TensorLayout::Same,
    );
    let same = one(
        &[2],
        GgmlDType::F32,
        floats(&[1.0, 2.0]),
        TensorLayout::Same,
    );
    assert_eq!(digest(&base), digest(&same));
    let contents = one(
        &[2],
        GgmlDType::F32,
        floats(&[1.0, 2.5]),
        TensorLayout::Same,
    );
    let shape = one(
        &[1, 2],
        GgmlDType::F32,
        floats(&[1.0, 2.0]),
        TensorLayout::Same,
    );
    let format = one(
        &[4],
        GgmlDType::F16,
        floats(&[1.0, 2.0]),
        TensorLayout::Same,
    );
    for other in [contents, shape, format] {
        assert_ne!(digest(&base), digest(&other));
    }
}
