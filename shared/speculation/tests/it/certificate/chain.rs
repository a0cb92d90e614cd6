//! Chains of draft tokens: decided from parts of rows as from whole ones.

use std::sync::Arc;

use speculation::TokenId;
use speculation::certificate::chain::{Decided, OpenChain, Rules, Test};
use speculation::certificate::{PartialRow, RowQuery};
use speculation::chance::RoundChance;
use speculation::history::History;
use speculation::logprobs::Likely;
use speculation::noise::{InnerCall, Noise};
use speculation::pipeline::{DistributionError, Pipeline};
use speculation::proposal::BadProposal;
use speculation::sampling::SamplingParams;
use speculation::verification::{
    self, LastToken, PositionDistributions, RoundDistributions, Verdict, Verification,
};

use super::case::{Case, draft, logprobs};
use super::random::Random;

/// Output tokens before every chain.
const BASE: u32 = 5;

/// A chain, the rows after its prefixes, and the draft distributions that its tokens were drawn from.
struct Round {
    case: Case,
    rows: Vec<Vec<f64>>,
    drafted: Vec<Vec<(TokenId, f64)>>,
    drafts: Vec<TokenId>,
    ends: Vec<TokenId>,
}

impl Round {
    fn new(number: u64) -> Self {
        let case = Case::new(number, 96);
        let vocab = case.vocab();
        let mut random = Random::new(number ^ 0xc4a1);
        let len = random.below(5);
        let rows: Vec<Vec<f64>> = (0..=len).map(|_| logprobs(&mut random, vocab)).collect();
        let drafted: Vec<_> = rows[..len]
            .iter()
            .map(|row| draft(&mut random, row))
            .collect();
        let drafts: Vec<TokenId> = drafted
            .iter()
            .map(|of| of[random.below(of.len())].0)
            .collect();
        let mut ends = Vec::new();
        if random.happens(0.2) && len > 0 {
            ends.push(drafts[random.below(len)]);
        }
        Self {
            case,
            rows,
            drafted,
            drafts,
            ends,
        }
    }

    fn rules(&self, test: Test) -> Rules {
        let mut params = self.case.params.clone();
        params.end_tokens.extend(&self.ends);
        Rules {
            params: Arc::new(params),
            noise: self.case.noise,
            vocab_size: self.case.vocab(),
            test,
            logprobs: Some(2),
        }
    }

    /// Returns what an engine returns of the rows from `first` on, asked for so much of each.
    fn parts(&self, first: usize, top: usize, asked: &[Vec<TokenId>]) -> Vec<PartialRow> {
        let rows = self.rows[first..].iter().zip(asked);
        rows.map(|(row, asked)| {
            let likely = |token: TokenId| Likely {
                token,
                logprob: row[token as usize],
            };
            let mut sorted: Vec<Likely> = (0..row.len() as TokenId).map(likely).collect();
            sorted.sort_by(|a, b| b.logprob.total_cmp(&a.logprob).then(b.token.cmp(&a.token)));
            sorted.truncate(top);
            let asked: Vec<Likely> = asked.iter().map(|&token| likely(token)).collect();
            PartialRow::new(row.len(), top, &sorted, &asked, 0.1).expect("a row")
        })
        .collect()
    }

    /// Decides, beginning with `query`; how often more was asked for. None where parts of rows can never tell.
    fn decide(&self, test: Test, mut query: RowQuery) -> Option<(Decided, usize)> {
        let mut chain = OpenChain::new(self.rules(test), &self.drafts, BASE);
        let mut history = self.case.history.clone();
        let vocab = self.case.vocab();
        for again in 0.. {
            let asked = chain.asked(query, &history);
            let top = query.top.min(vocab);
            let rows = self.parts(chain.decided(), top, &asked);
            if let Some(decided) = chain.decide(&rows, &mut history).ok()? {
                return Some((decided, again));
            }
            assert!(!query.is_whole(vocab), "a whole row leaves nothing open");
            query = query.grown(vocab);
        }
        unreachable!("a range without an end")
    }

    fn dense(&self, verification: Verification) -> Option<Verdict> {
        let params = self.rules(Test::Coupled).params;
        let block = verification::DraftChain {
            drafts: &self.drafts,
            base_len: BASE,
            ends: &params.end_tokens,
            horizon: verification::layers::Horizon::default(),
            layers: &[],
        };
        let mut rows = Dense {
            round: self,
            pipeline: Pipeline::new(Arc::clone(&params)),
            history: self.case.history.clone(),
            row: Vec::new(),
            draft: Vec::new(),
        };
        let noise = self.case.noise;
        let mut chance = RoundChance::new(noise, BASE, InnerCall::default());
        verification::verify::<f64, _>(verification, &block, &noise, &mut chance, &mut rows).ok()
    }
}

/// The same rows whole, by the shipped pipeline.
struct Dense<'a> {
    round: &'a Round,
    pipeline: Pipeline,
    history: History,
    row: Vec<f64>,
    draft: Vec<f64>,
}

#[derive(Debug)]
struct NoRow;

impl From<BadProposal> for NoRow {
    fn from(_: BadProposal) -> Self {
        Self
    }
}

impl From<DistributionError> for NoRow {
    fn from(_: DistributionError) -> Self {
        Self
    }
}

