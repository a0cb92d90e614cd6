//! Health and metrics of services that run as processes.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::{ANY, Server, fails, outrider, refused, run, says};

/// Head and body of the answer to `GET path` at an admin port.
pub(crate) fn answer(admin: &str, path: &str) -> (String, String) {
    let address = admin.strip_prefix("http://").expect("a URL");
    let mut stream = TcpStream::connect(address).expect("a connection");
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("text");
    let (head, body) = answer.split_once("\r\n\r\n").expect("an answer");
    (head.to_owned(), body.to_owned())
}

/// The body of an answer that says that all is well.
pub(crate) fn get(admin: &str, path: &str) -> String {
    let (head, body) = answer(admin, path);
    assert!(head.starts_with("HTTP/1.1 200 "), "{path}: {head}");
    body
}

/// The value of a sample: its name and labels exactly as they are written.
pub(crate) fn value(text: &str, sample: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(sample));
    let line = line.unwrap_or_else(|| panic!("{sample} is not in {text}"));
    line.trim().parse().expect("a number")
}

#[test]
fn health_says_in_one_line_why_not() {
    // A coordinator whose verifier is not there is alive, and not ready.
    let nobody = "http://127.0.0.1:9";
    let coordinator = Server::start(&["coordinator", "--listen", ANY, "--verifier", nobody]);
    let output = run(&["health", "--url", &coordinator.admin]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        output.stdout,
        b"not ready: outrider.v1.Coordinator is waiting for a verifier or its engine\n"
    );
    assert_eq!(get(&coordinator.admin, "/livez"), "alive\n");

    let admin = coordinator.admin.clone();
    drop(coordinator);
    let gone = refused(&["health", "--url", &admin]);
    assert!(
        gone.contains(&admin) && gone.contains("does not answer"),
        "{gone}"
    );
    assert_eq!(gone.lines().count(), 1, "{gone}");
    let off = fails(outrider(&["health"]).env("OUTRIDER__ADMIN__LISTEN", "off"));
    says(&off, "admin.listen is off");
}

#[test]
fn health_asks_the_address_of_the_configuration() {
    let server = Server::start(&["all", "--listen", ANY]);
    let address = server.admin.strip_prefix("http://").expect("a URL");
    let ask = || {
        let mut asking = outrider(&["health"]);
        asking.env("OUTRIDER__ADMIN__LISTEN", address);
        asking.output().expect("runs")
    };
    // The coordinator is ready once it has found its verifier.
    let limit = Instant::now() + Duration::from_secs(60);
    let mut output = ask();
    while !output.status.success() && Instant::now() < limit {
        std::thread::sleep(Duration::from_millis(50));
        output = ask();
    }
    assert!(output.status.success(), "{output:?}");
    let metrics = get(&server.admin, "/metrics");
    for service in ["Coordinator", "Drafter", "Verifier"] {
        let ready = format!("outrider_ready{{service=\"outrider.v1.{service}\"}}");
        assert_eq!(value(&metrics, &ready), 1.0);
    }
}

#[test]
fn a_chosen_admin_port_that_is_taken_is_an_error_and_an_exposed_one_too() {
    let server = Server::start(&["all", "--listen", ANY]);
    let taken = server.admin.strip_prefix("http://").expect("a URL");
    let said = refused(&["serve", "all", "--listen", ANY, "--admin", taken]);
    assert!(
        said.contains("admin.listen") && said.contains(taken),
        "{said}"
    );
    let said = refused(&["serve", "all", "--listen", ANY, "--admin", "0.0.0.0:0"]);
    assert!(said.contains("admin.insecure"), "{said}");
}
