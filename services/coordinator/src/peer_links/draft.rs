//! What a drafter is asked, and what it tells.

use speculation::TokenId;
use speculation::drafting::Drafting;
use speculation::proposal::Proposal;
use speculation::session::{DraftStop, Input};
use wire::{drafting, proposal, v1};

use super::PeerLinks;
use crate::error::PeerError;
use crate::exchange::{self, Ask};

/// What the drafter told in a round, for the verifier. Kept until the round is over: a retry sends
/// it again.
#[derive(Default)]
pub(super) struct Told {
    pub(super) round: u64,
    /// Tokens the drafter was asked for.
    pub(super) asked: u32,
    pub(super) proposals: Vec<v1::Proposal>,
    pub(super) bonus: Option<v1::Proposal>,
}

impl PeerLinks {
    /// Asks for a draft block, and keeps what is told of it for the verifier.
    pub(super) async fn draft(
        &mut self,
        ask: Ask<'_>,
        max_tokens: u32,
        bonus_q: bool,
    ) -> Result<Input, PeerError> {
        let link = self.drafter.link(&mut self.opener, ask.timeout).await?;
        let request = &self.opener.request;
        let len = (request.lead_len() + ask.output.len()) as u32;
        let room = match request.method.drafting {
            // No model reads the context.
            Drafting::MaxGram => u32::MAX,
            // Of a cascade the largest model's is told; the drafter cuts to the others'.
            Drafting::Model | Drafting::Cascade => {
                let last = u32::from(!bonus_q);
                let free = link.context_len.saturating_add(last).saturating_sub(len);
                // If there is no room at all, the drafter says so better than a request for nothing.
                free.max(last)
            }
        };
        // All nodes of a tree count.
        let most_levels = (link.max_draft_tokens / request.method.tree.width()).max(1);
        let most = max_tokens.min(most_levels);
        let max_tokens = most.min(room);
        let wire = v1::DraftRound {
            max_tokens,
            bonus_q,
            drafting: match request.method.drafting {
                // Drafters that draft in no other way need not be told.
                Drafting::Model => v1::Drafting::Unspecified,
                drafting => drafting::to_wire(drafting),
            }
            .into(),
            draft_length: drafting::rule_to_wire(request.method.stop_rule),
            tree: drafting::shape_to_wire(request.method.tree),
            ..Default::default()
        };
        let drafted = exchange::draft(link, ask, wire, request.bounds()).await?;
        let logprobs: Option<Vec<f32>> = if request.method.scores() {
            drafted.proposals.iter().map(|told| told.logprob).collect()
        } else {
            Some(Vec::new())
        };
        let Some(logprobs) = logprobs else {
            return Err(link.malformed("a draft token comes without its log probability"));
        };
        // What the context has no room for was not asked for.
        let stop = match drafted.stop {
            DraftStop::Length if room < most => DraftStop::Context,
            stop => stop,
        };
        self.times.drafter = drafted.timing;
        self.told = Told {
            round: ask.round,
            asked: max_tokens,
            proposals: drafted.proposals,
            bonus: drafted.bonus,
        };
        Ok(Input::Drafted {
            round: ask.round,
            drafts: drafted.drafts,
            stop,
            logprobs,
            forwards: drafted.forwards,
        })
    }

    /// The drafter's law after `drafts`, all of which were accepted. Asked for while the verifier's
    /// answer is under way, so a silent drafter is noticed here.
    pub(super) async fn bonus(
        &mut self,
        ask: Ask<'_>,
        drafts: &[TokenId],
    ) -> Result<Proposal, PeerError> {
        // Less than what is left of the whole round, or the verifier would be blamed for the drafter.
        let left = ask.timeout.saturating_sub(ask.began.elapsed());
        let patience = self.opener.request.draft_timeout.min(left * 9 / 10);
        let output = [ask.output, drafts].concat();
        let after = Ask {
            output: &output,
            timeout: patience,
            ..ask
        };
        let asking = tokio::time::timeout(patience, self.law_after(after)).await;
        asking.unwrap_or_else(|_| {
            self.drafter.silent();
            Err(self.drafter.late(patience))
        })
    }

    async fn law_after(&mut self, ask: Ask<'_>) -> Result<Proposal, PeerError> {
        let link = self.drafter.link(&mut self.opener, ask.timeout).await?;
        let request = &self.opener.request;
        let wire = v1::DraftRound {
            bonus_q: true,
            ..Default::default()
        };
        let drafted = exchange::draft(link, ask, wire, request.bounds()).await?;
        self.laws_fetched += 1;
        let Some(bonus) = drafted.bonus else {
            return Err(link.malformed("the law after the block did not come"));
        };
        let bonus = proposal::one_from_wire(bonus, request.method.proposal, request.telling());
        bonus.map_err(|error| link.malformed(error.to_string()))
    }
}
