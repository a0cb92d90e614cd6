//! The target model behind its verifier service: its responses, and its distribution at every position.

use std::time::Duration;

use anyhow::{Context, bail, ensure};
use speculation::TokenId;
use speculation::sampling::SamplingParams;
use tokio::sync::mpsc;
use tonic::codegen::tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};
use v1::round_answer::Part;
use v1::round_request::Round;
use v1::session_reply::Reply;
use v1::session_request::Request;
use wire::round::digest;
use wire::{sampling, slice, v1};

use outrider::connect::VerifierStub;

/// How long the verifier may take over one round.
const TIMEOUT: Duration = Duration::from_mins(2);

/// A verifier, and what it says it is.
#[derive(Clone)]
pub(super) struct TrainingTarget {
    client: VerifierStub,
    pub(super) description: v1::PeerDescription,
}

/// What is asked for.
#[derive(Clone, Debug)]
pub(super) struct ResponseRequest {
    pub(super) prompt: Vec<TokenId>,
    pub(super) sampling: SamplingParams,
    pub(super) seed: u64,
    pub(super) max_tokens: u32,
}

/// The target's own tokens.
pub(super) struct Decoded {
    pub(super) tokens: Vec<TokenId>,
    /// Time in the model for each of them, in microseconds.
    pub(super) forward_us: Vec<u32>,
}

/// A response, with the target's distribution before each of its tokens.
pub(super) struct TargetResponse {
    pub(super) tokens: Vec<TokenId>,
    /// Sampling distributions (positions), each (vocab).
    pub(super) distributions: Vec<Vec<f32>>,
}

/// An open session.
struct TargetSession {
    requests: mpsc::Sender<v1::SessionRequest>,
    replies: Streaming<v1::SessionReply>,
    round: u64,
}

/// What a verifier answered with instead.
fn refused(status: &Status) -> anyhow::Error {
    anyhow::anyhow!("the verifier: {}", net::fault::describe(status))
}

impl TrainingTarget {
    /// Asks the verifier at `url` what it is.
    ///
    /// # Errors
    /// If nobody answers there.
    pub(super) async fn connect(mut client: VerifierStub, url: &str) -> anyhow::Result<Self> {
        let described = client.describe(v1::DescribeRequest {}).await;
        let description = described
            .map_err(|status| refused(&status).context(format!("verifier {url}")))?
            .into_inner();
        Ok(Self {
            client,
            description,
        })
    }

    /// Decodes a response.
    ///
    /// # Errors
    /// If the verifier refuses or is lost.
    pub(super) async fn decode(&self, requested: &ResponseRequest) -> anyhow::Result<Decoded> {
        let mut session = self.open(requested).await?;
        session.decode(requested.max_tokens).await
    }

    /// Decodes a response, then scores it.
    ///
    /// # Errors
    /// If the verifier refuses or is lost, or a distribution is none.
    pub(super) async fn respond(
        &self,
        requested: &ResponseRequest,
    ) -> anyhow::Result<TargetResponse> {
        let mut session = self.open(requested).await?;
        let tokens = session.decode(requested.max_tokens).await?.tokens;
        let limits = self.description.limits.unwrap_or_default();
        let most = limits.max_draft_tokens.max(1) as usize;
        let vocab_size = self.description.vocab_size;
        let mut distributions = Vec::with_capacity(tokens.len());
        while distributions.len() < tokens.len() {
            // The distribution after the last draft token comes too.
            let (base, end) = (distributions.len(), tokens.len() - 1);
            let drafts = &tokens[base..end.min(base + most)];
            distributions.extend(session.score(&tokens[..base], drafts, vocab_size).await?);
        }
        let _ = (session.requests)
            .send(Request::Close(v1::Close {}).into())
            .await;
        Ok(TargetResponse {
            tokens,
            distributions,
        })
    }

