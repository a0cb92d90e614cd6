//! Three processes with certificates and tokens.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use super::authority::{Authority, write};
use crate::{ANY, outrider};

pub(super) const CLIENT_TOKEN: &str = "client-0123456789abcdef";
pub(super) const PEER_TOKEN: &str = "peer-0123456789abcdef";

/// Three processes under mutual TLS, with tokens, that log everything.
pub(super) struct Deployment {
    pub(super) folder: tempfile::TempDir,
    pub(super) ours: Authority,
    pub(super) port: String,
    pub(super) services: Vec<Logged>,
}

/// A service whose log is kept. Killed when dropped.
pub(super) struct Logged {
    child: Child,
    lines: Arc<Mutex<String>>,
    pub(super) port: String,
}

impl Logged {
    pub(super) fn start(mut command: Command) -> Self {
        let mut child = command
            .env("OUTRIDER__LOG__FILTER", "trace")
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let mut stderr = BufReader::new(child.stderr.take().expect("piped")).lines();
        let lines = Arc::new(Mutex::new(String::new()));
        let mut port = None;
        for line in stderr.by_ref().map_while(Result::ok) {
            lines.lock().expect("not poisoned").push_str(&line);
            if line.contains("serving address=") {
                port = line.rsplit(':').next().map(|port| port.trim().to_owned());
                break;
            }
        }
        let kept = Arc::clone(&lines);
        std::thread::spawn(move || {
            for line in stderr.map_while(Result::ok) {
                kept.lock().expect("not poisoned").push_str(&line);
            }
        });
        let port = port.unwrap_or_else(|| panic!("never served: {:?}", lines.lock()));
        Self { child, lines, port }
    }

    pub(super) fn log(&self) -> String {
        self.lines.lock().expect("not poisoned").clone()
    }
}

impl Drop for Logged {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Deployment {
    pub(super) fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path();
        let ours = Authority::new("ours");
        ours.write(path, "ca.pem");
        ours.issue(path, "service", &["localhost"]);
        ours.issue(path, "client", &["client.test"]);
        let clients = format!("# who may\nacme {CLIENT_TOKEN}\n");
        write(path, "clients", &clients);
        write(path, "peers", PEER_TOKEN);
        write(path, "token", CLIENT_TOKEN);
        let file = |name: &str| toml(&path.join(name));
        let config = format!(
            "[tls]\nmode = \"mutual\"\ncert_file = {}\nkey_file = {}\nca_file = {}\n\
             [auth]\nclient_tokens_file = {}\npeer_token_file = {}\n",
            file("service.pem"),
            file("service.key"),
            file("ca.pem"),
            file("clients"),
            file("peers"),
        );
        write(path, "outrider.toml", &config);
        let serve = |args: &[&str]| {
            let config = path.join("outrider.toml");
            let mut command = outrider(&["serve"]);
            command.args(args).args(["--listen", ANY]);
            command.arg("--config").arg(config);
            Logged::start(command)
        };
        let drafter = serve(&["drafter"]);
        let verifier = serve(&["verifier"]);
        let [of_drafter, of_verifier] =
            [&drafter, &verifier].map(|service| format!("https://localhost:{}", service.port));
        let coordinator = serve(&[
            "coordinator",
            "--drafter",
            &of_drafter,
            "--verifier",
            &of_verifier,
        ]);
        Self {
            port: coordinator.port.clone(),
            services: vec![drafter, verifier, coordinator],
            folder,
            ours,
        }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The arguments of a command that asks the coordinator, with these files: each by its kind, as `cert`, or
    /// another than the sound one, as `cert=late.pem`.
    pub(super) fn arguments(&self, url: &str, files: &str) -> Vec<String> {
        let mut arguments = vec!["--coordinator".to_owned(), url.to_owned()];
        for file in files.split(' ') {
            let (kind, other) = file.split_once('=').unwrap_or((file, ""));
            let name = match (kind, other) {
                ("ca", "") => "ca.pem",
                ("cert", "") => "client.pem",
                ("key", "") => "client.key",
                ("token", "") => "token",
                (_, other) => other,
            };
            arguments.push(format!("--{kind}-file"));
            arguments.push(self.path(name).to_str().expect("UTF-8").to_owned());
        }
        arguments
    }
}

fn toml(path: &Path) -> String {
    format!("{:?}", path.to_str().expect("UTF-8"))
}
