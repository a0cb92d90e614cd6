//! A peer's replies, which are read even while the request's client does not read its answer.

use std::collections::VecDeque;
use std::convert::Infallible;

use tokio_stream::StreamExt;
use tonic::Status;
use tonic::codegen::BoxStream;
use wire::failure::Failure;
use wire::{encoded_bytes, v1};

/// Most bytes of replies that are buffered for a request whose client does not read its answer. A verifier that keeps to
/// its grants stays far below.
pub const MAX_AHEAD_BYTES: u64 = 1 << 20;

/// The replies of one stream, with a bounded buffer of those that were read ahead.
pub(super) struct ReadAhead {
    /// None once the stream has ended, or was reset.
    replies: Option<BoxStream<v1::SessionReply>>,
    held: VecDeque<Result<v1::SessionReply, Status>>,
    held_bytes: u64,
}

impl ReadAhead {
    pub(super) fn of(replies: BoxStream<v1::SessionReply>) -> Self {
        Self {
            replies: Some(replies),
            held: VecDeque::new(),
            held_bytes: 0,
        }
    }

    /// Returns the next reply; none at the end.
    pub(super) async fn next(&mut self) -> Option<Result<v1::SessionReply, Status>> {
        if let Some(reply) = self.held.pop_front() {
            self.held_bytes -= bytes(&reply);
            return Some(reply);
        }
        self.replies.as_mut()?.next().await
    }

    /// Reads replies into the buffer for as long as it is polled. Once a peer has sent more than [`MAX_AHEAD_BYTES`], its
    /// stream is reset, and [`next`](Self::next) returns the failure after the buffered replies.
    pub(super) async fn read_ahead(&mut self) -> Infallible {
        while let Some(replies) = &mut self.replies {
            let Some(reply) = replies.next().await else {
                self.replies = None;
                break;
            };
            let more = self.held_bytes + bytes(&reply);
            if more > MAX_AHEAD_BYTES {
                self.replies = None;
                let problem = format!(
                    "it sends more than it was granted: above {MAX_AHEAD_BYTES} bytes that nobody took"
                );
                let failure = Failure::Unavailable.status(problem);
                self.held.push_back(Err(failure));
                break;
            }
            self.held_bytes = more;
            self.held.push_back(reply);
        }
        std::future::pending().await
    }
}

fn bytes(reply: &Result<v1::SessionReply, Status>) -> u64 {
    reply.as_ref().map_or(0, encoded_bytes)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::mpsc;
    use tokio_stream::wrappers::ReceiverStream;

    use super::*;

    fn reply(tokens: usize) -> v1::SessionReply {
        let decoded = v1::Decoded {
            token_ids: vec![1; tokens],
            ..Default::default()
        };
        let answer = v1::RoundAnswer {
            header: None,
            part: Some(v1::round_answer::Part::Decoded(decoded)),
        };
        v1::session_reply::Reply::Answer(answer).into()
    }

    async fn read_for_a_while(ahead: &mut ReadAhead) {
        let _still = tokio::time::timeout(Duration::from_millis(10), ahead.read_ahead()).await;
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_read_ahead_comes_in_order_and_no_more_than_its_bytes() {
        let (sender, receiver) = mpsc::channel(64);
        let mut ahead = ReadAhead::of(Box::pin(ReceiverStream::new(receiver)));
        for tokens in [1, 2, 3] {
            sender.try_send(Ok(reply(tokens))).expect("room");
        }
        read_for_a_while(&mut ahead).await;
        assert_eq!(ahead.held.len(), 3);
        for tokens in [1, 2] {
            let next = ahead.next().await.expect("held").expect("whole");
            assert_eq!(next, reply(tokens));
        }
        // It goes on beyond all bounds.
        for _ in 0..40 {
            sender.try_send(Ok(reply(100_000))).expect("room");
        }
        read_for_a_while(&mut ahead).await;
        assert!(sender.is_closed(), "the stream is reset");
        assert!(ahead.held_bytes <= MAX_AHEAD_BYTES);
        let next = ahead.next().await.expect("held").expect("whole");
        assert_eq!(next, reply(3));
        let mut last = None;
        while let Some(next) = ahead.next().await {
            last = Some(next);
        }
        let failure = last.expect("an end").expect_err("a failure");
        assert!(failure.message().contains("1048576 bytes"), "{failure:?}");
        assert_eq!(ahead.held_bytes, 0);
    }
}
