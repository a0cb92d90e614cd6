//! Matrices as they are packed, row by row where they are stored.

use candle_core::{
    Device, Tensor,
    quantized::{GgmlDType, QTensor},
};

use super::super::*;
use super::gguf::{held, numbers};
use crate::gguf::tests::{floats, tensors};
use crate::linear::{OutputOrder, WeightFormat};

/// Rows of each part: no whole number of groups.
const ROWS: usize = 48;
/// More than is read of a row at once.
const INPUTS: usize = 768;
const HEADS: usize = 3;

fn contents(format: GgmlDType, values: &[f32]) -> Vec<u8> {
    let tensor = Tensor::from_slice(values, (ROWS, INPUTS), &Device::Cpu).unwrap();
    let quantized = QTensor::quantize(&tensor, format).unwrap();
    quantized.data().unwrap().into_owned()
}

/// A GGUF file of two matrices in formats of their own, the first with the rows of heads as llama.cpp has them.
fn two(formats: [GgmlDType; 2]) -> Weights {
    let values = numbers((2 * ROWS * INPUTS) as u32);
    let shape = [ROWS, INPUTS];
    let layouts = [
        TensorLayout::RotaryPairs {
            heads: HEADS,
            dims: ROWS / HEADS,
        },
        TensorLayout::Same,
    ];
    let of = |index: usize| {
        contents(
            formats[index],
            &values[index * ROWS * INPUTS..][..ROWS * INPUTS],
        )
    };
    let file = tensors(&[
        ("x", &shape, formats[0], of(0)),
        ("y", &shape, formats[1], of(1)),
    ]);
    let named = ["x", "y"]
        .iter()
        .zip(layouts)
        .map(|(name, layout)| NamedTensor {
            hugging_face: (*name).to_owned(),
            gguf: (*name).to_owned(),
            shape: shape.to_vec(),
            layout,
        });
    Weights::from_gguf(vec![file.tensors], named.collect())
}

fn parts() -> [(String, [usize; 2]); 2] {
    ["x", "y"].map(|name| (name.to_owned(), [ROWS, INPUTS]))
}

/// The numbers that a matrix of both is to hold, made of whole tensors: where one is stored in the blocks that are
/// wanted it is taken as it is, and all else is quantised from f32.
fn expected(weights: &Weights, format: WeightFormat) -> Vec<f32> {
    let wanted = match format {
        WeightFormat::Q8_0 => GgmlDType::Q8_0,
        WeightFormat::Q4_K => GgmlDType::Q4K,
        WeightFormat::F32 => GgmlDType::F32,
    };
    let mut expected = Vec::new();
    for (name, shape) in parts() {
        let values = weights.tensor(&name, &shape).unwrap();
        let blocks = weights.blocks(&name, &shape, wanted).unwrap();
        let blocks = blocks.unwrap_or_else(|| encode(&name, &values, wanted).unwrap());
        stored::decode(wanted.into(), &blocks, &mut expected).unwrap();
    }
    expected
}

#[test]
fn matrices_of_all_formats_hold_what_whole_tensors_do() {
    use GgmlDType::{BF16, F16, F32, Q2K, Q3K, Q4_0, Q4_1, Q4K, Q5_0, Q5_1, Q5K, Q6K, Q8_0};

    let stored = [
        F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q2K, Q3K, Q4K, Q5K, Q6K,
    ];
    for (index, first) in stored.into_iter().enumerate() {
        for second in [first, Q8_0, Q4K, stored[(index + 5) % stored.len()]] {
            let weights = two([first, second]);
            for format in WeightFormat::ALL {
                let expected = expected(&weights, format);
                for order in [OutputOrder::AsGiven, OutputOrder::Paired] {
                    let linear = weights.linear(&parts(), None, format, order).unwrap();
                    let found = held(&linear, INPUTS);
                    for (output, expected) in expected.chunks(INPUTS).enumerate() {
                        let place = order.place(output, 2 * ROWS);
                        let found = &found[place * INPUTS..][..INPUTS];
                        assert!(
                            found == expected,
                            "{first:?} and {second:?} in {format}, row {output}"
                        );
                    }
                }
            }
        }
    }
}

