//! The only loop that awaits peers: carries out what the session asks for, and tells it what came.

use std::sync::Arc;
use std::time::{Duration, Instant};

use speculation::session::{Action, FinishReason, Input, Plan, Request, Session};
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::{self, OwnedPermit};
use tonic::Status;
use v1::generate_response::Part;
use wire::v1;

use crate::config::CoordinatorConfig;
use crate::output::Output;
use crate::peer_links::{PeerLinks, RoundTimes};
use crate::report;
use crate::request::CheckedRequest;

/// Where the answer goes.
pub(crate) type Answers = mpsc::Sender<Answer>;

type Answer = Result<v1::GenerateResponse, Status>;

/// One request under way.
pub(crate) struct Driver {
    request: Arc<CheckedRequest>,
    session: Session,
    links: PeerLinks,
    output: Output,
    answers: Answers,
    /// A place for the end of the answer.
    end: OwnedPermit<Answer>,
    began: Instant,
    first_token: Option<Duration>,
    /// What the session waits for.
    asked: Option<Asked>,
    reported_rounds: usize,
    /// Tokens handed to the client.
    delivered: usize,
    id: [u8; 16],
    _permit: OwnedSemaphorePermit,
}

/// A request to a peer that was not answered yet.
struct Asked {
    round: u64,
    request: Request,
    /// Whether it is a decode round that gave tokens already.
    streaming: bool,
}

/// What ended a wait.
enum Event {
    Answer(Input),
    Timeout,
    ClientGone,
}

impl Driver {
    /// A request that came in at `began`.
    ///
    /// # Errors
    /// If the system has no randomness to name the session with.
    pub(crate) fn new(
        request: CheckedRequest,
        config: &CoordinatorConfig,
        began: Instant,
        answers: Answers,
        permit: OwnedSemaphorePermit,
    ) -> Result<Self, Status> {
        let id = random_id()?;
        // The end can always be told, however slowly the client reads.
        let end = answers.clone().try_reserve_owned();
        let end = end.map_err(|_| Status::internal("no room for the answer"))?;
        let session = Session::new(request.session_config(config), began.elapsed());
        let output = Output::new(
            Arc::clone(&request.text),
            request.stops.clone(),
            &request.prompt,
        );
        let request = Arc::new(request);
        Ok(Self {
            links: PeerLinks::new(Arc::clone(&request), id),
            session,
            output,
            answers,
            end,
            began,
            first_token: None,
            asked: None,
            reported_rounds: 0,
            delivered: 0,
            request,
            id,
            _permit: permit,
        })
    }

    /// Runs the request to its end. Exactly one `finished` is sent, unless the client is gone.
    pub(crate) async fn run(mut self) {
        self.answer(Part::Started(self.started())).await;
        loop {
            while let Some(action) = self.session.poll() {
                if let Some(reason) = self.carry_out(action).await {
                    return self.finish(&reason).await;
                }
            }
            let event = self.wait().await;
            let now = self.began.elapsed();
            match event {
                Event::Answer(input) => {
                    self.session.handle(input, now);
                    self.report_round().await;
                }
                Event::ClientGone => self.session.handle(Input::Cancel, now),
                Event::Timeout => {
                    // The request's own deadline is nobody's fault.
                    if let Some(asked) = self.asked.take().filter(|_| now < self.request.timeout) {
                        self.links.silent(asked.request.peer());
                    }
                    self.session.handle_timeout(now);
                }
            }
        }
    }

    /// Carries out one action; the reason, if it was the last.
    async fn carry_out(&mut self, action: Action) -> Option<FinishReason> {
        match action {
            Action::Send {
                round,
                attempt,
                request,
                ..
            } => {
                if attempt > 0 {
                    tracing::debug!(round, attempt, peer = ?request.peer(), "asking again");
                }
                self.asked = Some(Asked {
                    round,
                    request,
                    streaming: false,
                });
            }
            Action::Emit(tokens) => {
                let emitted = self.output.emit(&tokens);
                self.first_token.get_or_insert_with(|| self.began.elapsed());
                self.answer(Part::Chunk(emitted.chunk)).await;
                if let Some(len) = emitted.stopped_at {
                    self.session
                        .handle(Input::Stop { len }, self.began.elapsed());
                }
            }
            Action::Close(peer) => {
                self.asked = None;
                self.links.close(peer);
            }
            Action::Finish(reason) => return Some(reason),
        }
        None
    }

    /// Waits for the peer asked, for time to pass, or for the client to go away.
    async fn wait(&mut self) -> Event {
        let due = self.session.poll_timeout().map(|due| self.began + due);
        let now = Instant::now();
        let patience = due.map_or(Duration::MAX, |due| due.saturating_duration_since(now));
        let timeout = async {
            match due {
                Some(due) => tokio::time::sleep_until(due.into()).await,
                None => std::future::pending().await,
            }
        };
        let (links, output) = (&mut self.links, self.session.output());
        let answer = async {
            match &mut self.asked {
                Some(asked) if asked.streaming => {
                    links.decoded(asked.round, output, patience).await
                }
                Some(asked) => {
                    asked.streaming = matches!(asked.request, Request::Decode { .. });
                    links
                        .ask(asked.round, output, &asked.request, patience)
                        .await
                }
                None => std::future::pending().await,
            }
        };
        let event = tokio::select! {
            input = answer => Event::Answer(input),
            () = timeout => Event::Timeout,
            () = self.answers.closed() => Event::ClientGone,
        };
        let goes_on = matches!(event, Event::Answer(Input::Decoded { .. }));
        if matches!(event, Event::Answer(_)) && !goes_on {
            self.asked = None;
        }
        event
    }

