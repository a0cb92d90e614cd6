//! Sequences gone through in rounds.

use std::time::Instant;

use engines::{ScoreRequest, ScoredRows, ScoredSequence, ScoringEngine, ScoringError};
use speculation::TokenId;
use speculation::certificate::{KeyedUniforms, NoiseRanking, PartialRow, RowQuery};

use crate::choices::{choice, ranking, ways};
use crate::report::Report;
use crate::{Job, deadline};

type Rankings = Vec<Vec<NoiseRanking<KeyedUniforms>>>;

/// Goes through `sequences`, one request a round for all of them.
pub(crate) fn go_through(
    job: &Job,
    engine: &dyn ScoringEngine,
    sequences: &[Vec<TokenId>],
    report: &mut Report,
) -> Result<(), ScoringError> {
    let takes_ids = engine.caps().ids != engines::Ids::None;
    let keeps_cache = engine.caps().keeps_cache;
    let mut read: Vec<Vec<PartialRow>> = Vec::new();
    if !keeps_cache {
        let whole = |tokens: &Vec<TokenId>| job.whole(engine, tokens, job.committed);
        read = sequences.iter().map(whole).collect::<Result<_, _>>()?;
    }
    let rows = job.draft_tokens + 1;
    let longest = sequences.iter().map(Vec::len).max().unwrap_or(0);
    for committed in (job.committed..=longest).step_by(rows) {
        let under_way: Vec<usize> = (0..sequences.len())
            .filter(|&at| committed <= sequences[at].len())
            .collect();
        let cut = |at: &usize| {
            let tokens = &sequences[*at];
            &tokens[..tokens.len().min(committed + job.draft_tokens)]
        };
        let parts: Vec<&[TokenId]> = under_way.iter().map(cut).collect();
        let rankings: Rankings = parts
            .iter()
            .map(|part| {
                let positions = committed..=part.len();
                positions
                    .map(|position| ranking(job.seed, position as u32, job.vocab_size))
                    .collect()
            })
            .collect();
        let whole = |(&at, part): (&usize, &&[TokenId])| {
            if keeps_cache {
                return job.whole(engine, part, committed);
            }
            let rows = committed - job.committed..=part.len() - job.committed;
            Ok(read[at][rows].to_vec())
        };
        let expected = under_way.iter().zip(&parts).map(whole);
        let expected: Vec<Vec<PartialRow>> = expected.collect::<Result<_, _>>()?;
        let round = Round {
            committed,
            parts: &parts,
            rankings: &rankings,
            expected: &expected,
            takes_ids,
        };
        round.prove(job, engine, report)?;
    }
    Ok(())
}

struct Round<'a> {
    committed: usize,
    /// The sequences as far as they are scored.
    parts: &'a [&'a [TokenId]],
    rankings: &'a Rankings,
    expected: &'a [Vec<PartialRow>],
    takes_ids: bool,
}

impl Round<'_> {
    /// Asks until every choice is proved.
    fn prove(
        &self,
        job: &Job,
        engine: &dyn ScoringEngine,
        report: &mut Report,
    ) -> Result<(), ScoringError> {
        let mut query = RowQuery::START;
        let mut is_first = true;
        loop {
            let began = Instant::now();
            let rows = self.ask(engine, query)?;
            let took = began.elapsed();
            report.request(took, is_first, self.parts.len());
            let is_open = self.judge(&rows, is_first, report);
            if !is_open {
                return Ok(());
            }
            // A whole row proves every choice.
            assert!(
                !query.is_whole(job.vocab_size),
                "a whole row proves nothing"
            );
            query = query.grown(job.vocab_size);
            is_first = false;
        }
    }

    fn ask(
        &self,
        engine: &dyn ScoringEngine,
        query: RowQuery,
    ) -> Result<Vec<ScoredRows>, ScoringError> {
        let noise = if self.takes_ids { query.noise } else { 0 };
        let of_row = |ranking: &NoiseRanking<_>| ranking.tokens().take(noise).collect();
        let asked: Vec<Vec<Vec<TokenId>>> = self
            .rankings
            .iter()
            .map(|rankings| rankings.iter().map(of_row).collect())
            .collect();
        let sequences: Vec<ScoredSequence<'_>> = self
            .parts
            .iter()
            .zip(&asked)
            .map(|(tokens, asked)| ScoredSequence {
                tokens,
                committed: self.committed,
                asked,
                salt: "",
            })
            .collect();
        let scoring = ScoreRequest {
            sequences: &sequences,
            top: query.top,
        };
        engine.score(&scoring, deadline())
    }

    /// Compares what the rows prove with what the whole ones say; whether something is left unproved.
    fn judge(&self, scored: &[ScoredRows], is_first: bool, report: &mut Report) -> bool {
        let mut is_open = false;
        let all = scored.iter().zip(self.expected).zip(self.rankings);
        for ((scored, expected), rankings) in all {
            for ((row, whole), ranking) in scored.rows.iter().zip(expected).zip(rankings) {
                if is_first {
                    report.row(row, whole);
                }
                for (name, params) in ways() {
                    let began = Instant::now();
                    let found = choice(row, &params, ranking);
                    report.proof(name, began.elapsed(), is_first);
                    match found {
                        None => is_open = true,
                        Some(token) => {
                            let expected = choice(whole, &params, ranking);
                            report.proved(name, Some(token) == expected, is_first);
                        }
                    }
                }
            }
        }
        is_open
    }
}
