//! One target distribution and verification over many blocks.

use outrider_tests::acceptance::{self, length_distribution};
use speculation::TokenId;
use speculation::proposal::BadProposal;
use speculation::target::TargetDistribution;
use speculation::verification::{AcceptanceLabel, Verification};

use super::rows::{BlockChain, GroupedRows};
use crate::recording::RecordedBlock;

/// Adds up what a target distribution and a verification do on recorded blocks.
///
/// Figures of positions (acceptance, deferral, distances) are means in which a position weighs as
/// much as the probability that exact token verification of its block gets as far: positions behind
/// a draft token that the target would refuse are not on its way. The weights are the same for every
/// target distribution, so that figures can be compared. Figures of blocks (rejection rate, block
/// efficiency) are expectations given the draft tokens recorded.
#[derive(Clone, Debug)]
pub(crate) struct Evaluation {
    aim: TargetDistribution,
    verification: Option<Verification>,
    greedy: bool,
    sums: ReplaySums,
}

#[derive(Clone, Copy, Debug, Default)]
struct ReplaySums {
    blocks: u64,
    positions: u64,
    weight: f64,
    acceptance: f64,
    deferral: f64,
    from_target: f64,
    divergence: f64,
    between: f64,
    accepted: f64,
    variance: f64,
    refusals: f64,
}

/// What came of an [`Evaluation`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ReplayFigures {
    /// Blocks looked at.
    pub(crate) blocks: u64,
    /// Draft tokens in them.
    pub(crate) positions: u64,
    /// Mean probability that a draft token stands: `Σ min(q, π)` where distributions are compared, the
    /// coupling's where tokens are. None without a verification, as for the figures of blocks.
    pub(crate) acceptance: Option<f64>,
    /// Refused draft tokens by tested ones.
    pub(crate) rejection_rate: Option<f64>,
    /// Mean deferral; none where the target distribution has no deferral.
    pub(crate) deferral_rate: Option<f64>,
    /// 1 + the expected number of accepted draft tokens of a block.
    pub(crate) block_efficiency: Option<f64>,
    /// Standard error of the block efficiency that one run on these very blocks would see, from its
    /// own draws.
    pub(crate) efficiency_error: Option<f64>,
    /// TV(π, p): how far the output is from the target model's.
    pub(crate) from_target: f64,
    /// KL(p ‖ π), in nats.
    pub(crate) divergence: f64,
    /// TV(q, p): how far the draft model is from the target model.
    pub(crate) between: f64,
}

impl Evaluation {
    /// Nothing seen yet. `verification` is none for plans that verify no blocks, and not BiLD's,
    /// which drafts blocks of its own; `greedy` is temperature 0.
    pub(crate) fn new(
        aim: TargetDistribution,
        verification: Option<Verification>,
        greedy: bool,
    ) -> Self {
        Self {
            aim,
            verification,
            greedy,
            sums: ReplaySums::default(),
        }
    }

    /// Adds the first `draft_len` draft tokens of `block`, which was checked
    /// ([`RecordedBlock::check`]).
    ///
    /// # Errors
    /// If a draft token cannot have been drawn from its distribution.
    pub(crate) fn add(
        &mut self,
        block: &RecordedBlock,
        draft_len: usize,
    ) -> Result<(), BadProposal> {
        let drafted = block.positions.iter().zip(&block.drafts).take(draft_len);
        let rows: Vec<GroupedRows> = drafted
            .map(|(position, &token)| GroupedRows::new(position, token, &self.aim, self.greedy))
            .collect();
        let sums = &mut self.sums;
        let mut reached = 1.0;
        for rows in &rows {
            sums.positions += 1;
            sums.weight += reached;
            sums.from_target += reached * rows.from_target;
            sums.divergence += reached * rows.divergence;
            sums.between += reached * rows.between;
            sums.deferral += reached * rows.deferral.unwrap_or_default();
            sums.acceptance += reached * self.verification.map_or(0.0, |by| acceptance(by, rows));
            reached *= rows.accepted;
        }
        sums.blocks += 1;
        let Some(verification) = self.verification else {
            return Ok(());
        };
        let drafts: Vec<TokenId> = rows.iter().map(|rows| rows.drafted).collect();
        let lengths = length_distribution(verification, &drafts, &mut BlockChain::new(&rows))?;
        let moment = |power: i32| -> f64 {
            let terms = lengths.iter().enumerate();
            terms.map(|(len, p)| p * (len as f64).powi(power)).sum()
        };
        let mean = moment(1);
        sums.accepted += mean;
        sums.variance += (moment(2) - mean * mean).max(0.0);
        sums.refusals += lengths[..drafts.len()].iter().sum::<f64>();
        Ok(())
    }

    /// What came of the blocks so far; none without one.
    pub(crate) fn figures(&self) -> Option<ReplayFigures> {
        let ReplaySums {
            blocks,
            positions,
            weight,
            accepted,
            refusals,
            ..
        } = self.sums;
        let verified = |figure: f64| self.verification.map(|_| figure);
        let count = blocks as f64;
        let defers = matches!(self.aim, TargetDistribution::Deferral { .. });
        (blocks > 0).then(|| ReplayFigures {
            blocks,
            positions,
            acceptance: verified(self.sums.acceptance / weight),
            rejection_rate: verified(refusals / (accepted + refusals)),
            deferral_rate: defers.then_some(self.sums.deferral / weight),
            block_efficiency: verified(1.0 + accepted / count),
            efficiency_error: verified(self.sums.variance.sqrt() / count),
            from_target: self.sums.from_target / weight,
            divergence: self.sums.divergence / weight,
            between: self.sums.between / weight,
        })
    }
}

/// The probability that a token drafted at a position stands if all before it did, over what might
/// have been drafted there.
fn acceptance(verification: Verification, rows: &GroupedRows) -> f64 {
    match verification.label {
        Some(AcceptanceLabel::Coupled) => acceptance::coupled(&rows.draft, &rows.target),
        Some(AcceptanceLabel::Rejection) | None => acceptance::rejection(&rows.draft, &rows.target),
    }
}
