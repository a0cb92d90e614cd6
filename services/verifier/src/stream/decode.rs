//! Decoding without drafts.

use std::time::Instant;

use ops::trace::names;
use peer::progress;
use peer::{Cost, Granted, Replies, RoundError, Turn, traced};
use speculation::TokenId;
use tonic::Status;
use v1::verify_reply::Reply;
use wire::round::Round;
use wire::status::BadField;
use wire::{logprobs, round, v1};

use super::{check_room, reply};
use crate::decode::{DecodeTask, DecodedToken};
use crate::remote;
use crate::service::{Target, Verifier, VerifySession};

/// Decodes alone, as far as it is granted, and streams the tokens as they come.
pub(super) async fn decode(
    verifier: &Verifier,
    session: &mut VerifySession,
    replies: &Replies<v1::VerifyReply>,
    requested: v1::DecodeRound,
    granted: Granted,
    epoch: u32,
) -> Result<(), Status> {
    if requested.max_tokens == 0 {
        return Err(BadField::new("max_tokens", "0 is out of range, expected at least 1").into());
    }
    let began = Instant::now();
    let round = round::from_wire(requested.header, epoch, session.spec.vocab_size)?;
    let trace_context = &round.trace_context;
    let mut span = verifier.traces.round(names::DECODE, trace_context, began);
    let turn = Turn {
        round,
        began,
        replies,
    };
    let mut decoding = Decoding {
        verifier,
        turn,
        max_tokens: requested.max_tokens,
        granted: granted.from_first(requested.until),
        decoded: Vec::new(),
        total: Cost::default(),
    };
    let ended = traced::<Target, _>(&mut span, decoding.run(session)).await;
    let (total, decoded) = (decoding.total, decoding.decoded.len());
    let prefills = total.step.forwarded_tokens > decoded + 1;
    span.add_breakdown(&total.share(prefills), began, None);
    span.set(names::DECODED_TOKENS, decoded as i64);
    ended
}

/// A round under way.
struct Decoding<'a> {
    verifier: &'a Verifier,
    turn: Turn<'a, Target>,
    max_tokens: u32,
    granted: Granted,
    /// Tokens sent so far.
    decoded: Vec<TokenId>,
    total: Cost,
}

impl Decoding<'_> {
    async fn run(&mut self, session: &mut VerifySession) -> Result<(), RoundError> {
        let base_len = self.turn.round.key.base_len;
        // The last token is never forwarded, so it needs no place.
        check_room(
            self.verifier,
            session,
            base_len,
            self.max_tokens as usize - 1,
        )?;
        if !self.turn.advance(session).await? {
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
        let (before, limit) = (self.decoded.len(), self.turn.round.timeout);
        let (left, granted) = (self.max_tokens - before as u32, self.granted.clone());
        let mut reports = if let Some(remote) = &self.verifier.role.remote {
            let decoded = &self.decoded;
            let reading = remote::decode(remote, session, decoded, left, granted, reporter, limit);
            self.turn
                .wait(&mut progressing, Box::pin(reading))
                .await??
        } else {
            let (task, reports) = DecodeTask::new(session, &self.decoded, left, granted, reporter);
            session.submit(task)?;
            reports
        };
        loop {
            let began = Instant::now();
            let next = self.turn.wait(&mut progressing, reports.recv()).await?;
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
        let message = message(session, &self.turn.round, next, index, timing);
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
        self.turn
            .replies
            .send(reply(Reply::Decoded(message)))
            .await?;
        Ok(last)
    }
}

/// The reply with a decoded token, `index` of them after the first; the last one if it ends the output.
fn message(
    session: &VerifySession,
    round: &Round,
    decoded: &DecodedToken,
    index: u32,
    timing: v1::Timing,
) -> v1::Decoded {
    let mut header = round.reply_header(false);
    header.base_len += index;
    v1::Decoded {
        header: Some(header),
        token_ids: vec![decoded.token],
        logprobs: decoded.logprobs.iter().map(logprobs::to_wire).collect(),
        last: session.spec.sampling.end_tokens.contains(&decoded.token),
        timing: Some(timing),
    }
}
