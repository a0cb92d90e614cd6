//! A collector that throws away what it gets, in this process.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Takes OTLP over HTTP on a loopback port, for as long as the process lives, and counts.
pub(super) struct Sink {
    pub(super) url: String,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    batches: AtomicU64,
    bytes: AtomicU64,
}

impl Sink {
    /// Starts it.
    ///
    /// # Errors
    /// If there is no port for it.
    pub(super) fn start() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let url = format!("http://{}", listener.local_addr()?);
        let counts = Arc::<Counts>::default();
        let counted = Arc::clone(&counts);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let counts = Arc::clone(&counted);
                // A connection that breaks is the client's to notice.
                std::thread::spawn(move || serve(stream, &counts));
            }
        });
        Ok(Self { url, counts })
    }

    /// Requests taken so far, and bytes of their bodies.
    pub(super) fn counts(&self) -> (u64, u64) {
        let (batches, bytes) = (&self.counts.batches, &self.counts.bytes);
        (
            batches.load(Ordering::Relaxed),
            bytes.load(Ordering::Relaxed),
        )
    }
}

fn serve(stream: TcpStream, counts: &Counts) -> io::Result<()> {
    let mut answers = stream.try_clone()?;
    let mut requests = BufReader::new(stream);
    let mut line = String::new();
    let mut length = 0;
    loop {
        line.clear();
        if requests.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let header = line.trim_end().to_ascii_lowercase();
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
        if !header.is_empty() {
            continue;
        }
        io::copy(&mut requests.by_ref().take(length), &mut io::sink())?;
        counts.batches.fetch_add(1, Ordering::Relaxed);
        counts.bytes.fetch_add(length, Ordering::Relaxed);
        answers.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")?;
        length = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_posted_is_counted() {
        let sink = Sink::start().expect("a port");
        let address = sink.url.trim_start_matches("http://");
        let mut stream = TcpStream::connect(address).expect("it listens");
        for body in ["abc", "defgh"] {
            let request = format!(
                "POST / HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            );
            stream.write_all(request.as_bytes()).expect("sent");
            let mut answer = [0; 15];
            stream.read_exact(&mut answer).expect("answered");
            assert_eq!(&answer, b"HTTP/1.1 200 OK");
            let mut rest = [0; 4 + 19];
            stream.read_exact(&mut rest).expect("answered");
        }
        assert_eq!(sink.counts(), (2, 8));
    }
}
