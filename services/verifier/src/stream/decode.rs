//! Decoding without drafts.

use std::time::Instant;

use peer::{Cost, Granted, RoundContext, RoundError};
use server::progress;
use server::trace::{Span, names};
use speculation::TokenId;
use v1::round_answer::Part;
use wire::status::BadField;
use wire::{logprobs, v1};

use super::check_room;
use crate::decode::{DecodeTask, DecodedToken};
use crate::remote;
use crate::service::{Verifier, VerifySession};

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
    let mut decoding = Decoding {
        verifier,
        max_tokens: requested.max_tokens,
        granted: context.granted.clone().from_first(requested.until),
        context,
        decoded: Vec::new(),
        total: Cost::default(),
    };
    let ended = decoding.run(session).await;
    let (total, decoded) = (decoding.total, decoding.decoded.len());
    let prefills = total.step.forwarded_tokens > decoded + 1;
    span.add_share(&total.share(prefills), context.began, None);
    span.set(names::DECODED_TOKENS, decoded as i64);
    ended
}

/// A round under way.
struct Decoding<'a> {
    verifier: &'a Verifier,
    context: &'a RoundContext<'a>,
    max_tokens: u32,
    granted: Granted,
    /// Tokens sent so far.
    decoded: Vec<TokenId>,
    total: Cost,
}

impl Decoding<'_> {
    async fn run(&mut self, session: &mut VerifySession) -> Result<(), RoundError> {
        let base_len = self.context.round.key.base_len;
        // The last token is never forwarded, so it needs no place.
        check_room(
            self.verifier,
            session,
            base_len,
            self.max_tokens as usize - 1,
        )?;
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
        let mut reports = if let Some(remote) = &self.verifier.role.remote {
            let decoded = &self.decoded;
            let reading = remote::decode(remote, session, decoded, left, granted, reporter, limit);
            self.context
                .wait(&mut progressing, Box::pin(reading))
                .await??
        } else {
            let (task, reports) = DecodeTask::new(session, &self.decoded, left, granted, reporter);
            session.submit(task)?;
            reports
        };
        loop {
            let began = Instant::now();
            let next = self.context.wait(&mut progressing, reports.recv()).await?;
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
        let timing = cost.timing(began, verifier.sessions().attached);
        let message = message(
            session,
            self.context.round.key.base_len + index,
            next,
            timing,
        );
        self.decoded.push(next.token);
        if index == 0 {
            cost.count(&verifier.metrics);
        } else {
            let (forward, sequences) = (cost.step.forward, cost.step.batch_sequences);
            verifier.metrics.forwarded(forward, sequences);
        }
        self.total.add(&cost);
        let last = message.last || index + 1 == self.max_tokens;
        let message = v1::Decoded { last, ..message };
        self.context.answer(Part::Decoded(message)).await?;
        Ok(last)
    }
}

/// The answer with a token decoded after `from` output tokens; the last one if it ends the output.
fn message(
    session: &VerifySession,
    from: u32,
    decoded: &DecodedToken,
    timing: v1::Timing,
) -> v1::Decoded {
    v1::Decoded {
        from,
        token_ids: vec![decoded.token],
        logprobs: decoded.logprobs.iter().map(logprobs::to_wire).collect(),
        last: session.spec.sampling.end_tokens.contains(&decoded.token),
        timing: Some(timing),
    }
}
