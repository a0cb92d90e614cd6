//! What is proposed to a decode under way: by sources here, and by a drafter that drafts ahead.

use speculation::TokenId;
use speculation::pending::ProposedTree;

use super::ahead::AheadDrafter;
use super::opener::Opener;
use crate::proposers::ProposalLane;

/// The proposals of a request with schedule `stream`.
pub(super) struct DecodeProposals {
    pub(super) lane: ProposalLane,
    drafter: Option<AheadDrafter>,
    /// Whether the drafter was told to rest.
    rests: bool,
}

impl DecodeProposals {
    /// Returns those of the request of `opener`; none if its target takes no drafts while it decodes.
    pub(super) fn of(opener: &Opener) -> Option<Self> {
        let request = &opener.request;
        let temperature = request.sampling.temperature;
        let draft_model = request.draft_model.as_ref();
        let known = (opener.model).measured(&request.method, temperature, draft_model);
        let lane = ProposalLane::of(request, &known.streams)?;
        Some(Self {
            lane,
            drafter: None,
            rests: false,
        })
    }

    /// Records that the decode begins, for the first time or anew, at a verifier that may hold none of the pending drafts.
    pub(super) fn begins(&mut self, opener: &Opener) {
        self.lane.lost();
        self.start(opener);
    }

    /// Has a drafter draft ahead, if one is wanted by now.
    fn start(&mut self, opener: &Opener) {
        if self.lane.takes_drafter() && self.lane.room() > 0 && self.drafter.is_none() {
            self.drafter = Some(AheadDrafter::start(opener.clone()));
        }
    }

    /// Returns what to propose on top of `output` in the request of `opener`, and tells the drafter of it.
    pub(super) async fn next(&mut self, opener: &Opener, output: &[TokenId]) -> Vec<ProposedTree> {
        self.start(opener);
        let rested = std::mem::replace(&mut self.rests, self.lane.room() == 0);
        if let Some(drafter) = &self.drafter
            && !(rested && self.rests)
        {
            drafter.tell(output, self.lane.room(), self.lane.least());
        }
        self.lane.next(opener.request.lead(), output).await
    }

    /// Returns what the drafter proposes that fits `output`, once something has come.
    pub(super) async fn drafted(&mut self, output: &[TokenId]) -> ProposedTree {
        loop {
            let proposed = match &mut self.drafter {
                Some(drafter) => drafter.proposed().await,
                None => std::future::pending().await,
            };
            if let Some(proposed) = self.lane.receive(proposed, output) {
                return proposed;
            }
        }
    }
}
