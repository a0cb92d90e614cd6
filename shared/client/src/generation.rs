//! An answer under way.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::stream::{self, Stream, TryStreamExt};
use wire::v1;

use crate::answer::Answer;
use crate::calls::Calls;
use crate::error::Error;
use crate::event::Event;
use crate::reading::Reading;

/// An answer as it comes: a stream that ends with [`Event::Finished`], or with an error. Dropping it cancels the
/// call; the coordinator then stops, and its peers free what they hold.
pub struct Generation {
    events: Pin<Box<dyn Stream<Item = Result<Event, Error>> + Send>>,
}

impl fmt::Debug for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Generation").finish_non_exhaustive()
    }
}

impl Generation {
    /// Asks, and waits until the request is taken.
    pub(crate) async fn begin(calls: Calls, request: v1::GenerateRequest) -> Result<Self, Error> {
        let reading = Reading::begin(calls, request).await?;
        let events = stream::try_unfold(reading, Reading::next);
        Ok(Self {
            events: Box::pin(events),
        })
    }

    /// The next event; none after the last. Dropping the future loses no event.
    ///
    /// # Errors
    /// [`Error::Failed`] if the request failed, [`Error::Lost`] or [`Error::OtherTokens`] if the answer was lost and
    /// cannot go on, [`Error::Status`] if the coordinator ends the call otherwise. After an error nothing comes.
    pub async fn event(&mut self) -> Result<Option<Event>, Error> {
        self.events.try_next().await
    }

    /// The whole answer.
    ///
    /// # Errors
    /// Those of [`Generation::event`]. To keep the events before an error, add them to an [`Answer`] one by one.
    pub async fn collect(mut self) -> Result<Answer, Error> {
        let mut answer = Answer::default();
        while let Some(event) = self.event().await? {
            answer.add(event);
        }
        Ok(answer)
    }
}

impl Stream for Generation {
    type Item = Result<Event, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.events.as_mut().poll_next(cx)
    }
}
