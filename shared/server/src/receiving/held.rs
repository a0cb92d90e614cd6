//! What came of a request, until it has ended.

use std::pin::Pin;
use std::task::Context;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::time::Sleep;

use super::budget::Share;
use super::refused::Refused;

/// What came of a request, within its time and its share of the bytes that may be held.
#[derive(Debug)]
pub(super) struct Held {
    share: Share,
    limit: Duration,
    end: Pin<Box<Sleep>>,
    pub(super) bytes: BytesMut,
}

impl Held {
    /// Nothing yet of a request that must end within `limit` and have room in `share`.
    pub(super) fn new(share: Share, limit: Duration) -> Self {
        Self {
            share,
            limit,
            end: Box::pin(tokio::time::sleep(limit)),
            bytes: BytesMut::new(),
        }
    }

    /// Has `cx` woken when the time is over. To be asked before each piece, since one that always has a byte more
    /// never waits.
    ///
    /// # Errors
    /// [`Refused::Late`] once it is over.
    pub(super) fn check_time(&mut self, cx: &mut Context<'_>) -> Result<(), Refused> {
        if self.end.as_mut().poll(cx).is_pending() {
            return Ok(());
        }
        let limit_ms = u64::try_from(self.limit.as_millis()).unwrap_or(u64::MAX);
        Err(Refused::Late { limit_ms })
    }

    /// Copies what came: a slice of what a connection reads would keep all of that.
    ///
    /// # Errors
    /// [`Refused::Full`] if there is no room for it.
    pub(super) fn add(&mut self, data: &[u8]) -> Result<(), Refused> {
        self.share.take(data.len())?;
        self.bytes.extend_from_slice(data);
        Ok(())
    }

    /// All that came, which counts until the last of its clones and slices is dropped.
    pub(super) fn counted(self) -> Bytes {
        Bytes::from_owner(Counted {
            bytes: self.bytes.freeze(),
            _share: self.share,
        })
    }
}

struct Counted {
    bytes: Bytes,
    _share: Share,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}
