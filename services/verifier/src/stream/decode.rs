//! Decoding without drafts.

use std::time::Instant;

use peer::{Cost, Replies, RoundError, Turn, traced};
use server::progress::{self, Progressing};
use server::trace::names;
use tokio::sync::mpsc;
use tonic::Status;
use v1::verify_reply::Reply;
use wire::round::Round;
use wire::status::BadField;
use wire::{logprobs, round, v1};

use super::{check_room, reply};
use crate::decode::{DecodeTask, DecodedToken, Report};
use crate::remote;
use crate::target::{Target, Verifier, VerifySession};

/// Decodes alone and streams the tokens as they come.
pub(super) async fn decode(
    verifier: &Verifier,
    session: &mut VerifySession,
    replies: &Replies<v1::VerifyReply>,
    requested: v1::DecodeRound,
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
    let mut total = Cost::default();
    let mut decoded = 0;
    let decoding = async {
        // The last token is never forwarded, so it needs no place.
        let more = requested.max_tokens as usize - 1;
        check_room(verifier, session, turn.round.key.base_len, more)?;
        if !turn.advance(session).await? {
            return Ok(());
        }
        let (reporter, mut progressing) = progress::channel();
        let (max_tokens, limit) = (requested.max_tokens, turn.round.timeout);
        let mut reports = if let Some(remote) = &verifier.role.remote {
            let reading = remote::decode(remote, session, max_tokens, reporter, limit);
            turn.wait(&mut progressing, Box::pin(reading)).await??
        } else {
            let (task, reports) = DecodeTask::new(session, max_tokens, reporter);
            session.submit(task)?;
            reports
        };
        while decoded < requested.max_tokens {
            let began = Instant::now();
            let next = next_report(&mut reports, &mut progressing, &turn);
            let next = next.await?;
            let cost = next.cost;
            let timing = cost.timing(began, verifier.sessions().attached);
            let message = message(session, &turn.round, &next, decoded, timing);
            decoded += 1;
            if decoded == 1 {
                cost.count(&verifier.metrics);
            } else {
                let (forward, sequences) = (cost.step.forward, cost.step.batch_sequences);
                verifier.metrics.forwarded(forward, sequences);
            }
            total.add(&cost);
            let last = message.last || decoded == requested.max_tokens;
            let message = v1::Decoded { last, ..message };
            replies.send(reply(Reply::Decoded(message))).await?;
            if last {
                break;
            }
        }
        Ok(())
    };
    let ended = traced::<Target, _>(&mut span, decoding).await;
    let prefills = total.step.forwarded_tokens > decoded as usize + 1;
    span.add_share(&total.share(prefills), began, None);
    span.set(names::DECODED_TOKENS, i64::from(decoded));
    ended
}

/// The next token decoded, and what it cost. It is late if no progress is made for the round's time.
async fn next_report(
    reports: &mut mpsc::Receiver<Report>,
    progressing: &mut Progressing,
    turn: &Turn<'_, Target>,
) -> Result<DecodedToken, RoundError> {
    let waiting = turn.wait(progressing, reports.recv());
    waiting.await?.ok_or(RoundError::Dropped)?
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
