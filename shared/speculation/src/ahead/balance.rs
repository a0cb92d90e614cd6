//! Whether the drafts of a drafter are worth their way: what one request measures, and what the requests of a kind tell each
//! other, so that each need not find out anew.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

/// Processor time that a message takes from others on its way through the coordinator and at the verifier, in milliseconds.
pub const ON_THE_WAY: f32 = 0.2;

/// Forwards until it is known whether drafts pay, and until they are tried again where they did not.
const KNOWN: u32 = 32;
const RESTS: u32 = 256;

/// Weight of the latest forward in means.
const LATEST: f32 = 0.05;

/// One request in so many drafts although the drafts of others did not pay.
const TRIES: u32 = 16;

/// Number of loads that findings are kept of. A load is a power of two of the sequences in a forward.
const LOADS: usize = 10;

/// What requests of a kind found, by the load of the verifier.
#[derive(Clone, Debug, Default)]
pub struct Findings(Arc<Found>);

#[derive(Debug, Default)]
struct Found {
    /// Whether drafts did not pay, by what was found last.
    rests: [AtomicBool; LOADS],
    /// Requests that rest because of what others found.
    resting: AtomicU32,
    /// Sequences in a forward, as was heard last.
    sequences: AtomicU32,
    /// Speed over that of the target alone, as bits; 0 where it is not known.
    gains: [AtomicU32; LOADS],
}

impl Findings {
    /// Returns the balance of the next request.
    pub fn begin(&self) -> Balance {
        Balance::at(self.clone(), self.0.sequences.load(Relaxed))
    }

    /// Returns the measured speed with drafts over that of the target alone, at the load that was heard of last; none before
    /// it is known.
    pub fn gain(&self) -> Option<f64> {
        let bits = self.0.gains[load(self.0.sequences.load(Relaxed))].load(Relaxed);
        (bits != 0).then(|| f64::from(f32::from_bits(bits)))
    }

    fn rests(&self, sequences: u32) -> &AtomicBool {
        &self.0.rests[load(sequences)]
    }
}

fn load(sequences: u32) -> usize {
    (sequences.max(1).ilog2() as usize).min(LOADS - 1)
}

/// What a forward of the target says of a drafter's drafts, and of all drafts.
#[derive(Clone, Copy, Debug, Default)]
pub struct JudgedForward {
    /// The drafter's that it accepted.
    pub accepted: u32,
    /// All that it accepted.
    pub all_accepted: u32,
    /// All that it scored.
    pub scored: u32,
    /// The least probability of standing that was worth a row in it; 0 if that is not known.
    pub price: f32,
    /// A sequence's share of it, in milliseconds.
    pub ms: f32,
    /// Sequences in it; 0 if that is not known.
    pub sequences: u32,
}

impl JudgedForward {
    /// Returns the milliseconds that the drafter's drafts saved the sequence: a forward without drafts for each that was
    /// accepted, less the rows. On a busy verifier a row takes about as long as it saves.
    fn saved(self) -> f32 {
        // The price is what a row takes, as a share of what a token takes.
        let row = self.price * self.ms / (1 + self.all_accepted) as f32;
        let rows = row * self.scored as f32;
        let alone = (self.ms - rows).max(0.0);
        // Who is to blame for rows in vain is not known.
        let share = self.accepted as f32 / self.all_accepted.max(1) as f32;
        let share = if self.all_accepted == 0 { 1.0 } else { share };
        self.accepted as f32 * alone - share * rows
    }
}

/// What a drafter's drafts bring and take in one request, over the last twenty forwards.
#[derive(Clone, Debug)]
pub struct Balance {
    findings: Findings,
    /// Sequences in a forward, when measuring began.
    sequences: u32,
    /// Milliseconds that a forward's drafts saved.
    saved: f32,
    /// Milliseconds that a forward took.
    took: f32,
    /// Messages of drafts between two forwards.
    messages: f32,
    /// Messages since the last forward.
    came: u32,
    /// Forwards since drafts first came, or since the drafter was told to rest.
    forwards: u32,
    /// Whether what others found counts.
    asks_others: bool,
    is_resting: bool,
}

