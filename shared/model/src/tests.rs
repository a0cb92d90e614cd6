//! What every language model of this crate is tried with: texts, forwards, trees, refusals. The models have
//! `VOCAB` tokens, hidden states of `HIDDEN` numbers and a context of 96 tokens.

pub(crate) mod chains;

use speculation::{
    TokenId,
    draft_tree::BadTree,
    ports::{KvCache, LanguageModel, Rows, Segment},
};

use crate::{config::ModelConfig, forward_error::ForwardError};

pub(crate) use self::chains::{
    company_changes_nothing, cutting_into_forwards_changes_nothing, truncation_leaves_no_trace,
};

const VOCAB: usize = 101;
const HIDDEN: usize = 48;

/// Logits and hidden states.
pub(crate) type Scored = (Vec<f32>, Vec<f32>);

/// Asserts that two ways to the same numbers agree as much as the model promises.
pub(crate) type Agree = fn(&[f32], &[f32], &str);

pub(crate) fn text(len: usize, seed: u32) -> Vec<TokenId> {
    (0..len as u32)
        .map(|i| (i * 37 + seed * 11 + i * i) % VOCAB as u32)
        .collect()
}

/// Forwards one segment; the rows from `scored_from` on.
pub(crate) fn forward<M: LanguageModel>(
    model: &mut M,
    cache: &mut M::Cache,
    tokens: &[TokenId],
    parents: &[Option<u32>],
    scored_from: usize,
) -> Result<Scored, M::Error> {
    let mut rows = Rows {
        want_hidden: true,
        ..Rows::default()
    };
    let segment = Segment {
        cache,
        tokens,
        parents,
        scored_from,
    };
    model.forward(&mut [segment], &mut rows)?;
    Ok((rows.logits, rows.hidden))
}

/// Appends a chain and scores all of it.
pub(crate) fn extend<M: LanguageModel>(
    model: &mut M,
    cache: &mut M::Cache,
    tokens: &[TokenId],
) -> Scored {
    forward(model, cache, tokens, &[], 0).unwrap()
}

pub(crate) fn fresh<M: LanguageModel>(model: &mut M, tokens: &[TokenId]) -> Scored {
    let mut cache = model.new_cache();
    extend(model, &mut cache, tokens)
}

/// Two branches and a side shoot, in no tidy order: the paths 0, 1, 1-2, 0-3, 1-2-4, 0-5.
pub(crate) const TREE: [Option<u32>; 6] = [None, None, Some(1), Some(0), Some(2), Some(0)];
pub(crate) const PATHS: [&[u32]; 6] = [&[0], &[1], &[1, 2], &[0, 3], &[1, 2, 4], &[0, 5]];

/// The tokens that the node sees, of a tree at the end of `tokens`.
pub(crate) fn path(tokens: &[TokenId], node: usize) -> Vec<TokenId> {
    let (trunk, tree) = tokens.split_at(tokens.len() - TREE.len());
    let nodes = PATHS[node].iter().map(|&node| tree[node as usize]);
    trunk.iter().copied().chain(nodes).collect()
}

pub(crate) fn refused_forwards_leave_every_cache_alone<M>(model: &mut M, agree: Agree)
where
    M: LanguageModel<Error = ForwardError>,
{
    let (mut good, mut bad) = (model.new_cache(), model.new_cache());
    let expected = extend(model, &mut good, &text(8, 1)).0;
    let unknown = ForwardError::TokenOutOfRange {
        token: 101,
        vocab_size: 101,
    };
    let exceeded = ForwardError::ContextExceeded {
        tokens: 97,
        context_len: 96,
    };
    for (tokens, error) in [(vec![3, 101], unknown), (text(97, 1), exceeded)] {
        let parts = [(&mut good, &[1, 2][..]), (&mut bad, &tokens[..])];
        let mut batch = parts.map(|(cache, tokens)| Segment {
            cache,
            tokens,
            parents: &[],
            scored_from: 0,
        });
        assert_eq!(model.forward(&mut batch, &mut Rows::default()), Err(error));
        assert_eq!((good.len(), bad.len()), (8, 0));
    }
    good.truncate(7);
    let last = extend(model, &mut good, &text(8, 1)[7..]).0;
    agree(&last, &expected[7 * VOCAB..], "the last row");
}

pub(crate) fn going_on_from_a_kept_path_is_a_fresh_forward<M>(
    model: &mut M,
    trunks: impl IntoIterator<Item = usize>,
    agree: Agree,
    name: &str,
) where
    M: LanguageModel<Error = ForwardError>,
    M::Cache: Clone,
{
    for trunk in trunks {
        let (tokens, more) = (text(trunk + TREE.len(), 5), text(20, 6));
        for node in 0..TREE.len() {
            let mut cache = model.new_cache();
            forward(model, &mut cache, &tokens, &TREE, 0).unwrap();
            // A clone still holds the whole tree.
            let mut clone = cache.clone();
            for (cache, node) in [(&mut cache, node), (&mut clone, 5)] {
                cache.keep(trunk, PATHS[node]);
                let held = trunk + PATHS[node].len();
                assert_eq!(cache.len(), held);
                let whole = [&path(&tokens, node)[..], &more].concat();
                let expected = fresh(model, &whole);
                let found = extend(model, cache, &more);
                let what = format!("{name}, node {node} after {trunk}");
                agree(&found.0, &expected.0[held * VOCAB..], &what);
                agree(&found.1, &expected.1[held * HIDDEN..], &what);
            }
        }
    }
}

pub(crate) fn nothing_follows_a_tree_but_the_choice_of_a_path<M>(model: &mut M)
where
    M: LanguageModel<Error = ForwardError>,
{
    let mut cache = model.new_cache();
    forward(model, &mut cache, &text(9, 1), &TREE, 0).unwrap();
    let refused = Err(ForwardError::TreeInCache { from: 3 });
    assert_eq!(forward(model, &mut cache, &[1], &[], 0), refused);
    // A part of a tree is a tree still.
    cache.truncate(5);
    assert_eq!(forward(model, &mut cache, &[1], &[], 0), refused);
    cache.truncate(3);
    let misplaced = forward(model, &mut cache, &[1, 2], &[None, Some(1)], 0);
    assert_eq!(misplaced, Err(BadTree::Order(1).into()));
    forward(model, &mut cache, &[1, 2, 3], &[None, None], 0).unwrap();
    cache.keep(4, &[]);
    assert_eq!(cache.len(), 4);
    forward(model, &mut cache, &[1], &[], 0).unwrap();
}

/// Nodes side by side take slots, and no positions.
pub(crate) fn the_context_bounds_the_depth_of_a_tree_not_its_nodes<M>(model: &mut M, agree: Agree)
where
    M: LanguageModel<Error = ForwardError>,
{
    let tokens = text(93 + TREE.len(), 7);
    let mut cache = model.new_cache();
    let (logits, _) = forward(model, &mut cache, &tokens, &TREE, 0).unwrap();
    assert_eq!(cache.len(), 99);
    let expected = fresh(model, &path(&tokens, 4)).0;
    let deepest = &logits[97 * VOCAB..][..VOCAB];
    agree(deepest, &expected[95 * VOCAB..], "the deepest node");
    let exceeded = ForwardError::ContextExceeded {
        tokens: 97,
        context_len: 96,
    };
    let mut cache = model.new_cache();
    let refused = forward(model, &mut cache, &text(94 + TREE.len(), 7), &TREE, 0);
    assert_eq!(refused, Err(exceeded));
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
