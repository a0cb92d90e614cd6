//! Memory: shared, counted, given back.

use speculation::ports::{KvCache, LanguageModel};

use super::{Agree, TREE, agrees_from, extend, forward, fresh, holding, text};

/// A cache made of another one's beginning goes its own way, whatever becomes of the other.
pub fn a_shared_beginning_is_a_sequence_of_its_own<M: LanguageModel>(
    model: &mut M,
    agree: Agree,
    name: &str,
) {
    let tokens = text(80, 3);
    let expected = fresh(model, &tokens);
    let mut cache = holding(model, &tokens[..70]);
    assert!(cache.share(0).is_none(), "no token is shared");
    let Some(mut shared) = cache.share(66) else {
        return;
    };
    let held = shared.len();
    assert!((1..=66).contains(&held), "{held} tokens are shared");
    // They diverge, then go the same way.
    extend(model, &mut shared, &text(9, 8));
    let found = extend(model, &mut cache, &tokens[70..]);
    agrees_from(
        model,
        (&found, &expected),
        70,
        agree,
        &format!("{name}, that was shared"),
    );
    cache.truncate(held - 1);
    drop(cache);
    shared.truncate(held);
    let found = extend(model, &mut shared, &tokens[held..]);
    agrees_from(
        model,
        (&found, &expected),
        held,
        agree,
        &format!("{name}, that shares"),
    );
}

/// What caches hold is counted while they do, trees included, if it is counted at all.
pub fn memory_is_counted_and_given_back<M: LanguageModel>(model: &mut M) {
    let used = |model: &M| model.memory().map(|memory| memory.used_pages);
    if used(model).is_none() {
        return;
    }
    assert_eq!(used(model), Some(0), "pages that no cache holds");
    let mut caches = [5, 70].map(|len| holding(model, &text(len, 1)));
    if model.caps().trees {
        let [cache, _] = &mut caches;
        forward(model, cache, &text(TREE.len(), 1), &TREE, 0).expect("a tree");
    }
    let pages = caches.iter().map(KvCache::pages).sum();
    assert_eq!(used(model), Some(pages));
    let [mut one, other] = caches;
    one.truncate(5);
    let needed = one.pages_for(60, 60);
    let before = one.pages();
    extend(model, &mut one, &text(60, 1));
    assert!(one.pages() <= before + needed, "{} pages", one.pages());
    one.truncate(0);
    assert_eq!(used(model), Some(other.pages()));
    drop(other);
    assert_eq!(used(model), Some(0));
}
