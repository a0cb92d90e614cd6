//! Cascades in single precision with seeded noise, as they are served.

use super::config;
use crate::tree::Laws;
use speculation::TokenId;
use speculation::cascade::{
    CallNoise, Cascade, CascadeToken, DraftBlock, DraftLaws, DraftRows, Emitter, Next, Reviewing,
};
use speculation::noise::Noise;
use speculation::proposal::{BadProposal, ProposalForm, ProposalLaw};

/// A model's rows along a block.
struct Single<'a> {
    model: &'a Laws,
    tokens: Vec<TokenId>,
    row: Vec<f32>,
}

impl DraftRows<f32> for Single<'_> {
    type Error = BadProposal;

    fn laws(&mut self, offset: usize) -> Result<DraftLaws<'_, f32>, BadProposal> {
        let law = self.model.after(&self.tokens[..offset]);
        self.row = law.into_iter().map(|mass| mass as f32).collect();
        Ok(DraftLaws {
            law: &mut self.row,
            unscaled: None,
        })
    }
}

fn draft(models: &[Laws], lenience: f64, form: ProposalForm, seed: u64) -> Vec<CascadeToken<f32>> {
    let config = config(&[&[3, 1], &[0, 2]], false, lenience, 1);
    let reviewing = Reviewing::Sampling {
        chance: CallNoise::new(Noise::new(seed, 0), 0),
        form,
    };
    let block = DraftBlock {
        max_tokens: 6,
        ..Default::default()
    };
    let mut cascade = Cascade::new(config, reviewing, block).expect("a cascade");
    while let Next::Score { level, .. } = cascade.next(None) {
        let mut rows = Single {
            model: &models[level - 1],
            tokens: cascade.tokens().to_vec(),
            row: Vec::new(),
        };
        cascade.supply(&mut rows, |_, _| ()).expect("rows");
    }
    cascade.finish()
}

/// The verifier gets a law for each token, with mass for the token, and a seed repeats its block.
#[test]
fn each_token_comes_with_the_law_it_was_drawn_from() {
    let models = [Laws::random(1, 9), Laws::random(2, 9)];
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
                let (mut kept, mut told) = ([0.0_f32; 9], [0.0_f32; 9]);
                token.law.write_law(token.id, &mut kept).expect("a law");
                let law = token.law.proposal(form);
                law.write_law(token.id, &mut told).expect("a law with mass");
                assert_eq!(
                    matches!(law, ProposalLaw::Sparse { .. }),
                    form == sparse,
                    "{law:?}"
                );
                for (kept, told) in kept.iter().zip(told) {
                    assert!((kept - told).abs() < 1e-6);
                }
            }
        }
    }
    assert!(reviewed > 2700 && drafted > 300, "{reviewed} {drafted}");
}
