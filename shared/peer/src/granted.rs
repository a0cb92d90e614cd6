//! Grants: how far a round that is answered in parts may go.

use std::time::Duration;

use tokio::sync::watch;
use tonic::Status;
use wire::failure::Failure;

/// Longest time that a round waits for a grant. Then its stream ends, and the session is detached until its lease ends.
pub const GRANT_TIMEOUT: Duration = Duration::from_mins(3);

/// The position up to which the coordinator grants parts of the current round. Further grants arrive on the stream while
/// the round is answered; clones, such as that on the engine thread, see them too.
#[derive(Clone, Debug)]
pub struct Granted {
    /// The grant in the round's own request.
    first: u32,
    later: watch::Receiver<u32>,
}

/// The sending end of a round's grants. Without it, none is waited for.
#[derive(Debug)]
pub(crate) struct Granting(watch::Sender<u32>);

/// Returns both ends for a round that begins now.
pub(crate) fn grants() -> (Granting, Granted) {
    let (sender, later) = watch::channel(0);
    (Granting(sender), Granted { first: 0, later })
}

impl Granting {
    /// Grants all parts before `until`.
    pub(crate) fn extend(&self, until: u32) {
        self.0.send_if_modified(|before| {
            let is_more = until > *before;
            *before = until.max(*before);
            is_more
        });
    }
}

impl Granted {
    /// Sets the grant of the round's own request; 0 grants all.
    #[must_use]
    pub fn from_first(self, first: u32) -> Self {
        let first = if first == 0 { u32::MAX } else { first };
        Self { first, ..self }
    }

    /// Returns the position up to which parts may be computed and sent.
    pub fn until(&self) -> u32 {
        self.first.max(*self.later.borrow())
    }

    /// Waits until the part at `position` is granted.
    ///
    /// # Errors
    /// If that takes longer than [`GRANT_TIMEOUT`], or the client sends nothing more.
    pub async fn reaches(&mut self, position: u32) -> Result<(), Status> {
        if position < self.until() {
            return Ok(());
        }
        let granted = self.later.wait_for(|until| position < *until);
        match tokio::time::timeout(GRANT_TIMEOUT, granted).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) => {
                let problem = format!(
                    "nothing was granted beyond {position}, and the client sends nothing more"
                );
                Err(Failure::Cancelled.status(problem))
            }
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
        drop(granting);
        let began = tokio::time::Instant::now();
        granted.reaches(4).await.expect("granted before");
        let never = granted.reaches(5).await.expect_err("never granted");
        assert_eq!(never.code(), Failure::Cancelled.code(), "{never:?}");
        assert_eq!(began.elapsed(), Duration::ZERO);
        let (_granting, unbounded) = grants();
        assert_eq!(unbounded.from_first(0).until(), u32::MAX);
    }
}
