//! What is known of the round under way, until it is reported.

use speculation::session::{Peer, Statistics};
use wire::v1;

use crate::events::{AnswerTiming, Fault};
use crate::peer::{OutputLogprobs, RoundProposals};

/// What is known of the round under way, and how far rounds were reported.
#[derive(Default)]
pub(super) struct RoundRecord {
    /// What the drafter sent last. Kept for as long as the round lasts: a retry of the verifier sends it again.
    pub(super) proposals: RoundProposals,
    pub(super) draft: AnswerTiming,
    pub(super) verify: AnswerTiming,
    /// Log probabilities of the tokens of the last answer, if the request wants them.
    pub(super) logprobs: OutputLogprobs,
    /// The distributions of the round, where they are reported.
    pub(super) distributions: Option<v1::RoundDistributions>,
    /// What first went wrong with what a peer is asked now: it says more than what repeating that came to.
    pub(super) fault: Option<Fault>,
    /// Whose answer gives the tokens that are emitted next.
    pub(super) answered_by: Option<Peer>,
    /// Draft distributions that were asked for after blocks.
    pub(super) distributions_fetched: u32,
    /// The round whose length was reported last.
    pub(super) decided: u64,
    /// Losses, moves, rounds, steps and bytes that were told of.
    pub(super) fallbacks: usize,
    pub(super) migrations: u32,
    rounds: u64,
    steps: usize,
    bytes: u64,
}

impl RoundRecord {
    /// Ends the round, which emitted `emitted` tokens after `base_len`. `bytes` is what rounds took so far.
    pub(super) fn report(
        &mut self,
        by: Peer,
        statistics: &Statistics,
        (base_len, emitted): (u32, u32),
        bytes: u64,
    ) -> v1::RoundReport {
        let steps = statistics.per_step_drafted.len();
        let (drafted, accepted) = match by {
            // Nobody looks these over.
            Peer::Drafter => (emitted, emitted),
            Peer::Verifier if steps > self.steps => (
                statistics.per_step_drafted[steps - 1],
                statistics.per_step_accepted[steps - 1],
            ),
            Peer::Verifier => (0, 0),
        };
        self.rounds += 1;
        self.steps = steps;
        let (draft, verify) = (
            std::mem::take(&mut self.draft),
            std::mem::take(&mut self.verify),
        );
        v1::RoundReport {
            round: self.rounds,
            base_len,
            drafted,
            accepted,
            emitted,
            draft_us: draft.elapsed.as_micros() as u32,
            verify_us: verify.elapsed.as_micros() as u32,
            drafter: Some(draft.reported),
            verifier: Some(verify.reported),
            wire_bytes: bytes - std::mem::replace(&mut self.bytes, bytes),
            distributions: self.distributions.take(),
        }
    }
}
