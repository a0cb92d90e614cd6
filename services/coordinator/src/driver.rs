//! The only loop that polls the session and awaits its peers: carries out what the session asks for, and tells
//! it what came.

mod channel;
mod response;
mod round;

use std::sync::Arc;
use std::time::{Duration, Instant};

use fleet::{PeerFault, ServedModel, Target};
use net::auth::Quota;
use ops::health::Health;
use speculation::session::{Action, FinishReason, Input, Origin, Session};
use text::OutputText;
use tokio::sync::OwnedSemaphorePermit;
use v1::generate_response::Part;
use wire::v1;

use crate::admitted::{AdmittedRequest, session_config};
use crate::config::CoordinatorConfig;
use crate::events::RequestEvent;
use crate::observe::RequestObserver;
use crate::peer::{
    CallFailure, Deadline, FailureKind, PeerAnswer, Peers, PendingRequest, RoundPosition,
    RoundProposals,
};
use round::RoundRecord;

pub(crate) use channel::{ResponseSender, ResponseStream, response_channel};
pub(crate) use response::RESTART_RETRY_AFTER;
use response::{ClientResponse, EarlyEnd};

/// Longest time that a peer is waited for where the session sets none.
const FOREVER: Duration = Duration::from_secs(3_600);

/// Length of what a request's calls have in common in their ids, of its own.
const CALL_ID_LEN: usize = 22;

/// What one request holds for as long as it runs.
#[derive(Debug)]
pub(crate) struct RequestPlace {
    /// Its place among others, and room for its distributions.
    pub(crate) permits: Vec<OwnedSemaphorePermit>,
    /// The limits that its tokens count against.
    pub(crate) quota: Quota,
}

/// A request that is about to run.
pub(crate) struct Prepared {
    pub(crate) request: AdmittedRequest,
    pub(crate) model: Arc<ServedModel>,
    pub(crate) target: Target,
    /// Names its sessions at the peers; nobody else has or can guess it.
    pub(crate) session_id: [u8; 16],
    /// What the client is told it is called.
    pub(crate) request_id: String,
    /// What it may use of the process.
    pub(crate) place: RequestPlace,
}

impl Prepared {
    /// Returns the event that it is in order.
    pub(crate) fn event(&self) -> RequestEvent<'_> {
        RequestEvent::Prepared {
            request: &self.request,
            request_id: &self.request_id,
        }
    }
}

/// One request under way.
pub(crate) struct Driver {
    request: Arc<AdmittedRequest>,
    session: Session,
    peers: Peers,
    response: ClientResponse,
    /// The text of tokens still held, and how many of them it holds.
    held_text: OutputText,
    looked_at: usize,
    observer: RequestObserver,
    began: Instant,
    /// What the session waits for.
    pending: Option<PendingRequest>,
    /// When its peer was asked.
    sent: Instant,
    round: RoundRecord,
    place: RequestPlace,
}

/// What ended a wait.
#[expect(
    clippy::large_enum_variant,
    reason = "there is one at a time, and it is taken apart at once"
)]
enum Woken {
    Answer(Result<PeerAnswer, CallFailure>),
    Timeout,
    ClientGone,
    LastCall,
}

impl Driver {
    pub(crate) fn new(
        prepared: Prepared,
        sender: ResponseSender,
        config: &CoordinatorConfig,
        health: Health,
        observer: RequestObserver,
    ) -> Self {
        let Prepared {
            request,
            model,
            target,
            session_id,
            request_id,
            place,
        } = prepared;
        let began = observer.began();
        let method = &request.method;
        let is_measured = method.auto && request.has_drafters && !method.streams();
        let estimate = is_measured.then(|| {
            let temperature = request.sampling.temperature;
            let known = model.measured(method, temperature, request.draft_model.as_ref());
            (known.rounds).begin(spread(request.seed), !method.depends_on_draft())
        });
        let session = session_config(&request, config, estimate, jitter());
        let (stops, before) = (&request.stops, request.text_before());
        let text = Arc::clone(&target.text);
        let output = || OutputText::new(Arc::clone(&text), stops.clone(), before);
        let (mut response, mut held_text) = (output(), output());
        if let Some(reading) = &request.reading {
            let own = &request_id[..CALL_ID_LEN.min(request_id.len())];
            response = response.read_as(reading.clone(), &format!("call_{own}"));
            // Stop strings count outside of calls only.
            held_text = held_text.read_as(reading.clone(), "");
        }
        let request = Arc::new(request);
        Self {
            session: Session::new(session),
            peers: Peers::new(Arc::clone(&request), model, target, session_id),
            response: ClientResponse {
                output: response,
                sender,
                health,
                deadline: began + request.timeout,
                request_id,
                first_token: None,
                delivered: 0,
                early_end: None,
            },
            held_text,
            looked_at: 0,
            observer,
            began,
            pending: None,
            sent: began,
            round: RoundRecord::default(),
            request,
            place,
        }
    }

