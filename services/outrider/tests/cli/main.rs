//! The binary as its users run it.

mod chart;
mod chat;
mod checking;
mod command_line;
// The laboratory runs its commands the same way.
#[allow(dead_code)]
mod commands;
mod diagnosis;
mod doctor;
mod drafter;
#[cfg(unix)]
mod draining;
mod families;
mod flags;
mod generate;
mod health;
#[cfg(target_os = "linux")]
mod hostile;
#[cfg(feature = "hub")]
mod hub;
// The hub of the tests in `model`, with more faults than are ordered here.
#[cfg(feature = "hub")]
#[allow(dead_code)]
#[path = "../../../../shared/model/tests/hub/server.rs"]
mod hub_server;
#[cfg(unix)]
mod losses;
mod manual;
mod measuring;
#[cfg(target_os = "linux")]
mod memory;
#[cfg(target_os = "linux")]
mod one_model;
mod open_files;
#[cfg(unix)]
mod pty;
mod quantize;
// The relay of the system tests, with more than is wanted here.
#[cfg(unix)]
#[allow(dead_code)]
#[path = "../../../../tests/it/relay.rs"]
mod relay;
mod score;
mod security;
mod serving;
mod settings;
#[cfg(unix)]
mod signals;
mod snapshot;
#[cfg(target_os = "linux")]
mod soak;
mod telemetry;
#[cfg(unix)]
mod typed;

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

pub(crate) use commands::{each_refused, fails, refused, run, says, signal, succeeds, words};
use outrider as program;
pub(crate) use snapshot::{refusals, shown};

pub(crate) fn outrider(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_outrider"));
    command.args(args);
    for variable in ["OUTRIDER__LOG__FILTER", "RUST_LOG"] {
        command.env_remove(variable);
    }
    command
}

pub(crate) fn json(args: &[&str]) -> Value {
    let output = run(&[&["generate", "--json"], args].concat());
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {stderr}");
    serde_json::from_slice(&output.stdout).expect("stdout holds one JSON object and nothing else")
}

/// A served role, killed when dropped.
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) url: String,
    /// Where its admin port is.
    pub(crate) admin: String,
}

impl Server {
    pub(crate) fn start(args: &[&str]) -> Self {
        let mut child = outrider(&[&["serve"], args].concat())
            .env("OUTRIDER__DRAFTER__LISTEN", ANY)
            .env("OUTRIDER__VERIFIER__LISTEN", ANY)
            .env("OUTRIDER__ADMIN__LISTEN", ANY)
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let stderr = BufReader::new(child.stderr.take().expect("piped"));
        let mut lines = stderr.lines().map_while(Result::ok);
        let mut find = |key: &str| {
            let line = lines.find_map(|line| line.split_once(key).map(|(_, rest)| rest.to_owned()));
            let rest = line.unwrap_or_else(|| panic!("{args:?} never said {key:?}"));
            format!("http://{}", rest.trim())
        };
        let admin = find("admin=");
        let url = find("serving address=");
        // What comes later is read and dropped, or the pipe would fill up.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, url, admin }
    }

    /// A process whose ports are known without being told.
    pub(crate) fn of(child: Child) -> Self {
        let (url, admin) = (String::new(), String::new());
        Self { child, url, admin }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) const ANY: &str = "127.0.0.1:0";

/// A port that is free, so that a process can be started on it again. It is below those that systems give to whoever
/// asks for any (IANA's begin at 49,152, Linux's at 32,768), so that it stays free while nobody listens on it.
pub(crate) fn free_address() -> String {
    const FIRST: u32 = 16_384;
    const COUNT: u32 = 16_384;
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Processes that test at the same time begin in places of their own.
    let begin = std::process::id().wrapping_mul(127);
    (0..COUNT)
        .map(|_| begin.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)))
        .map(|turn| format!("127.0.0.1:{}", FIRST + turn % COUNT))
        .find(|address| TcpListener::bind(address).is_ok())
        .expect("a port")
}