    /// Reports the round that was just decided, if reports are wanted.
    async fn report_round(&mut self) {
        let statistics = self.session.statistics();
        let decided = statistics.per_step_drafted.len();
        if !self.request.report_rounds || decided == self.reported_rounds {
            return;
        }
        self.reported_rounds = decided;
        let drafted = statistics.per_step_drafted[decided - 1];
        let accepted = statistics.per_step_accepted[decided - 1];
        let RoundTimes {
            draft,
            verify,
            drafter,
            verifier,
        } = std::mem::take(&mut self.links.times);
        // The tokens of the round come first: the report speaks of what the client has. A stop string
        // among them may cut the output, so where the round began is noted before.
        let len = self.session.output().len() as u32;
        let mut emitted = 0;
        while let Some(action) = self.session.poll_emit() {
            emitted += action.len() as u32;
            let _last = self.carry_out(Action::Emit(action)).await;
        }
        let report = v1::RoundReport {
            round: decided as u64,
            base_len: len - emitted,
            drafted,
            accepted,
            emitted,
            draft_us: draft.as_micros() as u32,
            verify_us: verify.as_micros() as u32,
            drafter: Some(drafter),
            verifier: Some(verifier),
        };
        self.answer(Part::Round(report)).await;
    }

    /// Sends a part to the client. A client that does not read holds its request up, until the
    /// request's deadline and no longer.
    async fn answer(&mut self, part: Part) {
        let tokens = match &part {
            Part::Chunk(chunk) => chunk.token_ids.len(),
            _ => 0,
        };
        let message = Ok(v1::GenerateResponse { part: Some(part) });
        let deadline = self.began + self.request.timeout;
        match tokio::time::timeout_at(deadline.into(), self.answers.send(message)).await {
            Ok(Ok(())) => self.delivered += tokens,
            Ok(Err(_)) => self.session.handle(Input::Cancel, self.began.elapsed()),
            Err(_) => self.session.handle_timeout(self.began.elapsed()),
        }
    }

    fn started(&self) -> v1::Started {
        let request = &self.request;
        v1::Started {
            request_id: hexadecimal(&self.id),
            model: request.group.name().to_owned(),
            method: request.method.name.to_owned(),
            seed: request.seed,
            prompt_tokens: request.prompt.len() as u32,
            max_tokens: request.max_tokens,
        }
    }

    async fn finish(mut self, reason: &FinishReason) {
        let rest = match reason {
            FinishReason::Stop | FinishReason::Length => self.output.finish(),
            _ => String::new(),
        };
        if !rest.is_empty() {
            self.answer(Part::Chunk(v1::Chunk {
                text: rest,
                ..Default::default()
            }))
            .await;
        }
        let (finish_reason, code, error) = report::finish(reason);
        let moves = self.links.moves(self.request.method.plan);
        let statistics = self.session.statistics();
        let tokens = self.delivered;
        let total = self.began.elapsed();
        let finished = v1::Finished {
            reason: finish_reason.into(),
            error,
            error_code: code as u32,
            usage: Some(v1::Usage {
                prompt_tokens: self.request.prompt.len() as u32,
                completion_tokens: tokens as u32,
            }),
            speculation: Some(report::statistics(statistics, moves.migrations)),
            timing: Some(report::timing(self.first_token, total, tokens)),
            effective_method: self.effective_method().to_owned(),
            exact: !moves.numerics_changed,
            seed: self.request.seed,
        };
        let request_id = hexadecimal(&self.id);
        let (total_ms, fallbacks) = (total.as_millis() as u64, statistics.fallbacks.len());
        if finish_reason == v1::FinishReason::Error {
            let error = &finished.error;
            tracing::warn!(
                request_id,
                error,
                tokens,
                total_ms,
                fallbacks,
                "request failed"
            );
        } else {
            let reason = finish_reason.as_str_name();
            tracing::info!(
                request_id,
                reason,
                tokens,
                total_ms,
                fallbacks,
                "request finished"
            );
        }
        let part = Some(Part::Finished(finished));
        self.end.send(Ok(v1::GenerateResponse { part }));
    }

    /// The method that made the output: the target alone if nothing was ever drafted, although the
    /// method asked for it.
    fn effective_method(&self) -> &'static str {
        let method = self.request.method;
        let drafted = self.session.statistics().num_spec_steps() > 0;
        let alone = !self.request.group.has_drafters()
            || !self.session.statistics().fallbacks.is_empty() && !drafted;
        if method.plan == Plan::Speculative && alone {
            "target-only"
        } else {
            method.name
        }
    }
}

/// A name for a session that nobody else has or can guess.
fn random_id() -> Result<[u8; 16], Status> {
    let mut id = [0; 16];
    getrandom::fill(&mut id)
        .map_err(|error| Status::internal(format!("no randomness: {error}")))?;
    Ok(id)
}

/// Sixteen bytes as text.
fn hexadecimal(id: &[u8; 16]) -> String {
    format!("{:032x}", u128::from_be_bytes(*id))
}
