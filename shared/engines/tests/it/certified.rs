//! From a seed to a token over an engine: choices proved from its answers are those of whole rows.

use engines::{ScoreRequest, ScoredSequence, ScoringEngine, Sglang, Vllm, VllmRoute};
use speculation::TokenId;
use speculation::certificate::{
    KeyedUniforms, NoiseRanking, PartialDistribution, PartialRow, RowQuery,
};
use speculation::history::History;
use speculation::noise::Noise;
use speculation::sampling::SamplingParams;

use crate::model::{MODEL, VOCAB, row};
use crate::stub::{Response, Stub, soon};

fn is_right_on(engine: &impl ScoringEngine) {
    let params = SamplingParams {
        temperature: 0.8,
        ..Default::default()
    };
    let history = History::default();
    let mut proved = 0;
    for round in 0..40_u32 {
        let tokens: Vec<TokenId> = (0..8)
            .map(|at| (round * 7 + at * 5) % VOCAB as u32)
            .collect();
        let rankings: Vec<NoiseRanking<KeyedUniforms>> = (0..3)
            .map(|offset| {
                let uniforms = KeyedUniforms {
                    noise: Noise::new(9, 0),
                    position: round + offset,
                };
                NoiseRanking::new(uniforms, VOCAB, VOCAB)
            })
            .collect();
        let mut query = RowQuery { top: 2, noise: 1 };
        loop {
            let asked: Vec<Vec<TokenId>> = rankings
                .iter()
                .map(|ranking| ranking.tokens().take(query.noise).collect())
                .collect();
            let sequence = ScoredSequence {
                tokens: &tokens,
                committed: 6,
                asked: &asked,
                salt: "",
            };
            let scoring = ScoreRequest {
                sequences: &[sequence],
                top: query.top,
            };
            let rows = engine.score(&scoring, soon()).expect("rows");
            let mut is_open = false;
            for (offset, part) in rows[0].rows.iter().enumerate() {
                let (ranking, position) = (&rankings[offset], round + offset as u32);
                let choice = |row: &PartialRow| {
                    let law = PartialDistribution::of(row, &params, &history, position);
                    law.expect("a distribution").choice(ranking)
                };
                let whole = PartialRow::whole(&row(&tokens[..6 + offset], 1.0), 1e-4);
                match choice(part) {
                    None => is_open = true,
                    found @ Some(_) => {
                        assert_eq!(found, choice(&whole.expect("a row")));
                        proved += 1;
                    }
                }
            }
            if !is_open {
                break;
            }
            query = query.grown(VOCAB);
        }
    }
    assert!(proved >= 120);
}

#[test]
fn choices_over_sglang_are_those_of_whole_rows() {
    let stub = Stub::new(|_, request| Response::json(&crate::sglang::answer(request)));
    is_right_on(&Sglang::new(stub.connection(), MODEL, true));
    let requests = stub.requests().len();
    assert!(requests > 40, "nothing was asked again");
}

#[test]
fn choices_over_vllm_are_those_of_whole_rows() {
    let stub = Stub::new(|_, request| Response::json(&crate::vllm::answer_generate(request)));
    is_right_on(&Vllm::new(
        stub.connection(),
        "served".to_owned(),
        MODEL,
        VllmRoute::Generate,
    ));
}
