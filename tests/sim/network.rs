//! Messages under way.

use std::collections::BTreeMap;
use std::time::Duration;

use speculation::pending::ProposedTree;
use speculation::session::Peer;

use crate::ahead::{Commit, Said};
use crate::dice::{Chooses, Dice};
use crate::faults::{Fate, Faults, Way};
use crate::message::{Ask, Corruption, Reply};

/// Longest time a message is under way when no fault delays it.
pub(crate) const MAX_LATENCY: Duration = Duration::from_millis(20);

/// A message between the coordinator and a peer.
#[derive(Clone, Debug)]
pub(crate) enum Message {
    Ask(Ask),
    Reply(Reply),
    /// Drafts for the decode under way.
    Append(ProposedTree),
    /// What the target chose, for a drafter that drafts ahead.
    Commit(Commit),
    /// What such a drafter says.
    Said(Said),
    /// The decode under way may go on to this position.
    Grant(u32),
    /// The request is over.
    Close,
}

impl Message {
    /// Whether it goes beside the requests, so that it is not among those that strokes hit.
    fn is_aside(&self) -> bool {
        !matches!(self, Self::Ask(_) | Self::Reply(_))
    }

    fn way(&self) -> Way {
        match self {
            Self::Reply(_) | Self::Said(_) => Way::Reply,
            Self::Ask(_) | Self::Append(_) | Self::Commit(_) | Self::Grant(_) | Self::Close => {
                Way::Request
            }
        }
    }
}

/// How many messages met which fate.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) lost: u32,
    pub(crate) repeated: u32,
    pub(crate) late: u32,
    pub(crate) corrupted: u32,
}

/// One direction between the coordinator and a peer.
#[derive(Clone, Copy, Debug, Default)]
struct Channel {
    sent: u32,
    /// When the latest message that no fault delays arrives; none overtakes it.
    busy_until: Duration,
}

/// The network between the coordinator and its peers.
pub(crate) struct Network<'a> {
    faults: &'a Faults,
    dice: Dice,
    /// By peer, then by way.
    channels: [[Channel; 2]; 2],
    /// By time of arrival, then in the order sent.
    under_way: BTreeMap<(Duration, u64), (Peer, Message)>,
    sent: u64,
    pub(crate) tally: Tally,
}

impl<'a> Network<'a> {
    pub(crate) fn new(faults: &'a Faults) -> Self {
        Self {
            faults,
            dice: Dice::new(faults.seed, Chooses::Network),
            channels: Default::default(),
            under_way: BTreeMap::new(),
            sent: 0,
            tally: Tally::default(),
        }
    }

    /// When the next message arrives.
    pub(crate) fn next_arrival(&self) -> Option<Duration> {
        let first = self.under_way.first_key_value();
        first.map(|(&(arrival, _), _)| arrival)
    }

    /// The message that arrives next.
    pub(crate) fn receive(&mut self) -> Option<(Peer, Message)> {
        self.under_way.pop_first().map(|(_, message)| message)
    }

    /// Takes a message to or from `peer` at `now`.
    pub(crate) fn send(&mut self, peer: Peer, mut message: Message, now: Duration) {
        let way = message.way();
        let is_aside = message.is_aside();
        let channel = &mut self.channels[peer as usize][way as usize];
        let index = channel.sent;
        channel.sent += u32::from(!is_aside);
        let on_time =
            (now + self.dice.time(1..MAX_LATENCY.as_millis() as u32)).max(channel.busy_until);
        channel.busy_until = on_time;
        if self.faults.cuts(peer, way, now) {
            self.tally.lost += 1;
            return;
        }
        let stroke = self.stroke(peer, way, index).filter(|_| !is_aside);
        let fate = stroke.or_else(|| self.fate(&message));
        match fate {
            None => {}
            Some(Fate::Lost) => {
                self.tally.lost += 1;
                return;
            }
            Some(Fate::Twice) => {
                self.tally.repeated += 1;
                let again = on_time + self.dice.time(0..300);
                self.deliver(again, peer, message.clone());
            }
            Some(Fate::Late(by)) => {
                self.tally.late += 1;
                return self.deliver(on_time + by, peer, message);
            }
            Some(Fate::Corrupt(corruption)) => {
                self.tally.corrupted += 1;
                match &mut message {
                    Message::Reply(reply) => reply.answer.corrupt(corruption),
                    _ => return,
                }
            }
        }
        self.deliver(on_time, peer, message);
    }

    fn deliver(&mut self, arrival: Duration, peer: Peer, message: Message) {
        self.sent += 1;
        self.under_way.insert((arrival, self.sent), (peer, message));
    }

    fn stroke(&self, peer: Peer, way: Way, index: u32) -> Option<Fate> {
        let mut strokes = self.faults.strokes.iter();
        let stroke = strokes
            .find(|stroke| stroke.peer == peer && stroke.way == way && stroke.index == index);
        stroke.map(|stroke| stroke.fate)
    }

    fn fate(&mut self, message: &Message) -> Option<Fate> {
        let rates = match message {
            Message::Append(_) | Message::Said(_) => self.faults.proposals,
            _ => self.faults.rates,
        };
        let dice = &mut self.dice;
        if dice.happens(rates.lost) {
            Some(Fate::Lost)
        } else if dice.happens(rates.twice) {
            Some(Fate::Twice)
        } else if dice.happens(rates.late) {
            Some(Fate::Late(dice.time(1..800)))
        } else if dice.happens(rates.corrupt) {
            Some(Fate::Corrupt(dice.pick(&Corruption::ALL)))
        } else {
            None
        }
    }
}
