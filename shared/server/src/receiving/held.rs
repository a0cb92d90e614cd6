//! The buffer that a request's bytes are collected in until the request has ended.

use std::pin::Pin;
use std::task::Context;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::time::Sleep;

use super::budget::Share;
use super::refused::Refused;

/// The bytes of a request that have arrived, bounded in time and by the request's share of the budgets.
#[derive(Debug)]
pub(super) struct Held {
    share: Share,
    limit: Duration,
    end: Pin<Box<Sleep>>,
    pub(super) bytes: BytesMut,
}

impl Held {
    /// Creates an empty buffer for a request that must end within `limit` and fit into `share`.
    pub(super) fn new(share: Share, limit: Duration) -> Self {
        Self {
            share,
            limit,
            end: Box::pin(tokio::time::sleep(limit)),
            bytes: BytesMut::new(),
        }
    }

    /// Checks the time limit, and registers `cx` to be woken at its end. Callers check before each frame, because a
    /// sender that always has one more byte ready is never pending.
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

    /// Appends a copy of `data`. A slice would keep the connection's whole read buffer alive.
    ///
    /// # Errors
    /// [`Refused::Full`] if a budget has no room for it.
    pub(super) fn add(&mut self, data: &[u8]) -> Result<(), Refused> {
        self.share.take(data.len())?;
        self.bytes.extend_from_slice(data);
        Ok(())
    }

    /// Returns the bytes, which count against the budgets until their last clone or slice is dropped.
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
