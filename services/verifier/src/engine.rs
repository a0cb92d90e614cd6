//! The engine of this process as what computes the target: our runtime or llama.cpp, behind one engine thread.

mod decode;
mod logprobs;
mod scoring;
mod tree;
mod verify;

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use peer::{Cost, RoundError};
use server::progress::Reporter;
use speculation::TokenId;
use speculation::certificate::Decided;
use speculation::logprobs::TokenLogprobs;
use speculation::round::BlockInput;
use wire::v1;

use crate::scorer::{DecodeRun, Scorer, VerifySession};
use decode::DecodeTask;
use logprobs::PromptScores;
use scoring::score;
use verify::SliceOptions;

/// The engine of this process. The session's slot holds its keys and values.
pub(crate) struct EngineScorer;

#[tonic::async_trait]
impl Scorer for EngineScorer {
    async fn decide(
        &self,
        session: &mut VerifySession,
        block: BlockInput,
        progress: Reporter,
        _limit: Duration,
    ) -> Result<(Decided, Cost), RoundError> {
        let (tokens, from) = scoring::after_output(session, block.drafts.tokens());
        score(session, tokens, from, block, progress).await
    }

    async fn slices(
        &self,
        session: &VerifySession,
        drafts: &[TokenId],
        request: v1::SliceRequest,
        progress: Reporter,
    ) -> Result<(Vec<v1::Slice>, Cost), RoundError> {
        let (tokens, from) = scoring::after_output(session, drafts);
        score(session, tokens, from, SliceOptions(request), progress).await
    }

    async fn decode(
        self: Arc<Self>,
        session: &mut VerifySession,
        run: DecodeRun,
        _limit: Duration,
    ) -> Result<(), RoundError> {
        let history = run.history(session);
        Ok(session.submit(DecodeTask::new(run, history))?)
    }

    async fn score_prompt(
        &self,
        session: &VerifySession,
        range: Range<usize>,
        progress: Reporter,
        _limit: Duration,
    ) -> Result<(Vec<TokenLogprobs>, Cost), RoundError> {
        let tokens = session.spec.lead()[..range.end].to_vec();
        score(session, tokens, range.start, PromptScores, progress).await
    }
}
