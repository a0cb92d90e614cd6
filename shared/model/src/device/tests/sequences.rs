//! Chains: cut, cut back, in company.

use super::*;
use outrider_tests::contract::SEGMENTS;

/// With few scores at a time the rows of one segment attend a few at a time, and few segments together.
#[test]
fn the_contract_holds_within_rounding() {
    for max_scores in [MAX_SCORES, 1, 1_000, 5_000] {
        let mut model = model();
        model.max_scores = max_scores;
        let name = format!("{max_scores} scores at a time");
        trials::holds(&mut model, assert_near, &name);
    }
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
    AttentionPlan::new(
        &model.config,
        &rows,
        &rooms(&batch),
        max_scores,
        &model.device,
    )
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
    assert_eq!((used(&model), cache.pages_for(64, 64)), (0, 1));
    extend(&mut model, &mut cache, &text(64, 1));
    assert_eq!((used(&model), cache.pages()), (1, 1));
    assert_eq!((cache.pages_for(64, 64), cache.pages_for(65, 65)), (1, 2));
    // Both on the same page, until one of them is written to.
    let mut other = cache.share(70).unwrap();
    assert_eq!((used(&model), other.len()), (1, 64));
    assert_eq!(other.pages_for(5, 5), 2);
    extend(&mut model, &mut other, &text(5, 2));
    assert_eq!((used(&model), other.pages()), (3, 2));
    drop(cache);
    assert_eq!(used(&model), 2);
    // Back to nothing it holds nothing, and can begin anew.
    other.truncate(0);
    assert_eq!(
        (used(&model), other.pages(), other.pages_for(5, 5)),
        (0, 0, 1)
    );
    assert!(other.share(10).is_none());
    extend(&mut model, &mut other, &text(5, 2));
    assert_eq!(used(&model), 1);
    other.keep(0, &[], &[]);
    assert_eq!(used(&model), 0);
}

/// Of what it was made from, a beginning holds its own whole pages alone.
#[test]
fn a_beginning_takes_no_more_than_its_pages() {
    let mut model = model();
    let used = |model: &DeviceModel| model.memory().unwrap().used_pages;
    let mut cache = model.new_cache();
    extend(&mut model, &mut cache, &text(90, 1));
    assert_eq!((used(&model), cache.pages()), (2, 2));
    assert!(cache.share(63).is_none());
    let mut shared = cache.share(90).unwrap();
    assert_eq!((shared.len(), shared.pages(), used(&model)), (64, 1, 3));
    drop(cache);
    assert_eq!(used(&model), 1);
    // A sequence that goes on from it needs room for what it is to hold, whatever stood there before.
    assert_eq!(shared.pages_for(10, 10), 1);
    let found = forward(&mut model, &mut shared, &text(90, 1)[64..74], &[], 0).unwrap();
    let whole = fresh(&mut model, &text(90, 1)[..74]).0;
    assert_near(&found.0, &whole[64 * 101..], "from a beginning");
    assert_eq!(shared.pages(), 2);
}

/// What a truncation left over may be no number, which a weight of 0 does not keep away.
#[test]
fn what_was_left_over_reaches_no_row_of_the_company() {
    let mut model = model();
    let mut caches = [model.new_cache(), model.new_cache()];
    let lengths = [20, 25];
    let mut expected = Vec::new();
    for (cache, len) in caches.iter_mut().zip(lengths) {
        let tokens = text(len + 1, len as u32);
        extend(&mut model, cache, &tokens[..len]);
        expected.extend_from_slice(&fresh(&mut model, &tokens).0[len * 101..]);
        // As forwarding more and truncating does it, or a forward that failed.
        cache.reserve(len + 9).unwrap();
        let nan = Tensor::full(f32::NAN, (8, 2, 10), &model.device).unwrap();
        for layer in 0..2 {
            cache.layer(layer).write(len + 1, &nan, &nan).unwrap();
        }
    }
    let tokens = lengths.map(|len| text(len + 1, len as u32));
    let mut batch: Vec<_> = caches
        .iter_mut()
        .zip(&tokens)
        .map(|(cache, tokens)| Segment {
            cache,
            tokens: &tokens[tokens.len() - 1..],
            parents: &[],
            scored_from: 0,
        })
        .collect();
    let mut rows = Rows::default();
    model.forward(&mut batch, &mut rows).unwrap();
    assert_near(&rows.logits, &expected, "beside what was left over");
}
