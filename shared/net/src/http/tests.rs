//! What every test here speaks to.

mod bodies;
mod connections;
mod http2;

use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroUsize};

use axum::body::Body;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::*;
use crate::receiving::{MAX_DISCARDED_CHUNKS, ReceiveError, whole};
use crate::{MAX_OPENING, OPENING_TIMEOUT};

/// The longest body.
const MOST: usize = 1 << 20;

/// Another time than any that is built in.
const IDLE_TIMEOUT: Duration = Duration::from_secs(100);

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n";

/// Returns a server, and its address. `/` is answered at once, `/never` never, `/length` with the length of the
/// body, `/unread` without reading it, and `/flood` with more than a socket holds.
async fn serving(config: ServerConfig) -> (SocketAddr, AbortOnDropHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new()
        .route("/", get(async || "here\n"))
        .route("/never", get(std::future::pending::<()>))
        .route("/unread", post(async || "here\n"))
        .route("/length", post(length))
        .route("/flood", get(async || vec![b'x'; 64 << 20]));
    let front = HttpRoutes {
        router,
        max_request_bytes: MOST,
        idle_timeout: IDLE_TIMEOUT,
    };
    let serving = async move {
        let gate = Gate::new(&config);
        let never = std::future::pending();
        serve(front, listener, &config, gate, Tls::default(), never).await;
    };
    (address, AbortOnDropHandle::new(tokio::spawn(serving)))
}

async fn length(body: Body) -> Response {
    let status = match whole(body).await {
        Ok(body) => return format!("length {}\n", body.len()).into_response(),
        Err(ReceiveError::Full { .. }) => StatusCode::TOO_MANY_REQUESTS,
        Err(ReceiveError::Late { .. }) => StatusCode::REQUEST_TIMEOUT,
        Err(ReceiveError::TooLarge { .. }) => StatusCode::PAYLOAD_TOO_LARGE,
        Err(ReceiveError::CutShort) => StatusCode::BAD_REQUEST,
    };
    status.into_response()
}

/// Returns the next bytes from the server; none if it has closed the connection.
async fn answer(stream: &mut TcpStream) -> String {
    let mut read = vec![0; 1 << 12];
    let length = stream.read(&mut read).await.unwrap_or(0);
    String::from_utf8_lossy(&read[..length]).into_owned()
}

/// Reads until the server closes the connection; returns the text, and the time since `since`.
async fn closed(mut stream: TcpStream, since: Instant) -> (String, Duration) {
    let mut read = String::new();
    // A reset ends the reading too.
    let _ = stream.read_to_string(&mut read).await;
    (read, since.elapsed())
}

/// Opens a connection and writes these bytes.
async fn ask(address: SocketAddr, said: &[&[u8]]) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    for part in said {
        stream.write_all(part).await.unwrap();
    }
    stream
}
