//! Decoding without drafts over an engine elsewhere: one token a request.

use std::sync::Arc;
use std::time::Duration;

use peer::{CountedHistory, Granted, HeldSession, Role, RoundError};
use server::progress::Reporter;
use speculation::TokenId;
use speculation::certificate::OpenChain;
use speculation::certificate::chain::Test;
use tokio::sync::mpsc;
use wire::open::SessionSpec;

use super::seen::SeenRow;
use super::settle::{Open, rules};
use super::{Remote, RemoteMemory};
use crate::decode::{DecodedToken, Report};

/// Decodes at most `max_tokens` tokens after the session's output and `decoded`, as far as it is granted, as
/// [`DecodeTask`](crate::decode::DecodeTask) does; the channel closes at the end. `limit` bounds each request.
///
/// # Errors
/// If the engine does not read what stands before them.
pub(crate) async fn decode(
    remote: &Arc<Remote>,
    session: &mut HeldSession<impl Role<Memory = RemoteMemory>>,
    decoded: &[TokenId],
    max_tokens: u32,
    granted: Granted,
    progress: Reporter,
    limit: Duration,
) -> Result<mpsc::Receiver<Report>, RoundError> {
    let tokens = session.sequence(decoded);
    remote
        .read(&mut session.memory, &tokens, &progress, limit)
        .await?;
    // Room for all, so that sending never waits.
    let (reports, receiver) = mpsc::channel(max_tokens as usize + 1);
    let decoding = Decoding {
        remote: Arc::clone(remote),
        spec: Arc::clone(&session.spec),
        tokens,
        granted,
        progress,
        limit,
        generation: session.memory.generation.unwrap_or_default(),
        last: session.memory.last.take(),
        salt: Arc::clone(&session.memory.salt),
    };
    let mut history = session.history();
    for &token in decoded {
        history.push(token);
    }
    tokio::spawn(async move {
        tokio::select! {
            biased;
            () = reports.closed() => {}
            () = decoding.run(history, max_tokens, &reports) => {}
        }
    });
    Ok(receiver)
}

struct Decoding {
    remote: Arc<Remote>,
    spec: Arc<SessionSpec>,
    /// Prompt and output.
    tokens: Vec<TokenId>,
    granted: Granted,
    progress: Reporter,
    limit: Duration,
    generation: u32,
    last: Option<SeenRow>,
    salt: Arc<str>,
}

impl Decoding {
    async fn run(
        mut self,
        mut history: CountedHistory,
        max_tokens: u32,
        reports: &mpsc::Sender<Report>,
    ) {
        for _ in 0..max_tokens {
            let decoded = match self.next(history).await {
                Ok((decoded, after)) => {
                    history = after;
                    decoded
                }
                Err(error) => {
                    let _ = reports.try_send(Err(error));
                    return;
                }
            };
            let token = decoded.token;
            self.progress.count(1);
            self.tokens.push(token);
            history.push(token);
            let _ = reports.try_send(Ok(decoded));
            let ended = self.spec.sampling.end_tokens.contains(&token);
            if ended || self.position() >= self.granted.until() {
                return;
            }
        }
    }

    /// The position of the next token.
    fn position(&self) -> u32 {
        (self.tokens.len() - self.spec.lead().len()) as u32
    }

    async fn next(
        &mut self,
        history: CountedHistory,
    ) -> Result<(DecodedToken, CountedHistory), RoundError> {
        let position = self.position();
        let last = self.last.take();
        let spec = &self.spec;
        let chain = OpenChain::new(rules(spec, Test::Coupled), &[], position);
        let open = Open {
            asking: chain.start(&[], false),
            chain,
            history,
            tokens: self.tokens.clone(),
            committed: self.tokens.len(),
            vocab_size: spec.vocab_size as usize,
            generation: self.generation,
            last,
            salt: Arc::clone(&self.salt),
        };
        let settled = self.remote.settle(open, self.limit).await?;
        self.last = settled.last;
        let decided = settled.decided;
        // A chain without draft tokens emits one token.
        let token = decided.verdict.emitted.first().copied();
        let decoded = DecodedToken {
            token: token.ok_or(RoundError::Dropped)?,
            logprobs: decided.logprobs.into_iter().next(),
            cost: settled.cost,
        };
        Ok((decoded, settled.history))
    }
}
