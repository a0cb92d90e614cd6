//! Proofs over a real engine: choices proved from parts of rows, against choices from the whole rows of that engine.
//!
//!     cargo run --release -p engines --example prove < JOB
//!
//! The job is JSON: which engine, where, and sequences of tokens. Each is gone through in rounds, as a verifier would:
//! so many tokens are committed, the next ones draft tokens. A row whose choice stays unproved under one of the ways of
//! sampling is asked for again, with more. What is compared with are whole rows of the same engine, asked for in the
//! same way where it keeps a sequence's cache, for its rows depend a little on how many it computes at once, and else
//! once a sequence, which it reads whole in any case. The report, JSON too, says how many choices there were, how many
//! were another one than by the whole row, and what the rounds cost. `tests/engines/run` makes the job and reads it.

mod choices;
mod report;
mod rounds;

use std::io::Read;
use std::time::{Duration, Instant};

use engines::engine::ModelSizes;
use engines::{
    ConnectionSettings, EngineConnection, ScoreRequest, ScoredSequence, ScoringEngine,
    ScoringError, Sglang, Vllm, VllmRoute,
};
use serde::Deserialize;
use speculation::TokenId;
use speculation::certificate::PartialRow;

use crate::report::Report;

/// What is to be done.
#[derive(Debug, Deserialize)]
struct Job {
    /// "sglang", "vllm" or "vllm-completions".
    engine: String,
    url: String,
    /// What the engine calls the model.
    model: String,
    vocab_size: usize,
    context_len: usize,
    /// Sequences to go through.
    sequences: Vec<Vec<TokenId>>,
    /// Tokens of each that are committed in the first round.
    committed: usize,
    /// Draft tokens of a round.
    draft_tokens: usize,
    /// Sequences of one request.
    sessions: usize,
    seed: u64,
}

/// Time enough for any answer of a slow machine.
const LONGEST: Duration = Duration::from_mins(2);

fn deadline() -> Instant {
    Instant::now() + LONGEST
}

impl Job {
    fn engine(&self) -> Result<Box<dyn ScoringEngine>, ScoringError> {
        let settings = ConnectionSettings {
            url: self.url.clone(),
            ..Default::default()
        };
        let connection = EngineConnection::new(&settings)?;
        let model = ModelSizes {
            vocab_size: self.vocab_size,
            context_len: self.context_len,
        };
        match self.engine.as_str() {
            "sglang" => Ok(Box::new(Sglang::new(connection, model, true))),
            "vllm" => Ok(Box::new(Vllm::new(
                connection,
                self.model.clone(),
                model,
                VllmRoute::Generate,
            ))),
            "vllm-completions" => Ok(Box::new(Vllm::new(
                connection,
                self.model.clone(),
                model,
                VllmRoute::Completions,
            ))),
            _ => Err(ScoringError::Request("there is no such engine")),
        }
    }

    /// The whole rows after the last of so many committed tokens, and after each that follows.
    fn whole(
        &self,
        engine: &dyn ScoringEngine,
        tokens: &[TokenId],
        committed: usize,
    ) -> Result<Vec<PartialRow>, ScoringError> {
        let nothing = vec![Vec::new(); tokens.len() + 1 - committed];
        let sequence = ScoredSequence {
            tokens,
            committed,
            asked: &nothing,
            salt: "",
        };
        let scoring = ScoreRequest {
            sequences: &[sequence],
            top: self.vocab_size,
        };
        let scored = engine.score(&scoring, deadline())?.pop();
        let rows = scored.map(|it| it.rows);
        rows.ok_or(ScoringError::Answer("has no sequence"))
    }

    fn run(&self) -> Result<Report, ScoringError> {
        let engine = self.engine()?;
        let mut report = Report::default();
        for sequences in self.sequences.chunks(self.sessions.max(1)) {
            rounds::go_through(self, &*engine, sequences, &mut report)?;
        }
        Ok(report)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    let job: Job = serde_json::from_str(&text)?;
    let report = job.run()?;
    println!("{}", serde_json::to_string(&report.summary())?);
    Ok(())
}
