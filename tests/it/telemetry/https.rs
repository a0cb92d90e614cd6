//! Collectors behind TLS, believed and not.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use net::Credentials;
use net::tls::{Tls, TlsConfig, TlsMode};
use ops::process::Process;
use ops::telemetry::{OtlpProtocol, Telemetry, TelemetryConfig};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tonic::metadata::MetadataMap;

use super::collector::Collector;
use super::watched::everything;
use crate::security::authority::{Authority, write};

/// Head and body of an HTTP request.
type Posted = (String, Vec<u8>);

/// Answers what is posted on `stream`, until it closes.
async fn serve_http(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    posted: Arc<Mutex<Vec<Posted>>>,
) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    loop {
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok(());
        }
        let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else {
            continue;
        };
        let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
        let length = head.split("content-length: ").nth(1).expect("a length");
        let length = length.lines().next().expect("a line").trim();
        let length: usize = length.parse().expect("a number");
        let body = end + 4;
        while bytes.len() < body + length {
            stream.read_buf(&mut bytes).await?;
        }
        let rest = bytes.split_off(body + length);
        let request = (head, bytes.split_off(body));
        posted.lock().expect("no panic").push(request);
        bytes = rest;
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
            .await?;
    }
}

/// Two collectors of one certificate: what came to them, and where they are.
struct Collectors {
    grpc: (Collector, u16),
    http: (Arc<Mutex<Vec<Posted>>>, u16),
}

impl Collectors {
    async fn start((cert_file, key_file): &(PathBuf, PathBuf)) -> Self {
        let (listener, grpc_port) = bind().await;
        let tls = TlsConfig {
            mode: TlsMode::Server,
            cert_file: cert_file.clone(),
            key_file: key_file.clone(),
            ..TlsConfig::default()
        };
        let process = Process {
            credentials: Credentials {
                tls: Tls::load(&tls).expect("in order"),
                ..Credentials::default()
            },
            ..Process::default()
        };
        let collector = Collector::default();
        tokio::spawn(collector.clone().serve(listener, process));

        let (listener, http_port) = bind().await;
        let chain = vec![CertificateDer::from_pem_file(cert_file).expect("a certificate")];
        let key = PrivateKeyDer::from_pem_file(key_file).expect("a key");
        let mut config = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .expect("a pair");
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let posted = Arc::new(Mutex::new(Vec::new()));
        let taken = Arc::clone(&posted);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                if let Ok(stream) = acceptor.accept(stream).await {
                    tokio::spawn(serve_http(stream, Arc::clone(&taken)));
                }
            }
        });
        Self {
            grpc: (collector, grpc_port),
            http: (posted, http_port),
        }
    }

    /// How many came to each when one span was sent to each.
    async fn sent(&self, ca_file: &Path, variables: &[(&str, &Path)]) -> (usize, usize) {
        let environment = |name: &str| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, file)| file.display().to_string())
        };
        for (protocol, port) in [
            (OtlpProtocol::Grpc, self.grpc.1),
            (OtlpProtocol::HttpProtobuf, self.http.1),
        ] {
            let config = TelemetryConfig {
                endpoint: format!("https://localhost:{port}"),
                protocol: Some(protocol),
                ca_file: ca_file.to_owned(),
                ..everything(([127, 0, 0, 1], port).into())
            };
            let telemetry = Telemetry::new(&config, "test", &environment).expect("in order");
            drop(telemetry.traces.request("chat", &MetadataMap::new()));
            telemetry.flush().await;
        }
        let posted = self.http.0.lock().expect("no panic").len();
        (self.grpc.0.spans().0.len(), posted)
    }
}

async fn bind() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    (listener, port)
}

#[tokio::test]
async fn spans_go_to_collectors_that_are_believed_and_to_no_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
    let our_ca = ours.write(folder.path(), "ours.pem");
    let their_ca = theirs.write(folder.path(), "theirs.pem");
    let nobody = Path::new("");

    let collectors =
        Collectors::start(&ours.issue(folder.path(), "localhost", &["localhost"])).await;
    assert_eq!(collectors.sent(&their_ca, &[]).await, (0, 0), "another CA");
    assert_eq!(collectors.sent(nobody, &[]).await, (0, 0), "no public CA");
    assert_eq!(collectors.sent(&our_ca, &[]).await, (1, 1));
    let variable = [("OTEL_EXPORTER_OTLP_CERTIFICATE", our_ca.as_path())];
    assert_eq!(collectors.sent(nobody, &variable).await, (2, 2));
    assert_eq!(collectors.sent(&their_ca, &variable).await, (2, 2));

    let elsewhere =
        Collectors::start(&ours.issue(folder.path(), "elsewhere", &["elsewhere"])).await;
    assert_eq!(elsewhere.sent(&our_ca, &[]).await, (0, 0), "another name");
    let expired = ours.issue_expired(folder.path(), "expired", &["localhost"]);
    let expired = Collectors::start(&expired).await;
    assert_eq!(expired.sent(&our_ca, &[]).await, (0, 0), "expired");
}

#[tokio::test]
async fn authorities_that_cannot_be_read_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let empty = write(folder.path(), "empty.pem", "");
    let missing = folder.path().join("missing.pem");
    for (file, problem) in [
        (&empty, "no certificate in PEM"),
        (&missing, "cannot be read"),
    ] {
        let config = TelemetryConfig {
            endpoint: "https://localhost:4317".to_owned(),
            ca_file: file.clone(),
            ..TelemetryConfig::default()
        };
        let error = Telemetry::new(&config, "test", &|_| None).expect_err(problem);
        let expected = format!("telemetry.ca_file: {}: {problem}", file.display());
        assert!(error.to_string().contains(&expected), "{error}");
    }
}
