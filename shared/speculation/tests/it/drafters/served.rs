//! Cascades in single precision with seeded noise, as they are served.

use super::config;
use crate::tree::Distributions;
use speculation::TokenId;
use speculation::cascade::{
    BlockLimits, CallNoise, Cascade, CascadeStep, CascadeToken, DraftDistributions, DraftRows,
    Emitter, Reviewing,
};
use speculation::noise::Noise;
use speculation::proposal::{BadProposal, ProposalForm, ProposalProbs};

/// A model's rows along a block.
struct Single<'a> {
    model: &'a Distributions,
    tokens: Vec<TokenId>,
    row: Vec<f32>,
}

impl DraftRows<f32> for Single<'_> {
    type Error = BadProposal;

    fn distributions(&mut self, offset: usize) -> Result<DraftDistributions<'_, f32>, BadProposal> {
        let probs = self.model.after(&self.tokens[..offset]);
        self.row = probs.into_iter().map(|mass| mass as f32).collect();
        Ok(DraftDistributions {
            probs: &mut self.row,
            unscaled: None,
        })
    }
}

fn draft(
    models: &[Distributions],
    lenience: f64,
    form: ProposalForm,
    seed: u64,
) -> Vec<CascadeToken<f32>> {
    let config = config(&[&[3, 1], &[0, 2]], false, lenience, 1);
    let reviewing = Reviewing::Sampling {
        chance: CallNoise::new(Noise::new(seed, 0), 0),
        form,
    };
    let block = BlockLimits {
        max_tokens: 6,
        ..Default::default()
    };
    let mut cascade = Cascade::new(config, reviewing, block).expect("a cascade");
    while let CascadeStep::Score { level, .. } = cascade.next(None) {
        let mut rows = Single {
            model: &models[level - 1],
            tokens: cascade.tokens().to_vec(),
            row: Vec::new(),
        };
        cascade.supply(&mut rows, |_, _| ()).expect("rows");
    }
    cascade.finish()
}

/// The verifier gets a distribution for each token, with mass for the token, and a seed repeats its block.
#[test]
fn each_token_comes_with_the_distribution_it_was_drawn_from() {
    let models = [Distributions::random(1, 9), Distributions::random(2, 9)];
    let (sparse, dense) = (
        ProposalForm::Sparse { top: 3 },
        ProposalForm::Dense { half: false },
    );
    let (mut reviewed, mut drafted) = (0, 0);
    for (lenience, form) in [(1.0, sparse), (1.0, dense), (2.5, dense)] {
        for seed in 0..300 {
            let block = draft(&models, lenience, form, seed);
            assert_eq!(block, draft(&models, lenience, form, seed));
            for token in block {
                match token.emitter {
                    Emitter::Model(1) => reviewed += 1,
                    Emitter::Model(_) => drafted += 1,
                    Emitter::MaxGram => panic!("there is none"),
                }
                let (mut kept, mut reported) = ([0.0_f32; 9], [0.0_f32; 9]);
                token
                    .probs
                    .write_probs(token.id, &mut kept)
                    .expect("a distribution");
                let probs = token.probs.proposal(form);
                probs
                    .write_probs(token.id, &mut reported)
                    .expect("a distribution with mass");
                assert_eq!(
                    matches!(probs, ProposalProbs::Sparse { .. }),
                    form == sparse,
                    "{probs:?}"
                );
                for (kept, reported) in kept.iter().zip(reported) {
                    assert!((kept - reported).abs() < 1e-6);
                }
            }
        }
    }
    assert!(reviewed > 2700 && drafted > 300, "{reviewed} {drafted}");
}
