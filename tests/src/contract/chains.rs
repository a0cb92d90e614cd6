//! Chains: cut into forwards, cut back, in company.

use speculation::ports::{KvCache, LanguageModel, Rows, Segment};

use super::{Agree, TREE, agrees_from, extend, forward, fresh, holding, text};

/// However a sequence is cut into forwards.
pub fn cutting_into_forwards_changes_nothing<M: LanguageModel>(
    model: &mut M,
    agree: Agree,
    name: &str,
) {
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
        agrees_from(model, (&(logits, hidden), &expected), 0, agree, &what);
    }
}

/// Truncates sequences to each of `kept`.
pub fn truncation_leaves_no_trace<M: LanguageModel>(
    model: &mut M,
    kept: &[usize],
    agree: Agree,
    name: &str,
) {
    let tokens = text(80, 2);
    let expected = fresh(model, &tokens);
    for &kept in kept {
        let mut cache = model.new_cache();
        extend(model, &mut cache, &tokens[..kept.max(1)]);
        extend(model, &mut cache, &text(30, 5));
        cache.truncate(kept);
        assert_eq!(cache.len(), kept);
        // There is no more to forget.
        cache.truncate(kept + 1);
        assert_eq!(cache.len(), kept);
        let found = extend(model, &mut cache, &tokens[kept..]);
        let what = format!("{name}, truncated to {kept}");
        agrees_from(model, (&found, &expected), kept, agree, &what);
    }
}

/// Forwards that score no token, and forwards without a token.
pub fn nothing_scored_gives_no_row<M: LanguageModel>(model: &mut M) {
    let mut cache = model.new_cache();
    let found = forward(model, &mut cache, &text(5, 1), &[], 5).expect("a forward");
    assert_eq!((found, cache.len()), ((Vec::new(), Vec::new()), 5));
    let mut rows = Rows::default();
    model.forward(&mut [], &mut rows).expect("an empty forward");
    assert!(rows.logits.is_empty());
}

/// Segments: tokens already cached, tokens appended, the first of them that is scored.
pub const SEGMENTS: [(usize, usize, usize); 9] = [
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

/// Whatever else is in the batch. One segment ends in a tree.
pub fn company_changes_nothing<M: LanguageModel>(model: &mut M, agree: Agree, name: &str) {
    let segments = SEGMENTS.map(|(held, count, scored_from)| {
        let parents = if count == 7 { &TREE[..] } else { &[] };
        (text(held + count, held as u32), held, parents, scored_from)
    });
    let (mut logits, mut hidden) = (Vec::new(), Vec::new());
    for (tokens, held, parents, scored_from) in &segments {
        let mut cache = holding(model, &tokens[..*held]);
        let rows = forward(model, &mut cache, &tokens[*held..], parents, *scored_from);
        let rows = rows.expect("a forward");
        logits.extend(rows.0);
        hidden.extend(rows.1);
    }
    let mut caches = segments
        .each_ref()
        .map(|own| holding(model, &own.0[..own.1]));
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
    model.forward(&mut batch, &mut rows).expect("a forward");
    agree(&rows.logits, &logits, name);
    agree(&rows.hidden, &hidden, name);
    for (cache, (tokens, ..)) in caches.iter().zip(&segments) {
        assert_eq!(cache.len(), tokens.len());
    }
}
