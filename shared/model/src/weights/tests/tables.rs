//! Blocks of numbers that stand for those of a table.

use half::f16;

use super::super::*;
use super::gguf::of;
use crate::gguf::tests::{file, open, refused};
use crate::linear::{OutputOrder, WeightFormat};
use candle_core::quantized::GgmlDType;

const IQ4_NL: u8 = 20;
const IQ4_XS: u8 = 23;
const MXFP4: u8 = 39;

/// The bytes of a file whose one tensor, `b`, is of the format of that number.
fn bytes(format: u8, shape: &[usize], contents: &[u8]) -> Vec<u8> {
    let tensor = ("b", shape, GgmlDType::F32, contents.to_vec());
    let mut file = file(&[tensor]);
    let name = b"\x01\0\0\0\0\0\0\0b";
    let at = file.windows(9).position(|found| found == name).unwrap();
    // Its description: length and name, dimensions, their sizes, then the format.
    file[at + 9 + 4 + 8 * shape.len()] = format;
    file
}

/// Weights with that tensor as `a`.
fn weights(format: u8, shape: &[usize], contents: &[u8]) -> Weights {
    let file = open(&bytes(format, shape, contents)).unwrap();
    of(file.tensors, shape, TensorLayout::Same)
}

/// The numbers of one row.
fn decoded(format: u8, contents: &[u8], count: usize) -> Vec<f32> {
    let weights = weights(format, &[1, count], contents);
    weights.tensor("a", &[1, count]).unwrap()
}

/// Bytes that look random.
fn noise(count: usize, seed: u32) -> Vec<u8> {
    let bytes =
        (0..count as u32).map(|i| ((i + seed * 7919).wrapping_mul(2_654_435_761) >> 19) as u8);
    bytes.collect()
}

#[test]
fn iq4_nl_is_the_table_times_the_scale() {
    // 0.5, then byte i holds i below and 15 - i above.
    let mut block = f16::from_f32(0.5).to_le_bytes().to_vec();
    block.extend((0..16_u8).map(|i| i | (15 - i) << 4));
    let table = [
        -63.5, -52.0, -41.5, -32.5, -24.5, -17.5, -11.0, -5.0, 0.5, 6.5, 12.5, 19.0, 26.5, 34.5,
        44.5, 56.5,
    ];
    let mut expected = table.to_vec();
    expected.extend(table.iter().rev());
    assert_eq!(decoded(IQ4_NL, &block, 32), expected);
}

#[test]
fn mxfp4_is_four_bit_floating_point_times_a_power_of_two() {
    let numbers: Vec<u8> = (0..16_u8).map(|i| i | (15 - i) << 4).collect();
    let table = [
        0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0,
    ];
    for (exponent, scale) in [
        (127, 1.0),
        (129, 4.0),
        (126, 0.5),
        (2, f32::MIN_POSITIVE * 2.0),
        (1, f32::MIN_POSITIVE),
        (0, f32::MIN_POSITIVE / 2.0),
    ] {
        let block = [&[exponent][..], &numbers].concat();
        let mut expected: Vec<f32> = table.iter().map(|number| number * scale).collect();
        expected.extend(table.iter().rev().map(|number| number * scale));
        assert_eq!(decoded(MXFP4, &block, 32), expected, "{exponent}");
    }
}

#[test]
fn iq4_xs_has_a_scale_for_each_32() {
    let mut block = f16::from_f32(0.25).to_le_bytes().to_vec();
    // The high two bits 2, 1, 3, 0, 2, 3, 0, 1, and the low four bits 1, 15, 15, 0, 0, 0, 1, 0.
    block.extend([2 | 1 << 2 | 3 << 4, 2 | 3 << 2 | 1 << 6]);
    block.extend([0xf1, 0x0f, 0x00, 0x01]);
    let expected_scales = [1.0, -1.0, 31.0, -32.0, 0.0, 16.0, -31.0, -16.0];
    // All are number 9, which stands for 13, and in the high halves 0, which stands for -127.
    block.extend([0x09; 128]);
    let found = decoded(IQ4_XS, &block, 256);
    for (part, scale) in found.chunks(32).zip(expected_scales) {
        assert_eq!(part[..16], [0.25 * scale * 13.0; 16], "{scale}");
        assert_eq!(part[16..], [0.25 * scale * -127.0; 16], "{scale}");
    }
}

