//! Deadlines: what was late, and the one that a request's headers set.

use std::time::Duration;

use tonic::metadata::MetadataMap;

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

/// Reads the `grpc-timeout` header: up to eight digits and a unit. tonic bounds only the response's
/// headers by it, never a stream.
pub fn from_metadata(metadata: &MetadataMap) -> Option<Duration> {
    let header = metadata.get("grpc-timeout")?.to_str().ok()?;
    let (digits, unit) = header.split_at_checked(header.len().checked_sub(1)?)?;
    if digits.len() > 8 {
        return None;
    }
    let value: u64 = digits.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_secs(value * 3_600)),
        "M" => Some(Duration::from_secs(value * 60)),
        "S" => Some(Duration::from_secs(value)),
        "m" => Some(Duration::from_millis(value)),
        "u" => Some(Duration::from_micros(value)),
        "n" => Some(Duration::from_nanos(value)),
        _ => None,
    }
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

    #[test]
    fn units_follow_the_grpc_specification() {
        let read = |header: &'static str| {
            let mut metadata = MetadataMap::new();
            metadata.insert("grpc-timeout", header.parse().expect("ASCII"));
            from_metadata(&metadata)
        };
        assert_eq!(read("2H"), Some(Duration::from_secs(7_200)));
        assert_eq!(read("3M"), Some(Duration::from_secs(180)));
        assert_eq!(read("5S"), Some(Duration::from_secs(5)));
        assert_eq!(read("250m"), Some(Duration::from_millis(250)));
        assert_eq!(read("250u"), Some(Duration::from_micros(250)));
        assert_eq!(read("99999999n"), Some(Duration::from_nanos(99_999_999)));
        for malformed in ["", "5", "S", "5X", "123456789S", "-1S"] {
            assert_eq!(read(malformed), None, "{malformed:?}");
        }
        assert_eq!(from_metadata(&MetadataMap::new()), None);
    }
}
