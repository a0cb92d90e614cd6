//! An engine elsewhere as what computes the target for a session: which sessions it serves, and their rounds.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use engines::Ids;
use peer::progress::Reporter;
use peer::{Cost, RoundError};
use speculation::TokenId;
use speculation::certificate::chain::Test;
use speculation::certificate::{Decided, RowQuery};
use speculation::logprobs::TokenLogprobs;
use speculation::proposal::{Proposal, ProposalProbs};
use speculation::round::BlockInput;
use speculation::verification::Verification;
use tonic::Status;
use wire::describe::fingerprint;
use wire::failure::Failure;
use wire::open::{EVERYONE, SessionSpec};
use wire::v1;

use super::queue::RowRequest;
use super::resolve::EngineChain;
use super::{Remote, RemoteSession};
use crate::scorer::{DecodeRun, DecodedForward, Scorer, Verifier, VerifySession};

/// Most drafts in one request while the target decodes, and the least probability of standing of each: what a row costs
/// the engine and its other clients is not known.
const MOST_STREAMED: u32 = 16;
const LEAST_STREAMED: f32 = 0.4;

/// Draft distributions with more tokens are not asked for token by token.
const MOST_DRAFTED: usize = 1_024;

#[tonic::async_trait]
impl Scorer for Remote {
    fn numerics(&self) -> Option<v1::Numerics> {
        Some(self.standing.numerics())
    }

    fn open(
        &self,
        _verifier: &Verifier,
        session: &mut VerifySession,
        numerics: &str,
    ) -> Result<(), Status> {
        let memory = &mut session.memory;
        let generation = self.standing.opened(numerics)?;
        if memory.generation.replace(generation) != Some(generation) {
            // What another engine read and said is nothing to this one.
            *memory = RemoteSession {
                generation: memory.generation,
                ..RemoteSession::default()
            };
        }
        memory.salt = salt(&session.spec);
        Ok(())
    }

    /// Checks also that the engine's prefix cache separates tenants, if the session has one.
    fn admit(&self, session: &VerifySession, has_output: bool) -> Result<(), Status> {
        let is_named = !["", EVERYONE].contains(&session.spec.tenant.as_str());
        if !self.caps.parts_tenants && !self.shares_tenants && is_named {
            let why = "the engine's prefix cache does not separate tenants, and this request has a tenant; \
                       verifier.remote.share_tenants allows it";
            return Err(Failure::NotOffered.status(why));
        }
        let generation = session.memory.generation.unwrap_or_default();
        self.standing.admit(generation, !has_output)
    }

    async fn decide(
        &self,
        session: &mut VerifySession,
        block: BlockInput,
        progress: Reporter,
        limit: Duration,
    ) -> Result<(Decided, Cost), RoundError> {
        let spec = Arc::clone(&session.spec);
        let drafts = block.drafts.tokens();
        let tokens = session.sequence(&[]);
        let read = self.read(&mut session.memory, &tokens, &progress, limit);
        read.await?;
        let drafted = if spec.verification == Verification::COUPLED {
            None
        } else {
            Some(drafted(&spec, drafts, &block.proposals)?)
        };
        let likeliest = drafted.iter().flatten().map(|drafted| descending(drafted));
        let likeliest: Vec<Vec<f64>> = likeliest.collect();
        let most = likeliest.iter().map(Vec::len).max().unwrap_or(0);
        let test = drafted.map_or(Test::Coupled, Test::Token);
        let history = session.history();
        let mut open = EngineChain::new(&spec, &mut session.memory, history, tokens, drafts, test);
        open.query = if most > MOST_DRAFTED {
            RowQuery::whole(spec.vocab_size as usize)
        } else {
            let lists_are_shared = self.caps.ids == Ids::Shared;
            open.chain.start(&likeliest, lists_are_shared)
        };
        let (resolved, decided, cost) = self.resolve(open, limit).await?;
        session.memory.last = resolved.last;
        Ok((decided, cost))
    }

    async fn decode(
        self: Arc<Self>,
        session: &mut VerifySession,
        run: DecodeRun,
        limit: Duration,
    ) -> Result<(), RoundError> {
        let read = self.read(&mut session.memory, &run.tokens, &run.progress, limit);
        read.await?;
        let (history, tokens) = (run.history(session), run.tokens.clone());
        let memory = &mut session.memory;
        let open = EngineChain::new(&run.spec, memory, history, tokens, &[], Test::Coupled);
        let cancelled = run.cancelled();
        tokio::spawn(async move {
            tokio::select! {
                biased;
                () = cancelled => {}
                () = decode_all(&self, run, open, limit) => {}
            }
        });
        Ok(())
    }

