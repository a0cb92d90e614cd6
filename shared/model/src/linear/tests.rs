mod levels;

use super::*;
use crate::cpu::Threads;
use candle_core::quantized::GgmlDType;
use speculation::simd::Level;

/// The default pair's shapes, (outputs, inputs), then some that divide by nothing.
const SHAPES: [(usize, usize); 15] = [
    (640, 384),
    (384, 384),
    (2048, 384),
    (384, 1024),
    (4096, 384),
    (256, 128),
    (128, 128),
    (704, 128),
    (128, 352),
    (4096, 128),
    (35, 47),
    (1, 1),
    // Whole blocks of 256, one chunk and more, an odd number of groups.
    (40, 256),
    (80, 1280),
    (33, 2304),
];

pub(crate) fn noise(count: usize, seed: u32) -> Vec<f32> {
    (0..count as u32)
        .map(|i| {
            let bits = (i ^ seed.wrapping_mul(0x9e37_79b9)).wrapping_mul(2_654_435_761);
            ((bits ^ bits >> 15).wrapping_mul(0x85eb_ca6b) >> 8) as f32 / (1 << 23) as f32 - 1.0
        })
        .collect()
}

/// A layer of pseudo-random weights.
fn made(outputs: usize, inputs: usize, format: WeightFormat) -> Linear {
    Linear::new(&noise(outputs * inputs, 1), None, inputs, format)
}

/// The same with biases.
fn biased(outputs: usize, inputs: usize, format: WeightFormat) -> Linear {
    let bias = Some(noise(outputs, 3));
    Linear::new(&noise(outputs * inputs, 1), bias, inputs, format)
}

fn forward(linear: &Linear, level: Level, x: &[f32]) -> Vec<f32> {
    let mut y = vec![f32::NAN; x.len() / linear.inputs * linear.outputs];
    let cpu = Cpu {
        level,
        ..Cpu::detect()
    };
    linear.forward(&cpu, x, &mut y, &mut LinearScratch::default());
    y
}

pub(crate) fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|v| v.to_bits()).collect()
}

#[test]
fn a_row_has_the_same_bits_in_any_company() {
    for format in WeightFormat::ALL {
        for (outputs, inputs) in SHAPES {
            let linear = made(outputs, inputs, format);
            let x = noise(130 * inputs, 2);
            let alone = |row| bits(&forward(&linear, Level::detect(), row));
            let alone: Vec<Vec<u32>> = x.chunks(inputs).map(alone).collect();
            // The last are a prefill: two bands of 64 rows and more.
            for m in (1..=64).chain([130]) {
                let together = forward(&linear, Level::detect(), &x[..m * inputs]);
                for (row, y) in together.chunks(outputs).enumerate() {
                    let what = format!("{format} {outputs}x{inputs}, row {row} of {m}");
                    assert_eq!(bits(y), alone[row], "{what}");
                }
            }
        }
    }
}

#[test]
fn threads_change_no_bit() {
    let (outputs, inputs, rows) = (4096, 384, 24);
    assert!(outputs * inputs * rows > PARALLEL_WORK);
    let run = |threads: usize, linear: &Linear, x: &[f32]| {
        let mut y = vec![f32::NAN; rows * outputs];
        let cpu = Cpu {
            level: Level::detect(),
            threads: Threads::new(threads).into(),
        };
        linear.forward(&cpu, x, &mut y, &mut LinearScratch::default());
        bits(&y)
    };
    for format in WeightFormat::ALL {
        let linear = biased(outputs, inputs, format);
        let x = noise(rows * inputs, 2);
        let one = run(1, &linear, &x);
        for threads in [2, 3, 7] {
            let found = run(threads, &linear, &x);
            assert_eq!(found, one, "{format}, {threads} threads");
        }
    }
}