    async fn open(&self, requested: &ResponseRequest) -> anyhow::Result<TargetSession> {
        let description = &self.description;
        let mut id = [0; 16];
        id[..8].copy_from_slice(&requested.seed.to_le_bytes());
        id[8..12].copy_from_slice(&std::process::id().to_le_bytes());
        id[12..].copy_from_slice(&requested.max_tokens.to_le_bytes());
        let open = v1::Open {
            session_id: id.to_vec(),
            epoch: 1,
            model: description.model.clone(),
            prompt_token_ids: requested.prompt.clone(),
            sampling: Some(sampling::to_wire(&requested.sampling)),
            seed: requested.seed,
            end_token_ids: requested.sampling.end_tokens.clone(),
            vocab_size: description.vocab_size,
            vocab_fingerprint: description.vocab_fingerprint.clone(),
            verification: v1::Verification::Coupled.into(),
            proposal_form: v1::ProposalForm::None.into(),
            accept_at: v1::AcceptAt::Coordinator.into(),
            ..Default::default()
        };
        let (requests, outgoing) = mpsc::channel(2);
        requests.send(Request::Open(open).into()).await?;
        let mut client = self.client.clone();
        let replies = client.verify(ReceiverStream::new(outgoing)).await;
        let replies = replies.map_err(|status| refused(&status))?;
        let mut session = TargetSession {
            requests,
            replies: replies.into_inner(),
            round: 0,
        };
        match session.receive().await? {
            Reply::Opened(_) => Ok(session),
            _ => bail!("the verifier does not begin with opened"),
        }
    }
}

impl TargetSession {
    async fn receive(&mut self) -> anyhow::Result<Reply> {
        loop {
            let received = tokio::time::timeout(TIMEOUT, self.replies.message())
                .await
                .with_context(|| format!("the verifier is silent for {} s", TIMEOUT.as_secs()))?;
            let message = received.map_err(|status| refused(&status))?;
            match message.and_then(|message| message.reply) {
                // One that drains goes on within its grace; what is not done by then is said to have failed.
                Some(Reply::Draining(_) | Reply::Progress(_)) => {}
                Some(reply) => return Ok(reply),
                None => bail!("the verifier ended the stream"),
            }
        }
    }

    /// Asks for the next round, after `output`.
    async fn ask(&mut self, round: Round, output: &[TokenId]) -> anyhow::Result<()> {
        self.round += 1;
        let header = v1::RoundHeader {
            round: self.round,
            epoch: 1,
            timeout_ms: TIMEOUT.as_millis() as u32,
            from_len: 0,
            committed: output.to_vec(),
            digest: digest(&round),
            trace_context: Vec::new(),
        };
        let request = v1::RoundRequest {
            header: Some(header),
            round: Some(round),
        };
        self.requests.send(Request::Round(request).into()).await?;
        Ok(())
    }

    /// The next part of the round's answer.
    async fn part(&mut self) -> anyhow::Result<Option<Part>> {
        match self.receive().await? {
            Reply::Answer(answer) => Ok(answer.part),
            _ => Ok(None),
        }
    }

    async fn decode(&mut self, max_tokens: u32) -> anyhow::Result<Decoded> {
        let round = v1::DecodeRound {
            max_tokens,
            ..Default::default()
        };
        self.ask(Round::Decode(round), &[]).await?;
        let (mut tokens, mut forward_us) = (Vec::new(), Vec::new());
        loop {
            let Some(Part::Decoded(decoded)) = self.part().await? else {
                bail!("the verifier answers a decode round with something else");
            };
            forward_us.push(decoded.timing.unwrap_or_default().forward_us);
            tokens.extend(decoded.token_ids);
            ensure!(
                tokens.len() <= max_tokens as usize,
                "the verifier decodes more than {max_tokens} tokens"
            );
            if decoded.last {
                ensure!(!tokens.is_empty(), "the verifier decodes nothing");
                return Ok(Decoded { tokens, forward_us });
            }
        }
    }

    /// The distributions after `output` and each prefix of `drafts`.
    async fn score(
        &mut self,
        output: &[TokenId],
        drafts: &[TokenId],
        vocab_size: u32,
    ) -> anyhow::Result<Vec<Vec<f32>>> {
        let round = v1::VerifyRound {
            drafts: Some(v1::TokenTree {
                token_ids: drafts.to_vec(),
                parents: Vec::new(),
            }),
            slices: Some(v1::SliceRequest::default()),
            ..Default::default()
        };
        self.ask(Round::Verify(round), output).await?;
        let mut distributions = Vec::with_capacity(drafts.len() + 1);
        for offset in 0..=drafts.len() {
            let Some(Part::Slice(slice)) = self.part().await? else {
                bail!("the verifier answers a scoring round with something else");
            };
            ensure!(
                slice.last == (offset == drafts.len()),
                "the verifier sends not one distribution for each position"
            );
            let scored = slice::from_wire(slice, offset, vocab_size, false);
            distributions.push(scored.context("the verifier's distribution")?.probs);
        }
        Ok(distributions)
    }
}
