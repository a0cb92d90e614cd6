//! Processes that may open few files.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tonic::transport::Channel;
use wire::v1::ListMethodsRequest;
use wire::v1::coordinator_client::CoordinatorClient;

use super::{ANY, health, outrider};

/// A coordinator whose verifier never comes, and where its ports are.
struct Coordinator {
    child: Child,
    admin: String,
    grpc: String,
    http: String,
    /// Whether it said that its limit leaves its ports less than their settings say.
    has_warned: bool,
}

impl Coordinator {
    /// Started with these limits, hard and soft.
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
                    found.trim().clone_into(address);
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
    // Of those that ask for nothing more the oldest make room for the next.
    let _held = coordinator.fill(512);
    coordinator.answers().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_limit_is_raised_as_far_as_that_is_allowed() {
    // The test's own files are as many as the process's.
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
