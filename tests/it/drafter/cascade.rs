//! A cascade of draft models drafts what its definition says, however its forwards are spread over
//! engines.

use std::sync::Arc;

use model::bigram::BigramFile;
use speculation::cascade::{
    BlockLimits, CallNoise, Cascade, CascadeConfig, CascadeStep, CascadeToken, DraftDistributions,
    DraftRows, Grams, Reviewing,
};
use speculation::max_gram::MaxGram;
use speculation::proposal::{BadProposal, ProposalForm};
use wire::proposal;
use wire::v1::{
    CascadeRow, CascadeSettings, DraftRound, Drafting, Open, SamplingParams, StopCause,
    Verification,
};

use super::reference::{Distributions, Reference};
use super::{Block, Rounds, draft, drafter, opening, requested, samplings, smaller, three};
use crate::cluster::Service;

/// Rows of distributions computed beforehand.
struct Given(Vec<Distributions>, usize);

impl DraftRows<f32> for Given {
    type Error = BadProposal;

    fn distributions(&mut self, offset: usize) -> Result<DraftDistributions<'_, f32>, BadProposal> {
        let distributions = &mut self.0[offset - self.1];
        Ok(DraftDistributions {
            probs: &mut distributions.probs,
            unscaled: Some(&distributions.unscaled),
        })
    }
}

/// A cascade of the embedded draft model and a smaller one, with Max-Gram, without a service.
struct Local {
    models: Vec<Reference>,
    config: Arc<CascadeConfig>,
    form: ProposalForm,
}

impl Local {
    fn new(opening: &Open, k: &[&[u32]], lenience: f64) -> Self {
        let form = proposal::form_from_wire(opening.proposal_form, opening.proposal_top);
        let rows = k.iter().map(|row| row.to_vec()).collect();
        let config = CascadeConfig::new(k.len(), true, rows, lenience, MAX_GRAM_TOKENS);
        let models = [draft(), smaller()].into_iter().take(k.len() - 1);
        Self {
            models: models.map(|model| Reference::new(model, opening)).collect(),
            config: Arc::new(config.expect("a cascade")),
            form: form.expect("a form"),
        }
    }

    /// The block after `output`, and the forwards of each model.
    fn draft(&mut self, output: &[u32], most: u32) -> (Vec<CascadeToken<f32>>, Vec<u32>) {
        let first = &self.models[0];
        let base_len = output.len() as u32;
        let reviewing = match self.form {
            _ if first.sampling.temperature == 0.0 => Reviewing::Greedy,
            ProposalForm::None => Reviewing::Coupled { noise: first.noise },
            form => Reviewing::Sampling {
                chance: CallNoise::new(first.noise, base_len),
                form,
            },
        };
        let block = BlockLimits {
            base_len,
            max_tokens: most as usize,
            ends: first.sampling.end_tokens.clone(),
        };
        let mut index = MaxGram::new(&[]);
        index.reconcile(&[&first.prompt, output].concat());
        let bigram = BigramFile::open("embedded").expect("a table").table;
        let mut cascade =
            Cascade::new(Arc::clone(&self.config), reviewing, block).expect("a cascade");
        loop {
            let grams = Grams {
                index: &mut index,
                bigram: &bigram,
            };
            let CascadeStep::Score { level, from, rows } = cascade.next(Some(grams)) else {
                break;
            };
            let drafts = cascade.tokens().to_vec();
            let model = &mut self.models[level - 1];
            let distributions = (from..from + rows).map(|at| model.after(output, &drafts[..at]));
            let mut given = Given(distributions.collect(), from);
            cascade
                .supply(&mut given, |_, _| {})
                .expect("distributions");
        }
        let forwards = cascade.calls()[..self.models.len()].to_vec();
        (cascade.finish(), forwards)
    }
}

