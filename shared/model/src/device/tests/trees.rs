//! Trees: a node's row is that of its path.

use super::*;
use crate::tests::{TREE, path};

#[test]
fn a_node_is_the_end_of_its_path() {
    for max_scores in [MAX_SCORES, 1_000] {
        let mut model = model();
        model.max_scores = max_scores;
        for (held, trunk) in [(0, 1), (0, 12), (11, 0), (11, 3), (62, 2)] {
            let tokens = text(held + trunk + TREE.len(), 4);
            let mut cache = model.new_cache();
            if held > 0 {
                extend(&mut model, &mut cache, &tokens[..held]);
            }
            let found = forward(&mut model, &mut cache, &tokens[held..], &TREE, trunk).unwrap();
            for node in 0..TREE.len() {
                let expected = fresh(&mut model, &path(&tokens, node));
                let what = format!("node {node} after {held} and {trunk}");
                let row = &expected.0[expected.0.len() - 101..];
                assert_near(&found.0[node * 101..][..101], row, &what);
                let row = &expected.1[expected.1.len() - 48..];
                assert_near(&found.1[node * 48..][..48], row, &what);
            }
        }
    }
}

#[test]
fn going_on_from_a_kept_path_is_a_fresh_forward() {
    let (mut model, trunks) = (model(), [2, 60]);
    trials::going_on_from_a_kept_path_is_a_fresh_forward(&mut model, trunks, assert_near, "f32");
}

#[test]
fn nothing_follows_a_tree_but_the_choice_of_a_path() {
    trials::nothing_follows_a_tree_but_the_choice_of_a_path(&mut model());
}

#[test]
fn the_context_bounds_the_depth_of_a_tree_not_its_nodes() {
    trials::the_context_bounds_the_depth_of_a_tree_not_its_nodes(&mut model(), assert_near);
}
