//! T5, original and v1.1: the references' logits and greedy outputs, and the promises about bits with a
//! source beside the tokens.

mod exact;

use std::fs;

use model::{Model, SequenceCache, WeightFormat};
use safetensors::SafeTensors;
use speculation::{
    TokenId,
    ports::{KvCache, LanguageModel, Rows, Segment},
};

use super::{TOLERANCE, argmax, extend, folder, load};
use exact::Exact;

const MODELS: [&str; 2] = ["t5-original", "t5-v1_1"];
const VOCAB: usize = 384;

/// What the reference computed for one source.
struct Golden {
    source: Vec<TokenId>,
    /// The decoder's tokens, start token first.
    tokens: Vec<TokenId>,
    /// `(positions, vocab)`.
    logits: Vec<f32>,
    /// The greedy output, without the start token.
    greedy: Vec<TokenId>,
}

fn golden(name: &str) -> [Golden; 2] {
    let bytes = fs::read(folder(name).join("golden.safetensors")).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let ids = |key: &str, row: usize| -> Vec<TokenId> {
        let tensor = file.tensor(key).unwrap();
        let (numbers, _) = tensor.data().as_chunks::<8>();
        let len = tensor.shape()[1];
        let numbers = numbers[row * len..][..len].iter();
        numbers.map(|n| i64::from_le_bytes(*n) as TokenId).collect()
    };
    let logits = file.tensor("logits").unwrap();
    let (numbers, _) = logits.data().as_chunks::<4>();
    let values: Vec<_> = numbers.iter().map(|n| f32::from_le_bytes(*n)).collect();
    [0, 1].map(|row| Golden {
        source: ids("input_ids", row),
        tokens: ids("decoder_input_ids", row),
        logits: values.chunks(values.len() / 2).nth(row).unwrap().to_vec(),
        greedy: ids("greedy", row),
    })
}

/// A sequence that writes from `source`.
fn sequence(model: &mut Model, source: &[TokenId]) -> SequenceCache {
    let mut cache = model.new_cache();
    model.encode(&mut cache, source).unwrap();
    cache
}

/// Logits and hidden states of all `tokens`, written from `source`.
fn fresh(model: &mut Model, source: &[TokenId], tokens: &[TokenId]) -> (Vec<f32>, Vec<f32>) {
    let mut cache = sequence(model, source);
    extend(model, &mut cache, tokens)
}

/// Calls `check` for every model, format and golden row.
fn for_each(mut check: impl FnMut(&str, &mut Model, &Golden)) {
    for name in MODELS {
        for format in WeightFormat::ALL {
            let mut model = load(name, format);
            for row in golden(name) {
                check(&format!("{name} in {format}"), &mut model, &row);
            }
        }
    }
}

/// Tokens unlike `tokens` at every position.
fn others(tokens: &[TokenId]) -> Vec<TokenId> {
    tokens.iter().map(|token| (token + 7) % 384).collect()
}

/// Where rounding moves a logit by less than [`TOLERANCE`], that is the bound; elsewhere some times what it
/// moves it by: the reference's own single precision is as far from the exact logits.
#[test]
fn logits_are_the_references() {
    for name in MODELS {
        let mut model = load(name, WeightFormat::F32);
        let exact = Exact::open(name);
        let (mut worst, mut reference, mut strict) = (0.0_f64, 0.0_f64, 0);
        for row in golden(name) {
            let (logits, hidden) = fresh(&mut model, &row.source, &row.tokens);
            assert_eq!(logits.len(), row.logits.len());
            assert_eq!(hidden.len(), row.tokens.len() * model.shape().hidden_size);
            let (exact, rounding) = exact.logits(&row.source, &row.tokens);
            let rows = logits.chunks(VOCAB).zip(row.logits.chunks(VOCAB));
            for (position, (found, golden)) in rows.enumerate() {
                let tolerance = f64::from(TOLERANCE).max(ROUNDINGS * rounding[position]);
                strict += usize::from(tolerance == f64::from(TOLERANCE));
                let to_golden = distance(found, golden.iter().copied().map(f64::from));
                let to_exact = distance(found, exact[position].iter().copied());
                let of_golden = distance(golden, exact[position].iter().copied());
                worst = worst.max(to_golden);
                reference = reference.max(of_golden);
                let what = format!("{name}, position {position}, within {tolerance:.1e}");
                assert!(
                    of_golden <= tolerance,
                    "{what}: the reference is {of_golden:.1e} off"
                );
                assert!(
                    to_exact <= tolerance,
                    "{what}: {to_exact:.1e} from the exact logits"
                );
                assert!(
                    to_golden <= tolerance,
                    "{what}: {to_golden:.1e} from the reference"
                );
            }
        }
        println!(
            "{name}: at most {worst:.1e} from the reference, which is {reference:.1e} from exact logits; \
             {strict} of 48 positions within {TOLERANCE:.0e}"
        );
    }
}

