//! Decoding without drafts.

use std::sync::Arc;
use std::time::Instant;

use ops::trace::{Span, names};
use peer::{Cost, Granted, RoundContext, RoundError, progress};
use speculation::TokenId;
use v1::round_answer::Part;
use wire::status::BadField;
use wire::{logprobs, v1};

use super::check_room;
use crate::scorer::{DecodeRun, DecodedToken, Verifier, VerifySession};

/// Decodes alone, as far as it is granted, and streams the tokens as they come.
pub(super) async fn decode(
    verifier: &Verifier,
    session: &mut VerifySession,
    requested: v1::DecodeRound,
    context: &RoundContext<'_>,
    span: &mut Span,
) -> Result<(), RoundError> {
    if requested.max_tokens == 0 {
        return Err(BadField::new("max_tokens", "0 is out of range, expected at least 1").into());
    }
    let mut decoding = DecodeRound {
        verifier,
        context,
        max_tokens: requested.max_tokens,
        granted: context.granted.clone().from_first(requested.until),
        decoded: Vec::new(),
        total: Cost::default(),
    };
    let ended = decoding.run(session).await;
    let (total, decoded) = (decoding.total, decoding.decoded.len());
    let prefills = total.step.forwarded_tokens > decoded + 1;
    span.add_breakdown(&total.share(prefills), context.began, None);
    span.set(names::DECODED_TOKENS, decoded as i64);
    ended
}

/// A round under way.
struct DecodeRound<'a> {
    verifier: &'a Verifier,
    context: &'a RoundContext<'a>,
    max_tokens: u32,
    granted: Granted,
    /// Tokens sent so far.
    decoded: Vec<TokenId>,
    total: Cost,
}

impl DecodeRound<'_> {
    async fn run(&mut self, session: &mut VerifySession) -> Result<(), RoundError> {
        let base_len = self.context.round.key.base_len;
        // The last token is never forwarded, so it needs no place.
        let more = self.max_tokens as usize - 1;
        check_room(self.verifier, session, base_len, more)?;
        if !session.advance(self.context).await? {
            return Ok(());
        }
        loop {
            let position = base_len + self.decoded.len() as u32;
            self.granted.reaches(position).await?;
            if self.go_on(session).await? {
                return Ok(());
            }
        }
    }

    /// Decodes until the end, or until no more is granted; whether the round has ended.
    async fn go_on(&mut self, session: &mut VerifySession) -> Result<bool, RoundError> {
        let (reporter, mut progressing) = progress::channel();
        let (before, limit) = (self.decoded.len(), self.context.round.timeout);
        let (left, granted) = (self.max_tokens - before as u32, self.granted.clone());
        let (run, mut results) = DecodeRun::new(session, &self.decoded, left, granted, reporter);
        let starting = Arc::clone(&self.verifier.role.scorer).decode(session, run, limit);
        self.context.wait(&mut progressing, starting).await??;
        loop {
            let began = Instant::now();
            let next = self.context.wait(&mut progressing, results.recv()).await?;
            let next = match next {
                Some(next) => next?,
                // It stopped where no more was granted, which may have changed since.
                None if self.decoded.len() > before => return Ok(false),
                None => return Err(RoundError::Dropped),
            };
            if self.send(session, &next, began).await? {
                return Ok(true);
            }
        }
    }

    /// Sends a token that was awaited since `began`; whether it is the round's last.
    async fn send(
        &mut self,
        session: &VerifySession,
        next: &DecodedToken,
        began: Instant,
    ) -> Result<bool, RoundError> {
        let (verifier, cost) = (self.verifier, next.cost);
        let index = self.decoded.len() as u32;
        let ends = session.spec.sampling.end_tokens.contains(&next.token);
        let last = ends || index + 1 == self.max_tokens;
        let message = v1::Decoded {
            from: self.context.round.key.base_len + index,
            token_ids: vec![next.token],
            logprobs: next.logprobs.iter().map(logprobs::to_wire).collect(),
            last,
            timing: Some(cost.timing(began, verifier.sessions().attached)),
        };
        self.decoded.push(next.token);
        if index == 0 {
            cost.count(&verifier.metrics);
        } else {
            let (forward, sequences) = (cost.step.forward, cost.step.batch_sequences);
            verifier.metrics.forwarded(forward, sequences);
        }
        self.total.add(&cost);
        self.context.answer(Part::Decoded(message)).await?;
        Ok(last)
    }
}
