//! Signals concern a whole process, so these tests start one: this very binary, running only
//! [`process`].
#![cfg(unix)]

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

/// Tells the process that it is one; names what it does once the first signal came.
const ROLE: &str = "SIGNALS_TEST_ROLE";

#[tokio::test]
async fn process() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    let stop = ops::shutdown::on_signal().unwrap();
    if role == "overdue" {
        ops::shutdown::exit_within(stop.clone(), Duration::from_millis(300));
    }
    eprintln!("ready");
    stop.cancelled().await;
    eprintln!("stopping");
    if role == "hang" {
        std::future::pending::<()>().await;
    }
    if role == "overdue" {
        // The whole runtime is held up, as by a thread that never comes back.
        std::thread::sleep(Duration::from_secs(60));
    }
}

fn start(role: &str) -> (Child, BufReader<ChildStderr>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "process", "--nocapture"])
        .env(ROLE, role)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap());
    (child, lines)
}

fn wait_for(line: &str, lines: &mut impl BufRead) {
    let found = lines.lines().any(|read| read.unwrap() == line);
    assert!(found, "the process ended without {line:?}");
}

fn send(signal: &str, child: &Child) {
    let id = child.id().to_string();
    let sent = Command::new("kill").args(["-s", signal, &id]).status();
    assert!(sent.unwrap().success());
}

#[test]
fn the_first_signal_asks_the_process_to_stop() {
    for signal in ["TERM", "QUIT", "INT"] {
        let (mut child, mut lines) = start("stop");
        wait_for("ready", &mut lines);
        send(signal, &child);
        wait_for("stopping", &mut lines);
        assert_eq!(child.wait().unwrap().code(), Some(0), "{signal}");
    }
}

#[test]
fn a_second_interrupt_ends_it_and_no_other_signal() {
    for first in ["TERM", "INT"] {
        let (mut child, mut lines) = start("hang");
        wait_for("ready", &mut lines);
        send(first, &child);
        wait_for("stopping", &mut lines);
        // timeout(1) and some supervisors signal the process and then its group.
        for signal in ["TERM", "QUIT", "TERM"] {
            send(signal, &child);
        }
        std::thread::sleep(Duration::from_millis(200));
        assert_eq!(child.try_wait().unwrap(), None, "after {first}");
        send("INT", &child);
        assert_eq!(child.wait().unwrap().code(), Some(130));
    }
}

#[test]
fn a_process_that_hangs_at_its_end_is_ended() {
    let (mut child, mut lines) = start("overdue");
    wait_for("ready", &mut lines);
    let began = Instant::now();
    send("TERM", &child);
    wait_for("stopping", &mut lines);
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert!(began.elapsed() < Duration::from_secs(10));
}
