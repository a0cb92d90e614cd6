//! The real services, on loopback ports of this process.

use std::error::Error;
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::sync::LazyLock;
use std::time::Duration;

use coordinator::{Coordinator, CoordinatorConfig, ModelGroup};
use drafter::{DrafterConfig, Loaded};
use ops::process::Process;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Code, Status, Streaming};
use verifier::VerifierConfig;
use wire::v1::round_answer::Part;
use wire::v1::session_reply::Reply;
use wire::v1::session_request::Request;
use wire::v1::{SessionReply, SessionRequest};

use crate::models::served;

/// Far longer than an answer takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// Far longer than a peer of this process takes.
const MOMENT_MS: NonZeroU64 = NonZeroU64::new(200).unwrap();

/// Where everything runs that is not the fuzzer's own thread.
pub static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all();
    builder.build().expect("a runtime")
});

/// A verifier, for as long as the process lives.
pub static VERIFIER: LazyLock<String> = LazyLock::new(|| {
    let _runtime = RUNTIME.enter();
    let config = VerifierConfig::default();
    let verifier = verifier::start(served(1), &config, Process::default()).expect("a verifier");
    let (listener, url) = listener();
    RUNTIME.spawn(verifier.serve(listener, std::future::pending()));
    url
});

/// A drafter, for as long as the process lives.
pub static DRAFTER: LazyLock<String> = LazyLock::new(|| {
    let _runtime = RUNTIME.enter();
    let config = DrafterConfig::default();
    let loaded = Loaded::beside(served(2), &config).expect("a draft model");
    let drafter = drafter::start(loaded, &config, Process::default()).expect("a drafter");
    let (listener, url) = listener();
    RUNTIME.spawn(drafter.serve(listener, std::future::pending()));
    url
});

/// A coordinator of peers at these URLs, which asks them once; it ends when this is dropped.
pub struct CoordinatorTask {
    /// Where it is reached.
    pub url: String,
    /// Where its OpenAI API is, if it was started with one.
    pub http_url: Option<String>,
    task: AbortHandle,
}

impl CoordinatorTask {
    /// Starts it without the OpenAI API.
    pub fn start(drafter: &str, verifier: &str) -> Self {
        Self::start_on(drafter, verifier, None)
    }

    /// Starts it with the OpenAI API.
    pub fn start_with_http(drafter: &str, verifier: &str) -> Self {
        Self::start_on(drafter, verifier, Some(listener()))
    }

    fn start_on(drafter: &str, verifier: &str, http: Option<(TcpListener, String)>) -> Self {
        let config = CoordinatorConfig {
            models: vec![ModelGroup {
                name: "tiny".to_owned(),
                drafters: vec![drafter.to_owned()],
                verifiers: vec![verifier.to_owned()],
                ..ModelGroup::default()
            }],
            retries: 0,
            verifier_retries: 0,
            // Peers that leave it waiting are asked for a moment.
            round_timeout_ms: MOMENT_MS,
            draft_timeout_ms: MOMENT_MS,
            request_timeout_ms: const { NonZeroU64::new(5_000).unwrap() },
            ..CoordinatorConfig::default()
        };
        let (listener, url) = listener();
        let _runtime = RUNTIME.enter();
        let mut coordinator = Coordinator::new(config, Process::default()).expect("a coordinator");
        let (http, http_url) = http.unzip();
        coordinator.http = http;
        let serving = coordinator.serve(listener, std::future::pending());
        let task = RUNTIME.spawn(serving).abort_handle();
        Self {
            url,
            http_url,
            task,
        }
    }
}

impl Drop for CoordinatorTask {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A free loopback port, and its URL.
pub fn listener() -> (TcpListener, String) {
    let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
    let listener = RUNTIME
        .block_on(TcpListener::bind(any_port))
        .expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    (listener, url)
}

/// A connection to `url`, once it is used.
pub fn channel(url: &str) -> Channel {
    let _runtime = RUNTIME.enter();
    Channel::from_shared(url.to_owned())
        .expect("a URL")
        .connect_lazy()
}

/// A moment in which a reply comes that may be waited for.
const MOMENT: Duration = Duration::from_millis(100);

/// Sends `requests` on the stream that `call` opens, as a coordinator does: the next one once the one before was
/// answered, or after a moment; and reads the replies as [`read_all`] does.
///
/// # Panics
/// As [`read_all`].
pub fn converse<F>(
    requests: Vec<SessionRequest>,
    call: impl FnOnce(ReceiverStream<SessionRequest>) -> F,
) where
    F: Future<Output = Result<tonic::Response<Streaming<SessionReply>>, Status>>,
{
    let (sender, outgoing) = mpsc::channel(requests.len().max(1));
    let mut requests = requests.into_iter().peekable();
    let mut sender = Some(sender);
    let mut send_more = || {
        // Grants, proposals and commits come beside a round.
        let is_beside = |it: &SessionRequest| {
            let request = it.request.as_ref();
            request.is_some_and(|it| {
                matches!(it, Request::Grant(_) | Request::Append(_) | Request::Commit(_))
            })
        };
        let mut next = requests.next();
        while let (Some(sender), Some(request)) = (&sender, next) {
            // There is room for all of them.
            let _ = sender.try_send(request);
            next = requests.next_if(is_beside);
        }
        if requests.peek().is_none() {
            sender = None;
        }
    };
    send_more();
    let reading = async {
        let mut replies = call(ReceiverStream::new(outgoing)).await?.into_inner();
        loop {
            match tokio::time::timeout(MOMENT, replies.message()).await {
                Ok(reply) => match reply? {
                    Some(reply) if is_last(&reply) => send_more(),
                    Some(_) => {}
                    None => return Ok(()),
                },
                Err(_) => send_more(),
            }
        }
    };
    check(reading);
}

/// Whether a request is answered with this reply.
fn is_last(reply: &SessionReply) -> bool {
    match &reply.reply {
        Some(Reply::Answer(answer)) => match &answer.part {
            Some(Part::Block(part)) => part.last,
            Some(Part::Slice(part)) => part.last,
            Some(Part::Decoded(part)) => part.last,
            Some(Part::Scored(part)) => part.last,
            // It goes on until the session is closed.
            Some(Part::Proposed(_)) => false,
            Some(Part::Verdict(_)) | None => true,
        },
        Some(Reply::Progress(_) | Reply::Draining(_)) => false,
        _ => true,
    }
}

/// Reads what `call` leads to until its end. Whatever was asked, the service must answer in time and not say
/// that the fault is its own.
///
/// # Panics
/// If it does not.
pub fn read_all<T>(call: impl Future<Output = Result<tonic::Response<Streaming<T>>, Status>>) {
    let reading = async {
        let mut replies = call.await?.into_inner();
        while replies.message().await?.is_some() {}
        Ok(())
    };
    check(reading);
}

/// Awaits the end of an exchange with a service.
fn check(reading: impl Future<Output = Result<(), Status>>) {
    let ended = RUNTIME.block_on(async { tokio::time::timeout(PATIENCE, reading).await });
    let Err(status) = ended.expect("an answer in time") else {
        return;
    };
    let was_reached = status.source().is_none();
    assert!(was_reached, "the service is not there: {status:?}");
    let is_own = matches!(
        status.code(),
        Code::Internal | Code::Unknown | Code::DataLoss
    );
    assert!(!is_own, "the service's own fault: {status:?}");
}
