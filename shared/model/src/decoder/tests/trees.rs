//! Trees on the model with the odd sizes.

use speculation::draft_tree::BadTree;
use speculation::simd::Level;

use super::*;

/// Two branches and a side shoot, in no tidy order: the paths 0, 1, 1-2, 0-3, 1-2-4, 0-5.
const TREE: [Option<u32>; 6] = [None, None, Some(1), Some(0), Some(2), Some(0)];
const PATHS: [&[usize]; 6] = [&[0], &[1], &[1, 2], &[0, 3], &[1, 2, 4], &[0, 5]];

fn forward(
    model: &mut Decoder,
    cache: &mut SequenceCache,
    tokens: &[TokenId],
    parents: &[Option<u32>],
) -> Result<(Vec<f32>, Vec<f32>), ForwardError> {
    let mut rows = Rows {
        want_hidden: true,
        ..Rows::default()
    };
    let segment = Segment {
        cache,
        tokens,
        parents,
        scored_from: 0,
    };
    model.forward(&mut [segment], &mut rows)?;
    Ok((rows.logits, rows.hidden))
}

/// The tokens that the node sees, of a tree at the end of `tokens`.
fn path(tokens: &[TokenId], node: usize) -> Vec<TokenId> {
    let (trunk, tree) = tokens.split_at(tokens.len() - TREE.len());
    let nodes = PATHS[node].iter().map(|&node| tree[node]);
    trunk.iter().copied().chain(nodes).collect()
}

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
                let (logits, hidden) = forward(&mut model, &mut cache, &tokens, &TREE).unwrap();
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
fn going_on_from_a_kept_path_is_a_fresh_forward() {
    for (name, mut model) in models() {
        for trunk in 12..18 {
            let tokens = text(trunk + TREE.len(), 5);
            let more = text(20, 6);
            for (node, nodes) in PATHS.iter().enumerate() {
                let whole = [&path(&tokens, node)[..], &more].concat();
                let expected = fresh(&mut model, &whole);
                let mut cache = model.new_cache();
                forward(&mut model, &mut cache, &tokens, &TREE).unwrap();
                let kept: Vec<_> = nodes.iter().map(|&node| node as u32).collect();
                cache.keep(trunk, &kept);
                assert_eq!(cache.len(), trunk + kept.len());
                let found = extend(&mut model, &mut cache, &more, 0);
                let held = whole.len() - more.len();
                let what = format!("{name}, node {node} after {trunk}");
                assert!(found.0 == expected.0[held * 101..], "{what}");
                assert!(found.1 == expected.1[held * 48..], "{what}");
            }
        }
    }
}

#[test]
fn refused_trees_leave_the_cache_alone() {
    let mut model = model(WeightFormat::Q8_0);
    let mut cache = model.new_cache();
    extend(&mut model, &mut cache, &text(4, 1), 0);
    for (parents, error) in [
        (
            &[None; 3][..],
            BadTree::Length {
                parents: 3,
                tokens: 2,
            },
        ),
        (&[None, Some(1)], BadTree::Order(1)),
        (&[Some(2), None], BadTree::Order(0)),
    ] {
        let refused = forward(&mut model, &mut cache, &[1, 2], parents);
        assert_eq!(refused, Err(error.into()));
        assert_eq!((cache.len(), cache.tree_from()), (4, None));
    }
}

#[test]
fn nothing_follows_a_tree_but_the_choice_of_a_path() {
    let mut model = model(WeightFormat::Q8_0);
    let mut cache = model.new_cache();
    forward(&mut model, &mut cache, &text(9, 1), &TREE).unwrap();
    let refused = Err(ForwardError::TreeInCache { from: 3 });
    assert_eq!(forward(&mut model, &mut cache, &[1], &[]), refused);
    // A part of a tree is a tree still.
    cache.truncate(5);
    assert_eq!(forward(&mut model, &mut cache, &[1], &[]), refused);
    cache.truncate(3);
    forward(&mut model, &mut cache, &[1, 2, 3], &[None, None]).unwrap();
    cache.keep(4, &[]);
    assert_eq!(cache.len(), 4);
    forward(&mut model, &mut cache, &[1], &[]).unwrap();
}

/// Nodes side by side take slots, and no positions.
#[test]
fn the_context_bounds_the_depth_of_a_tree_not_its_nodes() {
    let mut model = model(WeightFormat::Q8_0);
    let tokens = text(93 + TREE.len(), 7);
    let mut cache = model.new_cache();
    let (logits, _) = forward(&mut model, &mut cache, &tokens, &TREE).unwrap();
    assert_eq!(cache.len(), 99);
    let expected = fresh(&mut model, &path(&tokens, 4)).0;
    assert!(logits[97 * 101..][..101] == expected[95 * 101..]);
    let mut cache = model.new_cache();
    assert_eq!(
        forward(&mut model, &mut cache, &text(94 + TREE.len(), 7), &TREE),
        Err(ForwardError::ContextExceeded {
            tokens: 97,
            context_len: 96
        })
    );
}