impl Balance {
    fn at(findings: Findings, sequences: u32) -> Self {
        let mut balance = Self {
            findings,
            sequences,
            saved: 0.0,
            took: 0.0,
            messages: 0.0,
            came: 0,
            forwards: 0,
            asks_others: true,
            is_resting: false,
        };
        if balance.others_rest() {
            let resting = balance.findings.0.resting.fetch_add(1, Relaxed);
            balance.asks_others = resting % TRIES != TRIES - 1;
            balance.is_resting = balance.asks_others;
        }
        balance
    }

    fn others_rest(&self) -> bool {
        self.findings.rests(self.sequences).load(Relaxed)
    }

    /// A message of drafts came.
    pub fn came(&mut self) {
        self.came += 1;
    }

    /// Records a forward.
    pub fn forward(&mut self, forward: JudgedForward) {
        let came = std::mem::take(&mut self.came);
        let sequences = forward.sequences;
        if sequences > 0 {
            self.findings.0.sequences.store(sequences, Relaxed);
            // What was measured at half the load, or at twice as much, says nothing.
            if sequences >= 2 * self.sequences || 2 * sequences <= self.sequences {
                *self = Self::at(self.findings.clone(), sequences);
                return;
            }
        }
        if self.is_resting {
            self.forwards += 1;
            if self.forwards >= RESTS {
                *self = Self {
                    asks_others: false,
                    is_resting: false,
                    ..Self::at(self.findings.clone(), self.sequences)
                };
            }
            return;
        }
        self.is_resting = self.asks_others && self.others_rest();
        // A drafter that is still reading the text has not shown anything.
        if self.is_resting || self.forwards == 0 && came == 0 {
            return;
        }
        self.forwards += 1;
        self.saved += LATEST * (forward.saved() - self.saved);
        self.took += LATEST * (forward.ms - self.took);
        self.messages += LATEST * (came as f32 - self.messages);
        if self.forwards >= KNOWN {
            self.asks_others = false;
            let net = self.saved - ON_THE_WAY * self.messages;
            self.is_resting = net < 0.0;
            self.findings
                .rests(self.sequences)
                .store(self.is_resting, Relaxed);
            if self.took > 0.0 {
                // What was saved is what the target alone would have taken beside.
                let gain = (1.0 + net / self.took).max(f32::MIN_POSITIVE);
                self.findings.0.gains[load(self.sequences)].store(gain.to_bits(), Relaxed);
            }
        }
        if self.is_resting {
            self.forwards = 0;
        }
    }

