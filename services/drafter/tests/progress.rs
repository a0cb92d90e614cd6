//! Drafting that takes long: told of while it goes on, and given up when the client leaves.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use drafter::{Drafter, DrafterConfig, Loaded, Monitor};
use model::source::{ModelSource, ServedModel, serve};
use model::{Checkpoint, Model, ModelConfig, WeightFormat, embedded};
use server::process::Process;
use tokio::net::TcpListener;
use tokio::sync::{Mutex, MutexGuard, mpsc};
use tokio::task::JoinHandle;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Code, Status, Streaming};
use wire::describe::PROGRESS;
use wire::digest::digest;
use wire::v1::draft_reply::Reply;
use wire::v1::draft_request::Request;
use wire::v1::drafter_client::DrafterClient;
use wire::v1::{
    DescribeRequest, DraftReply, DraftRequest, DraftRound, Drafting, Open, Progress, RoundHeader,
    SamplingParams,
};

/// Tokens of a prompt, each of which is a forward of some milliseconds.
const PROMPT: usize = 200;

/// Tokens of a long draft.
const DRAFT: u32 = 200;

/// Held by each test: their models would keep each other waiting.
static ALONE: Mutex<()> = Mutex::const_new(());

/// Time that no round takes.
const AMPLE: Duration = Duration::from_secs(60);

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
struct World {
    monitor: Monitor,
    url: String,
    serving: JoinHandle<()>,
    _alone: MutexGuard<'static, ()>,
}

impl World {
    async fn start() -> Self {
        let alone = ALONE.lock().await;
        let config = DrafterConfig {
            max_batch_tokens: 1.try_into().expect("not zero"),
            max_draft_tokens: DRAFT.try_into().expect("not zero"),
            ..DrafterConfig::default()
        };
        let small = ModelSource::embedded("small").load().expect("embedded");
        let loaded = Loaded::of(vec![slow(), small], &config).expect("in order");
        let drafter = Drafter::start(loaded, config, Process::default()).await;
        let drafter = drafter.expect("a drafter");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let monitor = drafter.monitor();
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

    fn client(&self) -> DrafterClient<Channel> {
        let channel = Channel::from_shared(self.url.clone()).expect("a URL");
        DrafterClient::new(channel.connect_lazy())
    }

    /// Opens session `id`.
    async fn open(&self, id: u8) -> Stream {
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
fn models(drafting: Drafting) -> usize {
    if drafting == Drafting::Cascade { 2 } else { 1 }
}

/// A `Draft` stream. Dropping it resets it.
struct Stream {
    round: u64,
    requests: mpsc::Sender<DraftRequest>,
    replies: Streaming<DraftReply>,
}

impl Stream {
    async fn ask(&mut self, drafting: Drafting, max_tokens: u32, timeout: Duration) {
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

    async fn receive(&mut self) -> Result<Reply, Status> {
        let message = self.replies.message().await?;
        let reply = message.and_then(|message| message.reply);
        reply.ok_or_else(|| Status::unavailable("ended"))
    }

    /// What is told until the block comes, and its number of tokens.
    async fn block(&mut self) -> Result<(Vec<Progress>, usize), Status> {
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

#[tokio::test]
async fn long_drafting_is_told_of_and_not_late() {
    let world = World::start().await;
    let described = world.client().describe(DescribeRequest {}).await;
    let described = described.expect("a description").into_inner();
    assert_eq!(described.features, [PROGRESS]);
    for (id, drafting) in [(1, Drafting::Model), (3, Drafting::Cascade)] {
        let mut stream = world.open(id).await;
        let began = Instant::now();
        stream.ask(drafting, 4, AMPLE).await;
        let (told, tokens) = stream.block().await.expect("a block");
        let took = began.elapsed();
        assert_eq!(tokens, 4);
        let first = told.first().expect("told");
        // In a cascade it reviews what Max-Gram drafts, too.
        let total = first.total as usize;
        assert!(
            (PROMPT..PROMPT + 8).contains(&total),
            "{drafting:?}: {first:?}"
        );
        assert!(
            told.is_sorted_by(|one, next| one.done < next.done),
            "{told:?}"
        );
        assert!(told.iter().all(|progress| progress.done <= progress.total));
        assert!(told.len() as u128 <= 2 + took.as_millis() / 100, "{told:?}");

        // The same in a fourth of the time it takes, on a session that has to begin anew.
        let timeout = took / 4;
        let mut stream = world.open(id + 1).await;
        let began = Instant::now();
        stream.ask(drafting, 4, timeout).await;
        let (told, _) = stream.block().await.expect(drafting.as_str_name());
        assert!(began.elapsed() > timeout, "it took {took:?} before");
        // In a cascade one model reads the prompt after the other.
        let last = told.last().expect("told").done as usize;
        let earlier = (models(drafting) - 1) * PROMPT;
        assert!(last > earlier, "{drafting:?}: {told:?}");
    }
}

#[tokio::test]
async fn each_token_of_a_draft_is_progress() {
    let world = World::start().await;
    let mut stream = world.open(1).await;
    // The prompt is forwarded once, and the rounds after it forward what they draft.
    stream.ask(Drafting::Model, 1, AMPLE).await;
    stream.block().await.expect("a block");
    let began = Instant::now();
    stream.ask(Drafting::Model, DRAFT, AMPLE).await;
    let (_, tokens) = stream.block().await.expect("a block");
    let took = began.elapsed();
    assert_eq!(tokens, DRAFT as usize);
    let (timeout, began) = (took / 4, Instant::now());
    stream.ask(Drafting::Model, DRAFT, timeout).await;
    let (told, tokens) = stream.block().await.expect("not late");
    assert_eq!(tokens, DRAFT as usize);
    assert!(began.elapsed() > timeout, "it took {took:?} before");
    let last = told.last().expect("told");
    assert!(last.done <= DRAFT, "{told:?}");
}

#[tokio::test]
async fn a_client_that_leaves_ends_its_drafting() {
    for drafting in [Drafting::Model, Drafting::Cascade] {
        let world = World::start().await;
        let mut stream = world.open(1).await;
        stream.ask(drafting, 4, AMPLE).await;
        let first = stream.receive().await.expect("told");
        assert!(matches!(first, Reply::Progress(_)), "{first:?}");
        drop(stream);
        let began = Instant::now();
        let remains = || {
            let sessions = world.monitor.sessions();
            sessions.attached + world.monitor.engine().running > 0
        };
        while remains() {
            assert!(began.elapsed() < AMPLE, "it goes on");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let forwards = world.monitor.totals().forwards;
        let all = (models(drafting) * PROMPT) as u64;
        assert!(forwards < all, "{drafting:?}: {forwards} forwards");
        assert_eq!(world.monitor.sessions().detached, 0);
    }
}

#[tokio::test]
async fn an_engine_that_stands_still_makes_its_round_late() {
    let world = World::start().await;
    let mut stream = world.open(1).await;
    // No forward of the slow model ends in a millisecond.
    stream
        .ask(Drafting::Model, 4, Duration::from_millis(1))
        .await;
    let late = stream.block().await.expect_err("late");
    assert_eq!(late.code(), Code::DeadlineExceeded, "{late:?}");
}
