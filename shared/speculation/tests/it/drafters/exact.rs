//! Outputs of sampling cascades follow the target model's distribution, by enumeration of every random decision of
//! the cascade and of the verification.

use super::config;
use super::models::Drafts;
use crate::blocks::block_of;
use crate::tree::chain::Chain;
use crate::tree::{
    Branch, Distributions, OutputDistribution, assert_same, emitted, enumerate, outputs,
};
use speculation::TokenId;
use speculation::cascade::emission::Emission;
use speculation::cascade::{CascadeToken, Emitter, Reviewing};
use speculation::noise::Noise;
use speculation::proposal::ProposalForm;
use speculation::verification::{DraftChain, Verdict, Verification, verify};

const DENSE: ProposalForm = ProposalForm::Dense { half: false };

/// Rounds of a cascade and a target.
struct Rounds<'a> {
    drafts: Drafts<'a>,
    target: &'a Distributions,
    prompt: &'a [TokenId],
    verification: Verification,
    form: ProposalForm,
    max_tokens: usize,
}

impl Rounds<'_> {
    /// The draft block after `output`.
    fn block(&self, output: &[TokenId], branch: &mut Branch) -> Vec<CascadeToken<f64>> {
        let context = [self.prompt, output].concat();
        let reviewing = Reviewing::Sampling {
            chance: branch,
            form: self.form,
        };
        let base_len = output.len() as u32;
        self.drafts
            .draft(&context, base_len, self.max_tokens, reviewing)
            .0
    }

    fn round(&self, output: &[TokenId], branch: &mut Branch) -> Verdict {
        let block = self.block(output, branch);
        let ids: Vec<TokenId> = block.iter().map(|token| token.id).collect();
        let vocab = self.target.vocab();
        let probs = |token: &CascadeToken<f64>| {
            let mut row = vec![0.0; vocab];
            token
                .probs
                .write_probs(token.id, &mut row)
                .expect("a distribution");
            if !matches!(token.probs, Emission::Lenient(_)) {
                // Exactly what the verifier is told.
                let mut reported = vec![0.0; vocab];
                let proposal = token.probs.clone().proposal(self.form);
                proposal
                    .write_probs(token.id, &mut reported)
                    .expect("a distribution");
                assert_eq!(reported, row);
            }
            row
        };
        let target = (0..=ids.len()).map(|len| {
            self.target
                .after(&[self.prompt, output, &ids[..len]].concat())
        });
        let mut distributions = Chain::new(target.collect(), block.iter().map(probs).collect());
        let block = DraftChain {
            ends: &self.drafts.ends,
            ..block_of(&ids, output.len() as u32)
        };
        let noise = Noise::new(0, 0);
        let verdict = verify(
            self.verification,
            &block,
            &noise,
            branch,
            &mut distributions,
        );
        verdict.expect("distributions")
    }

    /// Checks that the first `len` tokens follow the target model's distribution.
    fn assert_exact(&self, len: usize) {
        let ends = &self.drafts.ends;
        let emitted = emitted(len, ends, |output, _, branch| self.round(output, branch));
        let probs = |prefix: &[TokenId]| self.target.after(&[self.prompt, prefix].concat());
        let (config, verification) = (&self.drafts.config, self.verification);
        let what = format!("{config:?} {verification:?} {:?}", self.form);
        assert_same(&emitted, &outputs(len, ends, probs), 1e-12, &what);
    }
}

