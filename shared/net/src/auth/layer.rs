//! The guard before all gRPC services of a port.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::future::Either;
use tonic::codegen::http::{Request, Response};
use tower::{Layer, Service};

use super::Guard;

/// Puts a [`Guard`] before services.
#[derive(Clone, Debug)]
pub struct GuardLayer(Guard);

impl GuardLayer {
    /// Has `guard` check every request.
    pub fn new(guard: Guard) -> Self {
        Self(guard)
    }
}

impl<S> Layer<S> for GuardLayer {
    type Service = Guarded<S>;

    fn layer(&self, services: S) -> Guarded<S> {
        let guard = self.0.clone();
        Guarded { guard, services }
    }
}

/// Services behind a [`Guard`].
#[derive(Clone, Debug)]
pub struct Guarded<S> {
    guard: Guard,
    services: S,
}

impl<S, B, R> Service<Request<B>> for Guarded<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Error: Send + 'static,
    R: Default + Send + 'static,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future =
        Either<S::Future, Pin<Box<dyn Future<Output = Result<Response<R>, S::Error>> + Send>>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.services.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (mut parts, body) = request.into_parts();
        match self.guard.check(&mut parts.headers, &parts.extensions) {
            Ok(client) => {
                if let Some(client) = client {
                    parts.extensions.insert(client);
                }
                Either::Left(self.services.call(Request::from_parts(parts, body)))
            }
            Err(refusal) => {
                // It is not read, and let go before its answer is put off.
                drop(body);
                Either::Right(Box::pin(
                    async move { Ok(refusal.answer().await.into_http()) },
                ))
            }
        }
    }
}