/// How many times what rounding did in a few draws a logit may be off.
const ROUNDINGS: f64 = 2.0;

fn distance(found: &[f32], expected: impl Iterator<Item = f64>) -> f64 {
    let differences = found
        .iter()
        .zip(expected)
        .map(|(a, b)| (f64::from(*a) - b).abs());
    differences.fold(0.0, f64::max)
}

#[test]
fn greedy_outputs_are_the_references() {
    for name in MODELS {
        let mut model = load(name, WeightFormat::F32);
        for row in golden(name) {
            let encoder = model.config().unwrap().encoder.unwrap();
            let mut cache = sequence(&mut model, &row.source);
            let mut last = encoder.decoder_start_token_id;
            let mut found = Vec::new();
            while found.len() < row.greedy.len() {
                let (logits, _) = extend(&mut model, &mut cache, &[last]);
                last = argmax(&logits);
                found.push(last);
            }
            assert_eq!(found, row.greedy, "{name}");
        }
    }
}

/// Mean divergences in nats, about four times and twice what they are. The v1.1 model magnifies rounding more
/// than a thousandfold: its weights alone, rounded to 8 bits and evaluated in double precision, are 1.2 nats
/// away. A mistake is farther.
const KL_LIMITS: [f64; 2] = [0.02, 2.5];

/// The rounding of weights and activations to 8 bits, as the divergence of the distributions it leads to.
#[test]
fn quantised_distributions_are_near_those_in_full_precision() {
    for (name, limit) in MODELS.into_iter().zip(KL_LIMITS) {
        let mut exact = load(name, WeightFormat::F32);
        let mut quantised = load(name, WeightFormat::Q8_0);
        let (mut sum, mut count) = (0.0, 0);
        for row in golden(name) {
            let (p, _) = fresh(&mut exact, &row.source, &row.tokens);
            let (q, _) = fresh(&mut quantised, &row.source, &row.tokens);
            for (p, q) in p.chunks(VOCAB).zip(q.chunks(VOCAB)) {
                sum += divergence(p, q);
                count += 1;
            }
        }
        let mean = sum / f64::from(count);
        println!("{name}: mean KL(f32 || q8_0) over {count} positions is {mean:.2e} nats");
        assert!(mean > 0.0 && mean < limit, "{name}: {mean} nats");
    }
}

/// The divergence of the distributions of two rows of logits, in nats.
fn divergence(p: &[f32], q: &[f32]) -> f64 {
    let probs = |logits: &[f32]| -> Vec<f64> {
        let largest = logits.iter().fold(f32::MIN, |a, b| a.max(*b));
        let weights = logits.iter().map(|x| f64::from(x - largest));
        let normaliser = weights.clone().map(f64::exp).sum::<f64>().ln();
        weights.map(|weight| weight - normaliser).collect()
    };
    let terms = probs(p).into_iter().zip(probs(q));
    terms.map(|(p, q)| p.exp() * (p - q)).sum()
}

#[test]
fn truncation_and_forward_is_a_fresh_forward() {
    for_each(|what, model, row| {
        let expected = fresh(model, &row.source, &row.tokens);
        let width = model.shape().hidden_size;
        for keep in [0, 1, 15, 16, 23] {
            let mut cache = sequence(model, &row.source);
            extend(model, &mut cache, &row.tokens[..keep]);
            extend(model, &mut cache, &others(&row.tokens));
            cache.truncate(keep);
            let found = extend(model, &mut cache, &row.tokens[keep..]);
            assert!(found.0 == expected.0[keep * VOCAB..], "{what}, {keep} kept");
            assert!(found.1 == expected.1[keep * width..], "{what}, {keep} kept");
        }
    });
}

#[test]
fn chunks_are_the_whole() {
    for_each(|what, model, row| {
        let expected = fresh(model, &row.source, &row.tokens);
        for size in [1, 2, 5, 16, 23] {
            let mut cache = sequence(model, &row.source);
            let (mut logits, mut hidden) = (Vec::new(), Vec::new());
            for chunk in row.tokens.chunks(size) {
                let rows = extend(model, &mut cache, chunk);
                logits.extend(rows.0);
                hidden.extend(rows.1);
            }
            assert!((logits, hidden) == expected, "{what}, chunks of {size}");
        }
    });
}