    async fn score_prompt(
        &self,
        session: &VerifySession,
        range: Range<usize>,
        _progress: Reporter,
        limit: Duration,
    ) -> Result<(Vec<TokenLogprobs>, Cost), RoundError> {
        let (lead, vocab_size) = (session.spec.lead(), session.spec.vocab_size as usize);
        let scored = &lead[range.start + 1..=range.end];
        let wanted = session.spec.logprobs.unwrap_or(0) as usize;
        let can_ask = self.caps.ids != Ids::None;
        let of_row = |&token: &TokenId| if can_ask { vec![token] } else { Vec::new() };
        let request = RowRequest {
            tokens: lead[..range.end].to_vec(),
            committed: range.start + 1,
            top: if can_ask { wanted.max(1) } else { self.row_len },
            asked: scored.iter().map(of_row).collect(),
            salt: Arc::clone(&session.memory.salt),
            deadline: Instant::now() + limit,
        };
        let (rows, step) = self.queue.ask(request).await?;
        let rows = rows.into_iter().map(|row| row.within(vocab_size));
        let told = rows.zip(scored).map(|(row, &token)| {
            if row.contains(token) {
                return Ok(row.logprobs(token, wanted));
            }
            let why = "the engine left out a token of the prompt";
            Err(RoundError::Other(Failure::Unavailable.status(why)))
        });
        Ok((told.collect::<Result<_, _>>()?, Cost::of(step)))
    }
}

async fn decode_all(remote: &Remote, mut run: DecodeRun, mut open: EngineChain, limit: Duration) {
    loop {
        let (resolved, decided, cost) = match remote.resolve(open, limit).await {
            Ok(resolved) => resolved,
            Err(error) => return run.report(Err(error)),
        };
        let verdict = decided.verdict;
        run.progress.count(verdict.emitted.len());
        let decoded = DecodedForward {
            tokens: verdict.emitted.clone(),
            logprobs: decided.logprobs,
            cost,
            drafts: None,
        };
        if !run.push(decoded, (&verdict.path, verdict.last)) {
            return;
        }
        let drafts = drafts(&mut run);
        open = resolved.after(&run.spec, &verdict, &drafts);
    }
}

/// Returns the draft tokens to score next, of those that have come: a chain, as far as it is likely to stand.
fn drafts(run: &mut DecodeRun) -> Vec<TokenId> {
    let Some((drafts, levels)) = run.received(None) else {
        return Vec::new();
    };
    let worth = drafts.offer(levels.min(MOST_STREAMED), true);
    let likely = worth.take_while(|&worth| worth >= LEAST_STREAMED).count();
    drafts.prepare(likely).tokens().to_vec()
}

/// Returns the draft distribution at each draft token: what has mass, ascending by token.
fn drafted(
    spec: &SessionSpec,
    drafts: &[TokenId],
    proposals: &[Proposal],
) -> Result<Vec<Vec<(TokenId, f64)>>, RoundError> {
    let mut row = vec![0.0_f64; spec.vocab_size as usize];
    let told = drafts.iter().enumerate().map(|(at, &draft)| {
        let proposal = proposals.get(at);
        let probs = proposal.map(|proposal| &proposal.probs);
        probs
            .unwrap_or(&ProposalProbs::default())
            .write_probs(draft, &mut row)?;
        let entries = row.iter().enumerate();
        let has_mass = entries.filter(|&(_, &prob)| prob > 0.0);
        Ok(has_mass
            .map(|(token, &prob)| (token as TokenId, prob))
            .collect())
    });
    told.collect()
}

/// Returns the probabilities of a draft distribution, the largest first.
fn descending(drafted: &[(TokenId, f64)]) -> Vec<f64> {
    let mut probs: Vec<f64> = drafted.iter().map(|&(_, prob)| prob).collect();
    probs.sort_unstable_by(|a, b| b.total_cmp(a));
    probs
}

/// Returns the salt of a session: one for all sessions that may share beginnings, and one for each that shares none.
pub(super) fn salt(spec: &SessionSpec) -> Arc<str> {
    let (kind, of) = match spec.tenant.as_str() {
        "" => ("session", &spec.id[..]),
        tenant => ("tenant", tenant.as_bytes()),
    };
    let hash = fingerprint(&[kind.as_bytes(), of].concat());
    format!("{hash:016x}").into()
}
