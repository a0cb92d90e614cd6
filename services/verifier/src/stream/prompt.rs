//! The log probabilities of the prompt, part by part.

use std::time::Instant;

use ops::trace::names;
use peer::progress;
use peer::{Cost, Granted, Replies, RoundError, Turn, traced};
use tonic::Status;
use v1::verify_reply::Reply;
use wire::status::BadField;
use wire::{logprobs, round, v1};

use super::reply;
use crate::logprobs::OfPrompt;
use crate::remote;
use crate::scoring::score_prompt;
use crate::service::{Target, Verifier, VerifySession};

/// Most rows of a forward: no more than a block of drafts may have, so that other sessions wait no longer for it.
const PART: usize = 64;

/// Scores the prompt from the token that the round names, as far as it is granted, and sends each part as soon as it is
/// scored.
pub(super) async fn score(
    verifier: &Verifier,
    session: &mut VerifySession,
    replies: &Replies<v1::VerifyReply>,
    requested: v1::ScoreRound,
    granted: Granted,
    epoch: u32,
) -> Result<(), Status> {
    let began = Instant::now();
    let round = round::from_wire(requested.header, epoch, session.spec.vocab_size)?;
    let from = requested.from as usize;
    let mut granted = granted.from_first(requested.until);
    check(session, round.key.base_len, from)?;
    let trace_context = &round.trace_context;
    let mut span = verifier.traces.round(names::SCORE, trace_context, began);
    let turn = Turn {
        round,
        began,
        replies,
    };
    let mut total = Cost::default();
    let scoring = async {
        if !turn.advance(session).await? {
            return Ok(());
        }
        let wanted = session.spec.lead().len() - 1;
        let mut start = from;
        while start < wanted {
            granted.reaches(start as u32).await?;
            let began = Instant::now();
            let end = wanted.min(start + PART).min(granted.until() as usize);
            let (reporter, mut progressing) = progress::channel();
            let limit = turn.round.timeout;
            let scoring = async {
                if let Some(remote) = &verifier.role.remote {
                    let scoring = remote::score_prompt(remote, session, start..end, limit);
                    return Box::pin(scoring).await;
                }
                let judge = OfPrompt { first: start + 1 };
                score_prompt(session, start..end, judge, reporter).await
            };
            let (scores, cost) = turn.wait(&mut progressing, scoring).await??;
            cost.count(&verifier.metrics);
            total.add(&cost);
            let scored = v1::Scored {
                header: Some(turn.round.reply_header(false)),
                from: start as u32,
                logprobs: scores.iter().map(logprobs::to_wire).collect(),
                last: end == wanted,
                timing: Some(cost.timing(began, verifier.sessions().attached)),
            };
            replies.send(reply(Reply::Scored(scored))).await?;
            start = end;
        }
        Ok::<_, RoundError>(())
    };
    let ended = traced::<Target, _>(&mut span, scoring).await;
    span.add_breakdown(&total.share(true), began, None);
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
