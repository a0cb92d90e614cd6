//! How far back a window lets a token see, in chains and across trees.

use super::*;

const WINDOW: usize = 5;

/// Two layers with a window: a token is told of those up to two windows back, less one each.
fn windowed(format: WeightFormat) -> Decoder {
    let config = ModelConfig {
        architecture: Architecture::Mistral,
        window: Some(WINDOW),
        windowed: vec![true; 2],
        ..config()
    };
    load(config, format)
}

const REACH: usize = 2 * (WINDOW - 1);

#[test]
fn a_token_reaches_as_far_as_windows_let_it() {
    for format in WeightFormat::ALL {
        let mut model = windowed(format);
        let tokens = text(30, 8);
        let (logits, _) = fresh(&mut model, &tokens);
        for changed in [0, 3, 11] {
            let mut other = tokens.clone();
            other[changed] = (other[changed] + 1) % 101;
            let (found, _) = fresh(&mut model, &other);
            for (row, (a, b)) in logits.chunks(101).zip(found.chunks(101)).enumerate() {
                let reached = row >= changed && row - changed <= REACH;
                assert_eq!(a != b, reached, "{format}: token {changed} at row {row}");
            }
        }
    }
}
