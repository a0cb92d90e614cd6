//! What tokenising takes from all other requests, bounded: memory, and threads that do not serve streams.

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::Status;
use wire::failure::Failure;
use wire::status::{BadField, overloaded};

use super::RETRY_AFTER;
use crate::limits::{MAX_LONG_BYTES, MAX_SHORT_BYTES, MAX_SHORT_TEXT};

/// An amount of memory that all requests share; clones are the same.
#[derive(Clone, Debug)]
pub(super) struct MemoryBudget {
    kib: usize,
    /// In KiB.
    free: Arc<Semaphore>,
}

impl MemoryBudget {
    pub(super) fn new(bytes: u64) -> Self {
        let kib = (bytes >> 10).min(Semaphore::MAX_PERMITS as u64) as usize;
        let free = Arc::new(Semaphore::new(kib));
        Self { kib, free }
    }

    /// Returns how many bytes there are in all.
    pub(super) fn bytes(&self) -> u64 {
        (self.kib as u64) << 10
    }

    /// Reserves `bytes`, rounded up to KiB.
    ///
    /// # Errors
    /// If they never fit, `never` of their KiB and of all that there are; if others hold them, `now` of their KiB.
    pub(super) fn reserve(
        &self,
        bytes: u64,
        never: impl FnOnce(u64, usize) -> BadField,
        now: impl FnOnce(u64) -> Status,
    ) -> Result<OwnedSemaphorePermit, Status> {
        let kib = bytes.div_ceil(1 << 10);
        if kib > self.kib as u64 {
            return Err(never(kib, self.kib).into());
        }
        let free = Arc::clone(&self.free).try_acquire_many_owned(kib as u32);
        free.map_err(|_| now(kib))
    }
}

/// The memory that tokenising takes, bounded over all requests; clones share it.
///
/// Most texts are tokenised in small pieces. A text that cannot be cut takes up to 288 times its own length, so a few of one
/// megabyte would take more than everything else that the coordinator holds.
#[derive(Clone, Debug)]
pub(crate) struct Tokenizing {
    long: MemoryBudget,
    short: MemoryBudget,
}

impl Tokenizing {
    pub(crate) fn new() -> Self {
        Self {
            long: MemoryBudget::new(MAX_LONG_BYTES),
            short: MemoryBudget::new(MAX_SHORT_BYTES),
        }
    }

    /// Reserves `bytes` until the text is tokenised. A short text waits for those before it, which takes milliseconds; a
    /// long one is refused if there is no room. Blocks the thread.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` with a time to wait; `INVALID_ARGUMENT` for a text that can never fit.
    pub(super) fn room(&self, bytes: u64) -> Result<OwnedSemaphorePermit, Status> {
        if bytes <= MAX_SHORT_TEXT {
            let kib = bytes.div_ceil(1 << 10) as u32;
            let room = Arc::clone(&self.short.free).acquire_many_owned(kib);
            let closed = |_| Status::internal("the room for texts is closed");
            return Handle::current().block_on(room).map_err(closed);
        }
        let mib = bytes.div_ceil(1 << 20);
        let never = |_, _| {
            let problem = format!(
                "to tokenise it takes {mib} MiB of memory, expected at most {}: it is long and has no place where \
                 this model's tokenizer surely splits it, such as a word's end; give its tokens instead",
                MAX_LONG_BYTES >> 20
            );
            BadField::new("prompt", problem)
        };
        self.long.reserve(bytes, never, |_| {
            let what = format!("no room for {mib} MiB to tokenise another long text");
            overloaded(what, RETRY_AFTER)
        })
    }
}

/// Returns what `work` comes to, which would hold up every stream of an async thread.
///
/// # Errors
/// Those of `work`; and if it panics.
pub(super) async fn off_async_threads<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Status> + Send + 'static,
) -> Result<T, Status> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| Failure::Internal.status(error.to_string()))?
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
