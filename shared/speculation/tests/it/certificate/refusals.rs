//! What must be known and is not, and what can never be told.

use speculation::TokenId;
use speculation::certificate::{
    KeyedUniforms, NoiseRanking, PartialDistribution, PartialRow, RowRefusal,
};
use speculation::history::History;
use speculation::logprobs::Likely;
use speculation::noise::Noise;
use speculation::sampling::SamplingParams;

const MASSES: [f64; 6] = [0.3, 0.25, 0.2, 0.15, 0.07, 0.03];

/// The two most likely of six tokens, and those `asked`.
fn part(asked: &[TokenId]) -> PartialRow {
    let likely = |token: TokenId| Likely {
        token,
        logprob: MASSES[token as usize].ln(),
    };
    let asked: Vec<Likely> = asked.iter().copied().map(likely).collect();
    PartialRow::new(6, 2, &[likely(0), likely(1)], &asked, 1e-9).expect("a row")
}

fn refusal(params: &SamplingParams, output: &[TokenId], asked: &[TokenId]) -> Option<RowRefusal> {
    let history = History::new(params, &[5], output);
    let row = part(asked);
    let law = PartialDistribution::of(&row, params, &history, 0);
    law.err()
}

#[test]
fn tokens_that_are_raised_must_be_known() {
    let biased = |token, bias| SamplingParams {
        logit_bias: vec![(0, 1.0), (token, bias)],
        ..Default::default()
    };
    assert_eq!(
        refusal(&biased(4, 0.5), &[], &[]),
        Some(RowRefusal::NotKnown(4))
    );
    assert_eq!(refusal(&biased(4, 0.5), &[], &[4]), None);
    assert_eq!(refusal(&biased(4, -0.5), &[], &[]), None);
    let penalised = |presence_penalty, frequency_penalty| SamplingParams {
        presence_penalty,
        frequency_penalty,
        ..Default::default()
    };
    for (presence, frequency) in [(-0.1, 0.0), (0.0, -0.1), (0.5, -0.1)] {
        let params = penalised(presence, frequency);
        let unknown = refusal(&params, &[1, 3], &[]);
        assert_eq!(unknown, Some(RowRefusal::NotKnown(3)));
        assert_eq!(refusal(&params, &[1, 3], &[3]), None);
    }
    assert_eq!(refusal(&penalised(0.5, 0.1), &[1, 3], &[]), None);
    // Of what may not be drawn nothing need be known.
    let params = SamplingParams {
        allowed_tokens: vec![0, 5],
        ..biased(4, 0.5)
    };
    assert_eq!(refusal(&params, &[], &[]), None);
}

#[test]
fn what_log_probabilities_cannot_tell_is_refused() {
    let params = SamplingParams {
        repetition_penalty: 1.2,
        ..Default::default()
    };
    assert_eq!(
        refusal(&params, &[], &[]),
        Some(RowRefusal::RepetitionPenalty)
    );
    let params = SamplingParams {
        allowed_tokens: vec![0],
        banned_tokens: vec![0],
        ..Default::default()
    };
    assert_eq!(refusal(&params, &[], &[]), Some(RowRefusal::NoSupport));
}

#[test]
fn the_draft_distribution_must_be_known() {
    let noise = Noise::new(1, 0).unshared();
    let uniforms = KeyedUniforms { noise, position: 0 };
    let ranking = NoiseRanking::new(uniforms, 6, 6);
    let (params, history) = (SamplingParams::default(), History::default());
    let row = part(&[4]);
    let law = PartialDistribution::of(&row, &params, &history, 0).expect("a distribution");
    assert_eq!(law.accepts(3, 0.5, 0.5), Err(RowRefusal::NotKnown(3)));
    assert_eq!(law.accepts(4, 0.5, 0.5), Ok(Some(false)));
    assert_eq!(law.accepts(4, 0.5, 0.1), Ok(Some(true)));
    let draft = [(1, 0.5), (3, 0.5)];
    assert_eq!(law.residual(&draft, &ranking), Err(RowRefusal::NotKnown(3)));
    assert!(law.residual(&[(1, 1.0), (3, 0.0)], &ranking).is_ok());
}