#[test]
fn products_are_near_the_exact_ones() {
    let formats = [
        (WeightFormat::Q8_0, 1e-2),
        (WeightFormat::Q4_K, 1e-1),
        (WeightFormat::F32, 1e-6),
    ];
    for (format, tolerance) in formats {
        for (outputs, inputs) in [(384, 1024), (128, 352), (35, 47)] {
            let (weights, x) = (noise(outputs * inputs, 1), noise(inputs, 2));
            let bias = noise(outputs, 3);
            let linear = Linear::new(&weights, Some(bias.clone()), inputs, format);
            let y = forward(&linear, Level::detect(), &x);
            for (output, row) in weights.chunks(inputs).enumerate() {
                let exact: f64 = row.iter().zip(&x).map(|(w, x)| f64::from(w * x)).sum();
                let error = (f64::from(y[output]) - exact - f64::from(bias[output])).abs();
                let most = tolerance * (inputs as f64).sqrt();
                assert!(error < most, "{format} {outputs}x{inputs}: {error}");
            }
        }
    }
}

/// ggml's blocks of `weights`, and what candle makes of them again.
fn ggml(
    weights: &[f32],
    inputs: usize,
    dtype: candle_core::quantized::GgmlDType,
) -> (Vec<u8>, Vec<f32>) {
    use candle_core::{Device, Tensor, quantized::QTensor};

    let shape = (weights.len() / inputs, inputs);
    let tensor = Tensor::from_slice(weights, shape, &Device::Cpu).unwrap();
    let quantized = QTensor::quantize(&tensor, dtype).unwrap();
    let values = quantized.dequantize(&Device::Cpu).unwrap();
    let values = values.flatten_all().unwrap().to_vec1().unwrap();
    (quantized.data().unwrap().into_owned(), values)
}

#[test]
fn ggml_blocks_keep_their_values() {
    let (outputs, inputs) = (35, 768);
    let weights = noise(outputs * inputs, 1);
    let formats = [
        (GgmlDType::Q8_0, WeightFormat::Q8_0),
        (GgmlDType::Q4K, WeightFormat::Q4_K),
    ];
    for (format, same) in formats {
        let (bytes, values) = ggml(&weights, inputs, format);
        let take = |bytes, inputs| {
            Linear::from_ggml(OutputOrder::AsGiven, format, bytes, None, outputs, inputs)
        };
        let taken = take(&bytes, inputs).unwrap();
        let made = Linear::new(&weights, None, inputs, same);
        let mut row = vec![0.0; inputs];
        for (output, expected) in values.chunks(inputs).enumerate() {
            taken.read_row(output, &mut row);
            assert_eq!(bits(&row), bits(expected), "{same}, output {output}");
        }
        let x = noise(3 * inputs, 2);
        let y = forward(&taken, Level::detect(), &x);
        if same == WeightFormat::Q4_K {
            assert_eq!(bits(&y), bits(&forward(&made, Level::detect(), &x)));
        }
        // What was multiplied are the same values: only the activations were rounded.
        for (x, y) in x.chunks(inputs).zip(y.chunks(outputs)) {
            for (weights, y) in values.chunks(inputs).zip(y) {
                let exact: f32 = weights.iter().zip(x).map(|(w, x)| w * x).sum();
                assert!((exact - y).abs() < 0.15, "{same}: {y} is not near {exact}");
            }
        }
        assert!(take(&bytes[1..], inputs).is_none());
        assert!(take(&bytes, inputs / 3 + 1).is_none());
    }
}

#[test]
fn q4_k_multiplies_exactly_what_it_holds() {
    // Activations that are quants times a power of two lose nothing when quantised.
    let (outputs, inputs) = (17, 512);
    let linear = made(outputs, inputs, WeightFormat::Q4_K);
    let x = noise(inputs, 2).into_iter();
    let mut x: Vec<f32> = x.map(|x| (x * 126.0).round()).collect();
    x.iter_mut().step_by(32).for_each(|x| *x = 127.0);
    let y = forward(&linear, Level::detect(), &x);
    let mut row = vec![0.0; inputs];
    for (output, y) in y.iter().enumerate() {
        linear.read_row(output, &mut row);
        let products = row.iter().zip(&x);
        let exact: f64 = products.map(|(w, x)| f64::from(*w) * f64::from(*x)).sum();
        assert!((exact - f64::from(*y)).abs() < 1e-2, "{y} is not {exact}");
    }
}

