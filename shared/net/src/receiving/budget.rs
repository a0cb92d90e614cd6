//! Bytes that may be held at once, what holds them, and what is refused.

use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Sleep;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

/// A number of bytes that requests share. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct ByteBudget {
    /// What sets it.
    setting: &'static str,
    most: usize,
    left: Arc<Semaphore>,
}

impl ByteBudget {
    /// At most `most` bytes, as `setting` says.
    pub(crate) fn new(setting: &'static str, most: usize) -> Self {
        let left = Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS)));
        Self {
            setting,
            most,
            left,
        }
    }

    fn full(&self) -> ReceiveError {
        ReceiveError::Full {
            most: self.most,
            setting: self.setting,
        }
    }

    fn take(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let bytes = u32::try_from(bytes).ok()?;
        Arc::clone(&self.left).try_acquire_many_owned(bytes).ok()
    }
}

/// Largest request, in bytes, that may use the budget of small requests, so that large ones do not lock it out.
pub const SMALL_REQUEST_BYTES: usize = 16 << 10;

/// The bytes that one request has taken from its budgets; dropping it returns them.
#[derive(Debug)]
pub(super) struct Reservation {
    /// The budgets of the connection and of all connections.
    budgets: [ByteBudget; 2],
    /// The budget of small requests, used when that of all connections is used up.
    small: ByteBudget,
    held: Vec<OwnedSemaphorePermit>,
    bytes: usize,
}

impl Reservation {
    pub(super) fn new(budgets: [ByteBudget; 2], small: ByteBudget) -> Self {
        Self {
            budgets,
            small,
            held: Vec::new(),
            bytes: 0,
        }
    }

    /// Takes `bytes` more.
    ///
    /// # Errors
    /// [`ReceiveError::Full`] if one of the budgets has no room for them; nothing is taken then.
    pub(super) fn take(&mut self, bytes: usize) -> Result<(), ReceiveError> {
        let [of_connection, all] = &self.budgets;
        let is_small = self.bytes.saturating_add(bytes) <= SMALL_REQUEST_BYTES;
        let among_small = || self.small.take(bytes).filter(|_| is_small);
        let taken = [
            of_connection
                .take(bytes)
                .ok_or_else(|| of_connection.full())?,
            all.take(bytes)
                .or_else(among_small)
                .ok_or_else(|| all.full())?,
        ];
        self.bytes += bytes;
        for permit in taken {
            // Those of one budget become one.
            let same = |held: &&mut OwnedSemaphorePermit| {
                Arc::ptr_eq(held.semaphore(), permit.semaphore())
            };
            match self.held.iter_mut().find(same) {
                Some(held) => held.merge(permit),
                None => self.held.push(permit),
            }
        }
        Ok(())
    }
}

/// How long a client should wait for whose request there is no room.
pub const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Why a request is not received.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReceiveError {
    /// Other requests use up the budget.
    #[error("{most} bytes of requests are held already, see {setting}")]
    Full {
        /// Size of the budget, in bytes.
        most: usize,
        /// The setting that bounds it.
        setting: &'static str,
    },
    /// The request did not arrive within its time limit.
    #[error("the request did not come whole within {limit_ms} ms, see server.receive_timeout_ms")]
    Late {
        /// The time limit, in milliseconds.
        limit_ms: u64,
    },
    /// The body is longer than its limit.
    #[error("a body of more than {most} bytes, which is the most that is read")]
    TooLarge {
        /// The limit, in bytes.
        most: usize,
    },
    /// The connection or the stream ended before the body did.
    #[error("the body was cut short")]
    CutShort,
}

impl From<ReceiveError> for Status {
    fn from(refused: ReceiveError) -> Self {
        let message = refused.to_string();
        match refused {
            ReceiveError::Full { .. } => {
                let details = ErrorDetails::with_retry_info(Some(RETRY_AFTER));
                Self::with_error_details(Code::ResourceExhausted, message, details)
            }
            ReceiveError::Late { .. } => Self::deadline_exceeded(message),
            ReceiveError::TooLarge { .. } => Self::out_of_range(message),
            ReceiveError::CutShort => Self::cancelled(message),
        }
    }
}

