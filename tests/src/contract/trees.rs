//! Trees: a node's row is that of its path, and a path that is kept is a sequence.

use speculation::TokenId;
use speculation::ports::{KvCache, LanguageModel};

use super::{Agree, Scored, agrees_from, extend, forward, fresh, holding, is_refused, text};

/// Two branches and a side shoot, in no tidy order.
pub const TREE: [Option<u32>; 6] = [None, None, Some(1), Some(0), Some(2), Some(0)];
/// The path to each node of [`TREE`].
pub const PATHS: [&[u32]; 6] = [&[0], &[1], &[1, 2], &[0, 3], &[1, 2, 4], &[0, 5]];

/// The tokens that the node sees, of a tree at the end of `tokens`.
pub fn path(tokens: &[TokenId], node: usize) -> Vec<TokenId> {
    let (trunk, tree) = tokens.split_at(tokens.len() - TREE.len());
    let nodes = PATHS[node].iter().map(|&node| tree[node as usize]);
    trunk.iter().copied().chain(nodes).collect()
}

/// Whatever was held before it, and however long its trunk is.
pub fn a_node_is_the_end_of_its_path<M: LanguageModel>(model: &mut M, agree: Agree, name: &str) {
    for (held, trunk) in [(0, 1), (0, 12), (11, 0), (11, 3), (62, 2)] {
        let tokens = text(held + trunk + TREE.len(), 4);
        let mut cache = holding(model, &tokens[..held]);
        let found = forward(model, &mut cache, &tokens[held..], &TREE, trunk).expect("a tree");
        assert_eq!(cache.len(), tokens.len());
        let (logits, hidden) = (model.shape().vocab_size, model.shape().hidden_size);
        for node in 0..TREE.len() {
            let path = path(&tokens, node);
            let expected = fresh(model, &path);
            let own = found.1.get(node * hidden..(node + 1) * hidden);
            let own = (
                found.0[node * logits..][..logits].to_vec(),
                own.unwrap_or_default().to_vec(),
            );
            let what = format!("{name}, node {node} after {held} and {trunk}");
            agrees_from(model, (&own, &expected), path.len() - 1, agree, &what);
        }
    }
}

/// Each path of trees behind each of these trunks.
pub fn going_on_from_a_kept_path_is_a_fresh_forward<M: LanguageModel>(
    model: &mut M,
    trunks: impl IntoIterator<Item = usize>,
    agree: Agree,
    name: &str,
) {
    for trunk in trunks {
        let (tokens, more) = (text(trunk + TREE.len(), 5), text(20, 6));
        for (node, kept) in PATHS.into_iter().enumerate() {
            let mut cache = model.new_cache();
            forward(model, &mut cache, &tokens, &TREE, 0).expect("a tree");
            cache.keep(trunk, kept, &[]);
            let held = trunk + kept.len();
            assert_eq!(cache.len(), held);
            let whole = [&path(&tokens, node)[..], &more].concat();
            let expected = fresh(model, &whole);
            let found = extend(model, &mut cache, &more);
            let what = format!("{name}, node {node} after {trunk}");
            agrees_from(model, (&found, &expected), held, agree, &what);
        }
    }
}

