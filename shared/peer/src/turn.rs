//! One round under way.

use std::time::Instant;

use server::progress::{Progress, Progressing, Stalled};
use server::trace::{self, Span};
use tonic::Status;
use wire::round::Round;
use wire::v1;

use crate::error::RoundError;
use crate::replies::Replies;
use crate::role::{Role, Said, Session};

/// A round under way, and where its replies go.
#[derive(Debug)]
pub struct Turn<'a, R: Role> {
    /// Where the round stands.
    pub round: Round,
    /// When it came.
    pub began: Instant,
    /// Where its replies go.
    pub replies: &'a Replies<R::Reply>,
}

impl<R: Role> Turn<'_, R> {
    /// Brings the session's output to where the round stands; false if the coordinator was told that
    /// too little is held.
    ///
    /// # Errors
    /// If the client is gone, or does not read.
    pub async fn advance(&self, session: &mut Session<R>) -> Result<bool, Status> {
        let round = &self.round;
        let Err(need) = session
            .committed
            .replace_from(round.from_len, &round.committed)
        else {
            return Ok(true);
        };
        let need = v1::NeedFrom {
            header: Some(round.reply_header(false)),
            from: need.from,
        };
        self.replies.send(R::write(Said::NeedFrom(need))).await?;
        Ok(false)
    }

    /// Awaits `work` for as long as it makes progress, which the coordinator is told as far as it reads.
    ///
    /// # Errors
    /// If it makes none for the round's time.
    pub async fn wait<T>(
        &self,
        progressing: &mut Progressing,
        work: impl Future<Output = T>,
    ) -> Result<T, RoundError> {
        let offer = |Progress { done, total }| {
            let progress = Said::Progress(self.round.progress(done, total));
            self.replies.offer(R::write(progress));
        };
        let waited = progressing.wait(self.round.timeout, work, offer).await;
        waited.map_err(|Stalled(limit)| RoundError::Late(limit))
    }
}

/// Awaits a part of a round whose span is `span`, and notes there if it fails.
///
/// # Errors
/// As the part.
pub async fn traced<R: Role, T>(
    span: &mut Span,
    part: impl Future<Output = Result<T, RoundError>>,
) -> Result<T, Status> {
    let ended = trace::within(span.context(), part).await;
    ended.map_err(|error| {
        let status = error.status::<R>();
        span.fail(format!("{:?}", status.code()));
        status
    })
}
