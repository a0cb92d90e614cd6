//! The only source of chance in a simulation.

use std::ops::Range;
use std::time::Duration;

use speculation::philox::philox;

/// What chance decides, each with numbers of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Chooses {
    /// The parameters of a case.
    Case,
    /// The faults of a schedule.
    Faults,
    /// What the network does with each message.
    Network,
    /// The load that peers report.
    Prices,
    /// When a peer becomes another.
    Replacements,
    /// What is proposed while the target decodes.
    Proposals,
    /// How many drafts a forward scores.
    Rows,
}

/// A seeded sequence of numbers.
#[derive(Clone, Debug)]
pub(crate) struct Dice {
    key: [u32; 2],
    chooses: Chooses,
    rolls: u32,
}

impl Dice {
    pub(crate) fn new(seed: u64, chooses: Chooses) -> Self {
        Self {
            key: [seed as u32, (seed >> 32) as u32],
            chooses,
            rolls: 0,
        }
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: u32) -> u32 {
        self.rolls += 1;
        let word = philox([self.rolls, self.chooses as u32, 0, 0], self.key)[0];
        ((u64::from(word) * u64::from(end)) >> 32) as u32
    }

    /// Whether an event of this probability, in thousandths, happens.
    pub(crate) fn happens(&mut self, per_mille: u32) -> bool {
        self.below(1000) < per_mille
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u32) as usize]
    }

    /// A time in a range of milliseconds, to the microsecond.
    pub(crate) fn time(&mut self, millis: Range<u32>) -> Duration {
        let micros = (millis.end - millis.start) * 1000;
        Duration::from_micros(u64::from(millis.start * 1000 + self.below(micros)))
    }
}