async fn of(k: &[&[u32]], lenience: f64) -> Service {
    let models = [draft(), smaller()].into_iter().take(k.len() - 1).collect();
    let configure = |config: &mut ::drafter::DrafterConfig| {
        config.cascade.k = k.iter().map(|row| row.to_vec()).collect();
        config.cascade.lenience = lenience;
        config.cascade.max_gram_tokens = MAX_GRAM_TOKENS;
    };
    drafter(models, configure).await
}

/// Tokens that Max-Gram proposes at a time: more than most entries of the matrices.
const MAX_GRAM_TOKENS: u32 = 10;

/// Matrices with every kind of step: one model, two, no Max-Gram at some level, Max-Gram alone.
const TWO: &[&[&[u32]]] = &[
    &[&[2, 10], &[0, 10]],
    &[&[5, 0], &[0, 3]],
    &[&[3, 2], &[0, 0]],
];
const THREE: &[&[&[u32]]] = &[
    &[&[2, 2, 10], &[0, 2, 4], &[0, 0, 5]],
    &[&[6, 0, 0], &[0, 3, 0], &[0, 0, 2]],
    &[&[1, 1, 1], &[0, 1, 1], &[0, 0, 1]],
];

/// How blocks are told and verified.
const WAYS: [(Verification, wire::v1::ProposalForm, u32); 4] = [
    (Verification::Coupled, wire::v1::ProposalForm::None, 0),
    (Verification::Token, wire::v1::ProposalForm::DenseF32, 0),
    (Verification::Token, wire::v1::ProposalForm::Sparse, 8),
    (Verification::Block, wire::v1::ProposalForm::DenseF16, 0),
];

async fn equals_definition(drafter: &Service, opening: Open, local: &mut Local) -> Vec<Block> {
    asked_with(None, drafter, opening, local).await
}

/// Asks for some blocks of the cascade with these `settings`, each after what the last one began, and compares them with
/// the definition.
async fn asked_with(
    settings: Option<CascadeSettings>,
    drafter: &Service,
    opening: Open,
    local: &mut Local,
) -> Vec<Block> {
    let mut rounds = Rounds::open(drafter, opening).await;
    let mut output: Vec<u32> = Vec::new();
    let mut blocks = Vec::new();
    for most in [12, 7, 16] {
        let round = DraftRound {
            cascade: settings.clone(),
            ..requested(Drafting::Cascade, most)
        };
        let block = rounds.ask(&output, round).await;
        let (expected, forwards) = local.draft(&output, most);
        let ids: Vec<u32> = expected.iter().map(|token| token.id).collect();
        assert_eq!(block.tokens(), ids, "after {output:?}");
        assert_eq!(block.forwards, forwards);
        let reported = expected.into_iter().map(|token| {
            let probs = token.probs.proposal(local.form);
            speculation::proposal::Proposal {
                probs,
                ..Default::default()
            }
        });
        let reported = proposal::to_wire(reported.collect(), local.form);
        assert_eq!(block.proposals, reported, "after {output:?}");
        output.extend(&block.tokens()[..block.tokens().len() / 2]);
        output.push(900);
        blocks.push(block);
    }
    blocks
}

fn verified_as(
    sampling: &SamplingParams,
    (verification, form, top): (Verification, wire::v1::ProposalForm, u32),
) -> Open {
    opening(sampling, |open| {
        open.verification = verification.into();
        open.proposal_form = form.into();
        open.proposal_top = top;
    })
}

#[tokio::test]
async fn a_drafter_of_every_matrix_drafts_what_the_cascade_itself_does() {
    let mut points = 0;
    for k in TWO.iter().chain(THREE) {
        let drafter = of(k, 1.0).await;
        for sampling in samplings() {
            for way in WAYS {
                let opening = verified_as(&sampling, way);
                let mut local = Local::new(&opening, k, 1.0);
                let blocks = equals_definition(&drafter, opening, &mut local).await;
                let proposals = blocks.iter().flat_map(|block| &block.proposals);
                let point = |reported: &&wire::v1::Proposal| {
                    matches!(reported.probs, Some(wire::v1::proposal::Probs::Point(_)))
                };
                points += proposals.filter(point).count();
            }
        }
    }
    assert!(points > 0, "no token of Max-Gram was ever told of as one");
}

