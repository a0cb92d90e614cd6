//! The streamed decodes of the simulated verifier, one at a time: when a forward begins and ends, and what ends a decode.

use std::time::Duration;

use outrider_tests::toy::ToyModel;
use speculation::pending::{ProposedTree, Received};

use crate::case::Case;
use crate::decoding::{Beginning, Decoding};
use crate::dice::{Chooses, Dice};
use crate::message::Answer;
use crate::simulation::FORWARD;

/// How long a decode that waits is kept when nothing is heard of its client.
const LEASE: Duration = Duration::from_secs(2);

/// What happened to the streamed decodes of a verifier.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StreamTally {
    pub(crate) begun: u32,
    /// Those over: at their end, closed, lost in a crash, begun anew or given up.
    pub(crate) ended: u32,
    /// Those given up because nothing was heard of the client.
    pub(crate) expired: u32,
    /// What became of proposed nodes.
    pub(crate) received: Received,
    /// Draft tokens accepted.
    pub(crate) accepted: u32,
    /// Forwards during which the drafts changed that they were planned with.
    pub(crate) changed: u32,
    /// Pauses until more was granted.
    pub(crate) waits: u32,
}

/// The decode under way at a verifier, if one is.
pub(crate) struct Decodes<'a> {
    case: &'a Case,
    dice: Dice,
    /// Whether the model scores chains only.
    chain: bool,
    decoding: Option<Decoding>,
    /// When it is given up, if it waits.
    lease: Duration,
    pub(crate) tally: StreamTally,
}

impl<'a> Decodes<'a> {
    pub(crate) fn new(case: &'a Case) -> Self {
        let mut dice = Dice::new(case.seed, Chooses::Rows);
        Self {
            case,
            chain: dice.happens(250),
            dice,
            decoding: None,
            lease: Duration::ZERO,
            tally: StreamTally::default(),
        }
    }

    /// Begins to decode with nothing pending, in the place of what is decoded so far.
    pub(crate) fn begin(&mut self, beginning: Beginning, now: Duration) {
        self.end();
        self.tally.begun += 1;
        self.lease = now + LEASE;
        self.decoding = Some(Decoding::new(beginning));
        self.begin_forward(now);
    }

    /// Ends the decode under way, if there is one.
    pub(crate) fn end(&mut self) {
        self.tally.ended += u32::from(self.decoding.take().is_some());
    }

    /// Takes a proposal, in the middle of a forward or not.
    pub(crate) fn receive(&mut self, proposed: &ProposedTree, now: Duration) {
        let Some(decoding) = &mut self.decoding else {
            return;
        };
        self.lease = now + LEASE;
        let received = decoding.receive(proposed);
        let sum = &mut self.tally.received;
        sum.new += received.new;
        sum.stale += received.stale;
        sum.without_room += received.without_room;
        sum.malformed += received.malformed;
    }

    /// Takes a grant.
    pub(crate) fn grant(&mut self, until: u32, now: Duration) {
        if let Some(decoding) = &mut self.decoding {
            self.lease = now + LEASE;
            decoding.grant(until);
            self.begin_forward(now);
        }
    }

    /// When [`Decodes::go_on`] must be called.
    pub(crate) fn next_event(&self) -> Option<Duration> {
        let decoding = self.decoding.as_ref()?;
        Some(decoding.forward_ends().unwrap_or(self.lease))
    }

    /// Ends the forward that is due at `now`, and begins the next. Returns what is to be said, and in which round.
    pub(crate) fn go_on(&mut self, model: &ToyModel, now: Duration) -> Option<(u64, Answer)> {
        let decoding = self.decoding.as_mut()?;
        let ends = decoding.forward_ends();
        if ends.unwrap_or(self.lease) > now {
            return None;
        }
        if ends.is_none() {
            self.tally.expired += 1;
            self.end();
            return None;
        }
        let said = decoding.step(self.case, model, &mut self.tally)?;
        if decoding.is_over() {
            self.end();
        } else {
            self.begin_forward(now);
        }
        Some(said)
    }

    /// Plans the next forward with what is pending now, if none is under way and it is granted.
    fn begin_forward(&mut self, now: Duration) {
        let rows = self.dice.pick(&[0, 4, 16, 16]);
        let ends = now + FORWARD * self.case.alone_forwards;
        if let Some(decoding) = &mut self.decoding {
            let begins = decoding.begin_forward(rows, self.chain, ends);
            self.tally.waits += u32::from(!begins);
        }
    }
}
