//! Answers that are lost or interrupted in their middle.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, Stdio};

use serde_json::Value;

use super::relay::Relay;
use super::{ANY, Server, free_address, outrider, says, signal, succeeds, words};

/// Bytes of a verifier's answers: some rounds of the output, and not all of them.
pub(crate) const NO_WHOLE_OUTPUT: usize = 1_500;

const REQUEST: &str =
    "generate --prompt 'Once upon a time' --max-tokens 300 --ignore-eos --draft-len 2";

/// Three processes, and a relay by which every output can be held in its middle.
pub(crate) struct Deployment {
    pub(crate) coordinator: Option<Server>,
    address: String,
    pub(crate) url: String,
    pub(crate) relay: Relay,
    drafter: Server,
    verifier: Server,
}

impl Deployment {
    pub(crate) async fn start() -> Self {
        let verifier = Server::start(&["verifier", "--listen", ANY]);
        let at = verifier.url.strip_prefix("http://").expect("a URL");
        let relay = Relay::start(at.parse::<SocketAddr>().expect("an address")).await;
        let address = free_address();
        let mut deployment = Self {
            coordinator: None,
            url: format!("http://{address}"),
            address,
            relay,
            drafter: Server::start(&["drafter", "--listen", ANY]),
            verifier,
        };
        deployment.start_coordinator();
        deployment
    }

    fn start_coordinator(&mut self) {
        let (drafter, verifier) = (&self.drafter.url, self.relay.url());
        let role = ["coordinator", "--listen", &self.address];
        let peers = ["--drafter", drafter, "--verifier", &verifier];
        self.coordinator = Some(Server::start(&[&role[..], &peers].concat()));
        // The coordinator describes its peers now, before the relay holds anything.
        self.whole("");
    }

    /// Kills the coordinator. What the relay holds then passes.
    fn kill_coordinator(&mut self) {
        self.coordinator = None;
        self.relay.release();
    }

    fn command(&self, more: &str) -> std::process::Command {
        let coordinator = ["--coordinator", &self.url];
        outrider(&[&words(REQUEST)[..], &words(more), &coordinator].concat())
    }

    /// Returns what is printed of an answer that nothing disturbs.
    fn whole(&self, more: &str) -> (String, String) {
        succeeds(&mut self.command(more))
    }

    /// Begins an answer that comes to a halt in its middle.
    fn held(&self, more: &str) -> Child {
        self.relay.hold_after(NO_WHOLE_OUTPUT);
        let mut command = self.command(more);
        let piped = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        piped.spawn().expect("runs")
    }
}

/// Reads the first bytes of the text, and what follows them to its end.
fn begun(child: &mut Child) -> impl FnOnce() -> String + use<> {
    let mut stdout = child.stdout.take().expect("piped");
    let mut text = vec![0; 8];
    stdout.read_exact(&mut text).expect("text");
    move || {
        stdout.read_to_end(&mut text).expect("text");
        String::from_utf8(text).expect("text")
    }
}

/// Waits until a round is reported; what reads the rest of stderr must be kept.
fn round_reported(child: &mut Child) -> BufReader<impl Read + use<>> {
    let mut stderr = BufReader::new(child.stderr.take().expect("piped"));
    let mut line = String::new();
    while !line.contains("round ") {
        line.clear();
        let read = stderr.read_line(&mut line).expect("text");
        assert!(read > 0, "no round was reported");
    }
    stderr
}

/// Returns how a failed command exits, and what it tells on stderr.
fn ended(child: Child) -> (Option<i32>, String) {
    let output = child.wait_with_output().expect("ends");
    let stderr = String::from_utf8(output.stderr).expect("text");
    (output.status.code(), stderr)
}

