//! One prompt, generated and recorded.

use anyhow::{Context, anyhow, bail, ensure};
use speculation::proposal::{Proposal, ProposalForm, ProposalProbs};
use wire::open::ProposalFields;
use wire::{proposal, slice, v1};

use super::file::File;
use crate::recording::{RecordedBlock, WholeProbs, cut};
use client::{Client, Error, GenerationEvent};

/// The form in which the draft model's distributions are requested.
const FORM: ProposalForm = ProposalForm::Dense { half: false };

/// What a prompt's blocks are recorded with.
pub(super) struct Recorded<'a> {
    pub(super) index: usize,
    pub(super) kind: &'a str,
    pub(super) vocab_size: u32,
    /// Whether sampling distributions differ from unscaled ones, which then come beside them.
    pub(super) is_scaled: bool,
    /// Most likely tokens kept of each distribution; 0 keeps all.
    pub(super) top: usize,
}

/// Generates, and appends every draft block to `file`.
///
/// # Errors
/// If the request is refused or fails, or the drafter is lost on the way.
pub(super) async fn record(
    client: &Client,
    request: v1::GenerateRequest,
    recorded: &Recorded<'_>,
    file: &mut File,
) -> anyhow::Result<()> {
    let failed = |error| match error {
        // The message names the field.
        Error::Status(status) => anyhow!("{}", status.message()),
        error => anyhow!("prompt {}: {error}", recorded.index),
    };
    let mut generation = client.generate(request).await.map_err(failed)?;
    while let Some(event) = generation.event().await.map_err(failed)? {
        match event {
            GenerationEvent::Round(round) if round.drafted > 0 => {
                file.append(recorded.block(*round)?)?;
            }
            GenerationEvent::Finished(finished) => {
                let speculation = finished.speculation.unwrap_or_default();
                ensure!(
                    speculation.fallbacks.is_empty(),
                    "prompt {}: the drafter was lost",
                    recorded.index
                );
            }
            _ => {}
        }
    }
    Ok(())
}

impl Recorded<'_> {
    /// What is recorded of a round.
    fn block(&self, round: v1::RoundReport) -> anyhow::Result<RecordedBlock> {
        let Some(distributions) = round.distributions else {
            bail!("the coordinator reports no distributions");
        };
        let drafts = distributions.draft_token_ids;
        let fields = ProposalFields {
            confidences: true,
            entropies: true,
            unscaled: self.is_scaled,
            logprobs: false,
        };
        let proposals = proposal::from_wire(distributions.draft, drafts.len(), FORM, fields);
        let proposals = proposals.context("the draft model's distributions")?;
        ensure!(
            distributions.target.len() == drafts.len() + 1,
            "{} distributions of the target model for {} draft tokens",
            distributions.target.len(),
            drafts.len()
        );
        let mut positions = Vec::with_capacity(drafts.len());
        for (offset, ((&token, proposal), slice)) in drafts
            .iter()
            .zip(&proposals)
            .zip(distributions.target)
            .enumerate()
        {
            let scored = slice::from_wire(slice, offset, self.vocab_size, self.is_scaled)?;
            let target = WholeProbs {
                probs: &scored.probs,
                unscaled: scored.unscaled.as_deref(),
                confidence: scored.confidence,
            };
            let draft = whole(proposal)?;
            ensure!(
                draft.probs.len() == target.probs.len() && token < self.vocab_size,
                "a draft distribution is not of the vocabulary's {} tokens",
                self.vocab_size
            );
            positions.push(cut(draft, target, token, self.top));
        }
        Ok(RecordedBlock {
            prompt: u32::try_from(self.index)?,
            kind: self.kind.to_owned(),
            base_len: round.base_len,
            drafts,
            positions,
            accepted: round.accepted,
        })
    }
}

/// What was told of the draft model, whole.
fn whole(proposal: &Proposal) -> anyhow::Result<WholeProbs<'_>> {
    let (ProposalProbs::Dense(probs), Some(confidence)) = (&proposal.probs, proposal.confidence)
    else {
        bail!("the drafter told no whole distribution");
    };
    let unscaled = proposal.unscaled.as_deref();
    ensure!(
        unscaled.is_none_or(|unscaled| unscaled.len() == probs.len()),
        "the unscaled draft distribution has another length than the distribution"
    );
    Ok(WholeProbs {
        probs,
        unscaled,
        confidence,
    })
}
