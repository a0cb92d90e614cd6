//! Ports that speak gRPC alone: what they answer to a client of the OpenAI API, and what a gRPC client makes of a port
//! that speaks HTTP.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tonic::Status;
use tonic::body::Body;
use tonic::codegen::http::{HeaderMap, Request, Response, StatusCode, header};
use tonic::codegen::{Service, StdError};
use tonic::transport::Channel;

use crate::fault::SpeaksHttp;

/// What a client is told that asks a gRPC port for something else.
const SPEAKS_GRPC: &str = "this port speaks gRPC, and not the OpenAI API over HTTP: that is at the address of \
                           coordinator.http.listen (by default http://127.0.0.1:8000/v1), and metrics and health are at \
                           that of admin.listen (by default http://127.0.0.1:9464)";

/// Returns what stands in the body of an answer to such a client, as the OpenAI API writes its errors.
fn body() -> String {
    let error = serde_json::json!({
        "message": SPEAKS_GRPC,
        "type": "invalid_request_error",
        "param": null,
        "code": null,
    });
    format!("{}\n", serde_json::json!({ "error": error }))
}

/// Returns the answer to a request of HTTP/1, after which the connection is closed.
pub(crate) fn answer() -> Vec<u8> {
    let body = body();
    let length = body.len();
    format!(
        "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\nconnection: close\r\n\
         content-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

/// Refuses requests of HTTP/2 that are no calls of gRPC.
pub async fn refuse_others(
    request: axum::extract::Request,
    next: axum::middleware::Next,
) -> axum::response::Response {
    use axum::response::IntoResponse;
    if is_grpc(request.headers()) {
        return next.run(request).await;
    }
    let json = (header::CONTENT_TYPE, "application/json");
    (StatusCode::UNSUPPORTED_MEDIA_TYPE, [json], body()).into_response()
}

fn is_grpc(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"))
}

/// A channel whose calls fail with `SpeaksHttp` where the server answers otherwise than in gRPC.
#[derive(Clone, Debug)]
pub struct GrpcChannel(pub(crate) Channel);

impl Service<Request<Body>> for GrpcChannel {
    type Response = Response<Body>;
    type Error = StdError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, StdError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StdError>> {
        self.0.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let is_call = is_grpc(request.headers());
        let answering = self.0.call(request);
        Box::pin(async move {
            let answer = answering.await?;
            if is_call && !is_grpc(answer.headers()) {
                let fault = SpeaksHttp(answer.status().as_u16());
                let mut status = Status::unimplemented(fault.to_string());
                status.set_source(Arc::new(fault));
                return Err(status.into());
            }
            Ok(answer)
        })
    }
}