/// Nodes are appended below others of all ages; then the text goes down one branch, what stands beneath stays a tree, and
/// grows on.
pub fn a_tree_that_grows_is_one_that_was_forwarded_whole<M: LanguageModel>(
    model: &mut M,
    trunks: impl IntoIterator<Item = usize>,
    agree: Agree,
    name: &str,
) {
    let node = |model: &mut M, found: &Scored, row: usize, context: &[TokenId]| {
        let (logits, hidden) = (model.shape().vocab_size, model.shape().hidden_size);
        let own = found.1.get(row * hidden..(row + 1) * hidden);
        let own = (
            found.0[row * logits..][..logits].to_vec(),
            own.unwrap_or_default().to_vec(),
        );
        let expected = fresh(model, context);
        let what = format!("{name}, {context:?}");
        agrees_from(model, (&own, &expected), context.len() - 1, agree, &what);
    };
    for trunk in trunks {
        let tokens = text(trunk + TREE.len(), 5);
        let before = &tokens[..trunk];
        let (one, two) = TREE.split_at(2);
        let mut cache = model.new_cache();
        forward(model, &mut cache, &tokens[..trunk + one.len()], one, 0).expect("a tree");
        // Node by node, but for the last two.
        for at in 2..TREE.len() - 1 {
            let upto = if at == TREE.len() - 2 {
                TREE.len()
            } else {
                at + 1
            };
            let new = &tokens[trunk + at..trunk + upto];
            let found = forward(model, &mut cache, new, &TREE[..upto], 0).expect("a tree");
            for row in 0..upto - at {
                node(model, &found, row, &path(&tokens, at + row));
            }
        }
        assert_eq!(cache.len(), trunk + one.len() + two.len());
        // Down the second branch, of which the nodes 2 and 4 are a tree from now on.
        cache.keep(trunk, &[1], &[2, 4]);
        assert_eq!(cache.len(), trunk + 3);
        let [second, third, fourth] = [1, 2, 4].map(|node| tokens[trunk + node]);
        let parents = [None, Some(0), Some(0), None];
        let found = forward(model, &mut cache, &[7, 8], &parents, 0).expect("a tree");
        node(model, &found, 0, &[before, &[second, third, 7]].concat());
        node(model, &found, 1, &[before, &[second, 8]].concat());
        cache.keep(trunk + 1, &[0, 1], &[]);
        let found = extend(model, &mut cache, &[9]);
        node(
            model,
            &found,
            0,
            &[before, &[second, third, fourth, 9]].concat(),
        );
    }
}

/// Neither tokens nor part of the tree.
pub fn nothing_follows_a_tree_but_the_choice_of_a_path<M: LanguageModel>(model: &mut M) {
    let mut cache = model.new_cache();
    forward(model, &mut cache, &text(9, 1), &TREE, 0).expect("a tree");
    is_refused(forward(model, &mut cache, &[1], &[], 0), &[3]);
    // A part of a tree is a tree still.
    cache.truncate(5);
    assert_eq!(cache.len(), 5);
    is_refused(forward(model, &mut cache, &[1], &[], 0), &[3]);
    cache.truncate(3);
    let misplaced = forward(model, &mut cache, &[1, 2], &[None, Some(1)], 0);
    is_refused(misplaced, &[1]);
    let too_many = forward(model, &mut cache, &[1, 2], &[None; 3], 0);
    is_refused(too_many, &[3, 2]);
    assert_eq!(cache.len(), 3);
    forward(model, &mut cache, &[1, 2, 3], &[None, None], 0).expect("a tree");
    cache.keep(4, &[], &[]);
    assert_eq!(cache.len(), 4);
    forward(model, &mut cache, &[1], &[], 0).expect("a chain");
}

/// Nodes side by side take room, and no positions.
pub fn the_context_bounds_the_depth_of_a_tree_not_its_nodes<M: LanguageModel>(
    model: &mut M,
    agree: Agree,
) {
    let (context_len, vocab_size) = (model.shape().context_len, model.shape().vocab_size);
    // The deepest node is the third.
    let trunk = context_len - 3;
    let tokens = text(trunk + TREE.len(), 7);
    let mut cache = model.new_cache();
    let (logits, _) = forward(model, &mut cache, &tokens, &TREE, 0).expect("a tree");
    assert_eq!(cache.len(), trunk + TREE.len());
    let expected = fresh(model, &path(&tokens, 4)).0;
    let deepest = &logits[(trunk + 4) * vocab_size..][..vocab_size];
    agree(
        deepest,
        &expected[(context_len - 1) * vocab_size..],
        "the deepest node",
    );
    let mut cache = model.new_cache();
    let refused = forward(
        model,
        &mut cache,
        &text(trunk + 1 + TREE.len(), 7),
        &TREE,
        0,
    );
    is_refused(refused, &[context_len + 1, context_len]);
}
