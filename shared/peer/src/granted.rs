//! How far a round may go that is answered in many parts.

use std::time::Duration;

use tokio::sync::watch;
use tonic::Status;
use wire::failure::Failure;

/// How long a round waits to be granted more; then its stream ends, and the session waits for its lease.
pub const GRANT_TIMEOUT: Duration = Duration::from_mins(3);

/// How far the coordinator lets the round under way go, as the client takes its answer. Grants come on the round's
/// stream while it is answered; a clone on the engine thread sees them too.
#[derive(Clone, Debug)]
pub struct Granted {
    /// What the round itself grants.
    first: u32,
    later: watch::Receiver<u32>,
}

/// Where the grants of one round are put.
#[derive(Debug)]
pub(crate) struct Granting(watch::Sender<u32>);

/// Both ends for a round that begins now.
pub(crate) fn grants() -> (Granting, Granted) {
    let (sender, later) = watch::channel(0);
    (Granting(sender), Granted { first: 0, later })
}

impl Granting {
    /// Grants all up to `until`.
    pub(crate) fn extend(&self, until: u32) {
        self.0.send_if_modified(|before| {
            let is_more = until > *before;
            *before = until.max(*before);
            is_more
        });
    }
}

impl Granted {
    /// The grants of a round that says itself how far it may go at first; 0 grants all.
    #[must_use]
    pub fn from_first(self, first: u32) -> Self {
        let first = if first == 0 { u32::MAX } else { first };
        Self { first, ..self }
    }

    /// The position up to which parts may be computed and sent.
    pub fn until(&self) -> u32 {
        self.first.max(*self.later.borrow())
    }

    /// Waits until a part at `position` may be computed.
    ///
    /// # Errors
    /// If it is not granted for [`GRANT_TIMEOUT`].
    pub async fn reaches(&mut self, position: u32) -> Result<(), Status> {
        if position < self.until() {
            return Ok(());
        }
        let granted = self.later.wait_for(|until| position < *until);
        match tokio::time::timeout(GRANT_TIMEOUT, granted).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) => Err(Failure::Cancelled.status("the client is gone")),
            Err(_) => {
                let problem =
                    format!("nothing was granted beyond {position} for {GRANT_TIMEOUT:?}");
                Err(Failure::Late.status(problem))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_round_goes_as_far_as_was_granted_and_waits_there() {
        let (granting, granted) = grants();
        let mut granted = granted.from_first(3);
        assert_eq!(granted.until(), 3);
        granted.reaches(2).await.expect("granted by the round");
        let more = async {
            tokio::time::sleep(Duration::from_secs(60)).await;
            granting.extend(5);
            // An older grant that comes late takes nothing back.
            granting.extend(4);
        };
        let waiting = tokio::join!(granted.reaches(3), more).0;
        waiting.expect("granted meanwhile");
        assert_eq!(granted.until(), 5);
        let late = granted.reaches(5).await.expect_err("never granted");
        assert_eq!(late.code(), Failure::Late.code(), "{late:?}");
        let (_granting, unbounded) = grants();
        assert_eq!(unbounded.from_first(0).until(), u32::MAX);
    }
}
