//! Scores that are equal: noise and log probabilities of few values.

use speculation::TokenId;
use speculation::certificate::{NoiseRanking, PartialDistribution, PartialRow, TokenUniforms};
use speculation::history::History;
use speculation::logprobs::Likely;
use speculation::philox::LANES;
use speculation::sampling::SamplingParams;

use super::random::Random;

/// Uniforms by token.
pub(crate) struct Table(pub(crate) Vec<f64>);

impl TokenUniforms for Table {
    fn uniform(&self, token: TokenId) -> f64 {
        self.0[token as usize]
    }

    fn uniforms(&self, first: TokenId) -> [f64; LANES] {
        std::array::from_fn(|lane| self.0.get(first as usize + lane).copied().unwrap_or(0.5))
    }
}

/// The largest score of all, the lowest token among equals.
fn choice(logprobs: &[f64], temperature: f64, noise: impl Fn(TokenId) -> f64) -> TokenId {
    let largest = logprobs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let score = |token: TokenId| (logprobs[token as usize] - largest) / temperature + noise(token);
    let tokens = 0..logprobs.len() as TokenId;
    let better = |best: TokenId, token| {
        if score(token) > score(best) {
            token
        } else {
            best
        }
    };
    tokens.reduce(better).expect("a token")
}

#[test]
fn equal_scores_go_to_the_lowest_token_or_stay_unproved() {
    let mut proved = 0;
    let mut random = Random::new(5);
    let cases = 60_000;
    for _ in 0..cases {
        let vocab = 2 + random.below(30);
        let values = 1 + random.below(3);
        let mut weights: Vec<f64> = (0..vocab)
            .map(|_| 2.0_f64.powi(-2 * random.below(values) as i32))
            .collect();
        let total: f64 = weights.iter().sum();
        for weight in &mut weights {
            *weight = (*weight / total).ln();
        }
        // Below and above the bound from which noise is ordered like its uniforms, and few of them.
        let levels = [0.2, 0.9, 0.97, 0.999];
        let kinds = 1 + random.below(4);
        let table = (0..vocab).map(|_| levels[random.below(kinds)]).collect();
        let noise = random.below(vocab);
        let ranked = noise + random.below(3) * 8;
        let ranking = NoiseRanking::new(Table(table), vocab, ranked);
        let temperature = [0.0, 0.5, 1.0, 2.0][random.below(4)];
        let params = SamplingParams {
            temperature,
            ..Default::default()
        };
        // Any tokens may be those that an engine puts first among equals.
        let mut order: Vec<(f64, TokenId)> = (0..vocab as TokenId)
            .map(|token| (random.uniform(), token))
            .collect();
        order.sort_by(|(tie, a), (other, b)| {
            let [a, b] = [a, b].map(|&token| weights[token as usize]);
            b.total_cmp(&a).then(tie.total_cmp(other))
        });
        let likely = |token: TokenId| Likely {
            token,
            logprob: weights[token as usize],
        };
        let expected = random.below(vocab + 1);
        let top: Vec<Likely> = order
            .iter()
            .take(expected)
            .map(|&(_, token)| likely(token))
            .collect();
        let asked: Vec<Likely> = ranking.tokens().take(noise).map(likely).collect();
        let row = PartialRow::new(vocab, expected, &top, &asked, 1e-9).expect("a row");
        let history = History::default();
        let law = PartialDistribution::of(&row, &params, &history, 0).expect("a distribution");
        if let Some(token) = law.choice(&ranking) {
            let chosen = if temperature == 0.0 {
                choice(&weights, 1.0, |_| 0.0)
            } else {
                choice(&weights, temperature.into(), |token| ranking.noise(token))
            };
            assert_eq!(token, chosen, "{weights:?} {row:?}");
            proved += 1;
        }
    }
    assert!((cases / 4..cases - cases / 8).contains(&proved), "{proved}");
}
