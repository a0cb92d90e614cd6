//! A block of draft tokens, and the prompt's log probabilities, over an engine elsewhere.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use engines::Ids;
use peer::{Cost, HeldSession, Role, RoundError};
use server::progress::Reporter;
use speculation::TokenId;
use speculation::certificate::chain::Test;
use speculation::certificate::{OpenChain, RowQuery};
use speculation::logprobs::TokenLogprobs;
use speculation::proposal::{Proposal, ProposalProbs};
use speculation::verification::{Verdict, Verification};
use wire::failure::Failure;
use wire::open::SessionSpec;

use super::queue::Wanted;
use super::settle::{Open, rules};
use super::{Remote, RemoteMemory};
use crate::verify::VerifyInput;

/// Draft distributions with more tokens are not asked for token by token.
const MOST_DRAFTED: usize = 1_024;

/// Decides a block; what of it stands, the log probabilities that are wanted, and what it cost. `limit` bounds each
/// request.
pub(crate) async fn decide(
    remote: &Remote,
    session: &mut HeldSession<impl Role<Memory = RemoteMemory>>,
    input: VerifyInput,
    progress: Reporter,
    limit: Duration,
) -> Result<((Verdict, Vec<TokenLogprobs>), Cost), RoundError> {
    let spec = Arc::clone(&session.spec);
    let base_len = session.committed.tokens().len() as u32;
    let tokens = session.sequence(&input.drafts);
    let committed = tokens.len() - input.drafts.len();
    remote
        .read(&mut session.memory, &tokens[..committed], &progress, limit)
        .await?;
    let drafted = if spec.verification == Verification::COUPLED {
        None
    } else {
        Some(drafted(&spec, &input.drafts, &input.proposals)?)
    };
    let likeliest = drafted.iter().flatten().map(|drafted| descending(drafted));
    let likeliest: Vec<Vec<f64>> = likeliest.collect();
    let most = likeliest.iter().map(Vec::len).max().unwrap_or(0);
    let test = drafted.map_or(Test::Coupled, Test::Token);
    let chain = OpenChain::new(rules(&spec, test), &input.drafts, base_len);
    let asking = if most > MOST_DRAFTED {
        RowQuery::whole(spec.vocab_size as usize)
    } else {
        chain.start(&likeliest, remote.caps.ids == Ids::Shared)
    };
    let open = Open {
        chain,
        history: session.history(),
        tokens,
        committed,
        vocab_size: spec.vocab_size as usize,
        asking,
        generation: session.memory.generation.unwrap_or_default(),
        last: session.memory.last.take(),
        salt: Arc::clone(&session.memory.salt),
    };
    let settled = remote.settle(open, limit).await?;
    session.memory.last = settled.last;
    let decided = settled.decided;
    Ok(((decided.verdict, decided.logprobs), settled.cost))
}

/// The draft distribution at each draft token: what has mass, ascending by token.
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

/// The probabilities of a draft distribution, the largest first.
fn descending(drafted: &[(TokenId, f64)]) -> Vec<f64> {
    let mut probs: Vec<f64> = drafted.iter().map(|&(_, prob)| prob).collect();
    probs.sort_unstable_by(|a, b| b.total_cmp(a));
    probs
}

/// The log probabilities of the prompt tokens after each of those in `range`. `limit` bounds the request.
pub(crate) async fn score_prompt(
    remote: &Remote,
    session: &HeldSession<impl Role<Memory = RemoteMemory>>,
    range: Range<usize>,
    limit: Duration,
) -> Result<(Vec<TokenLogprobs>, Cost), RoundError> {
    let (lead, vocab_size) = (session.spec.lead(), session.spec.vocab_size as usize);
    let scored = &lead[range.start + 1..=range.end];
    let wanted = session.spec.logprobs.unwrap_or(0) as usize;
    let can_ask = remote.caps.ids != Ids::None;
    let of_row = |&token: &TokenId| if can_ask { vec![token] } else { Vec::new() };
    let request = Wanted {
        tokens: lead[..range.end].to_vec(),
        committed: range.start + 1,
        top: if can_ask {
            wanted.max(1)
        } else {
            remote.row_len
        },
        asked: scored.iter().map(of_row).collect(),
        salt: Arc::clone(&session.memory.salt),
        deadline: Instant::now() + limit,
    };
    let (rows, step) = remote.queue.ask(request).await?;
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
