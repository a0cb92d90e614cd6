//! Ends of the output, the cap of a block, and what the noise of inner calls is keyed by.

use super::config;
use super::models::{Drafts, Model, Rows};
use crate::tree::Distributions;
use speculation::TokenId;
use speculation::cascade::{
    BlockLimits, CallChance, CallNoise, Cascade, CascadeStep, DraftDistributions, Emitter, Grams,
    Reviewing,
};
use speculation::chance::{Chance, RoundChance};
use speculation::max_gram::{Bigram, MaxGram};
use speculation::noise::{InnerCall, Noise, Purpose};
use speculation::proposal::ProposalForm;

const DENSE: ProposalForm = ProposalForm::Dense { half: false };

/// At every level a block stops at its first end, and at the cap.
#[test]
fn a_block_ends_with_its_first_end_and_is_never_too_long() {
    let models: Vec<Distributions> = (0..2)
        .map(|level| Distributions::random(4 + level, 4))
        .collect();
    let matrices: [(&[&[u32]], bool); 3] = [
        (&[&[2, 4], &[0, 3]], true),
        (&[&[2, 4], &[0, 3]], false),
        (&[&[1, 2, 6], &[0, 2, 3], &[0, 0, 4]], true),
    ];
    let (mut ended, mut full) = (0, 0);
    for (k, max_gram) in matrices {
        for seed in 0..60 {
            for max_tokens in [1, 2, 5, 9] {
                let config = config(k, max_gram, 1.5, 5);
                let drafts = Drafts {
                    ends: vec![3],
                    ..Drafts::new(config, &models, vec![1, 2, 3, 0])
                };
                let noise = Noise::new(seed, 0);
                let sampling = Reviewing::Sampling {
                    chance: CallNoise::new(noise, 0),
                    form: DENSE,
                };
                for reviewing in [sampling, Reviewing::Coupled { noise }, Reviewing::Greedy] {
                    let (tokens, _) = drafts.draft(&[0, 1, 0], 0, max_tokens, reviewing);
                    assert!(tokens.len() <= max_tokens && !tokens.is_empty());
                    let end = tokens.iter().position(|token| token.id == 3);
                    assert!(end.is_none_or(|end| end + 1 == tokens.len()));
                    ended += u32::from(end.is_some());
                    full += u32::from(tokens.len() == max_tokens);
                }
            }
        }
    }
    assert!(ended > 100 && full > 100, "{ended} {full}");
}

/// A model that always says one token.
struct Says(TokenId);

impl Model for Says {
    fn after(&self, _: &[TokenId]) -> (Vec<f64>, Vec<f64>) {
        let probs: Vec<f64> = (0..4)
            .map(|token| f64::from(u8::from(token == self.0)))
            .collect();
        (probs.clone(), probs)
    }
}

/// What a smaller draft ends, its reviewer may go on with.
#[test]
fn an_end_that_is_replaced_ends_nothing() {
    let (goes_on, ends) = (Says(1), Says(3));
    let drafts = Drafts {
        config: config(&[&[4, 0], &[0, 3]], false, 1.0, 1),
        models: vec![&goes_on, &ends],
        bigram: Bigram::new(vec![0; 4]).expect("a table"),
        ends: vec![3],
    };
    let (tokens, calls) = drafts.draft(&[0], 0, 9, Reviewing::<CallNoise>::Greedy);
    let ids: Vec<TokenId> = tokens.iter().map(|token| token.id).collect();
    // Four reviews, each of one token, which is replaced.
    assert_eq!((ids, calls), (vec![1; 4], vec![4, 4]));
    // The other way round the end stands, and ends the block.
    let drafts = Drafts {
        models: vec![&ends, &goes_on],
        ..drafts
    };
    let (tokens, calls) = drafts.draft(&[0], 0, 9, Reviewing::<CallNoise>::Greedy);
    let ids: Vec<TokenId> = tokens.iter().map(|token| token.id).collect();
    assert_eq!((ids, calls), (vec![3], vec![1, 3]));
}

/// Max-Gram stops at an end, and where the block is full.
#[test]
fn max_gram_is_cut_too() {
    let drafts = |ends: Vec<TokenId>| Drafts {
        ends,
        ..Drafts::new::<Says>(config(&[&[8]], true, 1.0, 5), &[], vec![1, 2, 3, 0])
    };
    let ids = |ends, max_tokens| {
        let reviewing = Reviewing::<CallNoise>::Greedy;
        let (tokens, calls) = drafts(ends).draft(&[3], 0, max_tokens, reviewing);
        assert!(tokens.iter().all(|token| token.emitter == Emitter::MaxGram));
        (
            tokens.iter().map(|token| token.id).collect::<Vec<_>>(),
            calls,
        )
    };
    assert_eq!(ids(vec![], 7), (vec![0, 1, 2, 3, 0, 1, 2], vec![2]));
    assert_eq!(ids(vec![2], 7), (vec![0, 1, 2], vec![1]));
    assert_eq!(ids(vec![], 0), (vec![], vec![0]));
    // A quota of 8 is reached with two proposals of 5.
    assert_eq!(ids(vec![], 99).0.len(), 10);
}

