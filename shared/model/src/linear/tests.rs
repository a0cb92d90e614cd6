use super::*;

/// The default pair's shapes, (outputs, inputs), then some that divide by nothing.
const SHAPES: [(usize, usize); 12] = [
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
];

fn noise(count: usize, seed: u32) -> Vec<f32> {
    (0..count as u32)
        .map(|i| {
            let bits = (i ^ seed.wrapping_mul(0x9e37_79b9)).wrapping_mul(2_654_435_761);
            ((bits ^ bits >> 15).wrapping_mul(0x85eb_ca6b) >> 8) as f32 / (1 << 23) as f32 - 1.0
        })
        .collect()
}

fn forward(linear: &Linear, level: Level, x: &[f32]) -> Vec<f32> {
    let mut y = vec![f32::NAN; x.len() / linear.inputs * linear.outputs];
    linear.forward(level, x, &mut y, &mut LinearScratch::default());
    y
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|v| v.to_bits()).collect()
}

#[test]
fn a_row_has_the_same_bits_in_any_company() {
    for format in WeightFormat::ALL {
        for (outputs, inputs) in SHAPES {
            let linear = Linear::new(&noise(outputs * inputs, 1), None, inputs, format);
            let x = noise(64 * inputs, 2);
            let alone: Vec<Vec<u32>> = x
                .chunks(inputs)
                .map(|row| bits(&forward(&linear, Level::detect(), row)))
                .collect();
            for m in 1..=64 {
                let together = forward(&linear, Level::detect(), &x[..m * inputs]);
                for (row, y) in together.chunks(outputs).enumerate() {
                    assert_eq!(
                        bits(y),
                        alone[row],
                        "{format} {outputs}x{inputs}, row {row} of {m}"
                    );
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
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(|| bits(&forward(linear, Level::detect(), x)))
    };
    for format in WeightFormat::ALL {
        let bias = Some(noise(outputs, 3));
        let linear = Linear::new(&noise(outputs * inputs, 1), bias, inputs, format);
        let x = noise(rows * inputs, 2);
        let one = run(1, &linear, &x);
        for threads in [2, 3, 7] {
            assert_eq!(
                run(threads, &linear, &x),
                one,
                "{format}, {threads} threads"
            );
        }
    }
}

#[test]
fn every_level_gives_the_same_bits() {
    for format in WeightFormat::ALL {
        for (outputs, inputs) in [(384, 1024), (704, 128), (128, 352), (35, 47)] {
            let linear = Linear::new(&noise(outputs * inputs, 1), None, inputs, format);
            for m in [1, 2, 3, 4, 5, 6, 7, 13] {
                let x = noise(m * inputs, 2);
                let expected = bits(&forward(&linear, Level::Baseline, &x));
                for level in Level::all() {
                    assert_eq!(
                        bits(&forward(&linear, level, &x)),
                        expected,
                        "{format} {level:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn products_are_near_the_exact_ones() {
    for (format, tolerance) in [(WeightFormat::Q8_0, 1e-2), (WeightFormat::F32, 1e-6)] {
        for (outputs, inputs) in [(384, 1024), (128, 352), (35, 47)] {
            let (weights, x) = (noise(outputs * inputs, 1), noise(inputs, 2));
            let bias = noise(outputs, 3);
            let linear = Linear::new(&weights, Some(bias.clone()), inputs, format);
            let y = forward(&linear, Level::detect(), &x);
            for (output, row) in weights.chunks(inputs).enumerate() {
                let exact: f64 = row.iter().zip(&x).map(|(w, x)| f64::from(w * x)).sum();
                let error = (f64::from(y[output]) - exact - f64::from(bias[output])).abs();
                let scale = (inputs as f64).sqrt();
                assert!(
                    error < tolerance * scale,
                    "{format} {outputs}x{inputs}: {error}"
                );
            }
        }
    }
}

#[test]
fn q8_0_agrees_with_candle() {
    use candle_core::{
        Device, Module, Tensor,
        quantized::{GgmlDType, QMatMul, QTensor},
    };

    let (outputs, inputs, rows) = (384, 1024, 5);
    let (weights, x) = (noise(outputs * inputs, 1), noise(rows * inputs, 2));
    let tensor = |values: &[f32], rows: usize| {
        Tensor::from_slice(values, (rows, inputs), &Device::Cpu).unwrap()
    };
    let quantized = QTensor::quantize(&tensor(&weights, outputs), GgmlDType::Q8_0).unwrap();
    let theirs = QMatMul::from_qtensor(quantized)
        .unwrap()
        .forward(&tensor(&x, rows))
        .unwrap();
    let theirs = theirs.flatten_all().unwrap().to_vec1::<f32>().unwrap();
    let ours = forward(
        &Linear::new(&weights, None, inputs, WeightFormat::Q8_0),
        Level::detect(),
        &x,
    );
    for (ours, theirs) in ours.iter().zip(theirs) {
        // Both round activations to 8 bits, candle on some CPUs with a scale for 256 of them.
        assert!((ours - theirs).abs() < 0.2, "{ours} is not near {theirs}");
    }
}

#[test]
fn rows_can_be_read_back() {
    for (format, tolerance) in [(WeightFormat::Q8_0, 1.0 / 200.0), (WeightFormat::F32, 0.0)] {
        let weights = noise(35 * 47, 1);
        let linear = Linear::new(&weights, None, 47, format);
        for (output, expected) in weights.chunks(47).enumerate() {
            let mut row = vec![0.0; 47];
            linear.read_row(output, &mut row);
            for (found, expected) in row.iter().zip(expected) {
                assert!((found - expected).abs() <= tolerance);
            }
        }
    }
}

#[test]
fn zeros_stay_zeros() {
    for format in WeightFormat::ALL {
        let linear = Linear::new(&[0.0; 64], None, 32, format);
        assert_eq!(forward(&linear, Level::detect(), &[0.0; 64]), [0.0; 4]);
    }
}

#[test]
fn formats_parse_by_name() {
    for format in WeightFormat::ALL {
        assert_eq!(format.to_string().parse(), Ok(format));
    }
    let error = "int4".parse::<WeightFormat>().unwrap_err().to_string();
    assert_eq!(error, "no weight format \"int4\": q8_0 and f32 are known");
}
