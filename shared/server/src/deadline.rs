//! Deadlines that say what was late.

use std::time::Duration;

/// Something did not end in its time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} did not end within {after_ms} ms")]
pub struct DeadlineExceeded {
    /// What was awaited.
    pub what: &'static str,
    /// How long it was given.
    pub after_ms: u64,
}

/// Awaits `future` for at most `limit`; `what` names it in the error.
///
/// # Errors
/// [`DeadlineExceeded`] once the time is over; the future is dropped then.
pub async fn within<T>(
    limit: Duration,
    what: &'static str,
    future: impl Future<Output = T>,
) -> Result<T, DeadlineExceeded> {
    tokio::time::timeout(limit, future)
        .await
        .map_err(|_elapsed| DeadlineExceeded {
            what,
            after_ms: u64::try_from(limit.as_millis()).unwrap_or(u64::MAX),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn silence_ends_at_the_limit() {
        let began = tokio::time::Instant::now();
        let limit = Duration::from_millis(500);
        let late = within(limit, "the verdict", std::future::pending::<()>()).await;
        assert_eq!(began.elapsed(), limit);
        assert_eq!(
            late.unwrap_err().to_string(),
            "the verdict did not end within 500 ms"
        );
        assert_eq!(within(limit, "the verdict", async { 7 }).await, Ok(7));
    }
}
