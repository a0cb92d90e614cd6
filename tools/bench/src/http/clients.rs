//! Clients that make one request over gRPC or over HTTP.

use std::net::SocketAddr;

use anyhow::{Context, bail, ensure};
use outrider::measure::request;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use wire::v1::FinishReason;

use super::TEMPERATURE;

/// A request.
pub(super) struct Question<'a> {
    pub(super) prompt: &'a str,
    pub(super) max_tokens: u32,
    pub(super) seed: u64,
}

/// Text and number of tokens of an answer.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FrontAnswer {
    pub(super) text: String,
    pub(super) tokens: u32,
}

/// A client of one of the two fronts.
pub(super) enum FrontClient {
    Grpc(Box<client::Client>),
    /// Opens a connection for each request, since an answer of HTTP/1.0 ends with its connection.
    Http(SocketAddr),
}

impl FrontClient {
    /// Asks, and reads the answer as it comes.
    pub(super) async fn ask(&self, question: &Question<'_>) -> anyhow::Result<FrontAnswer> {
        match self {
            Self::Grpc(client) => over_grpc(client, question).await,
            Self::Http(_) => over_http(self.begin(question).await?).await,
        }
    }

    /// Asks over HTTP and reads up to the first event.
    pub(super) async fn begin(&self, question: &Question<'_>) -> anyhow::Result<TcpStream> {
        let Self::Http(address) = self else {
            bail!("not over gRPC");
        };
        let body = json!({
            "prompt": question.prompt, "max_tokens": question.max_tokens, "seed": question.seed, "temperature": TEMPERATURE,
            "ignore_eos": true, "stream": true, "stream_options": { "include_usage": true },
        });
        let body = body.to_string();
        let length = body.len();
        let request = format!(
            "POST /v1/completions HTTP/1.0\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        let mut stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        stream.write_all(request.as_bytes()).await?;
        let mut status = [0; 12];
        stream.read_exact(&mut status).await?;
        ensure!(
            &status == b"HTTP/1.0 200",
            "{}",
            String::from_utf8_lossy(&status)
        );
        Ok(stream)
    }
}

async fn over_http(stream: TcpStream) -> anyhow::Result<FrontAnswer> {
    let mut lines = BufReader::new(stream).lines();
    let mut answer = FrontAnswer::default();
    while let Some(line) = lines.next_line().await? {
        let Some(data) = line.strip_prefix("data: ") else {
            continue;
        };
        if data == "[DONE]" {
            return Ok(answer);
        }
        let event: Value = serde_json::from_str(data)?;
        if let Some(text) = event["choices"][0]["text"].as_str() {
            answer.text.push_str(text);
        } else {
            let tokens = event["usage"]["completion_tokens"].as_u64();
            answer.tokens = tokens.with_context(|| format!("no usage: {event}"))? as u32;
        }
    }
    bail!("the stream ended before [DONE]")
}

async fn over_grpc(
    client: &client::Client,
    question: &Question<'_>,
) -> anyhow::Result<FrontAnswer> {
    let mut request = request(
        question.prompt,
        question.max_tokens,
        TEMPERATURE,
        question.seed,
    );
    request.ignore_eos = true;
    let answer = client.generate(request).await?.collect().await?;
    ensure!(
        answer.finished.reason() != FinishReason::Error,
        "{}",
        answer.finished.error
    );
    Ok(FrontAnswer {
        tokens: answer.token_ids.len() as u32,
        text: answer.text,
    })
}
