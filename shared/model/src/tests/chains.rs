//! Chains: cut into forwards, cut back, in company.

use speculation::{
    TokenId,
    ports::{KvCache, LanguageModel, Rows, Segment},
};

use super::{Agree, HIDDEN, TREE, VOCAB, extend, forward, fresh, text};
use crate::forward_error::ForwardError;

pub(crate) fn cutting_into_forwards_changes_nothing<M>(model: &mut M, agree: Agree, name: &str)
where
    M: LanguageModel<Error = ForwardError>,
{
    let tokens = text(80, 1);
    let expected = fresh(model, &tokens);
    for cut in [1, 7, 16, 33] {
        let mut cache = model.new_cache();
        let (mut logits, mut hidden) = (Vec::new(), Vec::new());
        for chunk in tokens.chunks(cut) {
            let rows = extend(model, &mut cache, chunk);
            logits.extend(rows.0);
            hidden.extend(rows.1);
        }
        let what = format!("{name}, chunks of {cut}");
        agree(&logits, &expected.0, &what);
        agree(&hidden, &expected.1, &what);
    }
}

/// Truncates sequences to each of `kept`.
pub(crate) fn truncation_leaves_no_trace<M>(model: &mut M, kept: &[usize], agree: Agree, name: &str)
where
    M: LanguageModel<Error = ForwardError>,
{
    let tokens = text(80, 2);
    let expected = fresh(model, &tokens);
    for &kept in kept {
        let mut cache = model.new_cache();
        extend(model, &mut cache, &tokens[..kept.max(1)]);
        extend(model, &mut cache, &text(30, 5));
        cache.truncate(kept);
        assert_eq!(cache.len(), kept);
        let found = extend(model, &mut cache, &tokens[kept..]);
        let what = format!("{name}, truncated to {kept}");
        agree(&found.0, &expected.0[kept * VOCAB..], &what);
        agree(&found.1, &expected.1[kept * HIDDEN..], &what);
    }
}

/// Segments: tokens already cached, tokens appended, the first of them that is scored.
pub(crate) const SEGMENTS: [(usize, usize, usize); 9] = [
    (0, 1, 0),
    (20, 1, 0),
    (70, 1, 0),
    (40, 1, 1),
    (0, 40, 39),
    (20, 5, 0),
    (33, 6, 2),
    (25, 7, 0),
    (0, 13, 13),
];

/// One of them ends in a tree.
pub(crate) fn company_changes_nothing<M>(model: &mut M, agree: Agree, name: &str)
where
    M: LanguageModel<Error = ForwardError>,
{
    let segments = SEGMENTS.map(|(held, count, scored_from)| {
        let parents = if count == 7 { &TREE[..] } else { &[] };
        (text(held + count, held as u32), held, parents, scored_from)
    });
    let mut started = |tokens: &[TokenId]| {
        let mut cache = model.new_cache();
        if !tokens.is_empty() {
            extend(model, &mut cache, tokens);
        }
        cache
    };
    let mut caches = segments.each_ref().map(|own| started(&own.0[..own.1]));
    let alone = segments.each_ref().map(|own| started(&own.0[..own.1]));
    let (mut logits, mut hidden) = (Vec::new(), Vec::new());
    for ((tokens, held, parents, scored_from), mut cache) in segments.iter().zip(alone) {
        let new = &tokens[*held..];
        let rows = forward(model, &mut cache, new, parents, *scored_from).unwrap();
        logits.extend(rows.0);
        hidden.extend(rows.1);
    }
    let batch = caches.iter_mut().zip(&segments);
    let mut batch: Vec<_> = batch
        .map(|(cache, (tokens, held, parents, scored_from))| Segment {
            cache,
            tokens: &tokens[*held..],
            parents,
            scored_from: *scored_from,
        })
        .collect();
    let mut rows = Rows {
        want_hidden: true,
        ..Rows::default()
    };
    model.forward(&mut batch, &mut rows).unwrap();
    agree(&rows.logits, &logits, name);
    agree(&rows.hidden, &hidden, name);
    for (cache, (tokens, ..)) in caches.iter().zip(&segments) {
        assert_eq!(cache.len(), tokens.len());
    }
}
