//! A coordinator that answers as it is told.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use client::v1::coordinator_server::{Coordinator, CoordinatorServer};
use client::v1::generate_response::Part;
use client::v1::{
    GenerateRequest, GenerateResponse, ListMethodsRequest, ListMethodsResponse, ListModelsRequest,
    ListModelsResponse, MethodDescription, ServedModel,
};
use client::{Client, Policy};
use net::Credentials;
use net::channel::ChannelConfig;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_stream::Stream;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status};

use super::replies::{End, Reply};

/// What happened at the coordinator.
#[derive(Default)]
struct Seen {
    requests: Mutex<Vec<GenerateRequest>>,
    /// Requests that nobody listens to any more before their end.
    cancelled: watch::Sender<usize>,
}

/// The coordinator; it goes when it is dropped.
pub(crate) struct Fake {
    pub(crate) address: SocketAddr,
    seen: Arc<Seen>,
    task: JoinHandle<()>,
}

struct Service {
    replies: Mutex<VecDeque<Reply>>,
    seen: Arc<Seen>,
}

impl Fake {
    /// One that says these replies, one to each request; then nothing any more.
    pub(crate) async fn start(replies: impl IntoIterator<Item = Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        Self::on(listener, replies)
    }

    pub(crate) fn on(listener: TcpListener, replies: impl IntoIterator<Item = Reply>) -> Self {
        let address = listener.local_addr().expect("an address");
        let seen = Arc::new(Seen::default());
        let service = Service {
            replies: Mutex::new(replies.into_iter().collect()),
            seen: Arc::clone(&seen),
        };
        let serving = tonic::transport::Server::builder()
            .add_service(CoordinatorServer::new(service))
            .serve_with_incoming(TcpListenerStream::new(listener));
        let task = tokio::spawn(async { serving.await.expect("serves") });
        Self {
            address,
            seen,
            task,
        }
    }

    pub(crate) fn client(&self) -> Client {
        client(&format!("http://{}", self.address))
    }

    /// The requests to generate, so far.
    pub(crate) fn requests(&self) -> Vec<GenerateRequest> {
        self.seen.requests.lock().expect("no panic").clone()
    }

    /// Waits until so many requests were cancelled.
    pub(crate) async fn cancelled(&self, count: usize) {
        let mut cancelled = self.seen.cancelled.subscribe();
        let reached = cancelled.wait_for(|&reached| reached >= count);
        let reached = tokio::time::timeout(Duration::from_secs(30), reached).await;
        reached
            .expect("cancelled")
            .expect("the coordinator is there");
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A client of whoever is at `url`, that does not wait for long.
pub(crate) fn client(url: &str) -> Client {
    let client = Client::connect(url, &ChannelConfig::default(), &Credentials::default());
    client.expect("a URL").with_policy(Policy {
        resume_wait: Duration::from_secs(5),
        ..Policy::default()
    })
}

/// Tells of a request that is dropped before its end.
struct Guard(Option<Arc<Seen>>);

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(seen) = &self.0 {
            seen.cancelled.send_modify(|count| *count += 1);
        }
    }
}

pub(crate) struct Parts {
    left: VecDeque<Part>,
    end: Option<End>,
    guard: Guard,
}

impl Stream for Parts {
    type Item = Result<GenerateResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(part) = self.left.pop_front() {
            return Poll::Ready(Some(Ok(GenerateResponse { part: Some(part) })));
        }
        if matches!(self.end, Some(End::Silence)) {
            return Poll::Pending;
        }
        self.guard.0 = None;
        match self.end.take() {
            Some(End::Status(status)) => Poll::Ready(Some(Err(status))),
            _ => Poll::Ready(None),
        }
    }
}

impl Service {
    /// Notes a request, and says what the reply to it is.
    fn next(&self, request: GenerateRequest) -> Option<Reply> {
        self.seen.requests.lock().expect("no panic").push(request);
        self.replies.lock().expect("no panic").pop_front()
    }
}

#[tonic::async_trait]
impl Coordinator for Service {
    type GenerateStream = Parts;

    async fn generate(&self, request: Request<GenerateRequest>) -> Result<Response<Parts>, Status> {
        let reply = self.next(request.into_inner());
        let mut guard = Guard(Some(Arc::clone(&self.seen)));
        match reply.unwrap_or(Reply::Silence) {
            Reply::Refusal(status) => {
                guard.0 = None;
                Err(status)
            }
            Reply::Answer(parts, end) => Ok(Response::new(Parts {
                left: parts.into(),
                end: Some(end),
                guard,
            })),
            Reply::Silence => std::future::pending().await,
        }
    }

    async fn list_models(
        &self,
        _: Request<ListModelsRequest>,
    ) -> Result<Response<ListModelsResponse>, Status> {
        let model = ServedModel {
            name: "default".to_owned(),
            ..Default::default()
        };
        Ok(Response::new(ListModelsResponse {
            models: vec![model],
        }))
    }

    async fn list_methods(
        &self,
        _: Request<ListMethodsRequest>,
    ) -> Result<Response<ListMethodsResponse>, Status> {
        let method = MethodDescription {
            name: "coupled".to_owned(),
            ..Default::default()
        };
        Ok(Response::new(ListMethodsResponse {
            methods: vec![method],
            ..Default::default()
        }))
    }
}
