//! The way of a response to its client: parts in a buffer that is bounded in number and bytes.

use std::sync::Arc;

use futures_util::stream::{self, BoxStream, StreamExt};
use tokio::sync::mpsc::{self, OwnedPermit};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use v1::generate_response::Part;
use wire::failure::Failure;
use wire::{encoded_bytes, v1};

use crate::limits::{ANSWER_BUFFER, ANSWER_BUFFER_BYTES};

/// A part on its way, with the room that it takes.
struct BufferedPart {
    part: v1::GenerateResponse,
    _room: Option<OwnedSemaphorePermit>,
}

/// Where a request's response goes.
pub(crate) struct ResponseSender {
    parts: mpsc::Sender<BufferedPart>,
    /// The end can always be told, however slowly the client reads.
    end: Option<OwnedPermit<BufferedPart>>,
    room: Arc<Semaphore>,
}

/// Where a client reads its response. It always ends with a `finished`.
pub(crate) type ResponseStream = BoxStream<'static, v1::GenerateResponse>;

/// Returns the way of one response.
pub(crate) fn response_channel() -> (ResponseSender, ResponseStream) {
    let (parts, reader) = mpsc::channel(ANSWER_BUFFER);
    let sender = ResponseSender {
        // There is room in an empty buffer.
        end: parts.clone().try_reserve_owned().ok(),
        parts,
        room: Arc::new(Semaphore::new(ANSWER_BUFFER_BYTES)),
    };
    let state = (reader, false);
    let parts = stream::unfold(state, |(mut reader, has_finished)| async move {
        let part = match reader.recv().await {
            Some(BufferedPart { part, .. }) => part,
            None if has_finished => return None,
            None => panicked(),
        };
        let has_finished = matches!(part.part, Some(Part::Finished(_)));
        Some((part, (reader, has_finished)))
    });
    (sender, parts.fuse().boxed())
}

impl ResponseSender {
    /// Sends a part as soon as there is room for it; false if the client is gone.
    pub(super) async fn send(&self, part: v1::GenerateResponse) -> bool {
        let bytes = encoded_bytes(&part).min(ANSWER_BUFFER_BYTES as u64) as u32;
        let room = tokio::select! {
            room = Arc::clone(&self.room).acquire_many_owned(bytes) => room.ok(),
            () = self.parts.closed() => return false,
        };
        let buffered = BufferedPart { part, _room: room };
        self.parts.send(buffered).await.is_ok()
    }

    /// Sends the last part.
    pub(super) fn finish(self, part: v1::GenerateResponse) {
        if let Some(end) = self.end {
            end.send(BufferedPart { part, _room: None });
        }
    }

    /// Waits for the client to go away.
    pub(super) async fn closed(&self) {
        self.parts.closed().await;
    }
}

/// Returns the end of a response whose request ended without one: its driver panicked.
fn panicked() -> v1::GenerateResponse {
    let finished = v1::Finished {
        reason: v1::FinishReason::Error.into(),
        error: "the coordinator failed while it answered, see its log; ask again".to_owned(),
        error_code: Failure::Internal.code() as u32,
        ..Default::default()
    };
    v1::GenerateResponse {
        part: Some(Part::Finished(finished)),
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;

    use super::*;

    fn part(bytes: usize) -> v1::GenerateResponse {
        let chunk = v1::Chunk {
            text: "x".repeat(bytes),
            ..Default::default()
        };
        v1::GenerateResponse {
            part: Some(Part::Chunk(chunk)),
        }
    }

    #[tokio::test]
    async fn a_reader_that_is_slow_has_no_more_than_its_bytes_waiting() {
        let (sender, mut reader) = response_channel();
        let large = 2 * ANSWER_BUFFER_BYTES;
        assert!(sender.send(part(large)).await);
        let mut second = Box::pin(sender.send(part(10)));
        assert!(futures_are_pending(&mut second).await);
        assert!(reader.next().await.is_some());
        assert!(second.await);
        let waiting = sender.send(part(large));
        drop(reader);
        assert!(!waiting.await, "the reader is gone");
    }

    #[tokio::test]
    async fn an_answer_whose_driver_panicked_ends_with_one_error() {
        let (sender, mut reader) = response_channel();
        let driver = tokio::spawn(async move {
            sender.send(part(1)).await;
            panic!("a fault in the program");
        });
        assert!(driver.await.is_err());
        let first = reader.next().await.expect("sent");
        assert_eq!(first, part(1));
        let end = reader.next().await.expect("an end");
        let Some(Part::Finished(finished)) = end.part else {
            panic!("no end: {end:?}");
        };
        assert_eq!(finished.reason(), v1::FinishReason::Error);
        assert_eq!(finished.error_code, Failure::Internal.code() as u32);
        assert!(reader.next().await.is_none(), "once");
        let (sender, mut reader) = response_channel();
        sender.finish(panicked());
        assert!(reader.next().await.is_some() && reader.next().await.is_none());
    }

    async fn futures_are_pending(future: &mut Pin<Box<impl Future<Output = bool>>>) -> bool {
        let wait = std::time::Duration::from_millis(10);
        tokio::time::timeout(wait, future).await.is_err()
    }
}
