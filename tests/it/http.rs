//! The OpenAI API on a coordinator, over plain sockets.

mod answers;
mod clients;
mod echoes;
mod every;
mod failures;
mod figures;
mod forms;
mod hostile;
mod origins;
mod page;
mod quotas;
mod refusals;
mod responses;
mod reuse;
mod security;
mod tokens;
mod tools;

use std::io::Write as _;
use std::net::SocketAddr;

use coordinator::{Coordinator, CoordinatorConfig};
use model::Model;
use model::source::ServedModel;
use net::Credentials;
use net::auth::{Auth, AuthConfig};
use ops::process::Process;
use serde_json::{Value, json};
use tempfile::NamedTempFile;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use verifier::VerifierConfig;

use crate::cluster::{Service, config, draft, drafter, listener, target, verifier, verifier_in};
use crate::paced::{Pace, paced};

/// How conversations become prompts here.
const TEMPLATE: &str = "{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}";

/// A coordinator with both fronts. What serves it lives as long.
struct Serving {
    coordinator: Service,
    http: SocketAddr,
    _peers: (Service, Service),
}

fn chatty() -> ServedModel<Model> {
    let mut target = target();
    target.text.chat_template = Some(TEMPLATE.to_owned());
    target
}

async fn serving(configure: impl FnOnce(&mut CoordinatorConfig)) -> Serving {
    serving_in(Process::default(), configure).await
}

/// A process whose clients must show one of these `tokens`, with the file in which they stand.
fn demanding(tokens: &str) -> (NamedTempFile, Process) {
    let mut file = NamedTempFile::new().expect("a file");
    writeln!(file, "{tokens}").expect("written");
    let config = AuthConfig {
        client_tokens_file: file.path().to_owned(),
        ..AuthConfig::default()
    };
    let process = Process {
        credentials: Credentials {
            auth: Auth::of_coordinator(&config).expect("tokens"),
            ..Credentials::default()
        },
        ..Process::default()
    };
    (file, process)
}

async fn serving_in(process: Process, configure: impl FnOnce(&mut CoordinatorConfig)) -> Serving {
    let verifier = verifier(chatty()).await.0;
    serving_by(verifier, process, configure).await
}

/// The same with a verifier whose model goes at `pace`.
async fn serving_at(pace: &Pace) -> Serving {
    let model = paced(chatty(), pace);
    let config = VerifierConfig::default();
    let verifier = verifier_in(Process::default(), model, config).await.0;
    serving_by(verifier, Process::default(), |_| {}).await
}

async fn serving_by(
    verifier: Service,
    process: Process,
    configure: impl FnOnce(&mut CoordinatorConfig),
) -> Serving {
    let peers = (drafter(draft()).await.0, verifier);
    let mut config = config(&[peers.0.url()], &[peers.1.url()]);
    configure(&mut config);
    let (listening, http) = listener().await;
    let mut coordinator = Coordinator::new(config, process.clone()).expect("a coordinator");
    coordinator.http = Some(listening);
    let serve = |listener, stop| coordinator.serve(listener, stop);
    Serving {
        coordinator: Service::start(process, serve).await,
        http,
        _peers: peers,
    }
}

/// A response, read to the end of its connection.
#[derive(Debug)]
struct Reply {
    status: u16,
    headers: String,
    body: String,
}

impl Reply {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The data of its events.
    fn events(&self) -> Vec<Value> {
        let data = self
            .body
            .lines()
            .filter_map(|line| line.strip_prefix("data: "));
        let objects = data.filter(|data| *data != "[DONE]");
        objects
            .map(|data| serde_json::from_str(data).expect("JSON"))
            .collect()
    }

    /// The message of an error that names `param`.
    fn refused(&self, status: u16, param: Option<&str>) -> String {
        assert_eq!(self.status, status, "{self:?}");
        let error = &self.json()["error"];
        assert_eq!(error["param"].as_str(), param, "{self:?}");
        error["message"].as_str().expect("a message").to_owned()
    }
}

impl Serving {
    /// Sends `bytes` and reads to the end of the connection.
    async fn exchange(&self, bytes: &[u8]) -> Reply {
        let mut stream = TcpStream::connect(self.http).await.expect("a connection");
        // A server that refuses early may close before all is written.
        let _ = stream.write_all(bytes).await;
        let mut read = Vec::new();
        let _ = stream.read_to_end(&mut read).await;
        let text = String::from_utf8(read).expect("UTF-8");
        let (headers, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = headers
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        Reply {
            status: status.unwrap_or_default(),
            headers: headers.to_ascii_lowercase(),
            body: body.to_owned(),
        }
    }

    /// Posts `body`; answers of HTTP/1.0 end with their connection, and come in one piece.
    async fn post_with(&self, path: &str, headers: &str, body: &str) -> Reply {
        let length = body.len();
        let request =
            format!("POST {path} HTTP/1.0\r\ncontent-length: {length}\r\n{headers}\r\n{body}");
        self.exchange(request.as_bytes()).await
    }

    async fn post(&self, path: &str, body: &Value) -> Reply {
        let headers = "content-type: application/json\r\n";
        self.post_with(path, headers, &body.to_string()).await
    }

    async fn get(&self, path: &str) -> Reply {
        self.exchange(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes())
            .await
    }

    async fn completion(&self, more: Value) -> Reply {
        let mut request =
            json!({ "prompt": "Once upon a time", "max_tokens": 24, "seed": 7, "temperature": 1 });
        for (name, value) in more.as_object().expect("an object") {
            request[name] = value.clone();
        }
        self.post("/v1/completions", &request).await
    }
}