#[test]
fn another_source_forgets_the_tokens_and_leaves_no_trace() {
    for_each(|what, model, row| {
        let expected = fresh(model, &row.source, &row.tokens);
        let mut cache = sequence(model, &row.source[3..]);
        let other = extend(model, &mut cache, &row.tokens);
        assert!(other != expected, "{what}: the source is not read");
        model.encode(&mut cache, &row.source).unwrap();
        assert_eq!(cache.len(), 0, "{what}");
        let found = extend(model, &mut cache, &row.tokens);
        assert!(found == expected, "{what}");
    });
}

#[test]
fn a_batch_is_each_sequence_alone() {
    for_each(|what, model, row| {
        // (tokens of the source, tokens already cached, tokens appended, first of them that is scored)
        let shapes = [
            (40, 0, 24, 23),
            (1, 20, 4, 0),
            (17, 7, 1, 0),
            (16, 0, 13, 13),
            (33, 18, 6, 2),
        ];
        let mut caches = Vec::new();
        let mut expected = Vec::new();
        for (source, held, count, scored_from) in shapes {
            let mut cache = sequence(model, &row.source[40 - source..]);
            if held > 0 {
                extend(model, &mut cache, &row.tokens[..held]);
            }
            let mut alone = sequence(model, &row.source[40 - source..]);
            if held > 0 {
                extend(model, &mut alone, &row.tokens[..held]);
            }
            let (logits, _) = extend(model, &mut alone, &row.tokens[held..held + count]);
            expected.extend_from_slice(&logits[scored_from * VOCAB..]);
            caches.push(cache);
        }
        let mut batch: Vec<_> = caches
            .iter_mut()
            .zip(shapes)
            .map(|(cache, (_, held, count, scored_from))| Segment {
                cache,
                tokens: &row.tokens[held..held + count],
                parents: &[],
                scored_from,
            })
            .collect();
        let mut rows = Rows::default();
        model.forward(&mut batch, &mut rows).unwrap();
        assert!(rows.logits == expected, "{what}");
        for (cache, (_, held, count, _)) in caches.iter().zip(shapes) {
            assert_eq!(cache.len(), held + count, "{what}");
        }
    });
}

/// Nodes stand at their depth, so the bias by distance is that of the path, wherever the cache holds them.
#[test]
fn a_node_of_a_tree_is_the_end_of_its_path() {
    // Siblings apart from one another, and a path that turns: 0 - 2 - 4 - 7 among them.
    let parents = [
        None,
        None,
        Some(0),
        Some(1),
        Some(2),
        Some(0),
        Some(3),
        Some(4),
        Some(6),
    ];
    let path = |node: usize| -> Vec<usize> {
        let mut path = vec![node];
        while let Some(parent) = parents[path[0]] {
            path.insert(0, parent as usize);
        }
        path
    };
    for_each(|what, model, row| {
        for held in [0, 1, 14, 15] {
            let (before, nodes) = (&row.tokens[..held], &row.source[..parents.len()]);
            let mut cache = sequence(model, &row.source);
            if held > 0 {
                extend(model, &mut cache, before);
            }
            let mut rows = Rows {
                want_hidden: true,
                ..Rows::default()
            };
            // A trunk token, then the tree.
            let tokens = [&row.tokens[held..=held], nodes].concat();
            let segment = Segment {
                cache: &mut cache,
                tokens: &tokens,
                parents: &parents,
                scored_from: 1,
            };
            model.forward(&mut [segment], &mut rows).unwrap();
            for node in 0..parents.len() {
                let mut context = row.tokens[..=held].to_vec();
                context.extend(path(node).into_iter().map(|node| nodes[node]));
                let (logits, hidden) = fresh(model, &row.source, &context);
                let last = (context.len() - 1) * VOCAB;
                assert!(rows.row(node) == &logits[last..], "{what}, node {node}");
                let width = model.shape().hidden_size;
                let last = (context.len() - 1) * width;
                let found = &rows.hidden[node * width..][..width];
                assert!(found == &hidden[last..], "{what}, node {node}");
            }
            // A path kept is the sequence it makes.
            cache.keep(held + 1, &[0, 2, 4, 7], &[]);
            let kept = [0, 2, 4, 7].map(|node: usize| nodes[node]);
            let whole = [&row.tokens[..=held], &kept, &row.tokens[20..]].concat();
            let (expected, _) = fresh(model, &row.source, &whole);
            let (found, _) = extend(model, &mut cache, &row.tokens[20..]);
            assert!(
                found == expected[(held + 5) * VOCAB..],
                "{what}, {held} held"
            );
        }
    });
}
