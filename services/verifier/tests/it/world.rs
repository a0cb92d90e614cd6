//! A verifier of a toy model on a loopback port, and a stream of its protocol.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use model::source::{Numerics, ServedModel, SpecialTokens};
use outrider_tests::toy::{ToyCache, ToyError, ToyModel};
use server::process::Process;
use speculation::ports::{LanguageModel, ModelShape, Rows, Segment};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Status, Streaming};
use verifier::{Verifier, VerifierConfig};
use wire::digest::{Digestible, digest};
use wire::v1::verifier_client::VerifierClient;
use wire::v1::verify_reply::Reply;
use wire::v1::verify_request::Request;
use wire::v1::{Open, RoundHeader, SamplingParams, VerifyReply, VerifyRequest};

/// Tokens of the toy's vocabulary.
pub(crate) const VOCAB: u32 = 32;

/// What the tests set of the model while it runs.
#[derive(Debug, Default)]
pub(crate) struct Control {
    /// How long each forward takes, in milliseconds.
    pub(crate) pace_ms: AtomicU64,
    /// Whether one logit of each row is NaN.
    pub(crate) gives_nan: AtomicBool,
}

struct Paced(ToyModel, Arc<Control>);

impl LanguageModel for Paced {
    type Cache = ToyCache;
    type Error = ToyError;

    fn shape(&self) -> ModelShape {
        self.0.shape()
    }

    fn new_cache(&self) -> ToyCache {
        self.0.new_cache()
    }

    fn forward(
        &mut self,
        batch: &mut [Segment<'_, ToyCache>],
        rows: &mut Rows,
    ) -> Result<(), ToyError> {
        std::thread::sleep(Duration::from_millis(
            self.1.pace_ms.load(Ordering::Relaxed),
        ));
        self.0.forward(batch, rows)?;
        if self.1.gives_nan.load(Ordering::Relaxed) {
            let rows = rows.logits.chunks_mut(VOCAB as usize);
            rows.for_each(|row| row[3] = f32::NAN);
        }
        Ok(())
    }
}

/// A running verifier; it is killed when dropped.
pub(crate) struct World {
    pub(crate) control: Arc<Control>,
    pub(crate) monitor: Arc<Verifier>,
    url: String,
    serving: JoinHandle<()>,
}

impl World {
    /// One that forwards at most eight tokens at once.
    pub(crate) async fn start() -> Self {
        let control = Arc::new(Control::default());
        let model = Paced(ToyModel::new(3, VOCAB as usize), Arc::clone(&control));
        let mut config = VerifierConfig::default();
        config.engine.max_batch_tokens = 8.try_into().expect("not zero");
        let verifier = verifier::start(served(model), &config, Process::default());
        let verifier = verifier.expect("a verifier");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let monitor = Arc::clone(&verifier);
        let serving = tokio::spawn(async move {
            let served = verifier.serve(listener, std::future::pending()).await;
            served.expect("served");
        });
        Self {
            control,
            monitor,
            url,
            serving,
        }
    }

    /// From now on each forward takes this long.
    pub(crate) fn pace(&self, pace: Duration) {
        let pace_ms = pace.as_millis() as u64;
        self.control.pace_ms.store(pace_ms, Ordering::Relaxed);
    }

    /// Opens a session with a prompt of `prompt` tokens.
    pub(crate) async fn open(&self, prompt: usize, change: impl FnOnce(&mut Open)) -> Stream {
        let channel = Channel::from_shared(self.url.clone()).expect("a URL");
        let mut client = VerifierClient::new(channel.connect_lazy());
        let (requests, outgoing) = mpsc::channel(8);
        let mut open = Open {
            session_id: vec![3; 16],
            epoch: 1,
            prompt_token_ids: (0..prompt).map(|i| i as u32 % VOCAB).collect(),
            sampling: Some(SamplingParams::default()),
            seed: 5,
            vocab_size: VOCAB,
            ..Default::default()
        };
        change(&mut open);
        let opening = VerifyRequest {
            request: Some(Request::Open(open)),
        };
        requests.send(opening).await.expect("room");
        let replies = client.verify(ReceiverStream::new(outgoing)).await;
        let mut stream = Stream {
            requests,
            replies: replies.expect("a stream").into_inner(),
        };
        let opened = stream.receive().await.expect("open");
        assert!(matches!(opened, Reply::Opened(_)), "{opened:?}");
        stream
    }

    /// Waits until the monitor says what it should.
    pub(crate) async fn until(&self, what: &str, holds: impl Fn(&Verifier) -> bool) {
        for _ in 0..500 {
            if holds(&self.monitor) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("not within five seconds: {what}");
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

fn served(model: Paced) -> ServedModel<Paced> {
    ServedModel {
        model,
        name: "toy".to_owned(),
        vocab_size: VOCAB,
        vocab_fingerprint: [1; 32],
        numerics: Numerics::default(),
        weights_fingerprint: String::new(),
        heads: Vec::new(),
        eos_token_ids: Vec::new(),
        decoder_start_token_id: None,
        tokenizer_json: b"{}".to_vec(),
        chat_template: None,
        special_tokens: SpecialTokens::default(),
        load_time: Duration::ZERO,
    }
}

/// A `Verify` stream. Dropping it resets it.
pub(crate) struct Stream {
    requests: mpsc::Sender<VerifyRequest>,
    replies: Streaming<VerifyReply>,
}

impl Stream {
    pub(crate) async fn send(&self, request: Request) {
        let request = Some(request);
        let sent = self.requests.send(VerifyRequest { request }).await;
        sent.expect("room");
    }

    pub(crate) async fn receive(&mut self) -> Result<Reply, Status> {
        let message = self.replies.message().await?;
        let reply = message.and_then(|message| message.reply);
        reply.ok_or_else(|| Status::unavailable("ended"))
    }
}

/// `request` as round 1, with this many milliseconds of time.
pub(crate) fn with_header<R: Digestible>(mut request: R, timeout_ms: u32) -> R {
    let digest = digest(&request);
    *request.header_mut() = Some(RoundHeader {
        round: 1,
        epoch: 1,
        timeout_ms,
        from_len: 0,
        committed: Vec::new(),
        digest,
        trace_context: Vec::new(),
    });
    request
}
