//! What a verifier is asked about a block; and where the coordinator decides, its decision.

use std::sync::Arc;
use std::time::Instant;

use speculation::draft_tree::DraftTree;
use speculation::proposal::BadProposal;
use speculation::session::{Input, Peer};
use speculation::verification::layers::Layer;
use wire::verdict::PathVerdict;
use wire::{drafting, v1, verdict};

use super::PeerLinks;
use crate::decide::{self, Unreadable, WireBlock};
use crate::error::PeerError;
use crate::exchange::{self, Ask, Verified};
use crate::request::CheckedRequest;

/// A block as the verifier is asked about it, with what the drafter told of it.
struct Asked<'a> {
    drafts: &'a DraftTree,
    proposals: Vec<v1::Proposal>,
    bonus: Option<v1::Proposal>,
    horizon: u32,
    layers: &'a [Layer],
}

impl PeerLinks {
    /// Asks for a verdict on `drafts`; or for the laws along them, and decides here.
    pub(super) async fn verify(
        &mut self,
        ask: Ask<'_>,
        drafts: &DraftTree,
        horizon: u32,
        layers: &[Layer],
    ) -> Result<Input, PeerError> {
        // Nothing was told of a round in which the drafter was not asked.
        let told = Some(&self.told).filter(|told| told.round == ask.round);
        let proposals = told.filter(|_| !drafts.is_empty());
        let asked = Asked {
            drafts,
            proposals: proposals.map_or_else(Vec::new, |told| told.proposals.clone()),
            bonus: told.and_then(|told| told.bonus.clone()),
            // The drafter may have been asked for less than the session would have liked.
            horizon: told.map_or(horizon, |told| {
                horizon.min(told.asked.max(drafts.len() as u32))
            }),
            layers,
        };
        let request = Arc::clone(&self.opener.request);
        let wire = round(&request, &asked);
        let link = self.verifier.link(&mut self.opener, ask.timeout).await?;
        let slices = match exchange::verify(link, ask, wire, request.vocab_size).await? {
            Verified::Scored(slices) => slices,
            Verified::Decided(decided) => {
                self.times.verifier = decided.timing.unwrap_or_default();
                let deferral = decided.deferral.clone();
                let verdict = verdict::from_wire(decided);
                let verdict = verdict.map_err(|error| link.malformed(error.to_string()))?;
                return Ok(verified(ask.round, verdict, deferral));
            }
        };
        let timing = slices.last().and_then(|slice| slice.timing);
        self.times.verifier = timing.unwrap_or_default();
        if request.report_laws {
            self.laws = Some(v1::RoundLaws {
                draft_token_ids: drafts.tokens().to_vec(),
                draft: asked.proposals.clone(),
                target: slices.clone(),
            });
        }
        let block = WireBlock {
            base_len: ask.output.len() as u32,
            drafts: drafts.tokens().to_vec(),
            proposals: asked.proposals,
            bonus: asked.bonus,
            horizon: asked.horizon,
            layers: layers.to_vec(),
            slices,
        };
        self.decide(ask, block).await
    }

    /// Decides a block from laws that came over the wire, and asks the drafter for the law after it
    /// if that turns out to be needed. The laws of a large vocabulary would hold up every stream of an
    /// async thread.
    async fn decide(&mut self, ask: Ask<'_>, block: WireBlock) -> Result<Input, PeerError> {
        let began = Instant::now();
        let request = Arc::clone(&self.opener.request);
        let reading = {
            let request = Arc::clone(&request);
            move || block.read(&request)
        };
        let mut block = match blocking(reading).await? {
            Ok(block) => block,
            Err(Unreadable::Slices(bad)) => {
                self.verifier.malformed();
                return Err(PeerError::Law(bad));
            }
            Err(Unreadable::Proposals(bad)) => {
                return Ok(self.disbelieved(ask.round, &bad.to_string()));
            }
        };
        loop {
            let deciding = {
                let request = Arc::clone(&request);
                move || (decide::decide(&request, &mut block), block)
            };
            let decided;
            (decided, block) = blocking(deciding).await?;
            match decided {
                Ok((verdict, deferral)) => {
                    self.times.decided = began.elapsed();
                    let verdict = PathVerdict::of_chain(verdict);
                    return Ok(verified(ask.round, verdict, deferral));
                }
                Err(BadProposal::MissingBonus) if block.bonus.is_none() => {
                    match self.bonus(ask, &block.drafts).await {
                        Ok(bonus) => block.bonus = Some(bonus),
                        Err(error) => return Ok(self.failed(ask.round, Peer::Drafter, &error)),
                    }
                }
                Err(bad) => return Ok(self.disbelieved(ask.round, &bad.to_string())),
            }
        }
    }

    /// The drafter told what cannot be.
    fn disbelieved(&mut self, round: u64, reason: &str) -> Input {
        self.drafter.malformed();
        self.abandon(Peer::Drafter);
        tracing::debug!(round, reason, "drafter disbelieved");
        Input::Disbelieved {
            round,
            reason: reason.to_owned(),
        }
    }
}

/// Runs `work` where it may take its time.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, PeerError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| PeerError::Decision)
}

/// The message that asks a verifier to decide or to score a block.
fn round(request: &CheckedRequest, asked: &Asked<'_>) -> v1::VerifyRound {
    let round = v1::VerifyRound {
        drafts: Some(drafting::tree_to_wire(asked.drafts)),
        ..Default::default()
    };
    if request.method.accept_at_coordinator {
        let slices = Some(v1::SliceRequest {
            top: 0,
            unscaled: request.needs_target_unscaled(),
            confidences: request.needs_confidences() || request.report_laws,
        });
        return v1::VerifyRound { slices, ..round };
    }
    // Only layers have a horizon, and there are none with trees.
    let outlives_block = asked.drafts.is_chain() && asked.horizon != asked.drafts.len() as u32;
    v1::VerifyRound {
        proposals: asked.proposals.clone(),
        bonus_q: asked.bonus.clone(),
        layers: verdict::layers_to_wire(asked.layers),
        horizon: outlives_block.then_some(asked.horizon),
        ..round
    }
}

fn verified(round: u64, PathVerdict { verdict, path }: PathVerdict, deferral: Vec<f32>) -> Input {
    Input::Verified {
        round,
        emitted: verdict.emitted,
        path,
        last: verdict.last,
        deferral,
        layers: verdict.layers,
    }
}
