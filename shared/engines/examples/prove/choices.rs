//! The choices that are made from a row.

use speculation::TokenId;
use speculation::certificate::{KeyedUniforms, NoiseRanking, PartialDistribution, PartialRow};
use speculation::history::History;
use speculation::noise::Noise;
use speculation::sampling::SamplingParams;

/// The ways of sampling, by name. None depends on what came before.
pub(crate) fn ways() -> Vec<(&'static str, SamplingParams)> {
    let of = |temperature| SamplingParams {
        temperature,
        ..Default::default()
    };
    vec![
        ("T=0", of(0.0)),
        ("T=1", of(1.0)),
        ("T=0.7", of(0.7)),
        (
            "T=1, top-k 40",
            SamplingParams {
                top_k: 40,
                ..of(1.0)
            },
        ),
        (
            "T=1, top-p 0.9",
            SamplingParams {
                top_p: 0.9,
                ..of(1.0)
            },
        ),
        (
            "T=1, min-p 0.02",
            SamplingParams {
                min_p: 0.02,
                ..of(1.0)
            },
        ),
    ]
}

/// The noise of a position, ranked.
pub(crate) fn ranking(seed: u64, position: u32, vocab_size: usize) -> NoiseRanking<KeyedUniforms> {
    let uniforms = KeyedUniforms {
        noise: Noise::new(seed, 0),
        position,
    };
    NoiseRanking::new(uniforms, vocab_size, vocab_size)
}

/// The token that a row gives, if it proves one.
pub(crate) fn choice(
    row: &PartialRow,
    params: &SamplingParams,
    ranking: &NoiseRanking<KeyedUniforms>,
) -> Option<TokenId> {
    let history = History::default();
    let distribution = PartialDistribution::of(row, params, &history, 0);
    // None of the ways is refused, and each row has a most likely token.
    let distribution = distribution.expect("a distribution");
    distribution.choice(ranking)
}
