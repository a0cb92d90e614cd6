//! Decoding without drafts.

use std::time::Instant;

use server::progress::{self, Progressing};
use server::stream::Replies;
use server::trace::{self, names};
use speculation::TokenId;
use tokio::sync::mpsc;
use tonic::Status;
use v1::verify_reply::Reply;
use wire::round::Round;
use wire::status::BadField;
use wire::{round, v1};

use super::{advance, check_room, offer, reply};
use crate::cost::Cost;
use crate::decode::{DecodeTask, Report};
use crate::error::RoundError;
use crate::session::Session;
use crate::shared::Shared;

/// Decodes alone and streams the tokens as they come.
pub(super) async fn decode(
    service: &Shared,
    session: &mut Session,
    replies: &Replies<v1::VerifyReply>,
    asked: v1::DecodeRound,
    epoch: u32,
) -> Result<(), Status> {
    if asked.max_tokens == 0 {
        return Err(BadField::new("max_tokens", "0 is out of range, expected at least 1").into());
    }
    let began = Instant::now();
    let round = round::from_wire(asked.header, epoch, session.spec.vocab_size)?;
    let mut span = service
        .traces
        .round(names::DECODE, &round.trace_context, began);
    let mut total = Cost::default();
    let mut decoded = 0;
    let decoding = async {
        // The last token is never forwarded, so it needs no place.
        let more = asked.max_tokens as usize - 1;
        check_room(service, session, round.key.base_len, more)?;
        if !advance(session, replies, &round).await? {
            return Ok(());
        }
        let (reporter, mut progressing) = progress::channel();
        let (task, mut reports) = DecodeTask::new(session, asked.max_tokens, reporter);
        session.slot.try_submit(task).map_err(RoundError::from)?;
        while decoded < asked.max_tokens {
            let began = Instant::now();
            let next = next_report(&mut reports, &mut progressing, &round, replies);
            let (token, cost) = next.await?;
            let message = message(session, &round, token, decoded, cost.timing(began));
            decoded += 1;
            if decoded == 1 {
                cost.count(&service.metrics);
            } else {
                cost.count_forward(&service.metrics);
            }
            total.add(&cost);
            let last = message.last || decoded == asked.max_tokens;
            let message = v1::Decoded { last, ..message };
            replies.send(reply(Reply::Decoded(message))).await?;
            if last {
                break;
            }
        }
        Ok(())
    };
    let ended = trace::within(span.context(), decoding).await;
    total.trace(&mut span, decoded as usize + 1, began);
    span.set(names::DECODED_TOKENS, i64::from(decoded));
    if let Err(status) = &ended {
        let status: &Status = status;
        span.fail(format!("{:?}", status.code()));
    }
    ended
}

/// The next token decoded, and what it cost. It is late if no progress is made for the round's time.
async fn next_report(
    reports: &mut mpsc::Receiver<Report>,
    progressing: &mut Progressing,
    round: &Round,
    replies: &Replies<v1::VerifyReply>,
) -> Result<(TokenId, Cost), RoundError> {
    let waiting = progressing.wait(round.timeout, reports.recv(), offer(round, replies));
    waiting.await?.ok_or(RoundError::Dropped)?
}

/// The reply with a decoded token, `index` of them after the first; the last one if it ends the output.
fn message(
    session: &Session,
    round: &Round,
    token: TokenId,
    index: u32,
    timing: v1::Timing,
) -> v1::Decoded {
    let mut header = round.reply_header(false);
    header.base_len += index;
    v1::Decoded {
        header: Some(header),
        token_ids: vec![token],
        logprobs: Vec::new(),
        last: session.spec.sampling.end_tokens.contains(&token),
        timing: Some(timing),
    }
}
