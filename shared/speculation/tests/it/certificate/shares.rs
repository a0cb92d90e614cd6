//! How much stays unproved of rows as large as those of real models, against the formula.

use std::time::{Duration, Instant};

use speculation::TokenId;
use speculation::certificate::row_query::unproved_share;
use speculation::certificate::{
    KeyedUniforms, NoiseRanking, PartialDistribution, PartialRow, RowQuery,
};
use speculation::history::History;
use speculation::logprobs::Likely;
use speculation::noise::Noise;
use speculation::sampling::SamplingParams;

use super::random::Random;

/// Ranks up to which a row falls as its head does, and from where on as 1/rank.
const HEAD: usize = 4096;

/// A row of which the token at each rank is known, so that it need not be sorted.
struct Row {
    vocab: usize,
    head: f64,
    shift: f64,
    normaliser: f64,
}

impl Row {
    /// A head of `(rank + shift)^-head` and a tail of 1/rank.
    fn new(vocab: usize, head: f64, shift: f64) -> Self {
        let mut row = Self {
            vocab,
            head,
            shift,
            normaliser: 0.0,
        };
        row.normaliser = (1..=vocab)
            .map(|rank| row.logit(rank).exp())
            .sum::<f64>()
            .ln();
        row
    }

    fn logit(&self, rank: usize) -> f64 {
        let of_head = |rank: usize| -self.head * (rank as f64 + self.shift).ln();
        if rank <= HEAD {
            of_head(rank)
        } else {
            of_head(HEAD) - (rank as f64 / HEAD as f64).ln()
        }
    }

    fn logprob(&self, rank: usize) -> f64 {
        f64::from((self.logit(rank) - self.normaliser) as f32)
    }

    /// The token at a rank from 1 on: steps of a number that shares no factor with the vocabulary.
    fn token(&self, rank: usize) -> TokenId {
        ((rank * 12_347) % self.vocab) as TokenId
    }

    /// The ranks of all tokens.
    fn ranks(&self) -> Vec<usize> {
        let mut ranks = vec![0; self.vocab];
        for rank in 1..=self.vocab {
            ranks[self.token(rank) as usize] = rank;
        }
        ranks
    }

    /// The K-th largest probability at a temperature.
    fn kth(&self, k: usize, temperature: f64) -> f64 {
        let weight = |rank: usize| (self.logit(rank) / temperature).exp();
        weight(k) / (1..=self.vocab).map(weight).sum::<f64>()
    }
}

/// Measured and expected shares.
struct Shares {
    draws: f64,
    unproved: f64,
    expected: f64,
    ranking: Duration,
    proving: Duration,
}

fn measure(vocab: usize, temperature: f32, query: RowQuery) -> Shares {
    let mut random = Random::new(vocab as u64 + query.top as u64);
    let mut shares = Shares {
        draws: 0.0,
        unproved: 0.0,
        expected: 0.0,
        ranking: Duration::ZERO,
        proving: Duration::ZERO,
    };
    let params = SamplingParams {
        temperature,
        ..Default::default()
    };
    let history = History::default();
    for head in 0..24 {
        // From sure rows to flat ones.
        let row = Row::new(vocab, random.between(0.9, 2.2), random.between(0.0, 2.0));
        let ranks = row.ranks();
        let kth = row.kth(query.top, temperature.into());
        let likely = |rank: usize| Likely {
            token: row.token(rank),
            logprob: row.logprob(rank),
        };
        let top: Vec<Likely> = (1..=query.top).map(likely).collect();
        for draw in 0..60 {
            let uniforms = KeyedUniforms {
                noise: Noise::new(head, 0),
                position: draw,
            };
            let start = Instant::now();
            let ranking = NoiseRanking::new(uniforms, vocab, query.noise + 64);
            shares.ranking += start.elapsed();
            let asked = ranking.tokens().take(query.noise);
            let asked: Vec<Likely> = asked.map(|token| likely(ranks[token as usize])).collect();
            let start = Instant::now();
            let part = PartialRow::new(vocab, query.top, &top, &asked, 1e-4).expect("a row");
            let law = PartialDistribution::of(&part, &params, &history, draw);
            let choice = law.expect("a distribution").choice(&ranking);
            shares.proving += start.elapsed();
            shares.draws += 1.0;
            shares.unproved += f64::from(choice.is_none());
            shares.expected += unproved_share(vocab, kth, query.noise);
        }
    }
    shares
}

#[test]
fn the_unproved_share_is_that_of_the_formula() {
    let few = RowQuery { top: 64, noise: 64 };
    for vocab in [32_768, 151_936] {
        for temperature in [1.0, 0.7] {
            for query in [RowQuery::START, few] {
                let shares = measure(vocab, temperature, query);
                let (share, expected) = (
                    shares.unproved / shares.draws,
                    shares.expected / shares.draws,
                );
                let error = (expected * (1.0 - expected) / shares.draws).sqrt();
                let micros = |time: Duration| time.as_secs_f64() * 1e6 / shares.draws;
                println!(
                    "V={vocab} T={temperature} K={} N={}: {share:.4} unproved, {expected:.4} by the \
                     formula, {error:.4} sampling error; {:.0} us a ranking, {:.0} us a proof",
                    query.top,
                    query.noise,
                    micros(shares.ranking),
                    micros(shares.proving),
                );
                // The least noise outside is about N/V, not exactly.
                let allowed = 4.0 * error + 0.05 * expected;
                assert!((share - expected).abs() <= allowed, "{share} {expected}");
            }
        }
    }
}