    /// Whether the drafter is to rest.
    pub fn is_resting(&self) -> bool {
        self.is_resting
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One of `sequences` in a forward of so many milliseconds for each.
    fn forward(accepted: u32, ms: f32, sequences: u32) -> JudgedForward {
        JudgedForward {
            accepted,
            all_accepted: accepted,
            scored: 1,
            price: 0.01,
            ms,
            sequences,
        }
    }

    /// So many forwards, with two messages before each and an accepted draft in each `nth`; how many of them the drafter
    /// rested.
    fn rested(balance: &mut Balance, forwards: u32, (ms, sequences): (f32, u32), nth: u32) -> u32 {
        let mut rested = 0;
        for at in 0..forwards {
            if !balance.is_resting() {
                balance.came();
                balance.came();
            }
            balance.forward(forward(u32::from(at % nth == 0), ms, sequences));
            rested += u32::from(balance.is_resting());
        }
        rested
    }

    #[test]
    fn a_drafter_rests_where_its_messages_take_longer_than_they_save() {
        let rested = |ms, nth| rested(&mut Findings::default().begin(), 2_000, (ms, 1), nth);
        assert_eq!(rested(30.0, 10), 0);
        assert_eq!(rested(1.0, 1), 0);
        let rests = rested(1.0, 10);
        assert!(rests > 1_600, "{rests}");
        // It is tried again.
        assert!(rests < 2_000 - KNOWN, "{rests}");
        assert!(rested(30.0, 1_000_000) > 1_500);
    }

    #[test]
    fn what_drafts_bring_is_told_by_load() {
        let findings = Findings::default();
        let mut balance = findings.begin();
        balance.forward(forward(0, 10.0, 4));
        assert_eq!(findings.gain(), None);
        // Each forward emits two tokens, in little more time than one takes.
        rested(&mut balance, 10 * KNOWN, (10.0, 4), 1);
        let gain = findings.gain().expect("known");
        assert!((1.8..2.0).contains(&gain), "{gain}");
        // At another load nothing is known yet.
        balance.forward(forward(0, 0.3, 64));
        assert_eq!(findings.gain(), None);
        rested(&mut balance, 2 * KNOWN, (0.3, 64), 1_000);
        assert!(findings.gain().expect("known") < 1.0);
    }

    #[test]
    fn rows_take_of_what_accepted_drafts_save() {
        // Ten milliseconds without drafts, and each row as much again: two tokens in twenty.
        let busy = JudgedForward {
            price: 1.0,
            ..forward(1, 20.0, 1)
        };
        assert_eq!(busy.saved(), 0.0);
        // A tenth of it.
        let idle = JudgedForward {
            scored: 4,
            price: 1.0 / 7.0,
            ..forward(1, 14.0, 1)
        };
        assert_eq!(idle.saved(), 10.0 - 4.0);
        let in_vain = JudgedForward {
            accepted: 0,
            all_accepted: 0,
            ..busy
        };
        assert_eq!(in_vain.saved(), -20.0);
        let by_others = JudgedForward {
            accepted: 0,
            ..idle
        };
        assert_eq!(by_others.saved(), 0.0);
    }

    #[test]
    fn a_drafter_is_judged_from_its_first_drafts_on() {
        let mut balance = Findings::default().begin();
        for _ in 0..1_000 {
            balance.forward(forward(0, 30.0, 0));
        }
        for at in 0..10 * KNOWN {
            balance.came();
            balance.forward(forward(u32::from(at % 3 == 2), 30.0, 0));
            assert!(!balance.is_resting(), "{at}");
        }
    }

    #[test]
    fn who_says_nothing_costs_nothing() {
        let mut balance = Findings::default().begin();
        for _ in 0..1_000 {
            balance.forward(forward(0, 1.0, 0));
            assert!(!balance.is_resting());
        }
    }

    #[test]
    fn what_one_request_finds_the_next_need_not() {
        let findings = Findings::default();
        let mut beside = findings.begin();
        let mut first = findings.begin();
        assert!(rested(&mut first, 2 * KNOWN, (1.0, 64), 10) > 0);
        // Neither those that follow, but for one in sixteen, nor those under way that know nothing yet.
        let mut tries = 0;
        for _ in 0..4 * TRIES {
            let mut next = findings.begin();
            tries += u32::from(!next.is_resting());
            assert!(rested(&mut next, KNOWN, (1.0, 64), 10) > 0 || !next.is_resting());
        }
        assert_eq!(tries, 4);
        assert!(rested(&mut beside, KNOWN, (1.0, 64), 10) >= KNOWN - 1);
        // Until one of these finds that they pay.
        let mut pays = (0..=TRIES).map(|_| findings.begin());
        let mut pays = pays.find(|next| !next.is_resting()).expect("a try");
        assert_eq!(rested(&mut pays, KNOWN, (30.0, 64), 1), 0);
        assert!((0..TRIES).all(|_| !findings.begin().is_resting()));
    }

    #[test]
    fn another_load_is_another_matter() {
        let findings = Findings::default();
        let mut balance = findings.begin();
        assert!(rested(&mut balance, 2 * KNOWN, (1.0, 64), 10) > 0);
        assert!(balance.is_resting());
        // About as many are no other load.
        balance.forward(forward(0, 1.0, 40));
        assert!(balance.is_resting());
        // The next request begins at the load that was heard of last.
        balance.forward(forward(0, 1.0, 4));
        assert!(!balance.is_resting() && !findings.begin().is_resting());
        balance.forward(forward(0, 1.0, 64));
        assert!(balance.is_resting() && findings.begin().is_resting());
    }
}
