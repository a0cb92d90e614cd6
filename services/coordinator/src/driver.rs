//! The only loop that awaits peers: carries out what the session asks for, and tells it what came.

mod telling;

use std::sync::Arc;
use std::time::{Duration, Instant};

use server::health::Health;
use speculation::session::{Action, FinishReason, Input, Origin, Request, Session};
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::{self, OwnedPermit};
use tonic::Status;
use v1::generate_response::Part;
use wire::v1;

use crate::config::CoordinatorConfig;
use crate::exchange::Ask;
use crate::observe::Observer;
use crate::output::Output;
use crate::peer_links::PeerLinks;
use crate::request::CheckedRequest;

/// A message to the client.
pub(crate) type Answer = Result<v1::GenerateResponse, Status>;

/// A request that was let in and is in order.
pub(crate) struct Begun {
    pub(crate) request: CheckedRequest,
    /// Names its sessions; nobody else has or can guess it.
    pub(crate) id: [u8; 16],
    /// Where the answer goes.
    pub(crate) answers: mpsc::Sender<Answer>,
    /// A place for its end.
    pub(crate) end: OwnedPermit<Answer>,
    pub(crate) permit: OwnedSemaphorePermit,
}

impl Begun {
    /// What the client is told its request is called.
    pub(crate) fn request_id(&self) -> String {
        hexadecimal(&self.id)
    }
}

/// One request under way.
pub(crate) struct Driver {
    request: Arc<CheckedRequest>,
    session: Session,
    links: PeerLinks,
    output: Output,
    answers: mpsc::Sender<Answer>,
    /// A place for the end of the answer.
    end: OwnedPermit<Answer>,
    observer: Observer,
    began: Instant,
    first_token: Option<Duration>,
    /// What the session waits for.
    asked: Option<Asked>,
    /// The text of tokens still held, and how many of them it holds.
    held_text: Option<Output>,
    looked_at: usize,
    reported_rounds: u64,
    reported_steps: usize,
    reported_bytes: u64,
    /// Tokens handed to the client.
    delivered: usize,
    /// What ended the request before the session did, or before its tokens were handed over.
    cut: Option<Cut>,
    id: [u8; 16],
    /// Whether this coordinator is about to stop.
    health: Health,
    _permit: OwnedSemaphorePermit,
}

/// What ends a request whatever its session comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    /// This coordinator is about to stop.
    LastCall,
    /// The client did not read before the request's deadline.
    Deadline,
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
    LastCall,
}

impl Driver {
    /// A request about to run.
    pub(crate) fn new(
        begun: Begun,
        config: &CoordinatorConfig,
        health: Health,
        observer: Observer,
    ) -> Self {
        let Begun {
            request,
            id,
            answers,
            end,
            permit,
        } = begun;
        let began = observer.began();
        let session = Session::new(request.session_config(config), began.elapsed());
        let output = request.output();
        let request = Arc::new(request);
        Self {
            links: PeerLinks::new(Arc::clone(&request), id),
            session,
            output,
            answers,
            end,
            observer,
            began,
            first_token: None,
            asked: None,
            held_text: None,
            looked_at: 0,
            reported_rounds: 0,
            reported_steps: 0,
            reported_bytes: 0,
            delivered: 0,
            cut: None,
            request,
            id,
            health,
            _permit: permit,
        }
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
                    let by_drafter = matches!(input, Input::Drafted { .. });
                    let has_report = by_drafter || matches!(input, Input::Verified { .. });
                    self.observer.answered(&input, &self.links);
                    self.session.handle(input, now);
                    self.observe_losses();
                    self.end_held_at_stop();
                    if has_report {
                        self.report_round(by_drafter).await;
                    }
                }
                Event::ClientGone => self.session.handle(Input::Cancel, now),
                Event::LastCall => self.cut(Cut::LastCall),
                Event::Timeout => {
                    // The request's own deadline is nobody's fault.
                    if let Some(asked) = self.asked.take().filter(|_| now < self.request.timeout) {
                        self.observer.silent(asked.request.peer());
                        self.links.silent(asked.request.peer());
                    }
                    self.session.handle_timeout(now);
                    self.observe_losses();
                }
            }
        }
    }

    /// Ends the request: nobody waits for what its session would come to.
    fn cut(&mut self, cut: Cut) {
        self.cut = Some(cut);
        self.session.handle(Input::Cancel, self.began.elapsed());
    }

    /// Carries out one action; the reason, if it was the last.
    async fn carry_out(&mut self, action: Action) -> Option<FinishReason> {
        match action {
            Action::Send {
                round,
                attempt,
                base_len,
                request,
            } => {
                self.observer.asked(round, attempt, base_len, &request);
                self.asked = Some(Asked {
                    round,
                    request,
                    streaming: false,
                });
            }
            Action::Emit(tokens) => {
                let emitted = self.output.emit(&tokens);
                self.first_token.get_or_insert_with(|| self.began.elapsed());
                self.observer.emitted(&emitted.chunk);
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
        let links = &mut self.links;
        let trace = self.observer.asked_context();
        let ask = |round| Ask {
            round,
            timeout: patience,
            began: now,
            output: self.session.output(),
            emitted: self.session.emitted(),
            trace,
        };
        let answer = async {
            match &mut self.asked {
                Some(asked) if asked.streaming => links.decoded(ask(asked.round)).await,
                Some(asked) => {
                    asked.streaming = matches!(asked.request, Request::Decode { .. });
                    links.ask(ask(asked.round), &asked.request).await
                }
                None => std::future::pending().await,
            }
        };
        let event = tokio::select! {
            input = answer => Event::Answer(input),
            () = timeout => Event::Timeout,
            () = self.answers.closed() => Event::ClientGone,
            () = self.health.last_call() => Event::LastCall,
        };
        let goes_on = matches!(event, Event::Answer(Input::Decoded { .. }));
        if matches!(event, Event::Answer(_)) && !goes_on {
            self.asked = None;
        }
        event
    }

    /// A response that is held until it is complete is complete where a stop string stands in it.
    fn end_held_at_stop(&mut self) {
        let held = self.session.held();
        let Some(new) = held.get(self.looked_at..).filter(|new| !new.is_empty()) else {
            return;
        };
        let held_text = self.held_text.get_or_insert_with(|| self.request.output());
        let new: Vec<_> = new.iter().map(|&token| (token, Origin::Accepted)).collect();
        self.looked_at += new.len();
        if let Some(len) = held_text.emit(&new).stopped_at {
            self.session
                .handle(Input::Stop { len }, self.began.elapsed());
        }
    }
}

/// Sixteen bytes as text.
fn hexadecimal(id: &[u8; 16]) -> String {
    format!("{:032x}", u128::from_be_bytes(*id))
}