impl RoundDistributions<f64> for Dense<'_> {
    type Error = NoRow;

    fn at(&mut self, offset: usize) -> Result<PositionDistributions<'_, f64>, NoRow> {
        if let Some(before) = offset.checked_sub(1) {
            self.history.push(self.round.drafts[before]);
        }
        self.row = self.round.rows[offset].clone();
        let position = BASE + offset as u32;
        self.pipeline
            .probs(&mut self.row, &self.history, position)?;
        self.draft = vec![0.0; self.row.len()];
        for &(token, mass) in self.round.drafted.get(offset).into_iter().flatten() {
            self.draft[token as usize] = mass;
        }
        Ok(PositionDistributions {
            target: &self.row,
            target_unscaled: None,
            draft: &mut self.draft,
        })
    }
}

#[test]
fn coupled_chains_are_decided_as_whole_rows_decide_them() {
    let (mut compared, mut accepted, mut again, mut ended) = (0, 0, 0, 0);
    for number in 0..20_000 {
        let round = Round::new(number);
        let query = RowQuery {
            top: 1 + number as usize % 7,
            noise: number as usize % 5,
        };
        let Some((decided, more)) = round.decide(Test::Coupled, query) else {
            continue;
        };
        let dense = round.dense(Verification::COUPLED).expect("a verdict");
        assert_eq!(decided.verdict, dense, "{number}");
        assert_eq!(decided.logprobs.len(), dense.emitted.len());
        for (offset, (token, told)) in dense.emitted.iter().zip(&decided.logprobs).enumerate() {
            assert_eq!(told.logprob, round.rows[offset][*token as usize]);
        }
        compared += 1;
        accepted += dense.path.len();
        again += more;
        ended += usize::from(dense.last == LastToken::AcceptedEnd);
    }
    // So that none of this is about nothing.
    let tally = [compared, accepted, again, ended];
    assert!(at_least(tally, [19_000, 1_000, 8_000, 100]), "{tally:?}");
}

#[test]
fn tests_of_draft_tokens_are_those_of_whole_rows_and_so_is_what_replaces_them() {
    let (mut compared, mut accepted, mut again, mut replaced) = (0, 0, 0, 0);
    for number in 0..20_000 {
        let round = Round::new(number);
        let query = RowQuery {
            top: 1 + number as usize % 7,
            noise: number as usize % 5,
        };
        let test = || Test::Token(round.drafted.clone());
        let Some((decided, more)) = round.decide(test(), query) else {
            continue;
        };
        let whole = RowQuery {
            top: round.case.vocab(),
            noise: 0,
        };
        let (by_whole, _) = round.decide(test(), whole).expect("a verdict");
        assert_eq!(decided.verdict, by_whole.verdict, "{number}");
        // The last token is drawn by other noise; what stands is not.
        let dense = round.dense(Verification::TOKEN).expect("a verdict");
        assert_eq!(decided.verdict.path, dense.path, "{number}");
        assert_eq!(decided.verdict.last, dense.last, "{number}");
        compared += 1;
        accepted += dense.path.len();
        again += more;
        replaced += usize::from(dense.last == LastToken::Recovered);
    }
    let tally = [compared, accepted, again, replaced];
    assert!(at_least(tally, [19_000, 2_000, 8_000, 15_000]), "{tally:?}");
}

#[test]
fn a_chain_begins_with_as_much_as_its_distributions_are_flat() {
    let vocab_size = 32_768;
    let start = |params: SamplingParams, logprobs, probs: &[Vec<f64>], are_shared| {
        let rules = Rules {
            params: Arc::new(params),
            noise: Noise::new(1, 0),
            vocab_size,
            test: Test::Coupled,
            logprobs,
        };
        OpenChain::new(rules, &[1, 2, 3], BASE).start(probs, are_shared)
    };
    let plain = SamplingParams::default;
    assert_eq!(start(plain(), None, &[], true), RowQuery::START);
    let greedy = SamplingParams {
        temperature: 0.0,
        ..plain()
    };
    assert_eq!(start(greedy.clone(), None, &[], true), RowQuery::GREEDY);
    let few = SamplingParams {
        allowed_tokens: vec![5, 6],
        ..plain()
    };
    assert_eq!(start(few, None, &[], true), RowQuery::GREEDY);
    // Alternatives that are told are asked for.
    assert_eq!(start(greedy, Some(20), &[], true).top, 20);
    let sure: Vec<f64> = (0..200).map(|rank| 0.5_f64.powi(rank + 1)).collect();
    let flat: Vec<f64> = (1..200).map(|rank| 0.1 / f64::from(rank)).collect();
    let of = |probs: &[f64], rows| RowQuery::for_draft(probs, vocab_size, rows);
    // One list for all rows holds that of each; of several positions the flattest tells.
    let both = [sure.clone(), flat.clone()];
    assert_eq!(start(plain(), None, &both, true), of(&flat, 4));
    assert_eq!(start(plain(), None, &both, false), of(&flat, 1));
    assert_eq!(
        start(plain(), None, std::slice::from_ref(&sure), true),
        of(&sure, 4)
    );
    assert!(of(&flat, 4) != of(&flat, 1) && of(&flat, 4) != of(&sure, 4));
}

fn at_least(tally: [usize; 4], least: [usize; 4]) -> bool {
    tally
        .iter()
        .zip(least)
        .all(|(&found, least)| found >= least)
}
