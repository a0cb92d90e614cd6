//! Reading an answer's parts, and asking for them again where they are lost.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use tonic::{Code, Status, Streaming};
use wire::status::try_again;
use wire::v1;
use wire::v1::coordinator_client::CoordinatorClient;
use wire::v1::generate_response::Part;

use crate::answer::GenerationEvent;
use crate::calls::Client;
use crate::error::Error;
use crate::given::GivenParts;
use crate::policy::{Patience, as_unavailable, is_lost, is_starting_up, retry_after};

/// How long the end of the stream may take after the end of the answer.
const STREAM_END: Duration = Duration::from_secs(1);

/// Reads the parts of an answer.
pub(crate) struct ResumableAnswer {
    client: Client,
    request: v1::GenerateRequest,
    /// When it was first made.
    began: Instant,
    parts: Streaming<v1::GenerateResponse>,
    /// The first message of the first attempt.
    started: Option<v1::Started>,
    given: GivenParts,
    resumes: u32,
    /// Why the answer was lost; it is to be asked for again.
    lost: Option<Status>,
    is_over: bool,
}

impl ResumableAnswer {
    /// Asks, and waits until the request is taken.
    pub(crate) async fn begin(client: Client, request: v1::GenerateRequest) -> Result<Self, Error> {
        let policy = client.policy;
        let patience = Patience::new(&policy, is_starting_up, policy.startup);
        let began = Instant::now();
        let parts = ask(&client, patience, request.clone()).await;
        Ok(Self {
            client,
            request,
            began,
            parts: parts.map_err(Error::Status)?,
            started: None,
            given: GivenParts::default(),
            resumes: 0,
            lost: None,
            is_over: false,
        })
    }

    /// Returns the next event, and the reader of the events after it.
    pub(crate) async fn next(mut self) -> Result<Option<(GenerationEvent, Self)>, Error> {
        if self.is_over {
            return Ok(None);
        }
        if let Some(lost) = self.lost.take() {
            self.resume(&lost).await?;
        }
        loop {
            let event = match self.parts.message().await {
                Ok(Some(message)) => self.take(message.part).await?,
                Ok(None) => {
                    let unfinished = "the answer ended before it was finished";
                    Some(self.lose(Status::unavailable(unfinished))?)
                }
                Err(status) if is_lost(&status) => Some(self.lose(as_unavailable(status))?),
                Err(status) => return Err(Error::Status(status)),
            };
            if let Some(event) = event {
                return Ok(Some((event, self)));
            }
        }
    }

    /// Returns the event of a part of the answer; none if the caller has it already.
    async fn take(&mut self, part: Option<Part>) -> Result<Option<GenerationEvent>, Error> {
        Ok(match part {
            Some(Part::Started(started)) if self.started.is_some() => {
                Some(GenerationEvent::Resumed(started))
            }
            Some(Part::Started(started)) => {
                self.started = Some(started.clone());
                Some(GenerationEvent::Started(started))
            }
            Some(Part::Prompt(part)) => self.given.prompt(part).map(GenerationEvent::Prompt),
            Some(Part::Chunk(chunk)) => self.given.chunk(chunk)?.map(GenerationEvent::Chunk),
            Some(Part::Round(round)) => {
                let is_new = self.given.is_new(&round);
                is_new.then(|| GenerationEvent::Round(Box::new(round)))
            }
            Some(Part::Finished(finished)) => Some(self.finish(finished).await?),
            // A part of a later version.
            None => None,
        })
    }

    /// Returns the event of the last message: the end of the answer, or its loss.
    async fn finish(&mut self, finished: v1::Finished) -> Result<GenerationEvent, Error> {
        if finished.reason() == v1::FinishReason::Error {
            let is_stopped = finished.error_code == Code::Unavailable as u32;
            if is_stopped && finished.retry_after_ms > 0 && self.may_resume() {
                let delay = Duration::from_millis(finished.retry_after_ms.into());
                return self.lose(try_again(finished.error, delay));
            }
            return Err(Error::Failed(Box::new(finished)));
        }
        self.given.check_end()?;
        self.is_over = true;
        // A stream that is dropped before its end is reset, and HTTP/2 bears only so many of these.
        let _ = timeout(STREAM_END, self.parts.message()).await;
        Ok(GenerationEvent::Finished(Box::new(finished)))
    }

    /// Returns whether the answer, if it is lost now, can be asked for again.
    fn may_resume(&self) -> bool {
        let policy = self.client.policy;
        let is_reproducible = self.started.as_ref().is_none_or(|it| it.reproducible);
        policy.resume && self.resumes < policy.resume_tries && is_reproducible
    }

    /// Notes that the answer is lost.
    fn lose(&mut self, status: Status) -> Result<GenerationEvent, Error> {
        if !self.may_resume() {
            return Err(self.gone(status));
        }
        self.lost = Some(status.clone());
        Ok(GenerationEvent::Lost(status))
    }

    fn gone(&self, status: Status) -> Error {
        let tokens = self.given.tokens();
        Error::Lost { tokens, status }
    }

    /// Asks again for an answer that is lost.
    async fn resume(&mut self, lost: &Status) -> Result<(), Error> {
        self.resumes += 1;
        self.given.again();
        sleep(retry_after(lost).unwrap_or_default()).await;
        let policy = self.client.policy;
        let patience = Patience::new(&policy, is_lost, policy.resume_wait);
        let asked = ask(&self.client, patience, self.again()).await;
        self.parts = asked.map_err(|status| {
            if is_lost(&status) {
                self.gone(as_unavailable(status))
            } else {
                Error::Status(status)
            }
        })?;
        Ok(())
    }

    /// Returns the request, with all that the coordinator chose for it and what is left of its time.
    fn again(&self) -> v1::GenerateRequest {
        let mut request = self.request.clone();
        if let Some(started) = &self.started {
            request.model.clone_from(&started.model);
            request.seed = Some(started.seed);
            request.max_tokens = Some(started.max_tokens);
        }
        if request.timeout_ms > 0 {
            let elapsed = self.began.elapsed().as_millis() as u32;
            // Without any left it is refused as late, and zero would mean the default.
            request.timeout_ms = request.timeout_ms.saturating_sub(elapsed).max(1);
        }
        request
    }
}

/// Asks for an answer.
async fn ask(
    client: &Client,
    patience: Patience,
    request: v1::GenerateRequest,
) -> Result<Streaming<v1::GenerateResponse>, Status> {
    let generate = |mut coordinator: CoordinatorClient<_>| {
        let request = request.clone();
        async move { coordinator.generate(request).await }
    };
    client.make(patience, generate).await
}
