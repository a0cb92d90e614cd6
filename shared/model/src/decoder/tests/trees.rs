//! Trees on the model with the odd sizes.

use speculation::draft_tree::BadTree;
use speculation::simd::Level;

use super::*;
use crate::tests::{TREE, forward, path};

#[test]
fn every_level_gives_a_node_the_bits_of_its_path() {
    for (name, mut model) in models() {
        // Trunks that end before, at and after a block of sixteen.
        for trunk in 12..18 {
            let tokens = text(trunk + TREE.len(), 4);
            let expected: Vec<_> = (0..TREE.len())
                .map(|node| fresh(&mut model, &path(&tokens, node)))
                .collect();
            for level in Level::all() {
                model.cpu.level = level;
                let mut cache = model.new_cache();
                let (logits, hidden) = forward(&mut model, &mut cache, &tokens, &TREE, 0).unwrap();
                for (node, expected) in expected.iter().enumerate() {
                    let row = trunk + node;
                    let last = expected.0.len() - 101;
                    let what = format!("{name} {level:?}, node {node} after {trunk}");
                    assert!(logits[row * 101..][..101] == expected.0[last..], "{what}");
                    let last = expected.1.len() - 48;
                    assert!(hidden[row * 48..][..48] == expected.1[last..], "{what}");
                }
            }
        }
    }
}

#[test]
fn refused_trees_leave_the_cache_alone() {
    let mut model = model(WeightFormat::Q8_0);
    let mut cache = model.new_cache();
    extend(&mut model, &mut cache, &text(4, 1));
    let (parents, tokens) = (3, 2);
    for (parents, error) in [
        (&[None; 3][..], BadTree::Length { parents, tokens }),
        (&[None, Some(1)], BadTree::Order(1)),
        (&[Some(2), None], BadTree::Order(0)),
    ] {
        let refused = forward(&mut model, &mut cache, &[1, 2], parents, 0);
        assert_eq!(refused, Err(error.into()));
        assert_eq!((cache.len(), cache.tree_from()), (4, None));
    }
}