    /// Runs the request to its end. Exactly one `finished` is sent, unless the client is gone.
    pub(crate) async fn run(mut self) {
        let started = self.started();
        self.respond(Part::Started(started)).await;
        self.begin_prompt().await;
        loop {
            while let Some(action) = self.session.poll(self.now()) {
                if let Some(reason) = self.carry_out(action).await {
                    return self.finish(&reason).await;
                }
            }
            match self.wait().await {
                Woken::Answer(answer) => self.handle(answer),
                Woken::ClientGone => self.session.handle(Input::Cancel, self.now()),
                Woken::LastCall => self.end_early(EarlyEnd::LastCall),
                Woken::Timeout => self.handle_timeout(),
            }
        }
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// Ends the request: nobody waits for what its session would come to.
    fn end_early(&mut self, by: EarlyEnd) {
        self.response.early_end = Some(by);
        self.session.handle(Input::Cancel, self.now());
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
                let (sent, peer) = (&request, request.peer());
                self.observer.observe(&RequestEvent::Sent {
                    round,
                    attempt,
                    base_len,
                    request: sent,
                });
                let opens_round = std::mem::replace(&mut self.round.decided, round) != round;
                if opens_round {
                    self.round.proposals = RoundProposals::default();
                }
                if let Some(lengths) = self.session.goodput().filter(|_| opens_round) {
                    self.observer.observe(&RequestEvent::LengthDecided {
                        decision: lengths.decision(),
                        prices: lengths.prices(),
                    });
                }
                if attempt == 0 {
                    self.round.fault = None;
                    if let Some(endpoint) = self.peers.endpoint(peer) {
                        endpoint.requested();
                    }
                }
                self.sent = Instant::now();
                self.pending = Some(PendingRequest::new(round, request));
            }
            Action::Emit(tokens) => self.emit(&tokens).await,
            Action::EmitScores { from, count } => self.emit_scores(from, count).await,
            Action::Close(peer) => {
                self.pending = None;
                self.peers.session(peer).close();
            }
            Action::Finish(reason) => return Some(reason),
        }
        None
    }

    /// Waits for the peer asked, for time to pass, or for the client to go away. An answer that has come is never
    /// passed over for a time that ran out meanwhile: a verifier decodes on while the client does not read.
    async fn wait(&mut self) -> Woken {
        let due = self.session.poll_timeout();
        let far = Instant::now() + FOREVER;
        let until = due
            .and_then(|due| self.began.checked_add(due))
            .unwrap_or(far);
        let position = |round| RoundPosition {
            round,
            deadline: Deadline {
                until,
                is_short: due.is_some_and(|due| due >= self.request.timeout),
            },
            output: self.session.output(),
            emitted: self.session.emitted(),
            worth: (self.session.goodput()).and_then(|lengths| lengths.decision().min_survival),
            trace: self.observer.sent_context(),
        };
        let (peers, record) = (&mut self.peers, &self.round);
        let answering = async {
            match &mut self.pending {
                Some(pending) => {
                    let position = position(pending.round);
                    peers.answer(pending, position, &record.proposals).await
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.response.health.last_call() => Woken::LastCall,
            () = self.response.sender.closed() => Woken::ClientGone,
            answer = answering => Woken::Answer(answer),
            () = tokio::time::sleep_until(until.into()) => Woken::Timeout,
        }
    }

    /// Handles a time that the session set and that has come.
    fn handle_timeout(&mut self) {
        let now = self.now();
        // The request's own deadline is nobody's fault; nor is a pause.
        if let Some(pending) = self.pending.take().filter(|_| now < self.request.timeout) {
            let peer = pending.request.peer();
            self.observe_failure(pending.round, peer, PeerFault::Timeout, "no answer in time");
            self.peers.session(peer).give_up(FailureKind::Silent);
        }
        self.session.handle_timeout(now);
        self.observe_losses();
    }

    /// Ends a response that is held until it is complete where a stop string stands in it.
    fn end_held_at_stop(&mut self) {
        let held = self.session.held();
        let new = held.get(self.looked_at..).unwrap_or_default();
        if new.is_empty() {
            return;
        }
        let new: Vec<_> = new.iter().map(|&token| (token, Origin::Accepted)).collect();
        self.looked_at += new.len();
        if let Some(len) = self.held_text.emit(&new).stopped_at {
            self.session.handle(Input::Stop { len }, self.now());
        }
    }
}

/// Returns a number from 0 to 1 that depends on the seed alone; neighbouring seeds get numbers far apart.
fn spread(seed: u64) -> f64 {
    // 2^64 over the golden ratio: multiples of it fall evenly over the range.
    let mixed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 32) as f64 / f64::from(u32::MAX)
}

/// Returns a number from 0 to 1 that differs between requests.
fn jitter() -> f64 {
    // Without a source of entropy nothing is spread, and nothing else is wrong.
    getrandom::u32().map_or(0.5, |random| f64::from(random) / f64::from(u32::MAX))
}
