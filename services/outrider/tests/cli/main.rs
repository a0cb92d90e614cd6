//! The binary as its users run it.

mod chart;
mod chat;
mod command_line;
mod drafter;
#[cfg(unix)]
mod draining;
mod generate;
mod health;
#[cfg(feature = "hub")]
mod hub;
// The hub of the tests in `model`, with more faults than are ordered here.
#[cfg(feature = "hub")]
#[allow(dead_code)]
#[path = "../../../../shared/model/tests/hub/server.rs"]
mod hub_server;
mod manual;
mod measuring;
#[cfg(target_os = "linux")]
mod memory;
mod quantize;
mod record_replay;
// The relay of the system tests, with more than is wanted here.
#[cfg(unix)]
#[allow(dead_code)]
#[path = "../../../../tests/it/relay.rs"]
mod relay;
mod score;
mod security;
mod serving;
mod settings;
mod speed;
mod telemetry;
mod train_head;

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

pub(crate) fn outrider(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_outrider"));
    command.args(args).env_remove("OUTRIDER__LOG__FILTER");
    command
}

pub(crate) fn run(args: &[&str]) -> Output {
    outrider(args).output().expect("the binary runs")
}

pub(crate) fn json(args: &[&str]) -> Value {
    let output = run(&[&["generate", "--json"], args].concat());
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {stderr}");
    serde_json::from_slice(&output.stdout).expect("stdout holds one JSON object and nothing else")
}

/// What a command that must fail says.
pub(crate) fn refused(args: &[&str]) -> String {
    let output = run(args);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && output.status.code() != Some(101),
        "{args:?}: {stderr}"
    );
    assert!(!stderr.contains("panicked"), "{stderr}");
    stderr
}

/// What a command that must succeed prints on stdout and stderr.
pub(crate) fn succeeds(command: &mut Command) -> (String, String) {
    let output = command.output().expect("the binary runs");
    let [stdout, stderr] =
        [output.stdout, output.stderr].map(|said| String::from_utf8(said).expect("text"));
    assert!(output.status.success(), "{command:?}: {stderr}");
    (stdout, stderr)
}

/// The JSON lines that a command prints.
pub(crate) fn json_lines(args: &[&str]) -> Vec<Value> {
    let (stdout, _) = succeeds(&mut outrider(args));
    let lines = stdout.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().expect("JSON lines")
}

/// The words of a command line; what stands between apostrophes is one.
pub(crate) fn words(line: &str) -> Vec<&str> {
    let pieces = line.split('\'').enumerate();
    let words = pieces.flat_map(|(index, piece)| match index % 2 {
        0 => piece.split_whitespace().collect::<Vec<_>>(),
        _ => vec![piece],
    });
    words.collect()
}

/// Each line is of arguments that must be refused, and of what must be said: `arguments | part | part`.
pub(crate) fn each_refused(command: &[&str], table: &[&str]) {
    for line in table {
        let (arguments, parts) = line.split_once(" | ").expect("what must be said");
        let said = refused(&[command, &words(arguments)[..]].concat());
        for part in parts.split(" | ") {
            assert!(said.contains(part), "{line}: {said}");
        }
    }
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
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) const ANY: &str = "127.0.0.1:0";

/// A port that is free, so that a process can be started on it again.
pub(crate) fn free_address() -> String {
    let listener = TcpListener::bind(ANY).expect("a port");
    listener.local_addr().expect("an address").to_string()
}
