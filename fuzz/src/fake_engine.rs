//! A stub of an HTTP inference engine (SGLang or vLLM) that returns the responses a fuzz input holds.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use engines::{ConnectionSettings, EngineConnection};

/// The responses that are still to be sent: their bodies, and whether each is a refusal.
type Script = Arc<Mutex<VecDeque<(u16, Vec<u8>)>>>;

/// The engine of this process, for as long as it lives.
pub static FAKE_ENGINE: LazyLock<FakeEngine> = LazyLock::new(FakeEngine::start);

/// An engine, which serves one connection at a time.
pub struct FakeEngine {
    script: Script,
    url: String,
}

impl FakeEngine {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let script = Script::default();
        let played = Arc::clone(&script);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A client that leaves is the next one's luck.
                let _ = answer_all(&stream, &played);
            }
        });
        Self { script, url }
    }

    /// Sets the responses: each entry is a status and a body, and the last is repeated.
    pub fn play(&self, script: Vec<(u16, Vec<u8>)>) {
        *self.script.lock().unwrap_or_else(PoisonError::into_inner) = script.into();
    }

    /// A new connection to it.
    pub fn connection(&self) -> EngineConnection {
        let settings = ConnectionSettings {
            url: self.url.clone(),
            ..Default::default()
        };
        EngineConnection::new(&settings).expect("a connection")
    }
}

/// Answers one request and closes the connection, so that a response that is cut short is noticed.
fn answer_all(mut stream: &TcpStream, script: &Script) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let (mut line, mut length) = (String::new(), 0);
    while reader.read_line(&mut line)? > 2 {
        let header = line.to_ascii_lowercase();
        if let Some(said) = header.strip_prefix("content-length:") {
            length = said.trim().parse().unwrap_or(0);
        }
        line.clear();
    }
    std::io::copy(&mut reader.take(length), &mut std::io::sink())?;
    let (status, body) = {
        let mut script = script.lock().unwrap_or_else(PoisonError::into_inner);
        match script.len() {
            0 => (200, Vec::new()),
            1 => script[0].clone(),
            _ => script.pop_front().unwrap_or_default(),
        }
    };
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status} Said\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n"
    )?;
    stream.write_all(&body)
}
