//! What an engine behind the port must do, tried on any of them.
//!
//! The models have at least 101 tokens and a context of at least 96. Where two ways lead to the same rows, the
//! caller says how much they must agree: in every bit, or within a tolerance.

mod chains;
mod refusals;
mod sharing;
mod trees;

use std::error::Error;

use speculation::TokenId;
use speculation::ports::{KvCache, LanguageModel, Rows, Segment};

pub use chains::{
    SEGMENTS, company_changes_nothing, cutting_into_forwards_changes_nothing,
    nothing_scored_gives_no_row, truncation_leaves_no_trace,
};
pub use refusals::refused_forwards_leave_every_cache_alone;
pub use sharing::{a_shared_beginning_is_a_sequence_of_its_own, memory_is_counted_and_given_back};
pub use trees::{
    PATHS, TREE, a_node_is_the_end_of_its_path, a_tree_that_grows_is_one_that_was_forwarded_whole,
    going_on_from_a_kept_path_is_a_fresh_forward, nothing_follows_a_tree_but_the_choice_of_a_path,
    path, the_context_bounds_the_depth_of_a_tree_not_its_nodes,
};

/// Logits and hidden states, `(rows, vocabulary)` and `(rows, hidden)`.
pub type Scored = (Vec<f32>, Vec<f32>);

/// Asserts that two ways to the same numbers agree as much as the model promises.
pub type Agree = fn(&[f32], &[f32], &str);

/// Tokens below this are used.
const VOCAB: u32 = 101;

/// The whole contract, on a model called `name`.
pub fn holds<M: LanguageModel>(model: &mut M, agree: Agree, name: &str) {
    refused_forwards_leave_every_cache_alone(model, agree);
    nothing_scored_gives_no_row(model);
    cutting_into_forwards_changes_nothing(model, agree, name);
    truncation_leaves_no_trace(model, &[0, 1, 19, 63, 64, 65], agree, name);
    a_shared_beginning_is_a_sequence_of_its_own(model, agree, name);
    if model.caps().trees {
        a_node_is_the_end_of_its_path(model, agree, name);
        going_on_from_a_kept_path_is_a_fresh_forward(model, [1, 12, 16, 17], agree, name);
        nothing_follows_a_tree_but_the_choice_of_a_path(model);
        the_context_bounds_the_depth_of_a_tree_not_its_nodes(model, agree);
        company_changes_nothing(model, agree, name);
    }
    if model.caps().growing_trees {
        a_tree_that_grows_is_one_that_was_forwarded_whole(model, [1, 12, 61], agree, name);
    }
    memory_is_counted_and_given_back(model);
}

/// `len` tokens, others for another `seed`.
pub fn text(len: usize, seed: u32) -> Vec<TokenId> {
    (0..len as u32)
        .map(|i| (i * 37 + seed * 11 + i * i) % VOCAB)
        .collect()
}

/// Forwards one segment; the rows from `scored_from` on.
///
/// # Errors
/// As [`LanguageModel::forward`].
pub fn forward<M: LanguageModel>(
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
pub fn extend<M: LanguageModel>(model: &mut M, cache: &mut M::Cache, tokens: &[TokenId]) -> Scored {
    forward(model, cache, tokens, &[], 0).expect("a forward")
}

/// Scores a whole sequence that nothing was known of.
pub fn fresh<M: LanguageModel>(model: &mut M, tokens: &[TokenId]) -> Scored {
    let mut cache = model.new_cache();
    extend(model, &mut cache, tokens)
}

/// Asserts that `found` agrees with the rows of `expected` from row `first` on.
fn agrees_from<M: LanguageModel>(
    model: &M,
    (found, expected): (&Scored, &Scored),
    first: usize,
    agree: Agree,
    what: &str,
) {
    let shape = model.shape();
    agree(&found.0, &expected.0[first * shape.vocab_size..], what);
    let hidden = expected.1.get(first * shape.hidden_size..);
    agree(&found.1, hidden.unwrap_or_default(), what);
}

/// A cache that holds `tokens`; none of them is allowed.
fn holding<M: LanguageModel>(model: &mut M, tokens: &[TokenId]) -> M::Cache {
    let mut cache = model.new_cache();
    if !tokens.is_empty() {
        extend(model, &mut cache, tokens);
    }
    assert_eq!(cache.len(), tokens.len());
    cache
}

/// Asserts that a forward was refused, in words that name these figures.
fn is_refused<T, E: Error>(refused: Result<T, E>, figures: &[usize]) {
    let Err(error) = refused else {
        panic!("not refused: {figures:?}");
    };
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(source) = cause {
        words = format!("{words}: {source}");
        cause = source.source();
    }
    let are_named = figures
        .iter()
        .all(|figure| words.contains(&figure.to_string()));
    assert!(are_named, "{words}, expected {figures:?}");
}