#[test]
fn rows_of_no_whole_blocks_of_256_are_held_in_q8_0() {
    for (inputs, same) in [(384, true), (512, false)] {
        let weights = noise(16 * inputs, 1);
        let q4 = Linear::new(&weights, None, inputs, WeightFormat::Q4_K);
        let q8 = Linear::new(&weights, None, inputs, WeightFormat::Q8_0);
        assert_eq!(q4.bytes() == q8.bytes(), same, "{inputs}");
    }
}

#[test]
fn broken_weights_do_not_come_out_as_numbers() {
    for format in WeightFormat::ALL {
        for broken in [f32::NAN, f32::INFINITY] {
            let mut weights = noise(2 * 256, 1);
            weights[256 + 40] = broken;
            let linear = Linear::new(&weights, None, 256, format);
            let y = forward(&linear, Level::detect(), &[1.0; 256]);
            let is_broken = [!y[0].is_finite(), !y[1].is_finite()];
            assert_eq!(is_broken, [false, true], "{format} {broken}: {y:?}");
        }
    }
}

#[test]
fn scales_of_q8_0_have_half_precision() {
    // So that a file written from the weights holds the same numbers.
    let mut weights = [0.0; 32];
    weights[7] = 0.3;
    let linear = Linear::new(&weights, None, 32, WeightFormat::Q8_0);
    let mut row = [0.0; 32];
    linear.read_row(0, &mut row);
    let scale = half::f16::from_f32(0.3 / 127.0).to_f32();
    assert_ne!(scale * 127.0, 0.3);
    assert_eq!(row[7].to_bits(), (scale * 127.0).to_bits());
}

#[test]
fn ggml_matrices_have_whole_blocks() {
    let bytes = ggml::matrix_bytes;
    assert_eq!(bytes(GgmlDType::Q8_0, 2, 96), Some(2 * 3 * 34));
    assert_eq!(bytes(GgmlDType::Q4K, 3, 512), Some(3 * 2 * 144));
    for (outputs, inputs) in [(2, 100), (2, 0), (0, 256), (usize::MAX, 256)] {
        assert_eq!(bytes(GgmlDType::Q8_0, outputs, inputs), None);
    }
    assert_eq!(bytes(GgmlDType::Q4K, 2, 96), None);
    // 34 bytes hold the first block of 33 inputs: not all of them.
    assert!(
        Linear::from_ggml(OutputOrder::AsGiven, GgmlDType::Q8_0, &[0; 34], None, 1, 33).is_none()
    );
}

#[test]
fn zeros_stay_zeros() {
    for format in WeightFormat::ALL {
        let linear = Linear::new(&[0.0; 64], None, 32, format);
        assert_eq!(forward(&linear, Level::detect(), &[0.0; 64]), [0.0; 4]);
    }
}

/// Files hold these bytes: where they change, [`LAYOUT`] must.
#[test]
fn blocks_are_laid_out_as_the_layout_of_this_number_says() {
    use sha2::{Digest, Sha256};

    let digests = WeightFormat::ALL.map(|format| {
        let order = OutputOrder::Paired;
        let linear = Linear::in_order(order, &noise(70 * 512, 1), None, 512, format);
        let digest: [u8; 32] = Sha256::digest(linear.packed_bytes()).into();
        u64::from_be_bytes(*digest.first_chunk().unwrap())
    });
    let expected = [
        0x3be2_aa4e_b4d4_8b16,
        0xb87b_8f39_a4d1_6e3b,
        0x3370_95e3_7150_d6db,
    ];
    assert_eq!((LAYOUT, digests), (1, expected));
}