/// Runs `check` for cascades of two and three levels at several leniences.
fn cascades(
    vocab: usize,
    forms: &[ProposalForm],
    ends: &[TokenId],
    mut check: impl FnMut(&Rounds<'_>),
) {
    let matrices: [(&[&[u32]], bool); 8] = [
        (&[&[2, 1], &[0, 2]], true),
        (&[&[1, 1], &[0, 1]], true),
        (&[&[3, 0], &[0, 2]], false),
        (&[&[1, 2], &[0, 1]], false),
        (&[&[2, 0, 1], &[0, 1, 0], &[0, 0, 1]], true),
        (&[&[1, 1, 0], &[0, 1, 1], &[0, 0, 1]], true),
        (&[&[2, 0, 0], &[0, 2, 0], &[0, 0, 1]], false),
        (&[&[1, 1, 1], &[0, 1, 0], &[0, 0, 0]], false),
    ];
    for seed in 0..2 {
        let models: Vec<Distributions> = (0..3)
            .map(|level| Distributions::random(seed + 10 * level, vocab))
            .collect();
        let target = Distributions::random(seed + 100, vocab);
        for (k, max_gram) in matrices {
            for lenience in [1.0, 1.5, 4.0] {
                for &form in forms {
                    let config = config(k, max_gram, lenience, 2);
                    if config.check_form(form).is_err() {
                        continue;
                    }
                    for verification in [Verification::TOKEN, Verification::BLOCK] {
                        let next = (1..=vocab as u32).map(|next| next % vocab as u32);
                        let drafts = Drafts::new(config.clone(), &models, next.collect());
                        check(&Rounds {
                            drafts: Drafts {
                                ends: ends.to_vec(),
                                ..drafts
                            },
                            target: &target,
                            prompt: &[0, 1],
                            verification,
                            form,
                            max_tokens: 5 - vocab,
                        });
                    }
                }
            }
        }
    }
}

#[test]
fn outputs_follow_the_target_distribution() {
    let mut found = 0;
    cascades(2, &[DENSE], &[], |rounds| {
        rounds.assert_exact(4);
        found += 1;
    });
    cascades(3, &[DENSE], &[], |rounds| {
        rounds.assert_exact(3);
        found += 1;
    });
    assert_eq!(found, 192);
}

#[test]
fn outputs_that_end_follow_the_target_distribution() {
    cascades(2, &[DENSE], &[1], |rounds| rounds.assert_exact(4));
    cascades(3, &[DENSE], &[1], |rounds| rounds.assert_exact(3));
}

/// Distributions that are cut and quantised before tokens are drawn from them.
#[test]
fn outputs_of_cut_distributions_follow_the_target_distribution() {
    let forms = [
        ProposalForm::Sparse { top: 1 },
        ProposalForm::Sparse { top: 2 },
        ProposalForm::Dense { half: true },
    ];
    cascades(2, &forms, &[], |rounds| rounds.assert_exact(4));
}

/// Where every token leaves the largest draft model, and nobody is lenient, the block is that model's
/// own sample, whatever smaller ones proposed; and lenience does not reach what Max-Gram proposes.
#[test]
fn a_strict_cascade_drafts_as_its_largest_model_would() {
    let matrices: [(&[&[u32]], bool, f64); 5] = [
        (&[&[3, 0], &[0, 2]], true, 1.0),
        (&[&[3, 0], &[0, 2]], true, 4.0),
        (&[&[3, 0], &[0, 2]], false, 1.0),
        (&[&[3, 0, 0], &[0, 2, 0], &[0, 0, 1]], false, 1.0),
        (&[&[3, 0, 0], &[0, 1, 1], &[0, 0, 2]], true, 1.0),
    ];
    for (k, max_gram, lenience) in matrices {
        let models: Vec<Distributions> = (0..3)
            .map(|level| Distributions::random(3 + 10 * level, 3))
            .collect();
        let config = config(k, max_gram, lenience, 2);
        let largest = &models[0];
        let rounds = Rounds {
            drafts: Drafts::new(config, &models, vec![1, 2, 0]),
            target: largest,
            prompt: &[0, 1],
            verification: Verification::TOKEN,
            form: DENSE,
            max_tokens: 3,
        };
        let mut off = OutputDistribution::new();
        enumerate(|branch| {
            let block = rounds.block(&[], branch);
            assert!(block.iter().all(|token| token.emitter == Emitter::Model(1)));
            let ids = block.iter().map(|token| token.id).collect();
            *off.entry(ids).or_default() += branch.weight();
        });
        for (ids, mass) in &mut off {
            assert_eq!(ids.len(), 3);
            for at in 0..3 {
                let probs = largest.after(&[rounds.prompt, &ids[..at]].concat());
                // Told in single precision, and then drawn from.
                let reported: f64 = probs.iter().map(|&each| f64::from(each as f32)).sum();
                let each = f64::from(probs[ids[at] as usize] as f32) / reported;
                if at == 0 {
                    *mass = -*mass;
                }
                *mass /= each;
            }
            assert!(
                (*mass + 1.0).abs() < 1e-12,
                "{:?}: {ids:?}",
                rounds.drafts.config
            );
        }
    }
}