/// Scales of Q8_0 end at 65,504: a matrix beside such blocks that needs a larger one has all of them quantised anew, to
/// what a matrix without any blocks would hold.
#[test]
fn what_no_block_can_hold_is_treated_as_if_there_were_none() {
    let values = numbers((ROWS * INPUTS) as u32);
    let mut large = values.clone();
    large[ROWS * INPUTS - 1] = 1e7;
    let shape = [ROWS, INPUTS];
    // No quant of these blocks reaches 127: quantised again, they come out otherwise.
    let small = [0x00, 0x3c, 100].into_iter().chain([7; 31]);
    let blocks: Vec<u8> = small.collect::<Vec<u8>>().repeat(ROWS * INPUTS / 32);
    let of = |second: &[f32]| {
        let file = tensors(&[
            ("x", &shape, GgmlDType::Q8_0, blocks.clone()),
            ("y", &shape, GgmlDType::F32, floats(second)),
        ]);
        let named = ["x", "y"].map(|name| NamedTensor {
            hugging_face: name.to_owned(),
            gguf: name.to_owned(),
            shape: shape.to_vec(),
            layout: TensorLayout::Same,
        });
        let weights = Weights::from_gguf(vec![file.tensors], named.to_vec());
        let format = WeightFormat::Q8_0;
        let linear = weights.linear(&parts(), None, format, OutputOrder::AsGiven);
        held(&linear.unwrap(), INPUTS)[0]
    };
    assert_eq!(of(&values), 100.0);
    let scale = half::f16::from_f32(100.0 / 127.0).to_f32();
    assert_eq!(of(&large), 127.0 * scale);
    assert_ne!(127.0 * scale, 100.0);
}

#[test]
fn of_several_that_are_wrong_the_first_is_named() {
    let whole = numbers((ROWS * INPUTS) as u32);
    let broken = |at: usize| {
        let mut values = whole.clone();
        values[at] = f32::NAN;
        floats(&values)
    };
    let shape = [ROWS, INPUTS];
    let refused = |x: Vec<u8>, y: Vec<u8>, last: &str| {
        let file = tensors(&[
            ("x", &shape, GgmlDType::F32, x),
            ("y", &shape, GgmlDType::F32, y),
        ]);
        let weights = Weights::from_file(file.tensors);
        let mut parts = parts().to_vec();
        parts.push((last.to_owned(), shape));
        let refused = |format| {
            let refused = weights.linear(&parts, None, format, OutputOrder::AsGiven);
            refused.expect_err("broken").to_string()
        };
        let [first, others @ ..] = WeightFormat::ALL.map(refused);
        assert!(others.iter().all(|other| *other == first), "{others:?}");
        first
    };
    let last = ROWS * INPUTS - 1;
    // Whichever is read first.
    for _ in 0..20 {
        let told = refused(broken(last), broken(0), "x");
        assert_eq!(told, "tensor x holds numbers that are not finite");
    }
    let told = refused(floats(&whole), broken(last), "x");
    assert_eq!(told, "tensor y holds numbers that are not finite");
    let told = refused(floats(&whole), floats(&whole), "z");
    assert_eq!(told, "tensor z is missing");
    let told = refused(floats(&whole), broken(5), "z");
    assert_eq!(told, "tensor y holds numbers that are not finite");
}

#[test]
fn each_row_of_a_file_is_found_where_it_was_put() {
    for (rows, heads, dims) in [
        (12, 2, 6),
        (64, 1, 64),
        (64, 2, 16),
        (48, 3, 16),
        (48, 3, 2),
        (256, 4, 64),
    ] {
        for row in 0..rows {
            let place = rotary_place(row, rows, heads, dims);
            let found = rotary_source(place, rows, heads, dims);
            assert_eq!(found, row, "{rows}, {heads}, {dims}");
        }
    }
}
