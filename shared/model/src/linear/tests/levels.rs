//! All instruction sets of this CPU.

use super::*;

#[test]
fn every_level_gives_the_same_bits() {
    for format in WeightFormat::ALL {
        for (outputs, inputs) in [(384, 1024), (704, 128), (128, 352), (35, 47), (33, 1280)] {
            let linear = made(outputs, inputs, format);
            for m in [1, 2, 3, 4, 5, 6, 7, 8, 13, 70] {
                let x = noise(m * inputs, 2);
                let expected = bits(&forward(&linear, Level::Baseline, &x));
                for level in Level::all() {
                    let found = bits(&forward(&linear, level, &x));
                    assert_eq!(found, expected, "{format} {level:?}");
                }
            }
        }
    }
}

/// Where all that is multiplied is as large as can be no sum overflows, however few bytes it has.
#[test]
fn the_largest_products_fill_no_sum() {
    for (format, sign) in WeightFormat::ALL
        .into_iter()
        .flat_map(|f| [(f, 1.0), (f, -1.0)])
    {
        // Minima of 4-bit numbers: every other output is all zeros but one, so that quants are 15 elsewhere.
        let weight = |i| if i % 32 == 0 { 0.0 } else { 1.0 };
        let weights: Vec<f32> = (0..32 * 256).map(weight).collect();
        let linear = Linear::new(&weights, None, 256, format);
        let x = vec![sign * 127.0; 5 * 256];
        let expected = sign * 127.0 * 248.0;
        for level in Level::all() {
            for y in forward(&linear, level, &x) {
                let error = (y - expected).abs() / expected.abs();
                assert!(error < 2e-3, "{format} {level:?}: {y} is not {expected}");
            }
        }
    }
}

/// More inputs than are read at once, and outputs that fill no group.
#[test]
fn threads_and_levels_pack_the_same_blocks() {
    let (outputs, inputs) = (70, 1280);
    let weights: Vec<f32> = noise(outputs * inputs, 5)
        .iter()
        .map(|w| w * w * w)
        .collect();
    let rows = rows::GivenRows {
        weights: &weights,
        inputs,
    };
    for format in WeightFormat::ALL {
        for order in [OutputOrder::AsGiven, OutputOrder::Paired] {
            let packed = |level, threads| {
                let cpu = Cpu {
                    level,
                    threads: Threads::new(threads).into(),
                };
                let shape = [outputs, inputs];
                let linear = Linear::of_rows(&cpu, order, shape, &rows, None, format);
                let mut values = vec![0.0; linear.outputs() * inputs];
                for (output, row) in values.chunks_mut(inputs).enumerate() {
                    linear.read_row(output, row);
                }
                bits(&values)
            };
            let expected = packed(Level::Baseline, 1);
            for level in Level::all() {
                for threads in [1, 2, 5] {
                    let found = packed(level, threads);
                    assert!(found == expected, "{format} {level:?}, {threads} threads");
                }
            }
        }
    }
}
