//! Memory for turning texts into tokens, of all requests at once.
//!
//! Most texts are tokenised in small pieces. One without a place to cut takes a hundred times its own length, so that
//! few of a megabyte would be as much as all else the coordinator holds.

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::Status;
use wire::status::{BadField, overloaded};

use super::admission::RETRY_AFTER;

/// Bytes of memory that tokenising long texts takes, all together.
pub const MAX_LONG_BYTES: u64 = 128 << 20;

/// Bytes of memory that tokenising all other texts takes, all together.
pub const MAX_SHORT_BYTES: u64 = 64 << 20;

/// Most bytes that tokenising a text takes that is not long.
pub const MAX_SHORT_TEXT: u64 = 4 << 20;

/// Gives out the memory that texts are tokenised in.
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

    /// Room for so many bytes, held until the text is tokenised. A short text waits for those before it, which takes
    /// moments; for a long one there is room or not. Called on a thread that may block.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` with a time to wait; or `INVALID_ARGUMENT` for a text that never has room.
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
