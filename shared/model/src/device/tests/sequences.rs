//! Chains: cut, cut back, in company.

use super::*;

#[test]
fn chunks_are_the_whole() {
    let mut model = model();
    let tokens = text(80, 1);
    let expected = fresh(&mut model, &tokens);
    for cut in [1, 7, 16, 33] {
        let mut cache = model.new_cache();
        let (mut logits, mut hidden) = (Vec::new(), Vec::new());
        for chunk in tokens.chunks(cut) {
            let rows = extend(&mut model, &mut cache, chunk);
            logits.extend(rows.0);
            hidden.extend(rows.1);
        }
        assert_near(&logits, &expected.0, &format!("chunks of {cut}"));
        assert_near(&hidden, &expected.1, &format!("chunks of {cut}"));
    }
}

#[test]
fn truncation_leaves_no_trace() {
    let mut model = model();
    let tokens = text(80, 2);
    let expected = fresh(&mut model, &tokens);
    for kept in [0, 1, 19, 63, 64, 65] {
        let mut cache = model.new_cache();
        extend(&mut model, &mut cache, &tokens[..kept.max(1)]);
        extend(&mut model, &mut cache, &text(30, 5));
        cache.truncate(kept);
        assert_eq!(cache.len(), kept);
        let found = extend(&mut model, &mut cache, &tokens[kept..]);
        assert_near(&found.0, &expected.0[kept * 101..], "logits");
        assert_near(&found.1, &expected.1[kept * 48..], "hidden states");
    }
}

