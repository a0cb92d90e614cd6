//! What requests do at the moment and what failed lately, for operators who look. Nothing that a client wrote is in it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use fleet::Models;
use parking_lot::Mutex;
use serde_json::{Value, json};
use speculation::session::Peer;

use crate::events::{RequestEvent, RequestStage};

/// Failures that are remembered.
const FAILURES: usize = 32;

/// Requests that are shown, the oldest first; there may be more.
const SHOWN: usize = 64;

/// What is known of all requests.
#[derive(Debug, Default)]
pub(crate) struct Board {
    requests: Mutex<RequestsNow>,
    failures: Mutex<VecDeque<RecentFailure>>,
}

#[derive(Debug, Default)]
struct RequestsNow {
    begun: u64,
    /// By their order of arrival. Each has a lock of its own, so that requests do not wait for one another.
    under_way: BTreeMap<u64, Arc<Mutex<RequestNow>>>,
}

#[derive(Debug)]
struct RequestNow {
    began: Instant,
    stage: RequestStage,
    request_id: String,
    model: String,
    method: &'static str,
    prompt_tokens: usize,
    tokens: usize,
    drafted: u32,
    accepted: u32,
}

#[derive(Debug)]
struct RecentFailure {
    at: Instant,
    request_id: String,
    peer: &'static str,
    address: Option<String>,
    reason: String,
}

impl Board {
    /// Returns what operators are told: the replicas of `models` as they are known here, requests, failures.
    pub(crate) fn told(&self, models: &Models) -> Value {
        let now = Instant::now();
        let mut replicas = Vec::new();
        let mut draft_models = Vec::new();
        for model in models.iter() {
            for kind in Peer::ALL {
                let known = model.known_replicas(kind).into_iter();
                replicas.extend(known.map(|replica| {
                    json!({
                        "model": model.name(),
                        "peer": kind.name(),
                        "address": replica.address(),
                        "state": replica.state(),
                        "sessions_from_here": replica.sessions(),
                        "last_failure": replica.last_failure(),
                    })
                }));
            }
            draft_models.extend(model.gains().into_iter().map(|(draft_model, gain)| {
                json!({ "model": model.name(), "draft_model": &*draft_model, "gain": gain })
            }));
        }
        let requests: Vec<_> = {
            let requests = self.requests.lock();
            requests.under_way.values().take(SHOWN).cloned().collect()
        };
        let requests: Vec<_> = requests.iter().map(|it| it.lock().told(now)).collect();
        let failures = self.failures.lock();
        let failures: Vec<_> = failures.iter().rev().map(|it| it.told(now)).collect();
        json!({
            "part": "coordinator",
            "requests_under_way": self.requests.lock().under_way.len(),
            "replicas": replicas,
            "draft_models": draft_models,
            "requests": requests,
            "recent_failures": failures,
        })
    }
}

impl RequestNow {
    fn told(&self, now: Instant) -> Value {
        let stage: &str = self.stage.into();
        json!({
            "request_id": self.request_id,
            "model": self.model,
            "method": self.method,
            "stage": stage,
            "seconds": now.duration_since(self.began).as_secs_f64(),
            "prompt_tokens": self.prompt_tokens,
            "tokens": self.tokens,
            "drafted": self.drafted,
            "accepted": self.accepted,
        })
    }
}

impl RecentFailure {
    fn told(&self, now: Instant) -> Value {
        json!({
            "seconds_ago": now.duration_since(self.at).as_secs(),
            "request_id": self.request_id,
            "peer": self.peer,
            "address": self.address,
            "reason": self.reason,
        })
    }
}

/// The place of one request on the board, until it is dropped.
#[derive(Debug)]
pub(super) struct RequestPlace {
    board: Arc<Board>,
    number: u64,
    now: Arc<Mutex<RequestNow>>,
}

impl RequestPlace {
    pub(super) fn new(board: &Arc<Board>, began: Instant) -> Self {
        let now = RequestNow {
            began,
            stage: RequestStage::Preparing,
            request_id: String::new(),
            model: String::new(),
            method: "",
            prompt_tokens: 0,
            tokens: 0,
            drafted: 0,
            accepted: 0,
        };
        let now = Arc::new(Mutex::new(now));
        let mut requests = board.requests.lock();
        requests.begun += 1;
        let number = requests.begun;
        requests.under_way.insert(number, Arc::clone(&now));
        drop(requests);
        Self {
            board: Arc::clone(board),
            number,
            now,
        }
    }

    pub(super) fn observe(&self, event: &RequestEvent<'_>) {
        let mut now = self.now.lock();
        match *event {
            RequestEvent::Prepared {
                request,
                request_id,
            } => {
                request_id.clone_into(&mut now.request_id);
                now.model.clone_from(&request.model);
                now.method = request.method.name();
                now.prompt_tokens = request.prompt.len();
            }
            RequestEvent::Sent { request, .. } => now.stage = RequestStage::of(request),
            RequestEvent::Emitted { chunk } => now.tokens += chunk.token_ids.len(),
            RequestEvent::RoundEnded { report, .. } => {
                now.drafted += report.drafted;
                now.accepted += report.accepted;
            }
            RequestEvent::Failed {
                peer,
                reason,
                address,
                ..
            } => {
                let failure = RecentFailure {
                    at: Instant::now(),
                    request_id: now.request_id.clone(),
                    peer: peer.name(),
                    address: address.map(|address| address.to_string()),
                    reason: reason.to_owned(),
                };
                let mut failures = self.board.failures.lock();
                if failures.len() >= FAILURES {
                    failures.pop_front();
                }
                failures.push_back(failure);
            }
            _ => {}
        }
    }
}

impl Drop for RequestPlace {
    fn drop(&mut self) {
        self.board.requests.lock().under_way.remove(&self.number);
    }
}
