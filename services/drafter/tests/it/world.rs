//! A drafter of a slow and a small model on a loopback port, and a stream of its protocol.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use drafter::{Drafter, DrafterConfig, Loaded};
use model::source::{ModelSource, ServedModel, serve};
use model::{Checkpoint, Model, ModelConfig, WeightFormat, embedded};
use server::process::Process;
use tokio::net::TcpListener;
use tokio::sync::{Mutex, MutexGuard, mpsc};
use tokio::task::JoinHandle;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Code, Status, Streaming};
use wire::digest::digest;
use wire::v1::draft_reply::Reply;
use wire::v1::draft_request::Request;
use wire::v1::drafter_client::DrafterClient;
use wire::v1::{
    DraftReply, DraftRequest, DraftRound, Drafting, Open, Progress, RoundHeader, SamplingParams,
};

/// Tokens of a prompt, each of which is a forward of some milliseconds.
pub(crate) const PROMPT: usize = 200;

/// Tokens of a long draft.
pub(crate) const DRAFT: u32 = 200;

/// How often a round may be late although it makes progress: a machine that is busy with something else may
/// stand still for longer than a round's time.
pub(crate) const ATTEMPTS: u8 = 3;

/// Held by each test: their models would keep each other waiting.
static ALONE: Mutex<()> = Mutex::const_new(());

/// Time that no round takes.
pub(crate) const AMPLE: Duration = Duration::from_secs(60);

/// A model that was never trained, of the embedded pair's vocabulary, and large enough to be slow.
fn slow() -> ServedModel<Model> {
    static CHECKPOINT: OnceLock<Checkpoint> = OnceLock::new();
    let checkpoint = CHECKPOINT.get_or_init(|| {
        let draft = embedded::draft().expect("embedded");
        let config = ModelConfig {
            hidden_size: 768,
            intermediate_size: 2_048,
            layers: 6,
            heads: 12,
            kv_heads: 12,
            head_dim: 64,
            ..draft.config().clone()
        };
        let random = Checkpoint::random(config, 7).expect("random weights");
        random.with_tokenizer(draft.tokenizer_json().expect("a tokenizer").to_vec())
    });
    serve(checkpoint, WeightFormat::Q8_0, "slow".to_owned(), "slow").expect("a model")
}

/// A drafter with a cascade of the slow model and a small one, which forward one token at once. It is
/// killed when dropped.
pub(crate) struct World {
    pub(crate) monitor: Arc<Drafter>,
    url: String,
    serving: JoinHandle<()>,
    _alone: MutexGuard<'static, ()>,
}

impl World {
    pub(crate) async fn start() -> Self {
        let alone = ALONE.lock().await;
        let mut config = DrafterConfig {
            max_draft_tokens: DRAFT.try_into().expect("not zero"),
            ..DrafterConfig::default()
        };
        config.engine.max_batch_tokens = 1.try_into().expect("not zero");
        let small = ModelSource::embedded("small").load().expect("embedded");
        let loaded = Loaded::of(vec![slow(), small], &config).expect("in order");
        let drafter = drafter::start(loaded, &config, Process::default());
        let drafter = drafter.expect("a drafter");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let monitor = Arc::clone(&drafter);
        let serving = tokio::spawn(async move {
            let served = drafter.serve(listener, std::future::pending()).await;
            served.expect("served");
        });
        Self {
            monitor,
            url,
            serving,
            _alone: alone,
        }
    }

    pub(crate) fn client(&self) -> DrafterClient<Channel> {
        let channel = Channel::from_shared(self.url.clone()).expect("a URL");
        DrafterClient::new(channel.connect_lazy())
    }

    /// Opens session `id`.
    pub(crate) async fn open(&self, id: u8) -> Stream {
        let (requests, outgoing) = mpsc::channel(8);
        let opening = Request::Open(Open {
            session_id: vec![id; 16],
            epoch: 1,
            prompt_token_ids: (0..PROMPT).map(|i| 300 + i as u32).collect(),
            sampling: Some(SamplingParams::default()),
            seed: 5,
            vocab_size: 4_096,
            ..Default::default()
        });
        let request = Some(opening);
        let sent = requests.send(DraftRequest { request }).await;
        sent.expect("room");
        let replies = self.client().draft(ReceiverStream::new(outgoing)).await;
        let mut stream = Stream {
            round: 0,
            requests,
            replies: replies.expect("a stream").into_inner(),
        };
        let opened = stream.receive().await.expect("open");
        assert!(matches!(opened, Reply::Opened(_)), "{opened:?}");
        stream
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Models that draft.
pub(crate) fn models(drafting: Drafting) -> usize {
    if drafting == Drafting::Cascade { 2 } else { 1 }
}

/// A `Draft` stream. Dropping it resets it.
pub(crate) struct Stream {
    round: u64,
    requests: mpsc::Sender<DraftRequest>,
    replies: Streaming<DraftReply>,
}

impl Stream {
    pub(crate) async fn ask(&mut self, drafting: Drafting, max_tokens: u32, timeout: Duration) {
        self.round += 1;
        let mut round = DraftRound {
            max_tokens,
            drafting: drafting.into(),
            ..Default::default()
        };
        round.header = Some(RoundHeader {
            round: self.round,
            epoch: 1,
            timeout_ms: timeout.as_millis() as u32,
            from_len: 0,
            committed: Vec::new(),
            digest: digest(&round),
            trace_context: Vec::new(),
        });
        let request = Some(Request::Round(round));
        let sent = self.requests.send(DraftRequest { request }).await;
        sent.expect("room");
    }

    pub(crate) async fn receive(&mut self) -> Result<Reply, Status> {
        let message = self.replies.message().await?;
        let reply = message.and_then(|message| message.reply);
        reply.ok_or_else(|| Status::unavailable("ended"))
    }

    /// What is told of a round that takes longer than `timeout` and is not late; none if it is, or was too
    /// quick to show that.
    pub(crate) async fn in_time(
        &mut self,
        drafting: Drafting,
        max_tokens: u32,
        timeout: Duration,
    ) -> Option<Vec<Progress>> {
        let began = Instant::now();
        self.ask(drafting, max_tokens, timeout).await;
        match self.block().await {
            Ok((told, tokens)) => {
                assert_eq!(tokens, max_tokens as usize);
                Some(told).filter(|_| began.elapsed() > timeout)
            }
            Err(late) => {
                assert_eq!(late.code(), Code::DeadlineExceeded, "{late:?}");
                None
            }
        }
    }

    /// What is told until the block comes, and its number of tokens.
    pub(crate) async fn block(&mut self) -> Result<(Vec<Progress>, usize), Status> {
        let mut told = Vec::new();
        loop {
            match self.receive().await? {
                Reply::Progress(progress) => told.push(progress),
                Reply::Block(block) if block.last => {
                    let header = block.header;
                    assert!(told.iter().all(|progress| progress.header == header));
                    return Ok((told, block.tree.unwrap_or_default().token_ids.len()));
                }
                other => panic!("another reply: {other:?}"),
            }
        }
    }
}
