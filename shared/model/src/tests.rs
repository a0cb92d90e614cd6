//! What every language model of this crate is tried with: the contract of all engines, and refusals of tensors.

pub(crate) use outrider_tests::contract::{
    Scored, TREE, extend, forward, fresh, holds, path, text,
};
use outrider_tests::toy::ToyModel;

use crate::config::ModelConfig;

#[test]
fn the_toy_keeps_the_contract() {
    holds(&mut ToyModel::new(7, 101), same, "toy");
}

/// Not near: the same bits.
pub(crate) fn same(found: &[f32], expected: &[f32], what: &str) {
    assert!(found == expected, "{what}");
}

/// A change of a config, and what is said of a tensor then.
pub(crate) type Change<'a> = (fn(&mut ModelConfig), &'a str);

/// Asserts what is said of a checkpoint by who loads it with a config changed in one way.
pub(crate) fn refusals_name_the_tensor(
    config: &ModelConfig,
    load: impl Fn(&ModelConfig) -> String,
    cases: &[Change<'_>],
) {
    for (change, reported) in cases {
        let mut config = config.clone();
        change(&mut config);
        let reported = format!("tensor {reported}");
        assert_eq!(load(&config), reported);
    }
}