/// Writes down which calls draw.
struct Recorder<'a>(CallNoise, &'a mut Vec<(u8, u16)>);

impl CallChance<f64> for Recorder<'_> {
    type Chance<'a>
        = RoundChance
    where
        Self: 'a;

    fn of(&mut self, call: InnerCall) -> RoundChance {
        self.1.push((call.level, call.start));
        CallChance::<f64>::of(&mut self.0, call)
    }
}

/// Draws are keyed by the reviewer's level and the start of its call; level 0 is the verifier's own.
#[test]
fn draws_are_keyed_by_level_and_start() {
    let models: Vec<Distributions> = (0..2)
        .map(|level| Distributions::random(4 + level, 4))
        .collect();
    let config = config(&[&[2, 1], &[0, 1]], false, 1.0, 1);
    let drafts = Drafts::new(config, &models, vec![0; 4]);
    let mut calls = Vec::new();
    for seed in 0..40 {
        let mut made = Vec::new();
        let chance = Recorder(CallNoise::new(Noise::new(seed, 0), 5), &mut made);
        let form = DENSE;
        drafts.draft(&[0, 1], 5, 9, Reviewing::Sampling { chance, form });
        calls.push(made);
    }
    // All accepted: the second model drafts, the first reviews and adds a token; then the second
    // drafts the last.
    assert!(calls.contains(&vec![(2, 0), (1, 0), (1, 0), (2, 2)]));
    // Refused at once: both are called anew, one token later.
    let refused = |calls: &&Vec<(u8, u16)>| calls.starts_with(&[(2, 0), (1, 0), (2, 1), (1, 1)]);
    assert!(calls.iter().any(|made| refused(&made)));
    let mut noise = CallNoise::new(Noise::new(9, 0), 5);
    let draw = |noise: &mut CallNoise, level, start| {
        let mut chance = CallChance::<f64>::of(noise, InnerCall { level, start });
        let probs = vec![1.0 / 4096.0; 4096];
        Chance::<f64>::token(&mut chance, Purpose::Bonus, 3, &probs)
    };
    let drawn = draw(&mut noise, 1, 0);
    assert_eq!(drawn, draw(&mut noise, 1, 0));
    assert_ne!(drawn, draw(&mut noise, 2, 0));
    assert_ne!(drawn, draw(&mut noise, 1, 1));
    assert_ne!(drawn, draw(&mut CallNoise::new(Noise::new(9, 0), 6), 1, 0));
}

/// The largest model's distributions are shown at every token it emits, before anything is cut from them.
#[test]
fn distributions_of_the_largest_model_are_shown_for_siblings() {
    let model = Distributions::random(8, 4);
    let config = config(&[&[3, 1], &[0, 0]], true, 1.0, 1);
    let reviewing = Reviewing::Sampling {
        chance: CallNoise::new(Noise::new(1, 0), 0),
        form: ProposalForm::Sparse { top: 1 },
    };
    let block = BlockLimits {
        max_tokens: 9,
        ..Default::default()
    };
    let mut cascade = Cascade::<f64, _>::new(config, reviewing, block).expect("a cascade");
    let bigram = Bigram::new(vec![0; 4]).expect("a table");
    let mut index = MaxGram::new(&[]);
    index.push(1);
    let mut shown = Vec::new();
    while let CascadeStep::Score { from, .. } = cascade.next(Some(Grams {
        index: &mut index,
        bigram: &bigram,
    })) {
        let tokens = cascade.tokens().to_vec();
        let mut rows = Rows {
            model: &model,
            context: &[1],
            tokens: &tokens,
            row: Default::default(),
            next: from,
        };
        let mut see = |node: usize, distributions: &DraftDistributions<'_, f64>| {
            shown.push((node, distributions.probs.to_vec()));
        };
        cascade.supply(&mut rows, &mut see).expect("rows");
    }
    let tokens = cascade.finish();
    assert_eq!((tokens.len(), shown.len()), (4, 3));
    for (at, (node, probs)) in shown.into_iter().enumerate() {
        let before: Vec<TokenId> = tokens[..at].iter().map(|token| token.id).collect();
        assert_eq!(
            (node, probs),
            (at, model.after(&[&[1], before.as_slice()].concat()))
        );
    }
}

/// Forms that the reviews cannot tell are refused before anything is drafted.
#[test]
fn a_form_that_cannot_be_told_is_refused() {
    let reviewing = Reviewing::Sampling {
        chance: CallNoise::new(Noise::new(1, 0), 0),
        form: ProposalForm::Sparse { top: 8 },
    };
    let config = config(&[&[1, 0], &[0, 1]], true, 2.0, 1);
    let refused = Cascade::<f64, _>::new(config, reviewing, BlockLimits::default());
    let error = refused.expect_err("lenient");
    assert_eq!(error.field, "cascade_proposals");
    assert!(error.problem.contains("lenience 2"), "{error}");
}