#[tokio::test]
async fn lenient_cascades_do_too() {
    let mut differences = 0;
    for k in [TWO[0], THREE[0], THREE[1]] {
        let drafter = of(k, 3.0).await;
        for sampling in samplings() {
            for way in [WAYS[0], WAYS[1]] {
                let opening = verified_as(&sampling, way);
                let mut local = Local::new(&opening, k, 3.0);
                let mut strict = Local::new(&opening, k, 1.0);
                let blocks = equals_definition(&drafter, opening, &mut local).await;
                // Towards Max-Gram nobody is lenient.
                if k.len() == 3 {
                    let ids = strict.draft(&[], 12).0.into_iter().map(|token| token.id);
                    let ids: Vec<u32> = ids.collect();
                    differences += usize::from(blocks[0].tokens() != ids);
                }
            }
        }
    }
    assert!(differences > 0, "lenience never made a difference");
}

/// What a request sets of the cascade holds for its blocks, and for no others of the same drafter.
#[tokio::test]
async fn a_request_sets_matrix_lenience_and_max_gram() {
    let own = THREE[2];
    let drafter = of(own, 1.0).await;
    let row = |row: &&[u32]| CascadeRow {
        tokens: row.to_vec(),
    };
    for k in [THREE[0], THREE[1]] {
        for lenience in [1.0, 3.0] {
            let settings = CascadeSettings {
                k: k.iter().map(row).collect(),
                lenience: Some(lenience),
                max_gram_tokens: None,
            };
            for sampling in samplings() {
                for way in [WAYS[0], WAYS[1]] {
                    let opening = verified_as(&sampling, way);
                    let mut local = Local::new(&opening, k, lenience);
                    asked_with(Some(settings.clone()), &drafter, opening, &mut local).await;
                    let opening = verified_as(&sampling, way);
                    let mut local = Local::new(&opening, own, 1.0);
                    equals_definition(&drafter, opening, &mut local).await;
                }
            }
        }
    }
}

/// At temperature 0 every distribution is one-hot, and form POINT says all there is to say.
#[tokio::test]
async fn points_will_do_at_temperature_0() {
    let drafter = of(THREE[0], 2.0).await;
    let greedy = &samplings()[0];
    let way = (Verification::Token, wire::v1::ProposalForm::Point, 0);
    let mut local = Local::new(&verified_as(greedy, way), THREE[0], 2.0);
    let blocks = equals_definition(&drafter, verified_as(greedy, way), &mut local).await;
    assert!(blocks.iter().all(|block| block.proposals.is_empty()));
}

#[tokio::test]
async fn a_block_ends_where_the_matrix_the_limit_or_an_end_token_says() {
    let drafter = three().await;
    let plain = &samplings()[0];
    let endless = opening(plain, |open| open.end_token_ids.clear());
    let mut rounds = Rounds::open(&drafter, endless).await;
    let whole = rounds.ask(&[], requested(Drafting::Cascade, 64)).await;
    assert_eq!(whole.stop, StopCause::Policy);
    let cut = rounds.ask(&[], requested(Drafting::Cascade, 3)).await;
    assert_eq!(
        (cut.tokens(), cut.stop),
        (&whole.tokens()[..3], StopCause::Length)
    );
    let end = whole.tokens()[1];
    let ending = opening(plain, |open| {
        open.end_token_ids = vec![end];
        open.session_id = vec![9; 16];
    });
    let mut rounds = Rounds::open(&drafter, ending).await;
    let ended = rounds.ask(&[], requested(Drafting::Cascade, 64)).await;
    let at = whole.tokens().iter().position(|&token| token == end);
    let expected = &whole.tokens()[..=at.expect("an end")];
    assert_eq!(
        (ended.tokens(), ended.stop),
        (expected, StopCause::EndToken)
    );
}
