//! Cascades under the noise that drafter and verifier share.

use std::sync::Arc;

use super::models::Drafts;
use super::{config, every_k};
use crate::blocks::{block_of, seeded};
use crate::tree::Distributions;
use crate::tree::chain::Chain;
use speculation::TokenId;
use speculation::cascade::emission::Emission;
use speculation::cascade::{CallNoise, CascadeConfig, Emitter, Reviewing};
use speculation::coupled::choice;
use speculation::noise::Noise;
use speculation::verification::Verification;

const VOCAB: usize = 4;
const PROMPT: [TokenId; 2] = [0, 1];

/// The seeded sample of `model`, `count` tokens.
fn sample(model: &Distributions, noise: &Noise, count: usize) -> Vec<TokenId> {
    let mut text = PROMPT.to_vec();
    for position in 0..count as u32 {
        text.push(choice(&model.after(&text), noise, position));
    }
    text.split_off(PROMPT.len())
}

fn models(seed: u64) -> Vec<Distributions> {
    (0..3)
        .map(|level| Distributions::random(seed + 50 * level, VOCAB))
        .collect()
}

fn drafts(config: Arc<CascadeConfig>, models: &[Distributions]) -> Drafts<'_> {
    Drafts::new(config, models, vec![2, 3, 0, 0])
}

/// The seed alone fixes the output: no matrix, order of models or lenience changes a token.
#[test]
fn outputs_are_the_targets_own() {
    let mut found = 0;
    for (drafts_count, most) in [(1, 3), (2, 2), (3, 1)] {
        for k in every_k(drafts_count, most) {
            for (lenience, swapped) in [(1.0, false), (2.0, false), (50.0, true)] {
                let max_gram = !swapped;
                let config = CascadeConfig::new(drafts_count, max_gram, k.clone(), lenience, 3);
                let config = Arc::new(config.expect("a cascade"));
                for seed in 0..4 {
                    let (mut models, target) =
                        (models(seed), Distributions::random(seed + 7, VOCAB));
                    if swapped {
                        models[..config.models()].reverse();
                    }
                    let noise = Noise::new(seed, 0);
                    let output = generate(&drafts(config.clone(), &models), &target, &noise);
                    assert_eq!(output, sample(&target, &noise, output.len()), "{config:?}");
                    found += 1;
                }
            }
        }
    }
    assert!(found > 500, "{found}");
}

fn generate(drafts: &Drafts<'_>, target: &Distributions, noise: &Noise) -> Vec<TokenId> {
    let mut context = PROMPT.to_vec();
    while context.len() < 12 {
        let base_len = (context.len() - PROMPT.len()) as u32;
        let reviewing = Reviewing::<CallNoise>::Coupled { noise: *noise };
        let (tokens, _) = drafts.draft(&context, base_len, 4, reviewing);
        assert!(tokens.iter().all(|token| token.probs == Emission::NotKept));
        let ids: Vec<TokenId> = tokens.iter().map(|token| token.id).collect();
        let rows = (0..=ids.len()).map(|len| target.after(&[&context, &ids[..len]].concat()));
        let distributions = Chain::new(rows.collect(), vec![]);
        let block = block_of(&ids, base_len);
        let verdict = seeded(Verification::COUPLED, &block, *noise, distributions);
        context.extend(verdict.expect("distributions").emitted);
    }
    context.split_off(PROMPT.len())
}

/// Each level draws with the same noise: what a strict reviewer emits is its own seeded sample.
#[test]
fn a_strict_cascade_drafts_as_its_largest_model_would() {
    let matrices: [(&[&[u32]], bool); 4] = [
        (&[&[6, 0], &[0, 3]], true),
        (&[&[6, 0], &[0, 3]], false),
        (&[&[6, 0, 0], &[0, 2, 2], &[0, 0, 3]], true),
        (&[&[6, 0, 0], &[0, 2, 2], &[0, 0, 3]], false),
    ];
    for (k, max_gram) in matrices {
        for seed in 0..20 {
            let models = models(seed);
            let config = config(k, max_gram, 1.0, 3);
            let noise = Noise::new(seed, 1);
            let reviewing = Reviewing::<CallNoise>::Coupled { noise };
            let (tokens, _) = drafts(config, &models).draft(&PROMPT, 0, 6, reviewing);
            assert!(
                tokens
                    .iter()
                    .all(|token| token.emitter == Emitter::Model(1))
            );
            let ids: Vec<TokenId> = tokens.iter().map(|token| token.id).collect();
            assert_eq!(ids, sample(&models[0], &noise, 6), "{k:?} {seed}");
        }
    }
}

/// A lenient reviewer keeps a smaller model's token iff its score is within lenience of the best, and
/// Max-Gram's only if it is the best.
#[test]
fn lenience_compares_scores() {
    let (mut kept, mut refused) = (0, 0);
    for seed in 0..200 {
        let models = models(seed);
        let noise = Noise::new(seed, 0);
        let lenience = 3.0;
        let reviewing = || Reviewing::<CallNoise>::Coupled { noise };
        let k: &[&[u32]] = &[&[1, 0], &[0, 1]];
        let (reviewer, draft) = (models[0].after(&PROMPT), models[1].after(&PROMPT));
        let base_len = 3;
        let best = choice(&reviewer, &noise, base_len);
        let proposed = choice(&draft, &noise, base_len);
        let score = |token: TokenId| {
            let u = noise.coupled(base_len, token)[0];
            -u.ln() / reviewer[token as usize]
        };
        let stands = score(proposed) <= lenience * score(best);
        let two = drafts(config(k, false, lenience, 1), &models);
        let (tokens, _) = two.draft(&PROMPT, base_len, 1, reviewing());
        assert_eq!(tokens[0].id, if stands { proposed } else { best }, "{seed}");
        if proposed != best {
            *if stands { &mut kept } else { &mut refused } += 1;
        }
        let one = drafts(config(k, true, 1e9, 1), &models);
        let (tokens, _) = one.draft(&PROMPT, base_len, 1, reviewing());
        assert_eq!(tokens[0].id, best);
    }
    assert!(kept > 10 && refused > 10, "{kept} {refused}");
}
