//! What goes wrong, and when.

use std::ops::Range;
use std::time::Duration;

use speculation::session::Peer;

use crate::dice::{Chooses, Dice};
use crate::message::Corruption;

/// Beyond every deadline.
pub(crate) const FOREVER: Duration = Duration::from_secs(86_400);

/// The direction of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// To a peer.
    Request,
    /// From a peer.
    Reply,
}

/// What becomes of a message that does not simply arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Lost,
    /// A second copy arrives later, behind others.
    Twice,
    /// It arrives this much later, behind others.
    Late(Duration),
    /// A reply arrives falsified; a request so damaged is lost.
    Corrupt(Corruption),
}

/// The fate of the message number `index` between the coordinator and `peer`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stroke {
    pub(crate) peer: Peer,
    pub(crate) way: Way,
    pub(crate) index: u32,
    pub(crate) fate: Fate,
}

/// How often a message meets each fate, in thousandths.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rates {
    pub(crate) lost: u32,
    pub(crate) twice: u32,
    pub(crate) late: u32,
    pub(crate) corrupt: u32,
}

/// What a peer suffers for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// Nothing passes, either way.
    CutOff,
    /// Nothing passes this way.
    CutOneWay(Way),
    /// It forgets everything, and its connections are refused until it is back.
    Crash,
    /// Another peer, with another model, answers instead of it. Each of the two has forgotten every session when it begins
    /// to answer.
    Replaced,
    /// It answers that it is overloaded.
    Overload {
        /// When it wants to be asked again.
        retry_after: Duration,
    },
}

/// A time in which a peer is in trouble.
#[derive(Clone, Debug)]
pub(crate) struct Outage {
    pub(crate) peer: Peer,
    pub(crate) trouble: Trouble,
    pub(crate) during: Range<Duration>,
}

/// Everything that goes wrong in one simulation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults {
    /// Seed of latencies and of the fates that `rates` deal out.
    pub(crate) seed: u64,
    pub(crate) rates: Rates,
    /// The fates of proposals, which come aside from requests.
    pub(crate) proposals: Rates,
    pub(crate) strokes: Vec<Stroke>,
    pub(crate) outages: Vec<Outage>,
    /// When the client goes away, even if it was given everything by then.
    pub(crate) client_leaves: Option<Duration>,
}

impl Faults {
    /// None but differing latencies.
    pub(crate) fn none(seed: u64) -> Self {
        Self {
            seed,
            ..Self::default()
        }
    }

    /// The schedule that `seed` stands for.
    pub(crate) fn random(seed: u64) -> Self {
        let mut dice = Dice::new(seed, Chooses::Faults);
        let mut rate = |rates: &[u32]| dice.pick(rates);
        let rates = Rates {
            lost: rate(&[0, 0, 20, 150]),
            twice: rate(&[0, 50, 500]),
            late: rate(&[0, 0, 20, 150]),
            corrupt: rate(&[0, 0, 0, 20]),
        };
        let outages = (0..dice.below(4)).map(|_| Outage::random(&mut dice));
        let outages = outages.collect();
        let leaves = dice.happens(100);
        let client_leaves = leaves.then(|| dice.time(0..1_500));
        let mut rate = |rates: &[u32]| dice.pick(rates);
        Self {
            rates,
            outages,
            client_leaves,
            proposals: Rates {
                lost: rate(&[0, 100, 400]),
                twice: rate(&[0, 200, 1_000]),
                late: rate(&[0, 100, 400]),
                corrupt: 0,
            },
            ..Self::none(seed)
        }
    }

    /// With a schedule that `seed` stands for, in which peers are replaced, for a while or for good.
    pub(crate) fn replacing(mut self, seed: u64) -> Self {
        let mut dice = Dice::new(seed, Chooses::Replacements);
        for _ in 0..=dice.below(4) {
            let start = dice.time(0..600);
            let lasts = dice.pick(&[20, 100, 300, FOREVER.as_millis() as u64]);
            self.outages.push(Outage {
                peer: dice.pick(&[Peer::Drafter, Peer::Verifier, Peer::Verifier]),
                trouble: Trouble::Replaced,
                during: start..start + Duration::from_millis(lasts),
            });
        }
        self
    }

    /// With a fate for one message.
    pub(crate) fn stroke(mut self, peer: Peer, way: Way, index: u32, fate: Fate) -> Self {
        self.strokes.push(Stroke {
            peer,
            way,
            index,
            fate,
        });
        self
    }

    /// With a time of trouble, in milliseconds.
    pub(crate) fn outage(mut self, peer: Peer, trouble: Trouble, millis: Range<u64>) -> Self {
        let during = Duration::from_millis(millis.start)..Duration::from_millis(millis.end);
        self.outages.push(Outage {
            peer,
            trouble,
            during,
        });
        self
    }

    /// With trouble for ever from a time on, in milliseconds.
    pub(crate) fn outage_from(self, peer: Peer, trouble: Trouble, millis: u64) -> Self {
        self.outage(peer, trouble, millis..FOREVER.as_millis() as u64)
    }

    /// What `peer` suffers at `now`.
    pub(crate) fn troubles(&self, peer: Peer, now: Duration) -> impl Iterator<Item = Trouble> {
        let outages = self.outages.iter();
        let current = outages.filter(move |outage| outage.peer == peer);
        current
            .filter(move |outage| outage.during.contains(&now))
            .map(|outage| outage.trouble)
    }

    /// Whether messages between the coordinator and `peer` are stopped at `now`.
    pub(crate) fn cuts(&self, peer: Peer, way: Way, now: Duration) -> bool {
        let stops = |trouble| trouble == Trouble::CutOff || trouble == Trouble::CutOneWay(way);
        self.troubles(peer, now).any(stops)
    }

    /// Returns whether another peer answers instead of `peer` at `now`, and how often that has changed by then.
    pub(crate) fn replaced(&self, peer: Peer, now: Duration) -> (bool, usize) {
        let replaced =
            |outage: &&Outage| outage.peer == peer && outage.trouble == Trouble::Replaced;
        let outages = self.outages.iter().filter(replaced);
        let changes = outages.flat_map(|outage| [outage.during.start, outage.during.end]);
        let is_another = self.troubles(peer, now).any(|it| it == Trouble::Replaced);
        (is_another, changes.filter(|&at| at <= now).count())
    }

    /// How often `peer` crashed by `now`.
    pub(crate) fn crashes(&self, peer: Peer, now: Duration) -> usize {
        let crashed = |outage: &&Outage| {
            outage.peer == peer && outage.trouble == Trouble::Crash && outage.during.start <= now
        };
        self.outages.iter().filter(crashed).count()
    }
}

impl Outage {
    fn random(dice: &mut Dice) -> Self {
        let trouble = dice.pick(&[
            Trouble::CutOff,
            Trouble::CutOneWay(Way::Request),
            Trouble::CutOneWay(Way::Reply),
            Trouble::Crash,
            Trouble::Crash,
            Trouble::Overload {
                retry_after: Duration::from_millis(30),
            },
        ]);
        let start = dice.time(0..800);
        let lasts = dice.pick(&[1, 50, 300, FOREVER.as_millis() as u64]);
        Self {
            peer: dice.pick(&[Peer::Drafter, Peer::Drafter, Peer::Verifier]),
            trouble,
            during: start..start + Duration::from_millis(lasts),
        }
    }
}
