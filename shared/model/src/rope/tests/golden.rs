//! The angles by which transformers turns positions: `golden/rotations.py` says how its numbers were made.

use serde_json::Value;

use super::*;
use crate::config::ModelConfig;

/// Largest relative difference: transformers computes in single precision.
const TOLERANCE: f64 = 1e-6;

fn cases() -> Vec<Value> {
    serde_json::from_str(include_str!("../golden/rotations.json")).unwrap()
}

#[test]
fn positions_turn_as_in_transformers() {
    for case in cases() {
        let name = &case["name"];
        let config = ModelConfig::from_json(case["config"].to_string().as_bytes());
        let config = config.unwrap_or_else(|error| panic!("{name}: {error}"));
        let rope = config.rope.as_ref().unwrap();
        let rotary = Rotary::new(rope, config.head_dim, config.context_len);
        let near = |found: f32, expected: &Value| {
            let expected = expected.as_f64().unwrap();
            (f64::from(found) / expected - 1.0).abs() < TOLERANCE
        };
        let attention = &case["attention_factor"];
        assert!(near(rotary.scale, attention), "{name}: {}", rotary.scale);
        let expected = case["frequencies"].as_array().unwrap();
        assert_eq!(rotary.frequencies.len(), expected.len(), "{name}");
        for (i, (found, expected)) in rotary.frequencies.iter().zip(expected).enumerate() {
            assert!(near(*found, expected), "{name}, {i}: {found}, {expected}");
        }
    }
}

/// A model that may be stretched gives the context that it was trained on, and is stretched by the factor.
#[test]
fn the_context_is_the_one_that_positions_are_stretched_to() {
    let context_len = |name: &str| {
        let cases = cases();
        let case = cases.iter().find(|case| case["name"] == name).unwrap();
        let config = ModelConfig::from_json(case["config"].to_string().as_bytes());
        config.unwrap().context_len
    };
    for (name, expected) in [
        ("Qwen 2.5 as its page says", 131_072),
        ("Qwen 3 as transformers 5 writes it", 131_072),
        ("yarn of the whole context", 10_240),
        ("yarn with an original context beside it", 4096),
        ("yarn by the contexts", 163_840),
        ("Llama 3.1", 131_072),
        ("linear", 4096),
        ("dynamic up to its context", 4096),
    ] {
        assert_eq!(context_len(name), expected, "{name}");
    }
}