/// The bytes of a request that have arrived, bounded in time and by the request's share of the budgets.
#[derive(Debug)]
pub(super) struct RequestBuffer {
    share: Reservation,
    limit: Duration,
    end: Pin<Box<Sleep>>,
    pub(super) bytes: BytesMut,
}

impl RequestBuffer {
    /// Creates an empty buffer for a request that must end within `limit` and fit into `share`.
    pub(super) fn new(share: Reservation, limit: Duration) -> Self {
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
    /// [`ReceiveError::Late`] once it is over.
    pub(super) fn check_time(&mut self, cx: &mut Context<'_>) -> Result<(), ReceiveError> {
        if self.end.as_mut().poll(cx).is_pending() {
            return Ok(());
        }
        let limit_ms = u64::try_from(self.limit.as_millis()).unwrap_or(u64::MAX);
        Err(ReceiveError::Late { limit_ms })
    }

    /// Appends a copy of `data`. A slice would keep the connection's whole read buffer alive.
    ///
    /// # Errors
    /// [`ReceiveError::Full`] if a budget has no room for it.
    pub(super) fn add(&mut self, data: &[u8]) -> Result<(), ReceiveError> {
        self.share.take(data.len())?;
        self.bytes.extend_from_slice(data);
        Ok(())
    }

    /// Returns the bytes, which count against the budgets until their last clone or slice is dropped.
    pub(super) fn counted(self) -> Bytes {
        Bytes::from_owner(CountedBytes {
            bytes: self.bytes.freeze(),
            _share: self.share,
        })
    }
}

struct CountedBytes {
    bytes: Bytes,
    _share: Reservation,
}

impl AsRef<[u8]> for CountedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_taken_of_all_budgets_or_none_and_given_back() {
        let budgets = [("a", 10), ("b", 6)].map(|(name, most)| ByteBudget::new(name, most));
        let small = ByteBudget::new("small", 0);
        let of_both = || Reservation::new(budgets.clone(), small.clone());
        let taken = || {
            let taken = |budget: &ByteBudget| budget.most - budget.left.available_permits();
            (taken(&budgets[0]), taken(&budgets[1]))
        };
        let mut one = of_both();
        one.take(5).unwrap();
        let mut other = of_both();
        let refused = other.take(2).unwrap_err();
        let (most, setting) = (6, "b");
        assert_eq!(refused, ReceiveError::Full { most, setting });
        assert_eq!(taken(), (5, 5));
        other.take(1).unwrap();
        drop(one);
        assert_eq!(taken(), (1, 1));
        other.take(usize::MAX).unwrap_err();
        drop(other);
        assert_eq!(taken(), (0, 0));
    }

    #[test]
    fn small_requests_have_room_where_large_ones_have_taken_all() {
        let budgets = ["a", "b"].map(|name| ByteBudget::new(name, 40 << 10));
        let small = ByteBudget::new("small", 20 << 10);
        let share = || Reservation::new(budgets.clone(), small.clone());
        let mut large = share();
        large.take(30 << 10).unwrap();
        large.take(10 << 10).unwrap();
        let of_others = || ByteBudget::new("of another connection", 40 << 10);
        let other = || Reservation::new([of_others(), budgets[1].clone()], small.clone());
        let mut first = other();
        first.take(10 << 10).unwrap();
        first.take(6 << 10).unwrap();
        assert!(first.take(1).is_err(), "it is small no more");
        let mut second = other();
        assert!(second.take(5 << 10).is_err(), "there is room for so many");
        drop(first);
        second.take(5 << 10).unwrap();
        drop((large, second));
        assert_eq!(small.left.available_permits(), 20 << 10);
        assert_eq!(budgets[1].left.available_permits(), 40 << 10);
    }
}
