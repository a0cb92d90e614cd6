//! Processes that may open few files.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tonic::transport::Channel;
use wire::v1::ListMethodsRequest;
use wire::v1::coordinator_client::CoordinatorClient;

use super::{ANY, health, outrider};

/// A coordinator whose verifier does not exist, and the addresses of its ports.
struct Coordinator {
    child: Child,
    admin: String,
    grpc: String,
    http: String,
    /// Whether it warned that the limit of open files lowers `max_connections`.
    has_warned: bool,
}

impl Coordinator {
    /// Starts it after the shell commands `limits`.
    fn start(limits: &str) -> Self {
        let run = outrider(&["serve", "coordinator", "--listen", ANY, "--http", ANY]);
        let mut child = Command::new("bash")
            .args(["-c", &format!("{limits} && exec \"$@\""), "bash"])
            .arg(run.get_program())
            .args(run.get_args())
            .args(["--admin", ANY, "--verifier", "http://127.0.0.1:9"])
            .env_remove("OUTRIDER__LOG__FILTER")
            .env_remove("RUST_LOG")
            .stderr(Stdio::piped())
            .spawn()
            .expect("bash runs");
        let stderr = BufReader::new(child.stderr.take().expect("piped"));
        let mut lines = stderr.lines().map_while(Result::ok);
        let (mut addresses, mut has_warned) = ([const { String::new() }; 3], false);
        let keys = ["admin=", "OpenAI API address=", "serving address="];
        while addresses.iter().any(String::is_empty) {
            let line = lines.next().expect("it serves");
            has_warned |= line.contains("LimitNOFILE=");
            for (key, address) in keys.iter().zip(&mut addresses) {
                if let Some((_, found)) = line.split_once(key) {
                    let end = found.find(' ').unwrap_or(found.len());
                    found[..end].clone_into(address);
                }
            }
        }
        std::thread::spawn(move || lines.for_each(drop));
        let [admin, http, grpc] = addresses;
        Self {
            child,
            admin: format!("http://{admin}"),
            grpc: format!("http://{grpc}"),
            http,
            has_warned,
        }
    }

    /// Opens connections to the port of the OpenAI API, until one is refused, and keeps them.
    fn fill(&self, most: usize) -> Vec<TcpStream> {
        let mut held = Vec::new();
        while held.len() < most {
            let mut stream = TcpStream::connect(&self.http).expect("a connection");
            stream
                .set_read_timeout(Some(Duration::from_secs(10)))
                .expect("a limit");
            let asked = stream.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
            let mut some = [0; 12];
            if asked.and_then(|()| stream.read_exact(&mut some)).is_err() {
                break;
            }
            held.push(stream);
        }
        held
    }

    async fn answers(&self) {
        assert_eq!(health::get(&self.admin, "/livez"), "alive\n");
        let channel = Channel::from_shared(self.grpc.clone())
            .expect("a URL")
            .connect_lazy();
        let mut client = CoordinatorClient::new(channel);
        let asked = client.list_methods(ListMethodsRequest {});
        asked.await.expect("answered");
    }
}

/// Whether the other side has not closed the connection, whatever it has sent.
fn is_open(mut stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).expect("a mode");
    let mut some = [0; 4096];
    loop {
        match stream.read(&mut some) {
            Ok(1..) => {}
            Ok(0) => return false,
            Err(error) => return error.kind() == ErrorKind::WouldBlock,
        }
    }
}

impl Drop for Coordinator {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_of_one_port_leave_files_to_the_others_where_the_limit_cannot_be_raised() {
    let coordinator = Coordinator::start("ulimit -Sn 512 && ulimit -Hn 512");
    assert!(coordinator.has_warned);
    // All are answered, because the oldest idle connections are closed for new ones.
    let held = coordinator.fill(512);
    assert_eq!(held.len(), 512);
    let open = held.iter().filter(|stream| is_open(stream)).count();
    assert!((64..256).contains(&open), "{open} connections");
    coordinator.answers().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_limit_is_raised_as_far_as_that_is_allowed() {
    // The test needs no more open files than its own limit, which the process inherits.
    let coordinator = Coordinator::start("ulimit -Sn 256 && ulimit -Hn 4096");
    assert!(!coordinator.has_warned);
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", coordinator.child.id()));
    let limits = limits.expect("it runs");
    let files = limits
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let soft = files.and_then(|line| line.split_whitespace().nth(3));
    assert_eq!(soft, Some("4096"));
    let held = coordinator.fill(400);
    assert_eq!(held.len(), 400);
    coordinator.answers().await;
}
