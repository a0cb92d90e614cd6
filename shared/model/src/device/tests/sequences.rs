//! Chains: cut, cut back, in company.

use super::*;
use crate::tests::chains::SEGMENTS;

#[test]
fn neither_cuts_nor_what_was_there_change_a_number() {
    trials::cutting_into_forwards_changes_nothing(&mut model(), assert_near, "f32");
    let kept = [0, 1, 19, 63, 64, 65];
    trials::truncation_leaves_no_trace(&mut model(), &kept, assert_near, "f32");
}

/// With few scores at a time the rows of one segment attend a few at a time, and few segments together.
#[test]
fn a_ragged_batch_is_each_sequence_alone() {
    for max_scores in [MAX_SCORES, 1, 1_000, 5_000] {
        let mut model = model();
        model.max_scores = max_scores;
        let what = format!("{max_scores} scores at a time");
        trials::company_changes_nothing(&mut model, assert_near, &what);
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
fn refused_forwards_leave_every_cache_alone() {
    trials::refused_forwards_leave_every_cache_alone(&mut model(), assert_near);
}

/// The sizes of the groups that a batch of `SEGMENTS` is computed in: (segments, rows, slots).
fn groups(max_scores: usize) -> Vec<(usize, usize, usize)> {
    let model = model();
    let tokens = text(90, 1);
    let mut caches: Vec<_> = SEGMENTS.iter().map(|_| model.new_cache()).collect();
    for (cache, (held, count, _)) in caches.iter_mut().zip(SEGMENTS) {
        cache.reserve(held + count).unwrap();
        cache.set_len(held, None);
    }
    let batch: Vec<_> = caches
        .iter_mut()
        .zip(SEGMENTS)
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
