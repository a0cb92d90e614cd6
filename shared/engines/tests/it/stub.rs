//! A small HTTP server in the test's process.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use engines::{ConnectionSettings, EngineConnection};
use serde_json::Value;

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) path: String,
    /// Lines of the head, in lower case.
    pub(crate) head: Vec<String>,
    pub(crate) body: Value,
}

/// What is answered.
#[derive(Clone, Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<String>,
    pub(crate) body: Vec<u8>,
    pub(crate) after: Duration,
}

impl Response {
    pub(crate) fn json(value: &Value) -> Self {
        Self::bytes(value.to_string())
    }

    pub(crate) fn bytes(body: impl Into<Vec<u8>>) -> Self {
        Self {
            status: 200,
            headers: Vec::new(),
            body: body.into(),
            after: Duration::ZERO,
        }
    }

    pub(crate) fn status(status: u16, headers: &[&str]) -> Self {
        Self {
            status,
            headers: headers.iter().copied().map(str::to_owned).collect(),
            ..Self::bytes("the prompt was 1, 2, 3")
        }
    }
}

/// A server, and what came to it. It ends with the process.
pub(crate) struct Stub {
    pub(crate) url: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Stub {
    /// A server that answers each request as `answer` says, given how many came before.
    pub(crate) fn new(answer: impl Fn(usize, &Request) -> Response + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let Some(request) = read(&stream) else {
                    continue;
                };
                let before = {
                    let mut seen = seen.lock().expect("requests");
                    seen.push(request.clone());
                    seen.len() - 1
                };
                write(stream, &answer(before, &request));
            }
        });
        Self { url, requests }
    }

    pub(crate) fn connection(&self) -> EngineConnection {
        let settings = ConnectionSettings {
            url: self.url.clone(),
            ..Default::default()
        };
        EngineConnection::new(&settings).expect("a connection")
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().expect("requests").clone()
    }
}

/// Time enough for any answer.
pub(crate) fn soon() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let line = line.trim_end().to_owned();
        if line.is_empty() {
            break;
        }
        head.push(line);
    }
    let path = head.first()?.split(' ').nth(1)?.to_owned();
    let head: Vec<String> = head.iter().map(|line| line.to_lowercase()).collect();
    let len = head
        .iter()
        .find_map(|line| line.strip_prefix("content-length:"))
        .map_or(0, |len| len.trim().parse().expect("a length"));
    let mut body = vec![0; len];
    reader.read_exact(&mut body).ok()?;
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    Some(Request { path, head, body })
}

fn write(mut stream: TcpStream, response: &Response) {
    std::thread::sleep(response.after);
    let Response { status, body, .. } = response;
    let mut head = vec![
        format!("HTTP/1.1 {status} Said"),
        "connection: close".to_owned(),
        format!("content-length: {}", body.len()),
    ];
    head.extend(response.headers.iter().cloned());
    let text = head.join("\r\n") + "\r\n\r\n";
    // The client may have gone.
    let _ = stream.write_all(text.as_bytes());
    let _ = stream.write_all(body);
}
