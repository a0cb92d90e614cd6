//! Drafting ahead of what the target chooses: a round that proposes draft tokens until its session is closed.

mod drafts;
mod task;

use std::time::Duration;

use peer::{Lent, LentSlot, RoundContext, RoundError};
use speculation::drafting::Drafting;
use speculation::pending::{ProposedTree, ROOM};
use speculation::verification::Verification;
use tokio::time::Instant;
use wire::open::SessionSpec;
use wire::status::BadField;
use wire::v1::round_answer::Part;
use wire::{encoded_bytes, pending, v1};

use crate::proposers::{DraftSession, Drafter};
use drafts::AheadDrafts;
use task::{AheadTask, Limits};

/// Bytes of proposals that a session may send in a second, and as many at once: what waits meanwhile is joined.
pub const BYTES_A_SECOND: u32 = 256 << 10;

/// Most levels that can be asked for; of nodes, as many as a verifier has room for.
pub const MOST_LEVELS: u32 = 128;

/// Drafts, and sends what is drafted, until the session is closed or the draft model's context is full.
pub(crate) async fn draft(
    drafter: &Drafter,
    session: &mut DraftSession,
    wire: v1::AheadRound,
    context: &RoundContext<'_>,
) -> Result<(), RoundError> {
    let limits = check(drafter, session, wire)?;
    if !session.advance(context).await? {
        return Ok(());
    }
    let learnt = *drafter.role.acceptance.lock();
    let drafts = AheadDrafts::new(session.committed.tokens(), learnt);
    let slot = LentSlot::new(parking_lot::Mutex::new(Some(drafts)));
    let mut sender = Sender::new(context);
    loop {
        let drafts = Lent::new(slot.lock().take().unwrap_or_default(), &slot);
        let commits = context.commits.clone();
        let task = AheadTask::new(session, drafts, commits, limits, &drafter.metrics)?;
        if let Some((task, mut proposals)) = task {
            session.submit(task)?;
            while let Some(proposed) = proposals.recv().await {
                sender.send(proposed?).await?;
            }
        }
        // What found no place while the task ran.
        while let Some(proposed) = propose(&slot) {
            sender.send(proposed).await?;
        }
        if let Some(drafts) = &*slot.lock() {
            *drafter.role.acceptance.lock() = drafts.acceptance;
        }
        // Nothing is worth drafting before the target has gone on.
        context.commits.came().await;
    }
}

fn propose(drafts: &LentSlot<AheadDrafts>) -> Option<ProposedTree> {
    drafts.lock().as_mut()?.propose()
}

/// Sends what is proposed.
pub(crate) struct Sender<'a> {
    context: &'a RoundContext<'a>,
    allowance: Allowance,
    is_first: bool,
}

impl<'a> Sender<'a> {
    pub(crate) fn new(context: &'a RoundContext<'a>) -> Self {
        Self {
            context,
            allowance: Allowance::new(),
            is_first: true,
        }
    }

    /// Sends a proposal, once there is room for its bytes.
    pub(crate) async fn send(&mut self, proposed: ProposedTree) -> Result<(), RoundError> {
        let proposed = pending::to_wire(proposed);
        self.allowance.take(encoded_bytes(&proposed)).await;
        let part = Part::Proposed(proposed);
        if std::mem::take(&mut self.is_first) {
            self.context.answer(part).await?;
        } else {
            self.context.answer_further(part).await?;
        }
        Ok(())
    }
}

/// Returns how many levels are asked for.
pub(crate) fn levels(wire: v1::AheadRound) -> Result<u32, BadField> {
    BadField::in_range("ahead.horizon", wire.horizon, 1..=MOST_LEVELS)?;
    BadField::in_range("ahead.nodes", wire.nodes, 1..=ROOM as u32)?;
    Ok(wire.horizon)
}

/// Checks that a session takes drafts that are made ahead.
pub(crate) fn check_method(spec: &SessionSpec) -> Result<(), BadField> {
    if spec.verification != Verification::COUPLED || !spec.target.is_exact() {
        let problem = "goes with coupled verification of the target's own distribution only";
        return Err(BadField::new("ahead", problem));
    }
    Ok(())
}

/// Reads what is asked of `drafter`.
fn check(
    drafter: &Drafter,
    session: &DraftSession,
    wire: v1::AheadRound,
) -> Result<Limits, BadField> {
    let levels = levels(wire)?;
    check_method(&session.spec)?;
    let engine = drafter.engines.first();
    let (Some(engine), true) = (engine, drafter.role.draftings.contains(&Drafting::Model)) else {
        let name = &drafter.description.model;
        let problem = format!("drafter '{name}' holds no draft model");
        return Err(BadField::new("ahead", problem));
    };
    Ok(Limits {
        levels,
        nodes: wire.nodes as usize,
        longest: engine.longest_sequence(),
        grows_trees: engine.caps().growing_trees,
    })
}

/// Bytes that may be sent.
struct Allowance {
    bytes: f64,
    since: Instant,
}

impl Allowance {
    const PER_SECOND: f64 = BYTES_A_SECOND as f64;

    fn new() -> Self {
        Self {
            bytes: Self::PER_SECOND,
            since: Instant::now(),
        }
    }

    /// Takes `bytes`, once there are as many.
    async fn take(&mut self, bytes: u64) {
        let now = Instant::now();
        let more = (now - self.since).as_secs_f64() * Self::PER_SECOND;
        (self.bytes, self.since) = ((self.bytes + more).min(Self::PER_SECOND), now);
        self.bytes -= bytes as f64;
        if self.bytes < 0.0 {
            tokio::time::sleep(Duration::from_secs_f64(-self.bytes / Self::PER_SECOND)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_session_sends_no_more_than_its_bytes() {
        let began = Instant::now();
        let mut allowance = Allowance::new();
        for _ in 0..4 {
            allowance.take(u64::from(BYTES_A_SECOND) / 4).await;
        }
        // A second's worth at once.
        assert_eq!(began.elapsed(), Duration::ZERO);
        for _ in 0..12 {
            allowance.take(u64::from(BYTES_A_SECOND) / 4).await;
        }
        let took = began.elapsed().as_secs_f64();
        assert!((2.99..3.01).contains(&took), "{took}");
        // What was not used is kept, and no more than a second of it.
        tokio::time::sleep(Duration::from_secs(10)).await;
        let began = Instant::now();
        allowance.take(u64::from(BYTES_A_SECOND) * 2).await;
        let took = began.elapsed().as_secs_f64();
        assert!((0.99..1.01).contains(&took), "{took}");
    }
}