/// Number `i` of a block of any format, by the formats' definitions, in double precision.
fn defined(format: u8, block: &[u8], i: usize) -> f64 {
    const NON_LINEAR: [f64; 16] = [
        -127.0, -104.0, -83.0, -65.0, -49.0, -35.0, -22.0, -10.0, 1.0, 13.0, 25.0, 38.0, 53.0,
        69.0, 89.0, 113.0,
    ];
    let header = match format {
        IQ4_NL => 2,
        IQ4_XS => 8,
        _ => 1,
    };
    let (group, within) = (i / 32, i % 32);
    let byte = block[header + 16 * group + within % 16];
    let number = usize::from(if within < 16 { byte % 16 } else { byte / 16 });
    let scale = f64::from(f16::from_le_bytes([block[0], block[1]]));
    match format {
        IQ4_NL => scale * NON_LINEAR[number],
        IQ4_XS => {
            let low = block[4 + group / 2] / [1, 16][group % 2] % 16;
            let high = u16::from_le_bytes([block[2], block[3]]) / 4_u16.pow(group as u32) % 4;
            scale * (f64::from(low) + 16.0 * f64::from(high) - 32.0) * NON_LINEAR[number]
        }
        _ => {
            let sign = if number < 8 { 1.0 } else { -1.0 };
            let (exponent, mantissa) = (number % 8 / 2, (number % 2) as f64);
            let size = match exponent {
                0 => mantissa / 2.0,
                _ => (1.0 + mantissa / 2.0) * f64::powi(2.0, exponent as i32 - 1),
            };
            sign * size * f64::powi(2.0, i32::from(block[0]) - 127)
        }
    }
}

#[test]
fn any_block_is_what_its_definition_says() {
    for (format, size, count) in [(IQ4_NL, 18, 32), (IQ4_XS, 136, 256), (MXFP4, 17, 32)] {
        let mut contents = noise(size * 64, u32::from(format));
        for block in contents.chunks_exact_mut(size) {
            // Neither infinite nor no number, in halves and in powers of two.
            block[1] &= 0xbb;
            block[0] &= 0xef;
        }
        let found = decoded(format, &contents, 64 * count);
        for (block, found) in contents.chunks(size).zip(found.chunks(count)) {
            for (i, found) in found.iter().enumerate() {
                let expected = defined(format, block, i);
                assert_eq!(f64::from(*found), expected, "{format}: {block:?} {i}");
            }
        }
    }
}

#[test]
fn they_are_held_in_the_format_that_is_asked_for() {
    for (format, size, count) in [(IQ4_NL, 18, 32), (IQ4_XS, 136, 256), (MXFP4, 17, 32)] {
        let mut contents = noise(size * 512 / count, 3);
        for block in contents.chunks_exact_mut(size) {
            let scale = f16::from_f32(0.01).to_le_bytes();
            match format {
                MXFP4 => block[0] = 120,
                _ => block[..2].copy_from_slice(&scale),
            }
        }
        let weights = weights(format, &[2, 256], &contents);
        let exact = weights.tensor("a", &[2, 256]).unwrap();
        let parts = [("a".to_owned(), [2, 256])];
        let largest = exact
            .iter()
            .fold(0.0_f32, |max, value| max.max(value.abs()));
        for (wanted, bound) in [
            (WeightFormat::F32, 0.0),
            (WeightFormat::Q8_0, 0.005),
            (WeightFormat::Q4_K, 0.15),
        ] {
            let linear = weights.linear(&parts, None, wanted, OutputOrder::AsGiven);
            let held = super::gguf::held(&linear.unwrap(), 256);
            for (found, exact) in held.iter().zip(&exact) {
                let near = (found - exact).abs() <= bound * largest;
                assert!(near, "{format} in {wanted}: {found} is not {exact}");
            }
        }
    }
}

#[test]
fn blocks_that_are_cut_or_hold_no_numbers_are_refused() {
    for (format, name, size, count) in [
        (IQ4_NL, "IQ4_NL", 18, 32),
        (IQ4_XS, "IQ4_XS", 136, 256),
        (MXFP4, "MXFP4", 17, 32),
    ] {
        let rows =
            format!("tensor b has rows of 33, its format {name} needs a multiple of {count}");
        assert_eq!(refused(&bytes(format, &[1, 33], &noise(size, 1))), rows);
        // Of two rows there is one, and what fills it up.
        let cut = refused(&bytes(format, &[9, count], &noise(size, 1)));
        assert!(cut.starts_with("tensor b ends at byte "), "{cut}");
        let broken = weights(format, &[1, count], &vec![0xff; size]);
        let error = broken.tensor("a", &[1, count]).unwrap_err().to_string();
        assert_eq!(error, "tensor b holds numbers that are not finite");
    }
}
