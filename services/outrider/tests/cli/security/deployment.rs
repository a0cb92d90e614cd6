//! Three processes with certificates and tokens.

use std::path::{Path, PathBuf};

use super::authority::{Authority, write};
use crate::{ANY, Server};

const CLIENT_TOKEN: &str = "client-0123456789abcdef";
const PEER_TOKEN: &str = "peer-0123456789abcdef";

/// Three processes under mutual TLS, with tokens.
pub(super) struct Deployment {
    pub(super) folder: tempfile::TempDir,
    /// Those of the coordinator and of the verifier.
    pub(super) ports: [String; 2],
    _services: [Server; 3],
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
        let config = path.join("outrider.toml");
        let config = config.to_str().expect("UTF-8");
        let serve = |args: &[&str]| {
            let server = Server::start(&[args, &["--listen", ANY, "--config", config]].concat());
            let port = server.url.rsplit(':').next().unwrap_or_default().to_owned();
            let url = format!("https://localhost:{port}");
            (server, port, url)
        };
        let (drafter, _, of_drafter) = serve(&["drafter"]);
        let (verifier, of_peers, of_verifier) = serve(&["verifier"]);
        let peers = ["--drafter", &of_drafter, "--verifier", &of_verifier];
        let (coordinator, of_clients, _) = serve(&[&["coordinator"], &peers[..]].concat());
        Self {
            ports: [of_clients, of_peers],
            _services: [drafter, verifier, coordinator],
            folder,
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