/// (tokens already cached, tokens appended, first of them that is scored)
const SHAPES: [(usize, usize, usize); 9] = [
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

fn batch_is_each_alone(model: &mut DeviceModel) {
    let mut caches = Vec::new();
    let (mut logits, mut hidden) = (Vec::new(), Vec::new());
    let texts: Vec<_> = (0..).zip(SHAPES).map(|(i, s)| text(s.0 + s.1, i)).collect();
    for (tokens, (held, count, scored_from)) in texts.iter().zip(SHAPES) {
        let whole = fresh(model, tokens);
        logits.extend_from_slice(&whole.0[(held + scored_from) * 101..]);
        hidden.extend_from_slice(&whole.1[(held + scored_from) * 48..]);
        let mut cache = model.new_cache();
        if held > 0 {
            extend(model, &mut cache, &tokens[..held]);
        }
        assert_eq!(tokens.len(), held + count);
        caches.push(cache);
    }
    let mut batch: Vec<_> = caches
        .iter_mut()
        .zip(&texts)
        .zip(SHAPES)
        .map(|((cache, tokens), (held, _, scored_from))| Segment {
            cache,
            tokens: &tokens[held..],
            parents: &[],
            scored_from,
        })
        .collect();
    let mut rows = Rows {
        want_hidden: true,
        ..Rows::default()
    };
    model.forward(&mut batch, &mut rows).unwrap();
    let what = format!("{} scores at a time", model.max_scores);
    assert_near(&rows.logits, &logits, &what);
    assert_near(&rows.hidden, &hidden, &what);
    for (cache, tokens) in caches.iter().zip(&texts) {
        assert_eq!(cache.len(), tokens.len());
    }
}

#[test]
fn a_ragged_batch_is_each_sequence_alone() {
    batch_is_each_alone(&mut model());
}

/// Rows of one segment then attend a few at a time, and few segments together.
#[test]
fn so_it_is_where_scores_are_computed_in_pieces() {
    for max_scores in [1, 1_000, 5_000] {
        let mut model = model();
        model.max_scores = max_scores;
        batch_is_each_alone(&mut model);
    }
}

#[test]
fn nothing_scored_fetches_nothing() {
    let mut model = model();
    let mut cache = model.new_cache();
    let found = forward(&mut model, &mut cache, &text(5, 1), &[], 5).unwrap();
    assert_eq!((found, cache.len()), ((Vec::new(), Vec::new()), 5));
    model.forward(&mut [], &mut Rows::default()).unwrap();
}

#[test]
fn clones_go_their_own_ways() {
    let mut model = model();
    let tokens = text(30, 1);
    let expected = fresh(&mut model, &tokens);
    let mut cache = model.new_cache();
    extend(&mut model, &mut cache, &tokens[..20]);
    let mut other = cache.clone();
    extend(&mut model, &mut other, &text(10, 9));
    other.truncate(5);
    extend(&mut model, &mut other, &text(10, 8));
    let found = extend(&mut model, &mut cache, &tokens[20..]);
    assert_near(&found.0, &expected.0[20 * 101..], "logits");
}

#[test]
fn refused_forwards_leave_every_cache_alone() {
    trials::refused_forwards_leave_every_cache_alone(&mut model(), assert_near);
}

/// The sizes of the groups that a batch of `SHAPES` is computed in: (segments, rows, slots).
fn groups(max_scores: usize) -> Vec<(usize, usize, usize)> {
    let model = model();
    let tokens = text(90, 1);
    let mut caches: Vec<_> = SHAPES.iter().map(|_| model.new_cache()).collect();
    for (cache, (held, count, _)) in caches.iter_mut().zip(SHAPES) {
        cache.reserve(held + count).unwrap();
        cache.set_len(held, None);
    }
    let batch: Vec<_> = caches
        .iter_mut()
        .zip(SHAPES)
        .map(|(cache, (_, count, _))| Segment {
            cache,
            tokens: &tokens[..count],
            parents: &[],
            scored_from: 0,
        })
        .collect();
    let rows = BatchRows::read(&model.config, &batch).unwrap();
    let capacities: Vec<_> = batch.iter().map(|part| part.cache.capacity()).collect();
    AttentionPlan::new(&model.config, &rows, &capacities, max_scores, &model.device)
        .unwrap()
        .sizes()
        .collect()
}

#[test]
fn like_segments_are_computed_together_and_never_too_many() {
    let together = groups(MAX_SCORES);
    // 40 rows, 13 rows; 5, 6 and 7 rows on 25, 39 and 32 slots, of which the last two are padded to one
    // another; single rows on 1, 21, 41 and 71 slots.
    assert_eq!(together.len(), 9 - 1, "{together:?}");
    assert!(together.iter().any(|group| group.0 == 2), "{together:?}");
    for max_scores in [1, 1_000, 5_000] {
        for (segments, rows, slots) in groups(max_scores) {
            let scores = 6 * segments * rows * slots;
            let single = segments == 1 && rows == 1;
            assert!(single || scores <= max_scores, "{scores} of {max_scores}");
        }
    }
}

#[test]
fn pages_are_counted_once_and_given_back() {
    let mut model = model();
    let used = |model: &DeviceModel| model.memory().unwrap().used_pages;
    let mut cache = model.new_cache();
    assert_eq!((used(&model), cache.pages_for(60, 60)), (0, 1));
    extend(&mut model, &mut cache, &text(60, 1));
    assert_eq!((used(&model), cache.pages()), (1, 1));
    assert_eq!((cache.pages_for(4, 4), cache.pages_for(5, 5)), (0, 1));
    // Both on the same page, until one of them is written to.
    let mut other = cache.share(50).unwrap();
    assert_eq!((used(&model), other.len()), (1, 50));
    assert_eq!(other.pages_for(5, 5), 1);
    extend(&mut model, &mut other, &text(5, 2));
    assert_eq!(used(&model), 2);
    extend(&mut model, &mut other, &text(10, 3));
    assert_eq!((used(&model), other.pages()), (3, 2));
    drop(cache);
    assert_eq!(used(&model), 2);
    other.truncate(0);
    assert!(other.share(10).is_none());
    drop(other);
    assert_eq!(used(&model), 0);
}
