//! Decoding, with drafts as they come or without.

use std::mem;
use std::sync::Arc;
use std::time::Instant;

use ops::trace::{Attribute, Span, names};
use parking_lot::Mutex;
use peer::{Cost, Granted, Lent, LentSlot, RoundContext, RoundError, progress};
use speculation::TokenId;
use speculation::verification::Verification;
use v1::round_answer::Part;
use wire::status::BadField;
use wire::{logprobs, pending, v1};

use super::check_room;
use crate::drafts::PendingDrafts;
use crate::scorer::{DecodeRun, DecodedForward, Verifier, VerifySession};

/// Decodes alone, as far as it is granted, and streams the tokens as they come.
pub(super) async fn decode(
    verifier: &Verifier,
    session: &mut VerifySession,
    requested: v1::DecodeRound,
    mut context: RoundContext<'_>,
    span: &mut Span,
) -> Result<(), RoundError> {
    if requested.max_tokens == 0 {
        return Err(BadField::new("max_tokens", "0 is out of range, expected at least 1").into());
    }
    let drafts = if requested.drafts {
        check_drafts(session)?;
        let drafts = PendingDrafts::of(mem::take(&mut context.proposals));
        Some(LentSlot::new(Mutex::new(Some(drafts))))
    } else {
        None
    };
    let mut decoding = DecodeRound {
        verifier,
        context: &context,
        drafts,
        max_tokens: requested.max_tokens,
        timing_every: requested.timing_every,
        timed: 0,
        granted: context.granted.clone().from_first(requested.until),
        decoded: Vec::new(),
        total: Cost::default(),
        counts: v1::ForwardDrafts::default(),
        span,
    };
    let ended = decoding.run(session).await;
    let (total, decoded, counts) = (decoding.total, decoding.decoded.len(), decoding.counts);
    // Rejected drafts were forwarded too.
    let forwarded = decoded + counts.scored as usize + 1;
    let prefills = total.step.forwarded_tokens > forwarded;
    span.add_breakdown(&total.share(prefills), context.began, None);
    span.set(names::DECODED_TOKENS, decoded as i64);
    if requested.drafts {
        for (name, count) in attributes(&counts) {
            span.set(name, count);
        }
    }
    ended
}

/// Checks that drafts may come while `session` decodes: what is decoded then does not depend on them.
fn check_drafts(session: &VerifySession) -> Result<(), RoundError> {
    let spec = &session.spec;
    if spec.verification == Verification::COUPLED && spec.target.is_exact() {
        return Ok(());
    }
    let problem = "drafts go with coupled verification of the target's own distribution only";
    Err(BadField::new("drafts", problem).into())
}

/// Returns the counts of drafts as attributes of a span.
fn attributes(drafts: &v1::ForwardDrafts) -> [(&'static str, i64); 4] {
    let fell_off = drafts.stale + drafts.without_room + drafts.malformed;
    [
        (names::OFFERED_DRAFTS, drafts.offered.into()),
        (names::SCORED_DRAFTS, drafts.scored.into()),
        (names::ACCEPTED_DRAFTS, drafts.accepted.into()),
        (names::FALLEN_DRAFTS, fell_off.into()),
    ]
}

/// A round under way.
struct DecodeRound<'a> {
    verifier: &'a Verifier,
    context: &'a RoundContext<'a>,
    max_tokens: u32,
    timing_every: u32,
    /// Forwards since the one whose timing was told last, that one included.
    timed: u32,
    granted: Granted,
    /// The pending drafts, if the round takes any.
    drafts: Option<LentSlot<PendingDrafts>>,
    /// Tokens sent so far.
    decoded: Vec<TokenId>,
    total: Cost,
    /// What became of the round's drafts.
    counts: v1::ForwardDrafts,
    span: &'a mut Span,
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
        let drafts = self.drafts.as_ref();
        let drafts = drafts.map(|slot| Lent::new(slot.lock().take().unwrap_or_default(), slot));
        let (run, mut results) =
            DecodeRun::new(session, &self.decoded, left, granted, drafts, reporter);
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

    /// Sends the tokens of a forward that was awaited since `began`; whether they are the round's last.
    async fn send(
        &mut self,
        session: &VerifySession,
        next: &DecodedForward,
        began: Instant,
    ) -> Result<bool, RoundError> {
        let (verifier, cost) = (self.verifier, next.cost);
        let index = self.decoded.len() as u32;
        let end = next.tokens.last();
        let ends = end.is_some_and(|end| session.spec.sampling.end_tokens.contains(end));
        self.decoded.extend_from_slice(&next.tokens);
        let last = ends || self.decoded.len() as u32 == self.max_tokens;
        let is_timed = index == 0 || last || self.timed >= self.timing_every;
        self.timed = if is_timed { 1 } else { self.timed + 1 };
        let message = v1::Decoded {
            from: self.context.round.key.base_len + index,
            token_ids: next.tokens.clone(),
            logprobs: next.logprobs.iter().map(logprobs::to_wire).collect(),
            last,
            timing: is_timed.then(|| cost.timing(began, verifier.sessions().attached)),
            drafts: next.drafts,
        };
        if let Some(drafts) = &next.drafts {
            pending::add(&mut self.counts, drafts);
            if drafts.offered > 0 && self.span.is_recorded() {
                let told = attributes(drafts).map(|(name, count)| Attribute::new(name, count));
                (self.span).event_at(names::FORWARD, Instant::now(), told.to_vec());
            }
        }
        if index == 0 {
            cost.count(&verifier.metrics);
        } else {
            let (forward, sequences) = (cost.step.forward, cost.step.batch_sequences);
            verifier.metrics.forwarded(forward, sequences);
        }
        self.total.add(&cost);
        let part = Part::Decoded(message);
        if index > 0 && self.drafts.is_some() {
            self.context.answer_further(part).await?;
        } else {
            self.context.answer(part).await?;
        }
        Ok(last)
    }
}
