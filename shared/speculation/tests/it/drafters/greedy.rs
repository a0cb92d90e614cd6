//! Cascades at temperature 0.

use std::sync::Arc;

use super::models::{AtZero, Drafts, Model};
use super::{config, every_k};
use crate::blocks::{block_of, seeded};
use crate::tree::Distributions;
use crate::tree::chain::Chain;
use speculation::TokenId;
use speculation::cascade::{CallNoise, CascadeConfig, CascadeToken, Emitter, Reviewing};
use speculation::max_gram::Bigram;
use speculation::noise::Noise;
use speculation::proposal::ProposalForm;
use speculation::real::argmax;
use speculation::verification::Verification;

const VOCAB: usize = 4;

/// Returns what `model` says at temperature 0, `count` tokens from `context` on.
fn continuation(model: &dyn Model, context: &[TokenId], count: usize) -> Vec<TokenId> {
    let mut text = context.to_vec();
    for _ in 0..count {
        text.push(argmax(&model.after(&text).0) as TokenId);
    }
    text.split_off(context.len())
}

fn drafts(config: Arc<CascadeConfig>, models: &[AtZero<Distributions>]) -> Drafts<'_> {
    Drafts::new(config, models, vec![2, 3, 0, 0])
}

fn models(seed: u64) -> Vec<AtZero<Distributions>> {
    let model = |level: u64| AtZero(Distributions::random(seed + 50 * level, VOCAB));
    (0..3).map(model).collect()
}

/// Outputs are the target's own, for every small matrix, any lenience, and both ways to verify.
#[test]
fn outputs_are_the_targets_own() {
    let mut found = 0;
    for (drafts_count, most) in [(1, 3), (2, 2), (3, 1)] {
        for k in every_k(drafts_count, most) {
            for max_gram in [true, false] {
                for lenience in [1.0, 2.0, 1e6] {
                    let k = k.clone();
                    let config = CascadeConfig::new(drafts_count, max_gram, k, lenience, 3);
                    let config = Arc::new(config.expect("a cascade"));
                    for seed in 0..3 {
                        let (models, target) =
                            (models(seed), AtZero(Distributions::random(seed + 7, VOCAB)));
                        let drafts = drafts(config.clone(), &models);
                        for verification in [Verification::TOKEN, Verification::BLOCK] {
                            let output = generate(&drafts, &target, verification);
                            let expected = continuation(&target, &[0, 1], output.len());
                            assert_eq!(output, expected, "{config:?}");
                            found += 1;
                        }
                    }
                }
            }
        }
    }
    assert!(found > 1000, "{found}");
}

fn generate(drafts: &Drafts<'_>, target: &dyn Model, verification: Verification) -> Vec<TokenId> {
    let prompt = [0, 1];
    let mut context = prompt.to_vec();
    while context.len() < 14 {
        let base_len = (context.len() - prompt.len()) as u32;
        let reviewing = Reviewing::<CallNoise>::Greedy;
        let (tokens, _) = drafts.draft(&context, base_len, 4, reviewing);
        assert!(!tokens.is_empty() && tokens.len() <= 4);
        let ids: Vec<TokenId> = tokens.iter().map(|token| token.id).collect();
        let reported = |token: &CascadeToken<f64>| {
            let mut row = vec![0.0; VOCAB];
            let probs = token.probs.clone().proposal(ProposalForm::Point);
            probs.write_probs(token.id, &mut row).expect("a point");
            row
        };
        let rows = (0..=ids.len()).map(|len| target.after(&[&context, &ids[..len]].concat()).0);
        let distributions = Chain::new(rows.collect(), tokens.iter().map(reported).collect());
        let block = block_of(&ids, base_len);
        let verdict = seeded(verification, &block, Noise::new(5, 0), distributions);
        context.extend(verdict.expect("distributions").emitted);
    }
    context.split_off(prompt.len())
}

/// What a strict reviewer emits is its own continuation.
#[test]
fn a_strict_cascade_drafts_as_its_largest_model_would() {
    let matrices: [(&[&[u32]], bool); 5] = [
        (&[&[6, 0], &[0, 3]], true),
        (&[&[6, 0], &[0, 3]], false),
        (&[&[6, 0, 0], &[0, 2, 2], &[0, 0, 3]], true),
        (&[&[6, 0, 0], &[0, 2, 2], &[0, 0, 3]], false),
        (&[&[6, 0, 0], &[0, 0, 4], &[0, 0, 0]], true),
    ];
    for (k, max_gram) in matrices {
        for seed in 0..20 {
            let models = models(seed);
            let drafts = drafts(config(k, max_gram, 1.0, 3), &models);
            let reviewing = Reviewing::<CallNoise>::Greedy;
            let (tokens, _) = drafts.draft(&[0, 1], 0, 6, reviewing);
            assert!(
                tokens
                    .iter()
                    .all(|token| token.emitter == Emitter::Model(1))
            );
            let ids: Vec<TokenId> = tokens.iter().map(|token| token.id).collect();
            assert_eq!(ids, continuation(&models[0], &[0, 1], 6), "{k:?} {seed}");
        }
    }
}

/// A model with one distribution everywhere.
struct Always(Vec<f64>);

impl Model for Always {
    fn after(&self, _: &[TokenId]) -> (Vec<f64>, Vec<f64>) {
        (self.0.clone(), self.0.clone())
    }
}

/// A token is kept while its emitter's probability is at most lenience times the reviewer's, and is
/// then the reviewer's: the next one compares with that.
#[test]
fn lenience_compares_with_the_last_emitter() {
    let [large, middle, small] =
        [[0.8, 0.15, 0.05], [0.6, 0.3, 0.1], [0.05, 0.9, 0.05]].map(|probs| Always(probs.to_vec()));
    let kept = |lenience: f64, three: bool| {
        let (models, k): (Vec<&dyn Model>, &[&[u32]]) = if three {
            (
                vec![&large, &middle, &small],
                &[&[1, 0, 0], &[0, 1, 0], &[0, 0, 1]],
            )
        } else {
            (vec![&middle, &small], &[&[1, 0], &[0, 1]])
        };
        let drafts = Drafts {
            config: config(k, false, lenience, 1),
            models,
            bigram: Bigram::new(vec![0; 3]).expect("a table"),
            ends: vec![],
        };
        let reviewing = Reviewing::<CallNoise>::Greedy;
        drafts.draft(&[0], 0, 1, reviewing).0[0].id == 1
    };
    // .9 <= l · .3 from l = 3 on, and of that .3 <= l · .15 from l = 2 on.
    assert!(!kept(2.99, false) && kept(3.01, false));
    assert!(!kept(2.99, true) && kept(3.01, true));
}

/// No lenience towards what Max-Gram proposed: it is replaced unless it is the most likely.
#[test]
fn lenience_is_not_for_max_gram() {
    let model = Always(vec![0.4, 0.35, 0.25]);
    let drafts = Drafts {
        config: config(&[&[1, 0], &[0, 1]], true, 100.0, 1),
        models: vec![&model],
        bigram: Bigram::new(vec![1; 3]).expect("a table"),
        ends: vec![],
    };
    let (tokens, calls) = drafts.draft(&[2], 0, 4, Reviewing::<CallNoise>::Greedy);
    assert_eq!(tokens[0].id, 0);
    assert_eq!((tokens.len(), calls), (1, vec![1, 1]));
}