/// The seed that the last line tells.
fn seed(stderr: &str) -> &str {
    let told = stderr.rsplit_once("seed ").expect("a seed").1;
    told.split(']').next().expect("its end")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_goes_on_when_its_coordinator_was_killed_and_is_back() {
    let mut deployment = Deployment::start().await;
    let mut generating = deployment.held("");
    let text = begun(&mut generating);
    deployment.kill_coordinator();
    deployment.start_coordinator();
    let text = text();
    let (code, stderr) = ended(generating);
    assert_eq!(code, Some(0), "{stderr}");
    says(&stderr, "lost http:// | tokens, asking again");
    // The seed was the first coordinator's choice.
    let (expected, _) = deployment.whole(&format!("--seed {}", seed(&stderr)));
    assert_eq!(text, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_an_answer_that_is_lost_what_came_is_printed() {
    let mut deployment = Deployment::start().await;
    let whole = deployment.whole("--json --seed 5").0;
    let whole: Value = serde_json::from_str(&whole).expect("an object");
    let (all_tokens, all_text) = (&whole["token_ids"], whole["text"].as_str().expect("text"));
    let all_tokens = all_tokens.as_array().expect("tokens");
    let mut as_json = deployment.held("--json --seed 5 --no-resume --show-rounds");
    let _stderr = round_reported(&mut as_json);
    deployment.kill_coordinator();
    let output = as_json.wait_with_output().expect("ends");
    assert_eq!(output.status.code(), Some(1));
    let answer: Value = serde_json::from_slice(&output.stdout).expect("one object");
    let error = &answer["error"];
    assert_eq!(error["code"], "Unavailable", "{error}");
    says(
        error["message"].as_str().expect("text"),
        "lost after | output tokens",
    );
    let tokens = answer["token_ids"].as_array().expect("tokens");
    assert!(!tokens.is_empty() && all_tokens.starts_with(tokens));
    let text = answer["text"].as_str().expect("text");
    assert!(all_text.starts_with(text), "{text}");
    assert_eq!(
        (&answer["seed"], &answer["finish_reason"]),
        (&5.into(), &"error".into())
    );
    assert_eq!(
        (&answer["exact"], &answer["reproducible"]),
        (&Value::Null, &true.into())
    );

    deployment.start_coordinator();
    let mut as_text = deployment.held("--seed 5 --no-resume");
    let text = begun(&mut as_text);
    deployment.kill_coordinator();
    let text = text();
    assert!(all_text.starts_with(text.trim_end()), "{text}");
    let (code, stderr) = ended(as_text);
    assert_eq!(code, Some(1), "{stderr}");
    says(
        &stderr,
        "tokens, method coupled, seed 5] | error: coordinator http:// | lost after",
    );
    assert!(!stderr.contains("asking again"), "{stderr}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_verifier_that_is_gone_is_told_while_it_is_waited_for() {
    let mut deployment = Deployment::start().await;
    let _ = deployment.verifier.child.kill();
    let output = deployment.command("").output().expect("ends");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(output.stdout, b"", "nothing came");
    let stderr = String::from_utf8(output.stderr).expect("text");
    says(
        &stderr,
        &format!(
            "nothing from {url} for 5 s | waits for a verifier that was lost | error: coordinator {url}: verifier lost: \
             | `outrider doctor --coordinator {url}`",
            url = deployment.url
        ),
    );
    for doubled in ["tokens, method", "Unavailable", "TLS"] {
        assert!(!stderr.contains(doubled), "{stderr}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_an_answer_that_is_interrupted_what_came_is_printed() {
    let deployment = Deployment::start().await;
    let mut as_text = deployment.held("");
    let text = begun(&mut as_text);
    signal(&as_text, "INT");
    let text = text();
    let (code, stderr) = ended(as_text);
    assert_eq!(code, Some(130), "{stderr}");
    says(&stderr, "tokens, method coupled, seed ");
    deployment.relay.release();
    let (whole, _) = deployment.whole(&format!("--seed {}", seed(&stderr)));
    assert!(whole.starts_with(text.trim_end()), "{text}: {whole}");

    let mut as_json = deployment.held("--json --show-rounds");
    let _stderr = round_reported(&mut as_json);
    signal(&as_json, "TERM");
    let output = as_json.wait_with_output().expect("ends");
    assert_eq!(output.status.code(), Some(143));
    let answer: Value = serde_json::from_slice(&output.stdout).expect("one object");
    assert_eq!(answer["finish_reason"], "cancelled");
    assert_eq!(answer["error"]["code"], "Cancelled");
    assert!(!answer["token_ids"].as_array().expect("tokens").is_empty());
}
