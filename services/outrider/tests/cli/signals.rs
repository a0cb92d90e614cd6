//! How `serve` handles SIGHUP, a closed terminal, and a repeated signal to stop.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;
use tonic::metadata::MetadataValue;
use tonic::transport::Channel;
use tonic::{Code, Request};
use wire::v1::ListMethodsRequest;
use wire::v1::coordinator_client::CoordinatorClient;

use super::pty::Terminal;
use super::{ANY, health, outrider, signal};

/// Long enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

const OLD: &str = "an-old-token-of-a-client";
const NEW: &str = "a-new-token-of-a-client";

/// A coordinator whose verifier does not exist; its files and its log are in a folder.
struct Coordinator {
    child: Child,
    folder: TempDir,
}

impl Coordinator {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("tokens"), OLD).expect("written");
        configure(folder.path(), "info", 64);
        let log = File::create(folder.path().join("log")).expect("a file");
        let child = command(folder.path()).stderr(log).spawn();
        let child = child.expect("the binary runs");
        Self { child, folder }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).expect("a log")
    }

    /// Waits for a line with all these parts, and returns it.
    #[track_caller]
    fn says(&self, parts: &[&str]) -> String {
        let end = Instant::now() + PATIENCE;
        loop {
            let log = self.log();
            let mut lines = log.lines();
            if let Some(line) = lines.find(|line| parts.iter().all(|part| line.contains(part))) {
                return line.to_owned();
            }
            assert!(Instant::now() < end, "never {parts:?}: {log}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The address that a line with `key` ends with.
    fn address(&self, key: &str) -> String {
        let line = self.says(&[key]);
        let (_, address) = line.split_once(key).expect("it was found by it");
        format!("http://{}", address.trim())
    }

    /// Returns the coordinator's response to a request with `token`.
    async fn answers(&self, token: &str) -> Code {
        let url = self.address("serving address=");
        let channel = Channel::from_shared(url).expect("a URL").connect_lazy();
        let mut request = Request::new(ListMethodsRequest {});
        let shown = MetadataValue::try_from(format!("Bearer {token}")).expect("visible");
        request.metadata_mut().insert("authorization", shown);
        let answered = CoordinatorClient::new(channel).list_methods(request).await;
        answered.map_or_else(|status| status.code(), |_| Code::Ok)
    }
}

impl Drop for Coordinator {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn configure(folder: &Path, filter: &str, max_requests: u32) {
    let settings = json!({
        "log": { "filter": filter },
        "admin": { "listen": ANY },
        // Read again when it is told to alone.
        "auth": { "client_tokens_file": folder.join("tokens"), "reload_seconds": 0 },
        "coordinator": {
            "listen": ANY,
            "http": { "listen": "off" },
            "max_requests": max_requests,
            "models": [{ "name": "default", "verifiers": ["http://127.0.0.1:9"] }],
        },
    });
    std::fs::write(folder.join("outrider.json"), settings.to_string()).expect("written");
}

fn command(folder: &Path) -> Command {
    let config = folder.join("outrider.json");
    outrider(&[
        "serve",
        "coordinator",
        "--config",
        config.to_str().expect("text"),
    ])
}

#[tokio::test]
async fn a_hang_up_has_files_read_again_and_ends_nothing() {
    let coordinator = Coordinator::start();
    assert_eq!(coordinator.answers(OLD).await, Code::Ok);
    assert_eq!(coordinator.answers(NEW).await, Code::Unauthenticated);
    let folder = coordinator.folder.path();
    std::fs::write(folder.join("tokens"), NEW).expect("written");
    configure(folder, "info,net=debug", 7);
    signal(&coordinator.child, "HUP");
    let line = coordinator.says(&["SIGHUP"]);
    for part in [
        "INFO",
        "read=\"tokens\" kept=\"\"",
        "filter=\"info,net=debug\"",
        "needs_restart=\"coordinator.max_requests\"",
    ] {
        assert!(line.contains(part), "{part}: {line}");
    }
    assert_eq!(coordinator.answers(OLD).await, Code::Unauthenticated);
    assert_eq!(coordinator.answers(NEW).await, Code::Ok);

    // What cannot be used is told, and what was there before stays.
    std::fs::write(folder.join("tokens"), "short").expect("written");
    std::fs::write(folder.join("outrider.json"), "{").expect("written");
    signal(&coordinator.child, "HUP");
    coordinator.says(&["WARN", "tokens cannot be used as they are now", "line 1"]);
    coordinator.says(&["WARN", "SIGHUP", "kept=\"tokens\"", "outrider.json"]);
    assert_eq!(coordinator.answers(NEW).await, Code::Ok);
    let admin = coordinator.address("admin=");
    assert_eq!(health::get(&admin, "/livez"), "alive\n");
}

#[test]
fn a_closed_terminal_ends_no_service() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("tokens"), OLD).expect("written");
    configure(folder.path(), "info", 64);
    let mut terminal = Terminal::run(command(folder.path()));
    terminal.shows("serving address=");
    let screen = terminal.contents();
    let line = screen.lines().find_map(|line| line.split_once("admin="));
    let (_, address) = line.expect("it says where");
    let admin = format!("http://{}", address.trim());
    let mut child = terminal.closes();
    // The first signal has it write, which closes the terminal; that is a hang-up of its own.
    for _ in 0..5 {
        signal(&child, "HUP");
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(health::get(&admin, "/livez"), "alive\n");
    }
    signal(&child, "TERM");
    assert_eq!(child.wait().expect("a child").code(), Some(0));
}

#[test]
fn who_is_told_to_stop_twice_drains_all_the_same() {
    for order in ["TERM", "QUIT"] {
        let mut coordinator = Coordinator::start();
        coordinator.says(&["serving address="]);
        signal(&coordinator.child, order);
        signal(&coordinator.child, "TERM");
        let status = coordinator.child.wait().expect("a child");
        assert_eq!(status.code(), Some(0), "{order}: {}", coordinator.log());
        let log = coordinator.log();
        assert!(log.contains("draining"), "{order}: {log}");
        assert!(!log.contains("exiting without waiting"), "{order}: {log}");
    }
}
