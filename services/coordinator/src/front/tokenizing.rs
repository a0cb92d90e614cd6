//! The memory that tokenising takes, bounded over all requests.
//!
//! Most texts are tokenised in small pieces. A text that cannot be cut takes up to 288 times its own length, so a few of one
//! megabyte would take more than everything else that the coordinator holds.

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::Status;
use wire::status::{BadField, overloaded};

use super::admission::RETRY_AFTER;

/// Most bytes of memory for tokenising long texts, over all requests.
pub const MAX_LONG_BYTES: u64 = 128 << 20;

/// Most bytes of memory for tokenising all other texts, over all requests.
pub const MAX_SHORT_BYTES: u64 = 64 << 20;

/// Most bytes of memory that tokenising a short text takes; a longer one counts as long.
pub const MAX_SHORT_TEXT: u64 = 4 << 20;

/// The budgets of memory for tokenising; clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Tokenizing {
    /// In KiB.
    long: Arc<Semaphore>,
    short: Arc<Semaphore>,
}

impl Tokenizing {
    pub(crate) fn new() -> Self {
        let room = |bytes: u64| Arc::new(Semaphore::new((bytes >> 10) as usize));
        Self {
            long: room(MAX_LONG_BYTES),
            short: room(MAX_SHORT_BYTES),
        }
    }

    /// Reserves `bytes` until the text is tokenised. A short text waits for those before it, which takes milliseconds; a
    /// long one is refused if there is no room. Blocks the thread.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` with a time to wait; `INVALID_ARGUMENT` for a text that can never fit.
    pub(super) fn room(&self, bytes: u64) -> Result<OwnedSemaphorePermit, Status> {
        let kib = bytes.div_ceil(1 << 10) as u32;
        if bytes <= MAX_SHORT_TEXT {
            let room = Arc::clone(&self.short).acquire_many_owned(kib);
            let closed = |_| Status::internal("the room for texts is closed");
            return Handle::current().block_on(room).map_err(closed);
        }
        let (mib, most) = (bytes.div_ceil(1 << 20), MAX_LONG_BYTES >> 20);
        if bytes > MAX_LONG_BYTES {
            let problem = format!(
                "to tokenise it takes {mib} MiB of memory, expected at most {most}: it is long and has no place where \
                 this model's tokenizer surely splits it, such as a word's end; give its tokens instead"
            );
            return Err(BadField::new("prompt", problem).into());
        }
        let room = Arc::clone(&self.long).try_acquire_many_owned(kib);
        room.map_err(|_| {
            let what = format!("no room for {mib} MiB to tokenise another long text");
            overloaded(what, RETRY_AFTER)
        })
    }
}

#[cfg(test)]
mod tests {
    use tonic::Code;

    use super::*;

    #[tokio::test]
    async fn long_texts_have_room_or_not_and_short_ones_wait() {
        let tokenizing = Tokenizing::new();
        let other = tokenizing.clone();
        let blocking = tokio::task::spawn_blocking(move || {
            let held = other.room(MAX_LONG_BYTES - (8 << 20)).expect("room");
            let refused = other.room(9 << 20).expect_err("no room");
            assert_eq!(refused.code(), Code::ResourceExhausted);
            // What never fits is no matter of waiting.
            let refused = other.room(MAX_LONG_BYTES + 1).expect_err("too much");
            assert_eq!(refused.code(), Code::InvalidArgument);
            assert!(refused.message().contains("129 MiB"), "{refused}");
            let short = other.room(MAX_SHORT_TEXT);
            assert!(short.is_ok(), "beside the long ones");
            drop(held);
            assert!(other.room(9 << 20).is_ok());
        });
        blocking.await.expect("no panic");
        let filling = tokenizing.clone();
        let fill = move || {
            (0..MAX_SHORT_BYTES / MAX_SHORT_TEXT)
                .map(|_| filling.room(MAX_SHORT_TEXT))
                .collect()
        };
        let held: Vec<_> = tokio::task::spawn_blocking(fill).await.expect("no panic");
        let waiting = tokio::task::spawn_blocking(move || tokenizing.room(MAX_SHORT_TEXT).is_ok());
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(held);
        assert!(waiting.await.expect("no panic"));
    }
}
