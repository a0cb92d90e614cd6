//! Trees: a node's row is that of its path.

use speculation::draft_tree::BadTree;

use super::*;

/// Two branches and a side shoot, in no tidy order: the paths 0, 1, 1-2, 0-3, 1-2-4, 0-5.
const TREE: [Option<u32>; 6] = [None, None, Some(1), Some(0), Some(2), Some(0)];
const PATHS: [&[u32]; 6] = [&[0], &[1], &[1, 2], &[0, 3], &[1, 2, 4], &[0, 5]];

/// The tokens that the node sees, of a tree at the end of `tokens`.
fn path(tokens: &[TokenId], node: usize) -> Vec<TokenId> {
    let (trunk, tree) = tokens.split_at(tokens.len() - TREE.len());
    let nodes = PATHS[node].iter().map(|&node| tree[node as usize]);
    trunk.iter().copied().chain(nodes).collect()
}

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
fn trees_and_chains_share_a_batch() {
    let mut model = model();
    let (tree, chain) = (text(3 + TREE.len(), 1), text(8, 2));
    let mut caches = [model.new_cache(), model.new_cache()];
    let mut batch: Vec<_> = caches
        .iter_mut()
        .zip([(&tree, &TREE[..]), (&chain, &[])])
        .map(|(cache, (tokens, parents))| Segment {
            cache,
            tokens,
            parents,
            scored_from: 0,
        })
        .collect();
    let mut rows = Rows::default();
    model.forward(&mut batch, &mut rows).unwrap();
    let alone = fresh(&mut model, &chain).0;
    assert_near(&rows.logits[tree.len() * 101..], &alone, "the chain");
    let alone = fresh(&mut model, &path(&tree, 4)).0;
    let node = &rows.logits[(3 + 4) * 101..][..101];
    assert_near(node, &alone[alone.len() - 101..], "a node");
}

#[test]
fn going_on_from_a_kept_path_is_a_fresh_forward() {
    let mut model = model();
    for trunk in [2, 60] {
        let tokens = text(trunk + TREE.len(), 5);
        let more = text(20, 6);
        for (node, nodes) in PATHS.iter().enumerate() {
            let whole = [&path(&tokens, node)[..], &more].concat();
            let expected = fresh(&mut model, &whole).0;
            let mut cache = model.new_cache();
            forward(&mut model, &mut cache, &tokens, &TREE, 0).unwrap();
            let other = cache.clone();
            cache.keep(trunk, nodes);
            assert_eq!(cache.len(), trunk + nodes.len());
            let what = format!("node {node} after {trunk}");
            let held = whole.len() - more.len();
            let found = extend(&mut model, &mut cache, &more).0;
            assert_near(&found, &expected[held * 101..], &what);

            // A clone still holds the whole tree.
            let mut other = other;
            other.keep(trunk, PATHS[5]);
            let whole = [&path(&tokens, 5)[..], &more].concat();
            let expected = fresh(&mut model, &whole).0;
            let found = extend(&mut model, &mut other, &more).0;
            let held = whole.len() - more.len();
            assert_near(&found, &expected[held * 101..], &format!("{what}, a clone"));
        }
    }
}

#[test]
fn nothing_follows_a_tree_but_the_choice_of_a_path() {
    let mut model = model();
    let mut cache = model.new_cache();
    forward(&mut model, &mut cache, &text(9, 1), &TREE, 0).unwrap();
    let refused = Err(ForwardError::TreeInCache { from: 3 });
    assert_eq!(forward(&mut model, &mut cache, &[1], &[], 0), refused);
    // A part of a tree is a tree still.
    cache.truncate(5);
    assert_eq!(forward(&mut model, &mut cache, &[1], &[], 0), refused);
    cache.truncate(3);
    let misplaced = forward(&mut model, &mut cache, &[1, 2], &[None, Some(1)], 0);
    assert_eq!(misplaced, Err(BadTree::Order(1).into()));
    forward(&mut model, &mut cache, &[1, 2, 3], &[None, None], 0).unwrap();
    cache.keep(4, &[]);
    assert_eq!(cache.len(), 4);
    forward(&mut model, &mut cache, &[1], &[], 0).unwrap();
}

/// Nodes side by side take slots, and no positions.
#[test]
fn the_context_bounds_the_depth_of_a_tree_not_its_nodes() {
    let mut model = model();
    let mut cache = model.new_cache();
    forward(&mut model, &mut cache, &text(93 + TREE.len(), 7), &TREE, 0).unwrap();
    assert_eq!(cache.len(), 99);
    let mut cache = model.new_cache();
    let exceeded = ForwardError::ContextExceeded {
        tokens: 97,
        context_len: 96,
    };
    let refused = forward(&mut model, &mut cache, &text(94 + TREE.len(), 7), &TREE, 0);
    assert_eq!(refused, Err(exceeded));
}
