//! The log probabilities of the prompt, part by part.

use std::time::Instant;

use ops::trace::Span;
use peer::{Cost, RoundContext, RoundError, progress};
use v1::round_answer::Part;
use wire::status::BadField;
use wire::{logprobs, v1};

use crate::scorer::{Verifier, VerifySession};

/// Most rows of a forward: no more than a block of drafts may have, so that other sessions wait no longer for it.
const PART: usize = 64;

/// Scores the prompt from the token that the round names, as far as it is granted, and sends each part as soon as it is
/// scored.
pub(super) async fn score(
    verifier: &Verifier,
    session: &mut VerifySession,
    requested: v1::ScoreRound,
    context: &RoundContext<'_>,
    span: &mut Span,
) -> Result<(), RoundError> {
    let from = requested.from as usize;
    let mut granted = context.granted.clone().from_first(requested.until);
    check(session, context.round.key.base_len, from)?;
    let mut total = Cost::default();
    let scoring = async {
        if !session.advance(context).await? {
            return Ok(());
        }
        let wanted = session.spec.lead().len() - 1;
        let mut start = from;
        while start < wanted {
            granted.reaches(start as u32).await?;
            let began = Instant::now();
            let end = wanted.min(start + PART).min(granted.until() as usize);
            let (reporter, mut progressing) = progress::channel();
            let (scorer, limit) = (&verifier.role.scorer, context.round.timeout);
            let scoring = scorer.score_prompt(session, start..end, reporter, limit);
            let (scores, cost) = context.wait(&mut progressing, scoring).await??;
            cost.count(&verifier.metrics);
            total.add(&cost);
            let scored = v1::Scored {
                from: start as u32,
                logprobs: scores.iter().map(logprobs::to_wire).collect(),
                last: end == wanted,
                timing: Some(cost.timing(began, verifier.sessions().attached)),
            };
            context.answer(Part::Scored(scored)).await?;
            start = end;
        }
        Ok::<_, RoundError>(())
    };
    let ended = scoring.await;
    span.add_breakdown(&total.share(true), context.began, None);
    ended
}

/// Checks that the session can score its prompt from token `from` + 1 on.
fn check(session: &VerifySession, base_len: u32, from: usize) -> Result<(), BadField> {
    let spec = &session.spec;
    if spec.logprobs.is_none() {
        let problem = "the session does not want log probabilities";
        return Err(BadField::new("logprobs", problem));
    }
    if !spec.source().is_empty() {
        let problem = "the model's encoder reads the prompt whole";
        return Err(BadField::new("score", problem));
    }
    if base_len > 0 {
        let problem = format!("{base_len} output tokens; a prompt is scored before any");
        return Err(BadField::new("committed", problem));
    }
    let wanted = spec.lead().len() - 1;
    if from >= wanted {
        let problem = format!("{from} is out of range, expected below {wanted}");
        return Err(BadField::new("from", problem));
    }
    Ok(())
}
