//! Models on engine candle return candle-transformers' own logits up to rounding, truncation removes tokens from a
//! sequence, and a model that candle would compute otherwise than it was trained is refused.

mod refusals;

use outrider_tests::candle::{DRAFTERS, FAMILIES, config};
use speculation::TokenId;
use speculation::ports::KvCache;

use super::*;
use crate::tests::{extend, forward, fresh, holds, text};

/// Tokens of each vocabulary.
const VOCAB: usize = 101;

/// Targets and drafters.
fn every() -> impl Iterator<Item = &'static str> {
    FAMILIES.into_iter().chain(DRAFTERS)
}

/// The random model of a `config.json`.
fn model(config: &str) -> CandleModel {
    let config = CandleConfig::from_json(config.as_bytes()).unwrap();
    let weights = Weights::from_bytes(random(&config, 7).unwrap()).unwrap();
    CandleModel::check(&config, &weights).unwrap();
    CandleModel::load(&config, &weights, NumberFormat::F32, ComputeDevice::Cpu).unwrap()
}

fn near(found: &[f32], expected: &[f32], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let pairs = found.iter().zip(expected);
    let differences = pairs.map(|(found, expected)| (found - expected).abs());
    let largest = differences.fold(0.0, f32::max);
    assert!(largest <= 1e-4, "{what}: {largest}");
}

#[test]
fn the_contract_holds_within_rounding() {
    for family in every() {
        holds(&mut model(&config(family, VOCAB)), near, family);
    }
}

/// As drafters do: a block is drafted token by token, and only its beginning stays. Long enough for the memory of
/// sequences in place to grow within a block.
#[test]
fn blocks_are_forgotten_wherever_they_end() {
    for family in every() {
        let mut model = model(&config(family, VOCAB));
        let tokens = text(560, 3);
        let expected = fresh(&mut model, &tokens);
        let mut cache = model.new_cache();
        extend(&mut model, &mut cache, &tokens[..480]);
        let (mut held, mut kept) = (480, 0);
        while held < 552 {
            for &draft in &tokens[held..held + kept] {
                extend(&mut model, &mut cache, &[draft]);
            }
            for draft in kept as TokenId..7 {
                extend(&mut model, &mut cache, &[draft]);
            }
            cache.truncate(held + kept);
            assert_eq!(cache.len(), held + kept, "{family}: {held}");
            held += kept;
            let (found, hidden) = extend(&mut model, &mut cache, &tokens[held..=held]);
            let what = format!("{family}, row {held}");
            near(&found, &expected.0[held * VOCAB..][..VOCAB], &what);
            let width = model.shape().hidden_size;
            near(&hidden, &expected.1[held * width..][..width], &what);
            held += 1;
            kept = (kept + 3) % 7;
        }
    }
}

/// Sequences of one model, going on by turns, and clones of the model.
#[test]
fn sequences_know_nothing_of_each_other() {
    for family in every() {
        let mut model = model(&config(family, VOCAB));
        let mut clone = model.clone();
        let texts = [1, 2, 3].map(|seed| text(60, seed));
        let mut caches = [model.new_cache(), model.new_cache(), clone.new_cache()];
        let mut found = [const { Vec::new() }; 3];
        for at in (0..60).step_by(6) {
            for (index, cache) in caches.iter_mut().enumerate() {
                let own = if index == 2 { &mut clone } else { &mut model };
                found[index].extend(extend(own, cache, &texts[index][at..at + 6]).0);
                // One forgets something that the others never had.
                extend(own, cache, &[5, 6, 7]);
                cache.truncate(at + 6);
            }
        }
        for (found, text) in found.iter().zip(&texts) {
            near(found, &fresh(&mut model, text).0, family);
        }
    }
}

/// Further back than copies reach a sequence is forgotten as a whole, and that is told.
#[test]
fn what_is_too_far_back_is_forgotten_whole() {
    let mut model = model(&config("qwen3_moe", VOCAB));
    let tokens = text(80, 1);
    let mut cache = model.new_cache();
    for token in &tokens {
        extend(&mut model, &mut cache, &[*token]);
    }
    cache.truncate(64);
    assert_eq!(cache.len(), 64);
    cache.truncate(20);
    assert_eq!((cache.len(), cache.pages()), (0, 0));
    let (found, _) = extend(&mut model, &mut cache, &tokens);
    near(&found, &fresh(&mut model, &tokens).0, "from nothing");
}

/// A drafter gives no hidden states, and says so by the width of none.
#[test]
fn what_gives_the_last_row_only_is_no_target() {
    for family in every() {
        let model = model(&config(family, VOCAB));
        let refused = model.config().check_target().err();
        let is_drafter = DRAFTERS.contains(&family);
        assert_eq!(refused.map(|it| it.family), is_drafter.then_some(family));
        assert_eq!(model.shape().hidden_size == 0, is_drafter, "{family}");
    }
}

#[test]
fn trees_are_refused_by_name() {
    let mut model = model(&config("smollm3", VOCAB));
    let mut cache = model.new_cache();
    let refused = forward(&mut model, &mut cache, &[1, 2], &[None, None], 0).unwrap_err();
    assert_eq!(refused, ForwardError::NoTrees);
    assert!(cache.is_empty());
    // A chain may be written as a tree.
    let chain = [None, Some(0), Some(1)];
    let found = forward(&mut model, &mut cache, &[1, 2, 3, 4], &chain, 1).unwrap();
    near(
        &found.0,
        &fresh(&mut model, &[1, 2, 3, 4]).0[VOCAB..],
        "a chain",
    );
    cache.keep(1, &[0, 1], &[]);
    assert_eq!(cache.len(), 3);
}

/// Of 6 experts a token is sent to 2, in one of two layers.
#[test]
fn experts_that_a_token_is_not_sent_to_are_not_read() {
    let attention = 64 * (2 * 64 + 2 * 32);
    let experts = 6 * 64 + 2 * 3 * 64 * 24;
    let expected = 2 * attention + experts + 3 * 64 * 96 + VOCAB * 64;
    let found = model(&config("qwen3_moe", VOCAB)).weights_per_token();
    assert_eq!(found, expected as u64);
}

#[test]
fn the_version_is_that_of_the_lock_file() {
    let lock = include_str!("../../../../Cargo.lock");
    let entry = format!("name = \"candle-transformers\"\nversion = \"{VERSION}\"\n");
    assert!(lock.contains(&entry));
}
